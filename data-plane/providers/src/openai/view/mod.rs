//! The views of OpenAI's calls.

mod chat;
mod embeddings;

pub use chat::chat;
pub(super) use chat::typed;
pub use embeddings::embeddings;
pub(super) use embeddings::read_array;

#[cfg(test)]
mod tests;
