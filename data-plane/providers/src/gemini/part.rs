//! Parts as they come, in requests and in answers.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_model::vendor::Wire;
use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;

use crate::exchange::shape::media_type;
use crate::exchange::{Media, Part, Reasoning, Signature, Source, Text};
use crate::json::JsonStr;

/// One part. What it is, is said by which of the fields is there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    pub(super) thought: Option<bool>,
    #[serde(borrow, alias = "thought_signature")]
    pub(super) thought_signature: Option<&'a RawValue>,
    #[serde(borrow, alias = "inline_data")]
    inline_data: Option<Blob<'a>>,
    #[serde(borrow, alias = "file_data")]
    file_data: Option<File<'a>>,
    #[serde(borrow, alias = "function_call")]
    pub(super) function_call: Option<Call<'a>>,
    #[serde(borrow, alias = "function_response")]
    pub(super) function_response: Option<Response<'a>>,
    #[serde(borrow, alias = "video_metadata")]
    video_metadata: Option<&'a RawValue>,
    #[serde(borrow, alias = "media_resolution")]
    media_resolution: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(borrow, alias = "mime_type")]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow, alias = "display_name")]
    display_name: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow, alias = "mime_type")]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, alias = "file_uri")]
    file_uri: Option<&'a RawValue>,
    #[serde(borrow, alias = "display_name")]
    display_name: Option<&'a RawValue>,
}

/// `functionCall`
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

/// `functionResponse`
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

impl<'a> Call<'a> {
    /// The arguments as the model holds them: an object as compact text. `None` when they are something else.
    pub(super) fn arguments(&self) -> Option<Cow<'a, str>> {
        match self.args {
            None => Some("{}".into()),
            Some(raw) if raw.get().starts_with('{') => Some(compact(raw.get())),
            Some(_) => None,
        }
    }
}

impl RawPart<'_> {
    /// The part, if it is a text, a thought, or data. Calls and their results need to know of others, and are left to
    /// the caller, as are parts that nobody knows.
    pub(super) fn plain(&self) -> Option<Part> {
        let signature = self.signature();
        let has_text = self.text.is_some();
        if let Some(blob) = &self.inline_data {
            let data = string(blob.data).unwrap_or_default().into_owned();
            return Some(self.media(Source::Base64(data), blob.mime_type, blob.display_name));
        }
        if let Some(file) = &self.file_data {
            let uri = string(file.file_uri).unwrap_or_default().into_owned();
            return Some(self.media(Source::Url(uri), file.mime_type, file.display_name));
        }
        let text = string(self.text).unwrap_or_default();
        if self.thought == Some(true) && (has_text || signature.is_some()) {
            let (signature, redacted) = match signature {
                Some((signature, redacted)) => (Some(signature), redacted),
                None => (None, false),
            };
            return Some(Part::Reasoning(Reasoning { text: text.into_owned(), signature, redacted }));
        }
        let signature = signature.map(|(signature, _)| signature);
        (has_text || signature.is_some())
            .then(|| Part::Text(Text { text: text.into_owned(), signature, ..Text::default() }))
    }

    /// Is it data or a file?
    pub(super) fn is_media(&self) -> bool {
        self.inline_data.is_some() || self.file_data.is_some()
    }

    /// Its signature, and whether that is an encrypted thought.
    pub(super) fn signature(&self) -> Option<(Signature, bool)> {
        string(self.thought_signature).filter(|text| !text.is_empty()).map(|text| read_signature(&text))
    }

    fn media(&self, source: Source, kind: Option<&RawValue>, name: Option<&RawValue>) -> Part {
        let written = string(kind);
        let kind = written.as_deref().map(media_type);
        let mut extra = Map::new();
        for (name, raw) in [
            ("videoMetadata", self.video_metadata),
            ("mediaResolution", self.media_resolution),
            ("thoughtSignature", self.thought_signature),
        ] {
            if let Some(value) = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
                extra.insert(name.to_owned(), value);
            }
        }
        if self.thought == Some(true) {
            extra.insert("thought".to_owned(), true.into());
        }
        if let Some(written) = written.filter(|written| written.contains(';')) {
            // Raw sound says its rate there.
            extra.insert("mimeType".to_owned(), written.into_owned().into());
        }
        let main = kind.as_deref().and_then(|kind| kind.split('/').next()).unwrap_or_default().to_owned();
        let name = string(name).map(Cow::into_owned);
        let media = Media { name, extra, ..Media::new(source, kind) };
        match main.as_str() {
            "image" => Part::Image(media),
            "audio" => Part::Audio(media),
            _ => Part::File(media),
        }
    }
}

