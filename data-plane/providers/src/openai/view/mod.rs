//! The views of OpenAI's calls.

mod chat;
mod embeddings;

pub use chat::chat;
pub use embeddings::embeddings;

#[cfg(test)]
mod tests;
