//! Messages of the admin API as text for people. Pure: the time is an argument.

pub(crate) mod backends;
pub(crate) mod capabilities;
pub(crate) mod decision;
pub(crate) mod nodes;
pub(crate) mod policies;
pub(crate) mod problems;
mod table;
mod units;

#[cfg(test)]
mod tests;
