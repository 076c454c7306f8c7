//! What a route demands of a request, one field at a time.
//!
//! Matchers become these, and so do the simple parts of conditions: `biz_type == "risk"` in CEL is the same as
//! `biz_types: [risk]`. One form for all of them is what an index can be built over, and what two routes are compared by.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use chrono_tz::Tz;
use http::HeaderName;

use crate::pattern::Pattern;

/// A field of a request that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextField {
    /// HTTP method.
    Method,
    /// Path without the query.
    Path,
    /// The host that the client called, in lower case and without the port.
    Host,
    /// The model asked for.
    Model,
    /// The protocol that the client speaks.
    Protocol,
    /// The end user.
    User,
    /// The session.
    Session,
    /// The line of business.
    BizType,
    /// The proxy's zone.
    Zone,
    /// The proxy's region.
    Region,
    /// The proxy's id.
    Node,
    /// The language of what the user said last, by its script.
    Language,
    /// What the request needs.
    Capability,
}

impl TextField {
    /// Every one of them.
    pub const ALL: &[Self] = &[
        Self::Method,
        Self::Path,
        Self::Host,
        Self::Model,
        Self::Protocol,
        Self::User,
        Self::Session,
        Self::BizType,
        Self::Zone,
        Self::Region,
        Self::Node,
        Self::Language,
        Self::Capability,
    ];

    /// Its name in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Path => "path",
            Self::Host => "host",
            Self::Model => "model",
            Self::Protocol => "protocol",
            Self::User => "user",
            Self::Session => "session",
            Self::BizType => "biz_type",
            Self::Zone => "zone",
            Self::Region => "region",
            Self::Node => "node",
            Self::Language => "language",
            Self::Capability => "capability",
        }
    }
}

/// A field of a request that is a whole number. Flags are 0 or 1, an address is its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberField {
    /// Is a stream wanted?
    Stream,
    /// Is there a system or developer message?
    SystemPrompt,
    /// Does a message hold an image?
    Images,
    /// Is there sound in a message, or wanted in the answer?
    Audio,
    /// Must the answer follow a JSON Schema?
    JsonSchema,
    /// How many tools.
    Tools,
    /// How many messages.
    MessageCount,
    /// Estimate of the prompt's tokens.
    PromptTokens,
    /// The client's limit on output tokens.
    MaxTokens,
    /// 0 to 23, UTC.
    Hour,
    /// 1 = Monday to 7, UTC.
    Weekday,
    /// 0 to 99, see [`crate::policy::CONTEXT_FIELDS`].
    Bucket,
    /// The peer's address as [`address_number`] gives it.
    ClientIp,
}

impl NumberField {
    /// Every one of them.
    pub const ALL: &[Self] = &[
        Self::Stream,
        Self::SystemPrompt,
        Self::Images,
        Self::Audio,
        Self::JsonSchema,
        Self::Tools,
        Self::MessageCount,
        Self::PromptTokens,
        Self::MaxTokens,
        Self::Hour,
        Self::Weekday,
        Self::Bucket,
        Self::ClientIp,
    ];

    /// Its name in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::SystemPrompt => "system_prompt",
            Self::Images => "images",
            Self::Audio => "audio",
            Self::JsonSchema => "json_schema",
            Self::Tools => "tools",
            Self::MessageCount => "message_count",
            Self::PromptTokens => "prompt_tokens",
            Self::MaxTokens => "max_tokens",
            Self::Hour => "hour",
            Self::Weekday => "weekday",
            Self::Bucket => "bucket",
            Self::ClientIp => "client_ip",
        }
    }
}

/// A field that routes can make demands on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field {
    /// Text.
    Text(TextField),
    /// The first value of this header.
    Header(HeaderName),
    /// A number.
    Number(NumberField),
    /// The minute of the week in this time zone, see [`crate::policy::week_minute`].
    WeekMinute(Tz),
}

impl Field {
    /// Its name among the matchers, without the name of a header or a zone.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(field) => field.as_str(),
            Self::Header(_) => "header",
            Self::Number(field) => field.as_str(),
            Self::WeekMinute(_) => "time",
        }
    }
}

/// As an operator would call it.
impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(field) => formatter.write_str(field.as_str()),
            Self::Header(name) => write!(formatter, "header {name}"),
            Self::Number(field) => formatter.write_str(field.as_str()),
            Self::WeekMinute(zone) => write!(formatter, "time in {zone}"),
        }
    }
}

