//! The Anthropic dialect: messages.
