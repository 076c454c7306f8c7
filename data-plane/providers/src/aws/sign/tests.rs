use std::time::Duration;

use super::*;

// Vectors: AWS Signature Version 4 test suite. 30 August 2015, 12:36:00.
const NOW: Duration = Duration::from_secs(1_440_938_160);
const KEY: &str = "AKIDEXAMPLEKEYID:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const SCOPE: Scope<'_> = Scope { region: "us-east-1", service: "service" };
const GET: ToSign<'_> =
    ToSign { method: "GET", path_and_query: "/", host: "example.amazonaws.com", headers: &[], body: &[] };

/// The suite's own key, whose id is shorter than real ones are.
fn credentials(session_token: Option<&str>) -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: session_token.map(str::to_owned),
    }
}

fn authorization(request: &ToSign<'_>, credentials: &Credentials) -> String {
    let headers = sign(request, credentials, &SCOPE, UNIX_EPOCH + NOW).unwrap();
    assert_eq!(headers["x-amz-date"], "20150830T123600Z");
    headers["authorization"].to_str().unwrap().to_owned()
}

fn signature(request: &ToSign<'_>) -> String {
    authorization(request, &credentials(None)).rsplit_once('=').unwrap().1.to_owned()
}

#[test]
fn the_published_vectors_are_signed_as_published() {
    assert_eq!(
        authorization(&GET, &credentials(None)),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
         SignedHeaders=host;x-amz-date, \
         Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    );
    let order = ToSign { path_and_query: "/?Param2=value2&Param1=value1", ..GET };
    assert_eq!(signature(&order), "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    let utf8 = ToSign { path_and_query: "/\u{1234}", ..GET };
    assert_eq!(signature(&utf8), "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
    let trim = ToSign { headers: &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")], ..GET };
    assert_eq!(signature(&trim), "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
    let form = ToSign {
        method: "POST",
        headers: &[
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "13"),
            ("x-amz-content-sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"),
        ],
        body: &[b"Param1", b"", b"=value1"],
        ..GET
    };
    assert_eq!(signature(&form), "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b");
}

#[test]
fn a_session_token_is_sent_and_signed() {
    let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
    let headers = sign(&GET, &credentials(Some(token)), &SCOPE, UNIX_EPOCH + NOW).unwrap();
    assert_eq!(headers["x-amz-security-token"], token);
    let authorization = headers["authorization"].to_str().unwrap();
    assert!(authorization.ends_with(
        "SignedHeaders=host;x-amz-date;x-amz-security-token, \
         Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"
    ));
}

#[test]
fn an_encoded_model_arn_is_encoded_once_more() {
    assert_eq!(
        canonical_path("/test/@connections/JBDvjfGEIAMCERw%3D"),
        "/test/%40connections/JBDvjfGEIAMCERw%253D"
    );
    assert_eq!(
        canonical_path(
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x-v1%3A0/converse"
        ),
        "/model/arn%253Aaws%253Abedrock%253Aus-east-1%253A1%253Ainference-profile%252Fus.x-v1%253A0/converse"
    );
    assert_eq!(canonical_path(""), "/");
}

#[test]
fn headers_of_one_name_are_joined_and_a_query_name_without_value_gets_none() {
    let request =
        ToSign { path_and_query: "/p?b&a=2&a=1", headers: &[("x", "2"), ("a", "0"), ("x", "1")], ..GET };
    let (canonical, signed) = canonical_request(&request, &credentials(None), "T");
    assert_eq!(signed, "a;host;x;x-amz-date");
    assert!(canonical.starts_with(
        "GET\n/p\na=1&a=2&b=\na:0\nhost:example.amazonaws.com\nx:2,1\nx-amz-date:T\n\na;host;x;x-amz-date\n"
    ));
}

#[test]
fn days_are_dated_across_leap_years_and_centuries() {
    let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(0), "19700101T000000Z");
    assert_eq!(at(951_782_399), "20000228T235959Z");
    assert_eq!(at(951_782_400), "20000229T000000Z");
    assert_eq!(at(1_709_251_200), "20240301T000000Z");
    assert_eq!(at(4_107_542_400), "21000301T000000Z");
    assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), "19700101T000000Z");
}

#[test]
fn only_key_pairs_are_read_as_credentials_and_the_rest_is_an_api_key() {
    assert!(Credentials::parse(KEY).is_some());
    let with_token = Credentials::parse(&format!("{KEY}:IQoJb3JpZ2luX2VjE:x=")).unwrap();
    assert_eq!(with_token.session_token.as_deref(), Some("IQoJb3JpZ2luX2VjE:x="));
    for other in [
        "",
        "bedrock-api-key-YmVkcm9jaw==",
        "ABSKQmVkcm9ja0FQSUtleS1hYmM=",
        "AKIDEXAMPLEKEYID",
        "AKIDEXAMPLEKEYID:",
        "AKIDEXAMPLEKEYID:secret:",
        "akidexamplekeyid:secret",
        ":secret",
        "AKIDEXAMPLEKEYID:se cret",
        "AKIDEXAMPLEKEYID:secret\r\nx:y",
    ] {
        assert_eq!(Credentials::parse(other), None, "{other}");
    }
}

#[test]
fn secrets_are_shown_nowhere_sec_01() {
    let credentials = Credentials::parse(&format!("{KEY}:TOKEN-SENTINEL")).unwrap();
    let headers = sign(&GET, &credentials, &SCOPE, UNIX_EPOCH + NOW).unwrap();
    let shown = format!("{credentials:?} {headers:?}");
    assert!(shown.contains("AKIDEXAMPLEKEYID"));
    assert!(
        !shown.contains("wJalr") && !shown.contains("SENTINEL") && !shown.contains("Signature="),
        "{shown}"
    );
}

#[test]
fn a_region_that_fits_no_header_is_an_error() {
    let scope = Scope { region: "us\n", ..SCOPE };
    assert!(sign(&GET, &credentials(None), &scope, UNIX_EPOCH + NOW).is_err());
}
