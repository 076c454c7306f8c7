//! The dialects, and which call each of their paths stands for.

use std::fmt;
use std::str::FromStr;

use http::{Method, Uri};

use crate::reject::Rejection;
use crate::shape::Shape;
use crate::speech::{self, Direct, Speech};

/// What a service speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Dialect {
    /// OpenAI's, as the many services that are shaped like it speak it: fields that they do not know they ignore.
    #[default]
    Openai,
    /// OpenAI's own, which refuses fields that it does not know.
    OpenaiStrict,
    /// OpenAI's under Azure's paths, with deployments for models.
    AzureOpenai,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Gemini and Claude under Vertex AI's paths.
    Vertex,
    /// Amazon Bedrock's Converse.
    Bedrock,
    /// Cohere's version 2.
    Cohere,
    /// `DashScope`'s own.
    Dashscope,
    /// Ollama's own.
    Ollama,
}

/// Where a request goes.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    /// How errors are worded.
    pub(crate) shape: Shape,
}

/// What is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Endpoint {
    /// OpenAI's chat, by the short way where nothing special is asked.
    Chat,
    Embeddings,
    Models,
    /// Something that is answered by talking.
    Speech(&'static dyn Speech),
    /// Something that is answered at once.
    Direct(Direct),
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Openai,
        Self::OpenaiStrict,
        Self::AzureOpenai,
        Self::Anthropic,
        Self::Gemini,
        Self::Vertex,
        Self::Bedrock,
        Self::Cohere,
        Self::Dashscope,
        Self::Ollama,
    ];

    /// Its name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::OpenaiStrict => "openai-strict",
            Self::AzureOpenai => "azure-openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
            Self::Dashscope => "dashscope",
            Self::Ollama => "ollama",
        }
    }

    /// How it words errors where no path says otherwise.
    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Openai | Self::OpenaiStrict => Shape::Openai,
            Self::AzureOpenai => Shape::Azure,
            Self::Anthropic => Shape::Anthropic,
            Self::Gemini | Self::Vertex => Shape::Google,
            Self::Bedrock => Shape::Aws,
            Self::Cohere => Shape::Cohere,
            Self::Dashscope => Shape::Dashscope,
            Self::Ollama => Shape::Ollama,
        }
    }

    /// Which call a path stands for.
    pub(crate) fn route(self, method: &Method, uri: &Uri) -> Result<Route, Rejection> {
        let path = uri.path();
        let post = method == Method::POST;
        let found = match self {
            Self::Openai | Self::OpenaiStrict => speech::openai::route(method, path),
            Self::AzureOpenai => speech::azure::route(method, uri)?,
            Self::Anthropic => speech::anthropic::route(post, path),
            Self::Gemini => speech::gemini::route(post, uri),
            Self::Vertex => speech::vertex::route(post, uri),
            Self::Bedrock => speech::bedrock::route(post, path),
            Self::Cohere => speech::cohere::route(post, path),
            Self::Dashscope => speech::dashscope::route(post, path),
            Self::Ollama => speech::ollama::route(post, path),
        };
        let (endpoint, model) = found.ok_or_else(|| Rejection::unknown_path(method, path))?;
        let shape = match endpoint {
            Endpoint::Speech(speech) => speech.shape().unwrap_or(self.shape()),
            _ => self.shape(),
        };
        Ok(Route { endpoint, model, shape })
    }
}

/// What a dialect finds under a path: the call, and the model if the path names it.
pub(crate) type Found = Option<(Endpoint, Option<String>)>;

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no dialect has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect `{0}`")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let dialect = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        dialect.ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}