/// The text of a field that is a string; `None` when it is something else.
pub(super) fn string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    raw.and_then(JsonStr::new).map(JsonStr::decode)
}

/// How signatures of other dialects begin: [`Signature::to_text`]'s mark in base64.
const FOREIGN: &str = "cGVuc3RvY2st";

/// Before the text of a signature that is an encrypted thought.
const REDACTED: &str = "penstock-redacted:";

/// The signature that a client gave back, and whether it is an encrypted thought.
pub(super) fn read_signature(text: &str) -> (Signature, bool) {
    let own = || (Signature { wire: Wire::Gemini, value: text.to_owned() }, false);
    if !text.starts_with(FOREIGN) {
        return own();
    }
    // Google's clients decode it, and may encode it in the other alphabet.
    let standard = text.replace('-', "+").replace('_', "/");
    let decoded = STANDARD.decode(standard).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().map(|text| (text, text.strip_prefix(REDACTED))) {
        Some((_, Some(rest))) => (Signature::from_text(rest, Wire::Gemini), true),
        Some((text, None)) => (Signature::from_text(text, Wire::Gemini), false),
        None => own(),
    }
}

/// A signature as clients of this dialect are given it. They decode it, hence foreign ones go in base64.
pub(super) fn write_signature(signature: &Signature, redacted: bool) -> Cow<'_, str> {
    if let (Some(own), false) = (signature.for_wire(Wire::Gemini), redacted) {
        return own.into();
    }
    let text = signature.to_text(Wire::Gemini);
    STANDARD.encode(if redacted { format!("{REDACTED}{text}") } else { text }).into()
}

/// JSON without white space between its tokens; nothing else is changed.
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    let mut in_string = false;
    let mut escaped = false;
    let mut keep = |byte: u8| {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            return true;
        }
        in_string = byte == b'"';
        !byte.is_ascii_whitespace()
    };
    if json.bytes().all(&mut keep) {
        return json.into();
    }
    (in_string, escaped) = (false, false);
    let mut keep = |c: &char| {
        if in_string {
            in_string = escaped || *c != '"';
            escaped = !escaped && *c == '\\';
            return true;
        }
        in_string = *c == '"';
        !c.is_ascii_whitespace()
    };
    json.chars().filter(|c| keep(c)).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn white_space_goes_and_strings_and_numbers_stay() {
        assert_eq!(
            compact("{ \"a b\" :\n[1.0, 12345678901234567890123, \"x \\\" y\"] }"),
            "{\"a b\":[1.0,12345678901234567890123,\"x \\\" y\"]}"
        );
        assert!(matches!(compact(r#"{"a":" "}"#), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn any_signature_goes_through_a_client_of_this_dialect_tr_08(value in any::<String>(), redacted: bool, wire in 0..8_usize) {
            let signature = Signature { wire: Wire::ALL[wire], value };
            let text = write_signature(&signature, redacted).into_owned();
            if signature.wire != Wire::Gemini || redacted {
                prop_assert!(STANDARD.decode(&text).is_ok());
                prop_assert_eq!(read_signature(&text.replace('+', "-").replace('/', "_")), (signature.clone(), redacted));
            }
            if signature.wire != Wire::Gemini || redacted || !text.starts_with(FOREIGN) {
                prop_assert_eq!(read_signature(&text), (signature, redacted));
            }
        }

        #[test]
        fn compacting_changes_no_value(value in prop::collection::btree_map(".*", any::<i64>(), 0..4)) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(compact(&pretty), serde_json::to_string(&value).unwrap());
        }
    }
}
