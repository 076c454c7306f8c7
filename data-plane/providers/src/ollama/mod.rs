//! The native dialect of Ollama.
