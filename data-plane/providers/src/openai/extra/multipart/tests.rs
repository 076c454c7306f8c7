use proptest::prelude::*;

use super::*;

const TYPE: &str = "multipart/form-data; boundary=XbX";

/// A form of these parts: name, more of the head, value.
fn written(boundary: &str, parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, more, value) in parts {
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

const FILE: &str = "; filename=\"a \\\"b\\\".png\"\r\nContent-Type: image/png";

fn joined(body: SplicedBody) -> Vec<u8> {
    body.into_segments().flatten().collect()
}

#[test]
fn the_fields_are_found_around_the_file() {
    let file = b"\x89PNG\r\n\r\n--Xb\r\n--XbXY\r\n\0\xff";
    let body = written(
        "XbX",
        &[
            ("image", FILE, file),
            ("model", "", b"whisper-1"),
            ("prompt", "", "a \\n cat 🐈".as_bytes()),
            ("stream", "", b"true"),
            ("user", "", b"u"),
        ],
    );
    let form = form(&body, TYPE).unwrap();
    let view = &form.view;
    assert_eq!(view.model.as_deref(), Some("whisper-1"));
    assert_eq!(&body[view.model_span.clone().unwrap()], b"whisper-1");
    assert!(view.stream && view.images);
    assert_eq!(view.texts().collect::<Vec<_>>(), ["a \\n cat 🐈"]);
    assert_eq!(view.user.as_deref(), Some("u"));
    let changed = joined(form.replace_model(&Bytes::from(body.clone()), "other"));
    assert_eq!(changed.len(), body.len() - 4);
    let again = super::form(&changed, TYPE).unwrap();
    assert_eq!(again.view.model.as_deref(), Some("other"));
    assert!(changed.windows(file.len()).any(|window| window == file), "the file is as it was");
}

#[test]
fn a_form_without_a_model_gets_one() {
    for preamble in ["", "ignored\r\n"] {
        let mut body = preamble.as_bytes().to_vec();
        body.extend(written("XbX", &[("file", "; filename=a.mp3", b"ID3")]));
        let read = form(&body, TYPE).unwrap();
        assert_eq!((read.view.model.as_deref(), read.view.images), (None, false));
        let changed = joined(read.replace_model(&Bytes::from(body.clone()), "m"));
        assert_eq!(form(&changed, TYPE).unwrap().view.model.as_deref(), Some("m"));
    }
}

#[test]
fn the_boundary_may_be_quoted_and_is_checked() {
    let body = written("a b:c", &[("model", "", b"m")]);
    let read = |kind| form(&body, kind);
    assert!(read("Multipart/Form-Data; charset=utf-8; Boundary=\"a b:c\"").is_ok());
    for kind in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"a b:c",
        "multipart/mixed; boundary=\"a b:c\"",
        "multipart/form-data; boundary=other",
        "application/json",
    ] {
        assert!(read(kind).is_err(), "{kind}");
    }
}

#[test]
fn a_body_that_two_readers_could_read_differently_is_refused() {
    let good = String::from_utf8(written("XbX", &[("model", "", b"m")])).unwrap();
    let doubled = String::from_utf8(written("XbX", &[("model", "", b"m"), ("model", "", b"n")])).unwrap();
    for (body, why) in [
        (doubled, "occurs twice"),
        (good.replace("\r\n", "\n"), "begin"),
        (good.replace("--XbX--", ""), "no end"),
        (good.replace("name=\"model\"", "name=\"a\"; name=\"model\""), "Content-Disposition"),
        (good.replace("name=\"model\"", "name*=utf-8''model"), "Content-Disposition"),
        (good.replace("form-data; name", "attachment; name"), "Content-Disposition"),
        (good.replace("Content-Disposition", "X-Other"), "Content-Disposition"),
        (good.replace("\r\n\r\n", "\r\n"), "no head"),
    ] {
        let error = form(body.as_bytes(), TYPE).unwrap_err();
        assert!(error.reason.contains(why), "{error}: {body}");
    }
    assert!(form(&written("XbX", &[("model", "", b"\xff")]), TYPE).is_err());
}

#[test]
fn forms_are_bounded() {
    let many: Vec<(&str, &str, &[u8])> = vec![("x", "", b""); MAX_PARTS + 1];
    assert!(form(&written("XbX", &many), TYPE).is_err());
    assert!(form(&written("XbX", &many[1..]), TYPE).is_ok());
    let long = format!("; filename=\"{}\"", "x".repeat(MAX_HEAD));
    assert!(form(&written("XbX", &[("file", &long, b"")]), TYPE).is_err());
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        Just(b"\r\n".to_vec()),
        Just(b"\r\n--Xb".to_vec()),
        Just(b"--XbX".to_vec()),
        Just(b"\r\n--XbXX".to_vec()),
    ];
    let whole = prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat());
    // What holds the delimiter itself cannot be sent with this boundary.
    whole.prop_filter("no delimiter", |value| {
        let framed = [b"\r\n", value.as_slice(), b"\r\n"].concat();
        !["\r\n--XbX--", "\r\n--XbX\r\n", "\r\n--XbX \r\n", "\r\n--XbX\t\r\n"]
            .iter()
            .any(|delimiter| memchr::memmem::find(&framed, delimiter.as_bytes()).is_some())
    })
}

proptest! {
    #[test]
    fn any_file_before_and_after_leaves_the_fields_as_they_are(
        before in value(), after in value(), model in "\\PC{0,12}", prompt in "\\PC{0,12}", new in "[a-z0-9/:.-]{1,12}",
    ) {
        let body = written("XbX", &[
            ("file", FILE, &before), ("model", "", model.as_bytes()), ("prompt", "", prompt.as_bytes()), ("image[]", FILE, &after),
        ]);
        let read = form(&body, TYPE).unwrap();
        prop_assert_eq!(read.view.model.as_deref(), Some(model.as_str()));
        let texts: Vec<_> = read.view.texts().collect();
        prop_assert_eq!(texts, [prompt.as_str()]);
        let changed = joined(read.replace_model(&Bytes::from(body.clone()), &new));
        let expected = written("XbX", &[
            ("file", FILE, &before), ("model", "", new.as_bytes()), ("prompt", "", prompt.as_bytes()), ("image[]", FILE, &after),
        ]);
        prop_assert_eq!(changed, expected);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(tail in prop::collection::vec(any::<u8>(), 0..200), kind in "\\PC{0,40}") {
        let mut body = b"--XbX\r\nContent-Disposition: form-data; ".to_vec();
        body.extend_from_slice(&tail);
        let _ = form(&body, TYPE);
        let _ = form(&tail, TYPE);
        let _ = form(&tail, &kind);
        let _ = disposition(&tail);
    }
}
