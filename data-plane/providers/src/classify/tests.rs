use super::*;

fn generic() -> &'static Vendor {
    Vendor::find("openai-compatible").unwrap()
}

fn meaning(vendor: &Vendor, status: Option<u16>, headers: &HeaderMap, body: &str) -> Meaning {
    let status = status.map(|status| StatusCode::from_u16(status).unwrap());
    let error = VendorError::read(body.as_bytes());
    classify(vendor, status, headers, error, SystemTime::UNIX_EPOCH).meaning
}

fn outcome_of(vendor: &str, status: u16, body: &str) -> Outcome {
    let status = StatusCode::from_u16(status).unwrap();
    let vendor = Vendor::find(vendor).unwrap();
    if status.is_success() {
        return classify_success(vendor, body.as_bytes()).map_or(Outcome::Ok, |error| error.outcome);
    }
    let error = VendorError::read(body.as_bytes());
    classify(vendor, Some(status), &HeaderMap::new(), error, SystemTime::UNIX_EPOCH).outcome
}

fn outcome(status: u16, body: &str) -> Outcome {
    outcome_of("openai", status, body)
}

#[test]
fn the_status_decides_when_the_body_says_nothing_more() {
    for (status, expected) in [
        (400, Outcome::ClientError),
        (401, Outcome::CredentialRejected),
        (402, Outcome::CredentialRejected),
        (403, Outcome::CredentialRejected),
        (404, Outcome::ClientError),
        (408, Outcome::ServerError),
        (413, Outcome::ClientError),
        (422, Outcome::ClientError),
        (424, Outcome::ServerError),
        (429, Outcome::RateLimited),
        (500, Outcome::ServerError),
        (502, Outcome::ServerError),
        (503, Outcome::Overloaded),
        (504, Outcome::ServerError),
        (529, Outcome::Overloaded),
        (302, Outcome::InvalidResponse),
        (999, Outcome::InvalidResponse),
    ] {
        for body in ["", "<html>x</html>", r#"{"error":{"message":"m","type":"t","code":null}}"#] {
            assert_eq!(outcome(status, body), expected, "{status} {body}");
        }
    }
}

