//! The trained tier: a linear model over hashed character n-grams that tells capabilities apart.
//!
//! ```text
//! control plane   Examples::of(policy) ─▶ train ─▶ Model ─▶ encode ─▶ store, snapshot
//! proxy           decode ─▶ Model ─▶ probabilities of a text: microseconds, nothing allocated
//! ```

mod artefact;
mod calibrate;
mod features;
mod fit;
mod model;
mod train;

pub use artefact::{Unusable, checksum};
pub use features::Recipe;
pub use model::{Class, Model, Probabilities};
pub use train::{Examples, Settings, train};
