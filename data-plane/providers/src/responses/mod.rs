//! OpenAI's responses, the newer of its two conversation calls.
