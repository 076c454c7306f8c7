//! What can be made to go wrong with a service while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault, or several at once. As text: `latency=2s,errors=0.9,status=429,retry_after=7`; as JSON:
/// `{"latency":"2s","errors":0.9}`. The empty one, `clear`, is a healthy service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// Added to the wait before each answer.
    #[serde(with = "duration_text", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Duration>,
    /// Share of the calls that fail, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<f64>,
    /// The status they fail with: 400 to 599. Without it 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Seconds to put into `retry-after` when they fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// Takes the request and never answers.
    #[serde(skip_serializing_if = "is_false")]
    pub hang: bool,
    /// Takes the request and resets the connection.
    #[serde(skip_serializing_if = "is_false")]
    pub reset: bool,
    /// Sends half of a stream and then nothing more, holding it open.
    #[serde(skip_serializing_if = "is_false")]
    pub stall: bool,
    /// Reports an error inside a stream, before its first token.
    #[serde(skip_serializing_if = "is_false")]
    pub stream_error: bool,
    /// Reports an error half-way through a stream.
    #[serde(skip_serializing_if = "is_false")]
    pub late_error: bool,
    /// Answers with something that is not the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub garbage: Option<Garbage>,
    /// Stops half-way through an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate: Option<Truncate>,
}

/// Which layer of the answer is garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Garbage {
    /// Good HTTP, status 200, a body that is no JSON.
    Body,
    /// Not even HTTP.
    Http,
}

/// How an answer stops half-way. One that is not streamed always breaks off short of its `content-length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncate {
    /// A stream ends as if all were said, but without its end mark.
    Clean,
    /// The connection breaks.
    Abort,
}

/// Why a fault could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read fault `{part}`: {reason}; known are latency=2s, errors=0.9, status=429, retry_after=7, hang, reset, stall, stream_error, late_error, garbage[=body|http], truncate[=clean|abort], clear"
)]
pub struct InvalidFault {
    /// The part that is wrong.
    pub part: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Fault {
    /// Reads a fault as people write it, parts separated by commas.
    ///
    /// # Errors
    /// When a part is unknown, has a bad value, or contradicts another.
    pub fn parse(text: &str) -> Result<Self, InvalidFault> {
        let mut fault = Self::default();
        for part in text.split(',').map(str::trim) {
            let (name, value) =
                part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            fault.set(name, value).map_err(|reason| InvalidFault { part: part.to_owned(), reason })?;
        }
        if text.contains("clear") && fault != Self::default() {
            return Err(InvalidFault { part: text.to_owned(), reason: "clear stands alone".to_owned() });
        }
        fault.check()?;
        Ok(fault)
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let number = |what: &str| value.ok_or_else(|| format!("it needs {what}"));
        match (name, value) {
            ("latency", _) => {
                let text = number("a duration")?;
                self.latency = Some(humantime::parse_duration(text).map_err(|error| error.to_string())?);
            }
            ("errors", _) => self.errors = Some(parse(number("a share")?)?),
            ("status", _) => self.status = Some(parse(number("a number")?)?),
            ("retry_after", _) => self.retry_after = Some(parse(number("seconds")?)?),
            ("hang", None) => self.hang = true,
            ("reset", None) => self.reset = true,
            ("stall", None) => self.stall = true,
            ("stream_error", None) => self.stream_error = true,
            ("late_error", None) => self.late_error = true,
            ("garbage", None | Some("body")) => self.garbage = Some(Garbage::Body),
            ("garbage", Some("http")) => self.garbage = Some(Garbage::Http),
            ("truncate", None | Some("clean")) => self.truncate = Some(Truncate::Clean),
            ("truncate", Some("abort")) => self.truncate = Some(Truncate::Abort),
            ("clear", None) => {}
            (_, None) => return Err("no such fault".to_owned()),
            (_, Some(_)) => return Err("no such fault, or no such value for it".to_owned()),
        }
        Ok(())
    }

    /// Is every value in its range?
    pub(crate) fn check(&self) -> Result<(), InvalidFault> {
        let fail =
            |part: &str, reason: &str| Err(InvalidFault { part: part.to_owned(), reason: reason.to_owned() });
        if self.errors.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return fail("errors", "a share is from 0 to 1");
        }
        if self.status.is_some_and(|status| !(400..600).contains(&status)) {
            return fail("status", "a failure is from 400 to 599");
        }
        if (self.status.is_some() || self.retry_after.is_some()) && self.errors.is_none() {
            return fail("status", "add errors=1 to say how many calls fail");
        }
        if self.latency.is_some_and(|latency| latency > Duration::from_secs(3600)) {
            return fail("latency", "at most an hour");
        }
        Ok(())
    }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

mod duration_text {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.collect_str(&humantime::format_duration(*duration)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| humantime::parse_duration(&text).map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_the_same_as_text_and_as_json() {
        let fault = Fault::parse("latency=2s, errors=0.9,status=429,retry_after=7").unwrap();
        let json = serde_json::to_string(&fault).unwrap();
        assert_eq!(json, r#"{"latency":"2s","errors":0.9,"status":429,"retry_after":7}"#);
        assert_eq!(serde_json::from_str::<Fault>(&json).unwrap(), fault);
        let all = Fault::parse("hang,reset,stall,stream_error,late_error,garbage,truncate=abort").unwrap();
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Fault>(&json).unwrap(), all);
        assert_eq!(Fault::parse("garbage=http").unwrap().garbage, Some(Garbage::Http));
    }

    #[test]
    fn clear_is_no_fault_and_stands_alone() {
        assert_eq!(Fault::parse("clear").unwrap(), Fault::default());
        assert_eq!(serde_json::to_string(&Fault::default()).unwrap(), "{}");
        assert!(Fault::parse("hang,clear").is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for text in [
            "",
            "slow",
            "latency",
            "latency=2",
            "latency=2h",
            "errors=1.5",
            "errors=x",
            "errors=NaN",
            "hang=1",
            "errors=1,status=200",
            "status=503",
            "garbage=x",
        ] {
            let error = Fault::parse(text).unwrap_err();
            assert!(error.to_string().contains("known are latency=2s"), "{error}");
        }
        assert!(serde_json::from_str::<Fault>(r#"{"latency":"soon"}"#).is_err());
        assert!(serde_json::from_str::<Fault>(r#"{"slow":true}"#).is_err());
    }
}
