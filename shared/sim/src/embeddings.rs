//! `POST /v1/embeddings`: unit vectors that follow from the input alone.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::digest;
use crate::reject::Rejection;
use crate::request::{self, typed};

const DEFAULT_DIMENSIONS: u32 = 256;
const MAX_DIMENSIONS: u32 = 4096;
/// OpenAI's limit.
const MAX_INPUTS: usize = 2048;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    encoding_format: Option<&'a RawValue>,
    #[serde(borrow)]
    dimensions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(#[serde(borrow)] std::borrow::Cow<'a, str>),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    ManyTokens(Vec<Vec<u32>>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Float,
    Base64,
}

#[derive(Serialize)]
struct Answer<'a> {
    object: &'static str,
    data: Vec<Item>,
    model: &'a str,
    usage: Usage,
}

#[derive(Serialize)]
struct Item {
    object: &'static str,
    index: usize,
    embedding: Embedding,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Embedding {
    Float(Vec<f32>),
    Base64(String),
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
}

/// Checks an embeddings request and answers it.
pub(crate) fn answer(body: &[u8], models: &[String]) -> Result<Bytes, Rejection> {
    let body: Body<'_> = request::parse(body)?;
    let model = request::model(body.model, models)?;
    let input = body.input.ok_or_else(|| Rejection::missing("input"))?;
    let dimensions = typed("dimensions", body.dimensions)?.unwrap_or(DEFAULT_DIMENSIONS);
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        let message = format!("Expected from 1 to {MAX_DIMENSIONS} dimensions.");
        return Err(Rejection::param("dimensions", Some("invalid_value"), message));
    }
    let encoding = typed("encoding_format", body.encoding_format)?.unwrap_or(Encoding::Float);
    let inputs = read_inputs(input)?;
    let prompt_tokens = inputs.iter().map(|input| (input.len() as u64).div_ceil(4)).sum();
    let data = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| Item {
            object: "embedding",
            index,
            embedding: embed(input, dimensions, encoding),
        })
        .collect();
    let usage = Usage { prompt_tokens, total_tokens: prompt_tokens };
    let answer = Answer { object: "list", data, model: &model, usage };
    Ok(serde_json::to_vec(&answer).expect("plain data always serialises").into())
}

/// Each input as text; token numbers as their list.
fn read_inputs(raw: &RawValue) -> Result<Vec<String>, Rejection> {
    let input: Input<'_> = serde_json::from_str(raw.get()).map_err(|_| {
        let message = "'input' must be a string, or an array of strings, of tokens, or of arrays of tokens.";
        Rejection::param("input", Some("invalid_type"), message)
    })?;
    let inputs = match input {
        Input::Text(text) => vec![text.into_owned()],
        Input::Texts(texts) => texts,
        Input::Tokens(tokens) => vec![format!("{tokens:?}")],
        Input::ManyTokens(lists) => lists.iter().map(|tokens| format!("{tokens:?}")).collect(),
    };
    if inputs.is_empty() || inputs.len() > MAX_INPUTS || inputs.iter().any(String::is_empty) {
        let message = format!("'input' must hold from 1 to {MAX_INPUTS} inputs, none of them empty.");
        return Err(Rejection::param("input", Some("invalid_value"), message));
    }
    Ok(inputs)
}

fn embed(input: &str, dimensions: u32, encoding: Encoding) -> Embedding {
    let mut rng = Pcg64Mcg::seed_from_u64(u64::from(digest(input)));
    let raw: Vec<f32> = (0..dimensions).map(|_| rng.random_range(-1.0_f32..1.0)).collect();
    let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    let unit = raw.into_iter().map(|x| x / length);
    match encoding {
        Encoding::Float => Embedding::Float(unit.collect()),
        Encoding::Base64 => {
            Embedding::Base64(BASE64_STANDARD.encode(unit.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn embed(body: &str) -> Result<Value, Rejection> {
        answer(body.as_bytes(), &["e".to_owned()]).map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn the_same_input_has_the_same_unit_vector_in_both_encodings() {
        let floats = embed(r#"{"model":"e","input":["a","b","a"],"dimensions":8}"#).unwrap();
        let vector = |index: usize| -> Vec<f32> {
            let values = floats["data"][index]["embedding"].as_array().unwrap();
            values.iter().map(|value| value.as_f64().unwrap() as f32).collect()
        };
        assert_eq!(vector(0), vector(2));
        assert_ne!(vector(0), vector(1));
        assert!((vector(0).iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);

        let packed = embed(r#"{"model":"e","input":"a","dimensions":8,"encoding_format":"base64"}"#).unwrap();
        let bytes = BASE64_STANDARD.decode(packed["data"][0]["embedding"].as_str().unwrap()).unwrap();
        let unpacked: Vec<f32> =
            bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(unpacked, vector(0));
    }

    #[test]
    fn all_four_shapes_of_input_are_taken_and_others_are_not() {
        for (input, count) in [(r#""a""#, 1), (r#"["a","b"]"#, 2), ("[1,2,3]", 1), ("[[1],[2,3]]", 2)] {
            let answer = embed(&format!(r#"{{"model":"e","input":{input}}}"#)).unwrap();
            assert_eq!(answer["data"].as_array().unwrap().len(), count);
        }
        for body in [
            r#"{"model":"e"}"#,
            r#"{"model":"e","input":[]}"#,
            r#"{"model":"e","input":""}"#,
            r#"{"model":"e","input":{"a":1}}"#,
            r#"{"model":"e","input":"a","encoding_format":"hex"}"#,
            r#"{"model":"e","input":"a","dimensions":0}"#,
        ] {
            assert_eq!(embed(body).unwrap_err().status.as_u16(), 400, "{body}");
        }
        assert_eq!(embed(r#"{"model":"x","input":"a"}"#).unwrap_err().status.as_u16(), 404);
    }
}
