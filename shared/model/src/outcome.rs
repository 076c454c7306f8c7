//! How an attempt can end, and what each ending means (`algorithms` section 2.4).

/// How one attempt at one target ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// A complete, good answer.
    Ok,
    /// The vendor blames the request: 400, 404, 413, 422, a refusal. Says nothing about the target.
    ClientError,
    /// The client went away.
    ClientCancelled,
    /// The request's own deadline left too little time.
    DeadlineExceeded,
    /// 429: our account sends too much.
    RateLimited,
    /// 401, 403, or the account is out of money: the key is of no use.
    CredentialRejected,
    /// 503 or 529: the vendor is short of capacity for everyone.
    Overloaded,
    /// 500, 502, 504 and every other 5xx.
    ServerError,
    /// No connection, or no TLS.
    ConnectError,
    /// The connection broke before the first byte of the answer.
    Reset,
    /// Nothing came within the first-token timeout.
    FirstTokenTimeout,
    /// The answer stopped coming for longer than the idle timeout.
    IdleTimeout,
    /// The answer broke off after its first byte, or ended without its end mark.
    Truncated,
    /// What came is not what the protocol allows.
    InvalidResponse,
}

impl Outcome {
    /// Every outcome, in the order of the reference page.
    pub const ALL: [Self; 14] = [
        Self::Ok,
        Self::ClientError,
        Self::ClientCancelled,
        Self::DeadlineExceeded,
        Self::RateLimited,
        Self::CredentialRejected,
        Self::Overloaded,
        Self::ServerError,
        Self::ConnectError,
        Self::Reset,
        Self::FirstTokenTimeout,
        Self::IdleTimeout,
        Self::Truncated,
        Self::InvalidResponse,
    ];

    /// Its name on the wire, in metrics and in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ClientError => "client_error",
            Self::ClientCancelled => "client_cancelled",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::RateLimited => "rate_limited",
            Self::CredentialRejected => "credential_rejected",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::ConnectError => "connect_error",
            Self::Reset => "reset",
            Self::FirstTokenTimeout => "first_token_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::Truncated => "truncated",
            Self::InvalidResponse => "invalid_response",
        }
    }

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
