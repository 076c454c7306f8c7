//! The Cohere dialect: chat, version 2.
