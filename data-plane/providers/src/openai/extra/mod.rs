//! OpenAI's calls that are no conversation. They are only passed through: what is here is what routing needs to know.

mod json;
mod multipart;

pub use self::json::{audio_speech, completions, images_generations, moderations, rerank};
pub use self::multipart::{Form, form};
