//! Log-probabilities, between `logprobsResult` and OpenAI's shape, which the exchange model has.

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// `logprobsResult` in OpenAI's shape; `None` when it holds none.
pub(super) fn read(raw: Option<&RawValue>) -> Option<Value> {
    let result: Value = serde_json::from_str(raw?.get()).ok()?;
    let chosen = result["chosenCandidates"].as_array()?;
    let tops = result["topCandidates"].as_array();
    let content: Vec<Value> = chosen
        .iter()
        .enumerate()
        .map(|(index, chosen)| {
            let tops = tops.and_then(|tops| tops.get(index)?["candidates"].as_array());
            let mut entry = token(chosen);
            entry["top_logprobs"] = tops.into_iter().flatten().map(token).collect();
            entry
        })
        .collect();
    (!content.is_empty()).then(|| json!({ "content": content }))
}

fn token(candidate: &Value) -> Value {
    let text = candidate["token"].as_str().unwrap_or_default();
    json!({ "token": text, "logprob": candidate["logProbability"], "bytes": text.as_bytes() })
}

/// The reverse of [`read`].
pub(super) fn write(value: &Value) -> Option<Value> {
    let content = value["content"].as_array().filter(|content| !content.is_empty())?;
    let chosen: Vec<Value> = content.iter().map(candidate).collect();
    let tops = content.iter().map(|entry| {
        let tops: Vec<Value> =
            entry["top_logprobs"].as_array().into_iter().flatten().map(candidate).collect();
        json!({ "candidates": tops })
    });
    Some(json!({ "topCandidates": tops.collect::<Vec<_>>(), "chosenCandidates": chosen }))
}

fn candidate(entry: &Value) -> Value {
    json!({ "token": entry["token"], "logProbability": entry["logprob"] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_say_the_same() {
        let gemini = r#"{"topCandidates":[{"candidates":[{"token":"a","logProbability":-0.5},{"token":"é","logProbability":-1.25}]}],"chosenCandidates":[{"token":"a","logProbability":-0.5}]}"#;
        let raw: &RawValue = serde_json::from_str(gemini).unwrap();
        let read = read(Some(raw)).unwrap();
        let expected = json!({"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [
            {"token": "a", "logprob": -0.5, "bytes": [97]}, {"token": "é", "logprob": -1.25, "bytes": [195, 169]},
        ]}]});
        assert_eq!(read, expected);
        assert_eq!(write(&read).unwrap().to_string(), gemini);
    }

    #[test]
    fn none_is_none() {
        let raw: &RawValue = serde_json::from_str("{}").unwrap();
        assert_eq!((read(Some(raw)), read(None), write(&Value::Null)), (None, None, None));
    }
}
