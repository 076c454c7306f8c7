//! The dialect as a whole, by the cases of translation and of streams that apply to it.

mod answers;
mod fixtures;
mod reading;
mod requests;
mod roundtrip;
mod streams;
