use proptest::prelude::*;
use serde_json::json;

use super::*;

fn adapter(request: Value, response: Value) -> Adapter {
    compile(request, response).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn compile(request: Value, response: Value) -> Result<Adapter, Vec<Fault>> {
    let source = document::Adapter { request: Some(request), response: Some(response), ..Default::default() };
    Adapter::compile(&source)
}

/// What a request template makes of a body.
fn filled(template: Value, body: &str) -> Result<String, Unfit> {
    let headers = [(http::header::USER_AGENT, http::HeaderValue::from_static("curl"))].into_iter().collect();
    let client = Client { body: body.as_bytes(), model: "m1", headers: &headers };
    let reshaped = adapter(template, json!(null)).request(&client)?;
    Ok(String::from_utf8(reshaped.body.unwrap()).unwrap())
}

/// The path that a template makes of a body.
fn path(template: &str, body: &str) -> Result<String, Vec<Fault>> {
    let adapter =
        Adapter::compile(&document::Adapter { path: Some(template.to_owned()), ..Default::default() })?;
    let client = Client { body: body.as_bytes(), model: "a/b", headers: &HeaderMap::new() };
    Ok(adapter.request(&client).unwrap().path.unwrap())
}

fn faults(request: Value) -> Vec<(String, String)> {
    let faults = compile(request, json!(null)).expect_err("it should be refused");
    faults.into_iter().map(|fault| (fault.place, fault.reason)).collect()
}

fn template_fault(unfit: Unfit) -> (String, String) {
    match unfit {
        Unfit::Template { place, reason } => (place, reason),
        Unfit::Body(reason) => panic!("{reason}"),
    }
}

#[test]
fn three_risk_models_with_three_formats_look_like_one() {
    let body = br#"{"id":"o-1","amount":129.50,"user":{"id":"u7","country":"FR"},"items":[{"sku":"a","qty":2},{"sku":"b","qty":1}]}"#;
    let headers = HeaderMap::new();
    let client = Client { body, model: "risk-2", headers: &headers };
    // Flat and upper-case, with a score in per cent.
    let first = adapter(
        json!({"MODEL": "${model}", "TXN_AMT": "${request.amount}", "CUST": "${request.user.id}",
            "N_ITEMS": "${request.items.map(item, item.qty)}"}),
        json!({"id": "${request.id}", "score": "${double(response.SCORE) / 100.0}",
            "decision": "${response.SCORE >= 80 ? 'deny' : 'allow'}", "reasons": "${response.CODES}"}),
    );
    // A model server: a matrix of features, a matrix of outputs.
    let second = adapter(
        json!({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP64",
            "data": ["${request.amount}", "${double(size(request.items))}"]}]}),
        json!({"id": "${request.id}", "score": "${response.outputs[0].data[0]}",
            "decision": "${response.outputs[0].data[0] >= 0.8 ? 'deny' : 'allow'}", "reasons": []}),
    );
    // Words, and a verdict deep inside.
    let third = adapter(
        json!({"text": "order ${request.id} of ${request.amount} from ${request.user.country}"}),
        json!({"id": "${request.id}", "score": "${response.result.risk.value}",
            "decision": "${{'HIGH': 'deny', 'LOW': 'allow'}[response.result.risk.level]}",
            "reasons": "${response.result.findings.map(f, f.code)}"}),
    );
    let sent =
        |adapter: &Adapter| String::from_utf8(adapter.request(&client).unwrap().body.unwrap()).unwrap();
    assert_eq!(sent(&first), r#"{"MODEL":"risk-2","TXN_AMT":129.5,"CUST":"u7","N_ITEMS":[2,1]}"#);
    assert_eq!(
        sent(&second),
        r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP64","data":[129.5,2.0]}]}"#
    );
    assert_eq!(sent(&third), r#"{"text":"order o-1 of 129.5 from FR"}"#);

    let expected =
        |reasons: &str| format!(r#"{{"id":"o-1","score":0.87,"decision":"deny","reasons":{reasons}}}"#);
    for (adapter, answer, reasons) in [
        (&first, r#"{"SCORE":87,"CODES":["VELOCITY"]}"#, r#"["VELOCITY"]"#),
        (&second, r#"{"outputs":[{"data":[0.87]}]}"#, "[]"),
        (
            &third,
            r#"{"result":{"risk":{"level":"HIGH","value":0.87},"findings":[{"code":"VELOCITY"}]}}"#,
            r#"["VELOCITY"]"#,
        ),
    ] {
        let got = adapter.response(&client, answer.as_bytes()).unwrap().unwrap();
        assert_eq!(str::from_utf8(&got).unwrap(), expected(reasons));
    }
}

#[test]
fn a_whole_string_is_a_value_and_an_embedded_one_text() {
    let body = r#"{"n":3,"s":"x","b":true,"z":null,"o":{"k":[1]}}"#;
    for (template, expected) in [
        ("${request.n}", "3"),
        ("n=${request.n}", r#""n=3""#),
        ("${request.s}${request.b}", r#""xtrue""#),
        ("[${request.z}]", r#""[]""#),
        ("${request.o}", r#"{"k":[1]}"#),
        ("o: ${request.o}", r#""o: {\"k\":[1]}""#),
        ("${request.n + 1}", "4"),
        ("${headers['user-agent']}", r#""curl""#),
        ("${model}", r#""m1""#),
        ("cost: $5, $${request.n}", r#""cost: $5, ${request.n}""#),
        ("${'}' + \"{\" + '\\'}'}", r#""}{'}""#),
        ("${{'a': {'b': 1}}}", r#"{"a":{"b":1}}"#),
    ] {
        assert_eq!(filled(json!(template), body).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn paths_keep_order_and_numbers_and_need_no_cel() {
    let body = r#"{"z":1,"a":{"y":18446744073709551615,"b":[0.10,-3,{"q q":1e3}]}}"#;
    assert_eq!(
        filled(json!("${request}"), body).unwrap(),
        r#"{"z":1,"a":{"y":18446744073709551615,"b":[0.1,-3,{"q q":1000.0}]}}"#
    );
    assert_eq!(filled(json!("${request.a.b[2]['q q']}"), body).unwrap(), "1000.0");
    let compiled = |source: &str| Expression::compile(source, &[Name::Request, Name::Model]).unwrap();
    use super::expression::Expression;
    for path in ["request", "request.a.b[2]['q q']"] {
        assert!(matches!(compiled(path), Expression::Path { .. }), "{path}");
    }
    for other in ["model", "has(request.a)", "request.a[request.z]", "request.a.b[-1]", "1 + 1"] {
        assert!(matches!(compiled(other), Expression::Cel { .. }), "{other}");
    }
    assert_eq!(
        filled(json!("${[request.a][0]}"), r#"{"a":{"z":1,"b":2,"a":3}}"#).unwrap(),
        r#"{"a":3,"b":2,"z":1}"#
    );
}

#[test]
fn what_is_optional_is_left_out_when_it_is_missing() {
    let template = json!({"a": "${?request.a}", "b": "${?request.b.c}", "d": ["${?request.x[3]}", "${?request.a}"],
        "e": "${?request.a + 1}"});
    assert_eq!(filled(template.clone(), r#"{"a":1}"#).unwrap(), r#"{"a":1,"d":[1],"e":2}"#);
    assert_eq!(filled(template, r#"{"b":{"c":null}}"#).unwrap(), r#"{"d":[]}"#);
    assert_eq!(filled(json!("${?request.a}"), "{}").unwrap(), "null");
}

#[test]
fn a_value_that_cannot_be_had_is_refused_with_its_place() {
    let at = |template: Value, body: &str| template_fault(filled(template, body).unwrap_err());
    assert_eq!(
        at(json!({"a": [1, "${request.x}"]}), "{}"),
        ("/request/a/1".to_owned(), "there is no `x`".to_owned())
    );
    assert_eq!(at(json!("${request[0]}"), "[]").1, "there is no element 0");
    assert_eq!(at(json!({"a/b": "v: ${request.x + 1}"}), r#"{"x":"1"}"#).0, "/request/a~1b");
    assert_eq!(at(json!("${1.0 / 0.0}"), "{}").1, "JSON cannot hold the number inf");
    assert_eq!(
        at(json!("${?request.x + 1}"), r#"{"x":"1"}"#).0,
        "/request",
        "optional is for what is missing"
    );
    assert!(matches!(filled(json!({"a": "${request.x}"}), "<html>"), Err(Unfit::Body(_))));
    assert!(filled(json!({"a": 1}), "<html>").is_ok(), "a body that nobody asks for is not read");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(filled(json!("${request}"), &deep).is_err());
}

#[test]
fn the_services_broken_answer_is_told_from_the_clients() {
    let adapter = adapter(json!({}), json!({"a": "${request.a}", "b": "${response.b}"}));
    let headers = HeaderMap::new();
    let client = Client { body: br#"{"a":1}"#, model: "", headers: &headers };
    assert!(matches!(adapter.response(&client, b"oops"), Err(Unfit::Body(_))));
    assert_eq!(template_fault(adapter.response(&client, br#"{"c":1}"#).unwrap_err()).0, "/response/b");
    assert_eq!(adapter.response(&client, br#"{"b":2}"#).unwrap().unwrap(), br#"{"a":1,"b":2}"#);
}

#[test]
fn what_is_not_given_passes_as_it_is() {
    let nothing = Adapter::compile(&document::Adapter::default()).unwrap();
    let client = Client { body: b"no JSON", model: "", headers: &HeaderMap::new() };
    assert_eq!(nothing.request(&client), Ok(Reshaped { path: None, body: None }));
    assert_eq!(nothing.response(&client, b"neither"), Ok(None));
    assert!(!nothing.reshapes_response());
}

#[test]
fn a_path_takes_values_as_segments_whatever_is_in_them() {
    let body = r#"{"id":"../x?y#z","n":3,"list":[1]}"#;
    assert_eq!(path("/v2/models/${model}/infer", body).unwrap(), "/v2/models/a%2Fb/infer");
    assert_eq!(path("/u/${request.id}?n=${request.n}", body).unwrap(), "/u/..%2Fx%3Fy%23z?n=3");
    assert_eq!(path("/${request.list}", body).unwrap(), "/%5B1%5D");
    for (bad, offset, reason) in [
        ("v1", 0, "a path begins with a slash"),
        ("${model}", 0, "a path begins with a slash"),
        ("/a#b", 0, "a URL must escape the character `#`"),
        ("/a b", 0, "a URL must escape the character ` `"),
        ("/${?model}", 4, "only a whole string can be left out with `${?`"),
        ("/a/${response.x}", 5, "there is no `response` here; there are request, model, headers"),
        ("/${model", 3, "`${` has no `}`"),
    ] {
        let found = path(bad, "{}").unwrap_err();
        let expected = Fault { place: "/path".to_owned(), offset, reason: reason.to_owned() };
        assert_eq!(found, [expected], "{bad}");
    }
}

#[test]
fn a_method_is_one() {
    let method = |name: &str| {
        let source = document::Adapter { method: Some(name.to_owned()), ..Default::default() };
        Adapter::compile(&source).map(|adapter| adapter.method)
    };
    assert_eq!(method("PUT").unwrap(), Some(Method::PUT));
    for bad in ["", "post", "CONNECT", "A B"] {
        assert_eq!(method(bad).unwrap_err()[0].place, "/method", "{bad}");
    }
}

#[test]
fn a_mistake_is_found_to_the_byte() {
    let offset = |text: &str| compile(json!(text), json!(null)).unwrap_err()[0].offset;
    assert_eq!(offset("${request.a + nobody}"), 14);
    assert_eq!(offset("total: ${request.a} and ${1 + lower(request.b)}"), 30);
    assert_eq!(offset("${?request.a + nobody}"), 15);
    assert_eq!(offset("长 ${1 +}"), 9);
}

#[test]
fn all_that_is_wrong_with_a_template_is_found_with_its_place() {
    let found = faults(json!({
        "a": "${request.x", "b": ["${}", "${response.x}"], "c": {"d": "${1 +}", "${x}": 1},
        "e": "${lower(request.x)}", "f": "x ${?request.y}", "g": "${[1].map(n, n + m)}",
    }));
    let expected = [
        ("/request/a", "`${` has no `}`"),
        ("/request/b/0", "the expression is empty"),
        ("/request/b/1", "there is no `response` here; there are request, model, headers"),
        ("/request/c/d", "not a CEL expression: "),
        ("/request/c/${x}", "names of members cannot be computed"),
        ("/request/e", "there is no function `lower`"),
        ("/request/f", "only a whole string can be left out with `${?`"),
        ("/request/g", "there is no `m` here; "),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((place, reason), (at, start)) in found.iter().zip(expected) {
        assert!(place == at && reason.starts_with(start), "{place}: {reason}");
    }
}

#[test]
fn templates_and_what_they_write_are_bounded() {
    let mut deep = json!(1);
    for _ in 0..MAX_DEPTH {
        deep = json!([deep]);
    }
    assert!(faults(deep)[0].1.contains("32 levels"));
    assert_eq!(faults(json!(vec![1; MAX_NODES + 5])).len(), 1);
    assert!(faults(json!(format!("${{'{}'}}", "x".repeat(MAX_EXPRESSION))))[0].1.contains("2048 bytes"));
    let loops = "${[1].map(a, [1].map(b, [1].map(c, c)))}";
    assert!(faults(json!(loops))[0].1.contains("2 loops"));
    let long = format!(r#"{{"x":"{}"}}"#, "x".repeat(1 << 20));
    let many = json!(vec!["${request.x}"; 17]);
    assert!(filled(many, &long).unwrap_err().to_string().contains("grows beyond"));
    let text = "${request.x}".repeat(17);
    assert!(filled(json!(text), &long).unwrap_err().to_string().contains("grows beyond"));
}

proptest! {
    #[test]
    fn nothing_panics(source in "[ a-z0-9.${}?'\"\\\\\\[\\]()+长]{0,30}", body in "[\\[\\]{}:,\"a-z0-9.]{0,20}") {
        let template = json!({ "a": source, "b": format!("${{{source}}}") });
        let _ = path(&format!("/{source}"), &body);
        if let Ok(adapter) = compile(template, json!(null)) {
            let headers = HeaderMap::new();
            let _ = adapter.request(&Client { body: body.as_bytes(), model: "m", headers: &headers });
        }
    }

    #[test]
    fn plain_text_stays_as_it_is(text in any::<String>().prop_filter("no expression", |text| !text.contains("${"))) {
        let expected = json!(text).to_string();
        prop_assert_eq!(filled(json!(text), "{}").unwrap(), expected);
    }
}
