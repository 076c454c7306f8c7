//! Services that speak the Responses interface: what goes to them, and what comes back.

mod answer;
mod fields;
mod input;
mod request;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use self::answer::read as read_answer;
pub(super) use self::request::write as write_request;
pub(super) use self::stream::Reader;