/// One demand: the field has one of these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// Of which field.
    pub field: Field,
    /// What is accepted.
    pub accepts: Accepts,
}

/// The values that a [`Constraint`] accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepts {
    /// Text that one of these matches.
    Texts(Vec<Pattern>),
    /// A number in one of these ranges.
    Numbers(Vec<RangeInclusive<u128>>),
}

impl Constraint {
    /// Text that one of `patterns` matches.
    #[must_use]
    pub fn texts(field: Field, patterns: Vec<Pattern>) -> Self {
        Self { field, accepts: Accepts::Texts(patterns) }
    }

    /// A number in one of `ranges`.
    #[must_use]
    pub fn numbers(field: Field, ranges: Vec<RangeInclusive<u128>>) -> Self {
        Self { field, accepts: Accepts::Numbers(ranges) }
    }
}

impl Accepts {
    /// Is this text accepted?
    #[must_use]
    pub fn text(&self, value: &str) -> bool {
        matches!(self, Self::Texts(patterns) if patterns.iter().any(|pattern| pattern.matches(value)))
    }

    /// Is this number accepted?
    #[must_use]
    pub fn number(&self, value: u128) -> bool {
        matches!(self, Self::Numbers(ranges) if ranges.iter().any(|range| range.contains(&value)))
    }

    /// Is every value that `other` accepts accepted here, too? `true` is certain; `false` may only be that it does not show.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Texts(these), Self::Texts(those)) => {
                those.iter().all(|that| these.iter().any(|this| this.covers(that)))
            }
            (Self::Numbers(these), Self::Numbers(those)) => those.iter().all(|that| {
                these.iter().any(|this| this.contains(that.start()) && this.contains(that.end()))
            }),
            _ => false,
        }
    }

    /// Is there a value that both accept?
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Texts(these), Self::Texts(those)) => {
                those.iter().any(|that| these.iter().any(|this| this.overlaps(that)))
            }
            (Self::Numbers(these), Self::Numbers(those)) => those.iter().any(|that| {
                these.iter().any(|this| this.start() <= that.end() && that.start() <= this.end())
            }),
            _ => false,
        }
    }
}

/// An address as a number: that of IPv6, where IPv4 has a range of its own (RFC 4291 section 2.5.5.2).
#[must_use]
pub fn address_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(sources: &[String]) -> Accepts {
        Accepts::Texts(sources.iter().map(|source| Pattern::new(source)).collect())
    }

    fn numbers(ranges: &[(u128, u128)]) -> Accepts {
        Accepts::Numbers(ranges.iter().map(|&(a, b)| a.min(b)..=a.max(b)).collect())
    }

    #[test]
    fn a_mapped_address_is_the_address_that_it_maps() {
        let number = |text: &str| address_number(text.parse().unwrap());
        assert_eq!(number("10.0.0.1"), number("::ffff:10.0.0.1"));
        assert!(number("10.0.0.1") < number("10.0.0.2"));
        assert_ne!(number("10.0.0.1"), number("::1"));
    }

    proptest! {
        #[test]
        fn what_covers_accepts_all_that_is_covered_and_what_overlaps_not_has_nothing_in_common(
            these in prop::collection::vec("[ab*]{0,3}", 1..3),
            those in prop::collection::vec("[ab*]{0,3}", 1..3),
            values in prop::collection::vec("[ab]{0,5}", 20),
        ) {
            let (these, those) = (texts(&these), texts(&those));
            for value in &values {
                if those.text(value) && these.covers(&those) {
                    prop_assert!(these.text(value));
                }
                if !these.overlaps(&those) {
                    prop_assert!(!(these.text(value) && those.text(value)));
                }
            }
        }

        #[test]
        fn ranges_are_compared_as_texts_are(
            these in prop::collection::vec((0..20_u128, 0..20_u128), 0..3),
            those in prop::collection::vec((0..20_u128, 0..20_u128), 0..3),
        ) {
            let (these, those) = (numbers(&these), numbers(&those));
            let both = |value: u128| these.number(value) && those.number(value);
            prop_assert_eq!(these.overlaps(&those), (0..20).any(both));
            if these.covers(&those) {
                prop_assert!((0..20).all(|value| !those.number(value) || these.number(value)));
            }
        }
    }
}
