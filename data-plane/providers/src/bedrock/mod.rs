//! The Bedrock dialect: Converse.
