use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;

fn body(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Where the value of a member stands whose text occurs once.
fn span(body: &Bytes, value: &str) -> Range<usize> {
    let start = memchr::memmem::find(body, value.as_bytes()).unwrap();
    start..start + value.len()
}

fn applied(edits: &Edits) -> String {
    let spliced = edits.apply();
    let length = spliced.len();
    let text: Vec<u8> = spliced.into_segments().flatten().collect();
    assert_eq!(text.len(), length);
    String::from_utf8(text).unwrap()
}

#[test]
fn several_members_are_changed_at_once_and_all_else_stays() {
    let body = body(r#"{ "a" : 1, "b":"two" ,"c":[3],"d":{"e":4} }"#);
    let mut edits = Edits::new(&body);
    edits.replace(span(&body, "[3]"), "true").rename(&span(&body, "1"), "A\"").insert("n", b"null");
    edits.remove(&span(&body, "\"two\""));
    assert_eq!(applied(&edits), r#"{"n":null, "A\"" : 1, "c":true,"d":{"e":4} }"#);
    let first = edits.apply().into_segments().next().unwrap();
    assert_eq!(first.as_ptr(), body.as_ptr());
}

#[test]
fn members_are_removed_with_the_right_comma_wherever_they_stand() {
    let whole = body(r#"{"a":11 , "b":22,"c":33}"#);
    for (removed, left) in [
        (vec!["11"], r#"{ "b":22,"c":33}"#),
        (vec!["22"], r#"{"a":11 , "c":33}"#),
        (vec!["33"], r#"{"a":11 , "b":22}"#),
        (vec!["11", "22"], r#"{"c":33}"#),
        (vec!["33", "22"], r#"{"a":11 }"#),
        (vec!["11", "33"], r#"{ "b":22}"#),
        (vec!["22", "33", "11"], "{}"),
    ] {
        let mut edits = Edits::new(&whole);
        for value in &removed {
            edits.remove(&span(&whole, value));
        }
        assert_eq!(applied(&edits), left, "{removed:?}");
    }
}

#[test]
fn a_member_put_into_an_emptied_object_has_no_comma() {
    let whole = body(r#"{ "a":11 }"#);
    let mut edits = Edits::new(&whole);
    edits.remove(&span(&whole, "11")).insert("b", b"2").insert("c", b"3");
    assert_eq!(applied(&edits), r#"{"b":2,"c":3  }"#);
    assert_eq!(applied(Edits::new(&body(" {}")).insert("b", b"2")), r#" {"b":2}"#);
}

#[test]
fn no_change_is_the_body_itself() {
    let whole = body(r#"{"model":"same"}"#);
    let mut edits = Edits::new(&whole);
    edits.model(Some(span(&whole, "\"same\"")), &ModelName::new("same"));
    let pieces: Vec<Bytes> = edits.apply().into_segments().collect();
    assert_eq!(pieces, [whole]);
}

#[derive(Debug, Clone)]
enum Change {
    Keep,
    Replace,
    Rename,
    Remove,
}

proptest! {
    #[test]
    fn any_changes_of_any_object_do_to_its_text_what_they_do_to_its_members(
        changes in prop::collection::vec(
            prop::sample::select(vec![Change::Keep, Change::Replace, Change::Rename, Change::Remove]), 0..6),
        values in prop::collection::vec(prop::sample::select(vec!["1", "\"a,}\\\"\"", "[1,2]", "{\"x\": {}}", "null"]), 6),
        space in "[ \t\r\n]{0,2}",
        insert in 0_usize..3,
    ) {
        let mut text = format!("{space}{{{space}");
        let mut spans = Vec::new();
        for (index, value) in values.iter().take(changes.len()).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            text.push_str(&format!("{comma}{space}\"k{index}\"{space}:{space}"));
            spans.push(text.len()..text.len() + value.len());
            text.push_str(&format!("{value}{space}"));
        }
        text.push_str(&format!("}}{space}"));
        let body = body(&text);
        let mut edits = Edits::new(&body);
        let mut expected = Map::new();
        for index in 0..insert {
            edits.insert(&format!("i{index}"), b"0");
            expected.insert(format!("i{index}"), 0.into());
        }
        for (index, (change, span)) in changes.iter().zip(&spans).enumerate() {
            let value: Value = serde_json::from_str(values[index]).unwrap();
            let key = format!("k{index}");
            match change {
                Change::Keep => { expected.insert(key, value); }
                Change::Replace => {
                    edits.replace(span.clone(), "\"new\"");
                    expected.insert(key, "new".into());
                }
                Change::Rename => {
                    edits.rename(span, &format!("r{index}"));
                    expected.insert(format!("r{index}"), value);
                }
                Change::Remove => { edits.remove(span); }
            }
        }
        let result = applied(&edits);
        let members: Map<String, Value> = serde_json::from_str(&result).unwrap_or_else(|error| panic!("{error}: {result}"));
        prop_assert_eq!(members.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    }
}
