//! The OpenAI dialect, and the services that speak it: DeepSeek, Qwen's compatible mode, Qianfan, Ark, Zhipu, Moonshot,
//! Mistral, vLLM, llama.cpp, Ollama's `/v1`.

mod calls;
pub(crate) mod chat;
pub mod error_body;
pub mod extra;
pub mod invoke;
pub mod pass;
pub mod stream;
pub mod upstream;
pub mod usage;
pub mod view;

pub use stream::SseWatch;
