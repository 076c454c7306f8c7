use proptest::prelude::*;

use super::*;

fn golden(schema: Value, expected: Value, removed: &[&str]) {
    let lowered = lower(&schema);
    assert_eq!(lowered.schema, expected, "{schema}");
    assert_eq!(lowered.removed, removed, "{schema}");
}

#[test]
fn the_tool_of_the_case_is_taken_tr_06() {
    golden(
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false}},
            "properties": {
                "p": {"$ref": "#/$defs/P"},
                "n": {"type": ["string", "null"], "description": "d"},
                "k": {"type": "integer", "exclusiveMinimum": 0},
                "l": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
            },
            "required": ["p", "gone"],
        }),
        json!({
            "type": "OBJECT",
            "properties": {
                "p": {"type": "OBJECT", "properties": {"x": {"type": "NUMBER"}}},
                "n": {"type": "STRING", "nullable": true, "description": "d"},
                "k": {"type": "INTEGER"},
                "l": {"type": "ARRAY", "items": {"type": "STRING"}},
            },
            "required": ["p"],
        }),
        &[
            ".additionalProperties",
            ".properties.p.additionalProperties",
            ".properties.k.exclusiveMinimum",
            ".properties.l.uniqueItems",
        ],
    );
}

#[test]
fn a_reference_within_itself_ends_in_an_object_tr_06() {
    golden(
        json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        }}}}),
        json!({"type": "OBJECT", "properties": {
            "value": {"type": "STRING"}, "next": {"nullable": true, "type": "OBJECT"},
        }}),
        &[".properties.next.anyOf[0].$ref"],
    );
    golden(json!({"$ref": "#"}), json!({"type": "OBJECT"}), &[".$ref"]);
    golden(json!({"$ref": "https://x.example/s.json"}), json!({}), &[".$ref"]);
}

#[test]
fn references_that_double_at_every_step_stay_small_tr_06() {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        definitions
            .insert(format!("L{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    definitions.insert("L40".to_owned(), json!({"type": "string"}));
    let lowered = lower(&json!({"$ref": "#/$defs/L0", "$defs": definitions}));
    assert!(lowered.schema.to_string().len() < 1 << 20);
    assert!(!lowered.removed.is_empty());
}

#[test]
fn a_chain_of_thousands_of_references_is_cut_tr_06() {
    let chain = (0..5000).map(|level| {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        (format!("L{level}"), json!({"type": "object", "properties": {"a": next}}))
    });
    let definitions: Map<String, Value> = chain.collect();
    let lowered = lower(&json!({"$ref": "#/$defs/L0", "$defs": definitions}));
    assert_eq!(lowered.removed.len(), 1);
    assert!(lowered.schema.to_string().len() < 4096);
}

#[test]
fn unions_enums_and_constants_become_what_there_is_tr_06() {
    golden(
        json!({"type": ["string", "integer", "null"], "enum": ["a", null], "description": "d"}),
        json!({"nullable": true, "description": "d", "anyOf": [{"type": "STRING", "enum": ["a"]}, {"type": "INTEGER"}]}),
        &[],
    );
    golden(
        json!({"oneOf": [{"type": "string"}, {"type": "array"}]}),
        json!({"anyOf": [{"type": "STRING"}, {"type": "ARRAY", "items": {"type": "STRING"}}]}),
        &[],
    );
    golden(json!({"const": "x"}), json!({"enum": ["x"], "type": "STRING"}), &[]);
    golden(json!({"type": "integer", "enum": [1, 2]}), json!({"type": "INTEGER"}), &[".enum"]);
    golden(json!({"type": "string", "format": "uuid"}), json!({"type": "STRING"}), &[".format"]);
    golden(
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "STRING", "format": "date-time"}),
        &[],
    );
    golden(
        json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": true}}], "not": {}}),
        json!({"properties": {"a": {"type": "STRING"}, "b": {}}, "required": ["a"], "type": "OBJECT"}),
        &[".not"],
    );
}

#[test]
fn a_clients_schema_is_raised_to_json_schema() {
    let schema = json!({
        "type": "OBJECT", "property_ordering": ["a"],
        "properties": {
            "a": {"type": "STRING", "nullable": true, "enum": ["x"], "max_length": "5"},
            "type": {"type": "ARRAY", "items": {"any_of": [{"type": "NUMBER"}], "nullable": true}},
        },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "enum": ["x", null], "maxLength": 5},
            "type": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        },
    });
    assert_eq!(raise(&schema), expected);
}

/// Only keywords that the service knows, at every depth.
fn known(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return false };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "properties" => value.as_object().is_some_and(|all| all.values().all(known)),
        "items" => known(value),
        "anyOf" => value.as_array().is_some_and(|all| all.len() > 1 && all.iter().all(known)),
        "type" => value.as_str().is_some_and(|name| name == name.to_ascii_uppercase()),
        "required" | "enum" => value.is_array(),
        "format" => true,
        other => KEPT.contains(&other),
    })
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({"type": "string", "format": "uri"})),
        Just(json!({"type": ["null", "boolean"]})),
        Just(json!({"$ref": "#/$defs/A"})),
        Just(json!({"enum": [1, "a", null]})),
        Just(json!({"const": "c", "x-vendor": 1})),
        Just(json!({"type": "null"})),
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (prop::sample::select(&["anyOf", "oneOf", "allOf", "prefixItems"][..]), list)
                .prop_map(|(keyword, all)| json!({keyword: all, "$comment": "c"})),
            (inner.clone(), inner.clone()).prop_map(
                |(a, b)| json!({"type": "object", "properties": {"a": a, "$ref": b}, "required": ["a", "z"]})
            ),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"type": "array", "items": a, "contains": b})),
            (inner.clone(), inner).prop_map(
                |(a, b)| json!({"$defs": {"A": a}, "not": {}, "type": ["array", "string"], "items": b})
            ),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_lowered_has_only_keywords_that_the_service_knows_tr_06(schema in schemas()) {
        let lowered = lower(&schema);
        prop_assert!(known(&lowered.schema), "{} from {}", lowered.schema, schema);
    }
}