#[test]
fn the_three_meanings_of_429_are_told_apart() {
    let of = |code: &str| outcome(429, &format!(r#"{{"error":{{"message":"m","code":{code}}}}}"#));
    assert_eq!(of(r#""rate_limit_exceeded""#), Outcome::RateLimited);
    assert_eq!(of(r#""RateLimitExceeded.EndpointTPMExceeded""#), Outcome::RateLimited);
    assert_eq!(of(r#""insufficient_quota""#), Outcome::CredentialRejected);
    assert_eq!(of(r#""ServerOverloaded""#), Outcome::Overloaded);
    let by_type = r#"{"error":{"message":"m","type":"insufficient_quota","code":null}}"#;
    assert_eq!(outcome(429, by_type), Outcome::CredentialRejected);
    assert_eq!(of(r#""ThrottlingX""#), Outcome::RateLimited, "an unknown name leaves it to the status");
}

#[test]
fn a_success_must_be_a_whole_json_object_without_an_error() {
    assert_eq!(outcome(200, r#"{"choices":[],"error":null}"#), Outcome::Ok);
    assert_eq!(outcome(200, r#"{"choices":[],"x":{"error":{"code":1}}}"#), Outcome::Ok);
    assert_eq!(outcome(200, r#"{"choices":[],"error":"","error_code":0}"#), Outcome::Ok);
    assert_eq!(outcome(200, r#"{"choices":["#), Outcome::InvalidResponse);
    assert_eq!(outcome(200, "garbage"), Outcome::InvalidResponse);
    assert_eq!(outcome(200, ""), Outcome::InvalidResponse);
    assert_eq!(outcome(200, r#"{"error":{"message":"queue full","code":503}}"#), Outcome::Overloaded);
    let qianfan = outcome_of("qianfan", 200, r#"{"error_code":336501,"error_msg":"limit"}"#);
    assert_eq!(qianfan, Outcome::RateLimited);
    assert_eq!(outcome(200, r#"{"error":"boom"}"#), Outcome::ServerError);
    assert_eq!(outcome(200, r#"{"error":{"type":"invalid_request_error"}}"#), Outcome::ClientError);
}

#[test]
fn the_vendors_wait_and_words_are_handed_on() {
    let headers = [(RETRY_AFTER, http::HeaderValue::from_static("7"))].into_iter().collect();
    let body = br#"{"error":{"message":"busy","type":"requests","code":"rate_limit_exceeded"}}"#;
    let vendor = Vendor::find("openai").unwrap();
    let (status, error) = (Some(StatusCode::TOO_MANY_REQUESTS), VendorError::read(body));
    let classified = classify(vendor, status, &headers, error, SystemTime::UNIX_EPOCH);
    assert_eq!(classified.limit.wait, Some(Duration::from_secs(7)));
    assert_eq!(classified.error.message.as_deref(), Some("busy"));
}

#[test]
fn amazons_type_is_read_from_the_header_and_from_the_body() {
    let bedrock = Vendor::find("bedrock").unwrap();
    for header in ["ThrottlingException", "com.amazon.coral#ThrottlingException:http://internal/x"] {
        let headers = HeaderMap::from_iter([(
            "x-amzn-errortype".parse().unwrap(),
            http::HeaderValue::from_static(header),
        )]);
        let error = VendorError::read(br#"{"message":"m"}"#);
        let classified = classify(bedrock, None, &headers, error, SystemTime::UNIX_EPOCH);
        assert_eq!(classified.meaning, Meaning::RateLimited);
        assert_eq!(classified.error.code.as_deref(), Some("ThrottlingException"));
    }
    let body = r#"{"__type":"com.amazon.coral.service#UnrecognizedClientException","Message":"m"}"#;
    assert_eq!(meaning(bedrock, Some(403), &HeaderMap::new(), body), Meaning::Credential);
}

#[test]
fn the_first_rule_of_the_vendor_wins_over_names_and_status() {
    let zhipu = Vendor::find("zhipu").unwrap();
    let body = |code: &str| format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#);
    let none = HeaderMap::new();
    assert_eq!(meaning(zhipu, Some(429), &none, &body("1113")), Meaning::Credential);
    assert_eq!(meaning(generic(), Some(429), &none, &body("1113")), Meaning::RateLimited);
    assert_eq!(meaning(zhipu, None, &none, &body("1305")), Meaning::Overloaded);
}

#[test]
fn a_wait_is_the_vendors_word_or_else_the_rules() {
    let zhipu = Vendor::find("zhipu").unwrap();
    let error = VendorError::read(br#"{"error":{"code":"1304","message":"m"}}"#);
    let wait = |headers: &HeaderMap| {
        let status = Some(StatusCode::TOO_MANY_REQUESTS);
        classify(zhipu, status, headers, error.clone(), SystemTime::UNIX_EPOCH).limit.wait
    };
    assert_eq!(wait(&HeaderMap::new()), Some(crate::rate_limit::CAP), "a daily quota");
    let told = HeaderMap::from_iter([(RETRY_AFTER, 7.into())]);
    assert_eq!(wait(&told), Some(Duration::from_secs(7)));
}

#[test]
fn a_prompt_that_is_too_long_is_recognised_by_its_words_when_it_has_no_code() {
    let body = r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","code":400}}"#;
    let none = HeaderMap::new();
    assert_eq!(meaning(generic(), Some(400), &none, body), Meaning::TooLong);
    assert_eq!(meaning(generic(), None, &none, body), Meaning::TooLong);
    assert_eq!(meaning(generic(), Some(500), &none, body), Meaning::TooLong);
}

#[test]
fn without_a_status_a_code_may_stand_for_one_and_unknown_errors_are_the_services() {
    let none = HeaderMap::new();
    for (body, expected) in [
        (r#"{"error":{"code":429,"message":"m"}}"#, Meaning::RateLimited),
        (r#"{"error":{"code":"503"}}"#, Meaning::Overloaded),
        (r#"{"error":{"code":1000000}}"#, Meaning::ServerError),
        (r#"{"error":{"type":"invalid_request_error"}}"#, Meaning::Client),
        (r#"{"error":"boom"}"#, Meaning::ServerError),
    ] {
        assert_eq!(meaning(generic(), None, &none, body), expected, "{body}");
    }
}
