//! Writes the parts of a content.

use penstock_model::vendor::{Parameters, Wire};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::media::audio_format;
use super::message_writer::{CacheControl, unsupported};
use crate::exchange::shape::image_type;
use crate::exchange::{Media, Part, Source, Unwritable};

/// A part as it is sent.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WrittenPart<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Refusal {
        refusal: &'a str,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    InputAudio {
        input_audio: InputAudio<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    File {
        file: File<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Address<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct InputAudio<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Address<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

/// A URL; one that holds data is put together only in the body, because data may be megabytes.
enum Address<'a> {
    Url(&'a str),
    Data { kind: String, data: &'a str },
}

impl Serialize for Address<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Url(url) => serializer.serialize_str(url),
            Self::Data { kind, data } => serializer.collect_str(&format_args!("data:{kind};base64,{data}")),
        }
    }
}

impl<'a> WrittenPart<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text { text, cache_control: None }
    }

    /// The text, if it is that and nothing else.
    pub(super) fn plain(&self) -> Option<&'a str> {
        match self {
            Self::Text { text, cache_control: None } => Some(text),
            _ => None,
        }
    }

    /// Puts a cache boundary behind it, if it can have one.
    pub(super) fn mark(&mut self, hint: CacheControl) {
        match self {
            Self::Text { cache_control, .. }
            | Self::ImageUrl { cache_control, .. }
            | Self::InputAudio { cache_control, .. }
            | Self::File { cache_control, .. } => *cache_control = Some(hint),
            Self::Refusal { .. } | Self::Other(_) => {}
        }
    }
}

/// Writes a part; `path` is where it stands in the client's request.
pub(super) fn write<'a>(
    part: &'a Part,
    wire: Wire,
    parameters: &Parameters,
    path: &str,
) -> Result<WrittenPart<'a>, Unwritable> {
    match part {
        Part::Text(text) => Ok(WrittenPart::text(&text.text)),
        Part::Refusal(refusal) => Ok(WrittenPart::Refusal { refusal }),
        Part::Image(media) => image(media, parameters, path),
        Part::Audio(media) => audio(media, path),
        Part::File(media) => file(media, wire, path),
        Part::Other { wire: Wire::Openai, value } => Ok(WrittenPart::Other(value)),
        Part::Other { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning(_) => {
            Err(unsupported(path, "this service takes no such part here"))
        }
    }
}

fn image<'a>(media: &'a Media, parameters: &Parameters, path: &str) -> Result<WrittenPart<'a>, Unwritable> {
    if parameters.image_types.is_empty() {
        return Err(unsupported(path, "this service takes no images"));
    }
    let url = match &media.source {
        Source::Base64(data) => {
            Address::Data { kind: image_type(media, &parameters.image_types, path)?, data }
        }
        Source::Url(url) if parameters.image_urls => Address::Url(url),
        Source::Url(_) => return Err(unsupported(path, "this service does not fetch images")),
        Source::Text(_) | Source::FileId(_) => {
            return Err(unsupported(path, "this service takes images as data or by URL only"));
        }
    };
    let image_url = ImageUrl { url, detail: media.detail.as_deref() };
    Ok(WrittenPart::ImageUrl { image_url, cache_control: None })
}

fn audio<'a>(media: &'a Media, path: &str) -> Result<WrittenPart<'a>, Unwritable> {
    match &media.source {
        Source::Base64(data) => {
            let format = media.media_type.as_deref().map_or("wav", audio_format);
            Ok(WrittenPart::InputAudio { input_audio: InputAudio { data, format }, cache_control: None })
        }
        _ => Err(unsupported(path, "this service takes audio as data only")),
    }
}

fn file<'a>(media: &'a Media, wire: Wire, path: &str) -> Result<WrittenPart<'a>, Unwritable> {
    let name = media.name.as_deref();
    let file = match &media.source {
        Source::Text(text) => return Ok(WrittenPart::text(text)),
        Source::Base64(data) => {
            let kind = media.media_type.clone().unwrap_or_else(|| "application/pdf".to_owned());
            // OpenAI refuses data without a name.
            let filename = Some(name.unwrap_or("file"));
            File { filename, file_data: Some(Address::Data { kind, data }), file_id: None }
        }
        Source::FileId(id) if matches!(wire, Wire::Openai | Wire::OpenaiResponses) => {
            File { filename: name, file_data: None, file_id: Some(id) }
        }
        Source::FileId(_) => return Err(unsupported(path, "the file is at another vendor")),
        Source::Url(_) => return Err(unsupported(path, "this service does not fetch files")),
    };
    Ok(WrittenPart::File { file, cache_control: None })
}
