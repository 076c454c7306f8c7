//! How an attempt can end, and what each ending means.

/// Defines [`Outcome`] from one list, so that the reference page says what the code says.
macro_rules! outcomes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// How one attempt at one target ended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Outcome {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Outcome {
            /// Every outcome, in the order of the reference page.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name on the wire, in metrics and in logs.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it means, in a sentence or two.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

outcomes! {
    /// A complete, good answer.
    Ok = "ok",
    /// The vendor blames the request: 400, 404, 413, 422, a refusal. Says nothing about the target.
    ClientError = "client_error",
    /// The vendor's content filter refused the request. Says nothing about the target, and no other is asked.
    ContentFiltered = "content_filtered",
    /// The client went away.
    ClientCancelled = "client_cancelled",
    /// The request's own deadline left too little time.
    DeadlineExceeded = "deadline_exceeded",
    /// 429: our account sends too much.
    RateLimited = "rate_limited",
    /// 401, 403, or the account is out of money: the key is of no use.
    CredentialRejected = "credential_rejected",
    /// 503 or 529: the vendor is short of capacity for everyone.
    Overloaded = "overloaded",
    /// 500, 502, 504 and every other 5xx.
    ServerError = "server_error",
    /// No connection, or no TLS.
    ConnectError = "connect_error",
    /// The connection broke before the first byte of the answer.
    Reset = "reset",
    /// Nothing came within the first-token timeout.
    FirstTokenTimeout = "first_token_timeout",
    /// The answer stopped coming for longer than the idle timeout.
    IdleTimeout = "idle_timeout",
    /// The answer broke off after its first byte, or ended without its end mark.
    Truncated = "truncated",
    /// What came is not what the protocol allows.
    InvalidResponse = "invalid_response",
}

impl Outcome {
    /// The reverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// Position in [`Self::ALL`], for dense counters.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Does it count in the failure ratio and the success term?
    #[must_use]
    pub fn is_failure(self) -> bool {
        self.is_hard_failure() || matches!(self, Self::Overloaded | Self::Truncated)
    }

    /// Does it count towards the run of hard failures that trips a breaker at once?
    #[must_use]
    pub fn is_hard_failure(self) -> bool {
        matches!(
            self,
            Self::ServerError
                | Self::ConnectError
                | Self::Reset
                | Self::FirstTokenTimeout
                | Self::IdleTimeout
                | Self::InvalidResponse
        )
    }

    /// Would another target help, provided nothing has reached the client?
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self.is_failure() || matches!(self, Self::RateLimited | Self::CredentialRejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_found_by_its_name_and_its_index() {
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
            assert_eq!(outcome.index(), index);
            assert!(outcome.description().ends_with('.'), "{outcome:?}");
        }
        assert_eq!(Outcome::parse("fine"), None);
    }

    #[test]
    fn what_is_retried_counts_against_the_target_or_its_key() {
        for outcome in Outcome::ALL {
            assert!(!outcome.is_hard_failure() || outcome.is_failure(), "{outcome:?}");
            assert!(!outcome.is_failure() || outcome.is_retryable(), "{outcome:?}");
        }
        for blameless in [
            Outcome::Ok,
            Outcome::ClientError,
            Outcome::ContentFiltered,
            Outcome::ClientCancelled,
            Outcome::DeadlineExceeded,
        ] {
            assert!(!blameless.is_retryable(), "{blameless:?}");
        }
    }
}
