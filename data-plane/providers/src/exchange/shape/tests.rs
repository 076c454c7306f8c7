use proptest::prelude::*;

use super::*;
use crate::exchange::ToolCall;

fn user(parts: Vec<Part>) -> Turn {
    Turn::new(Role::User, parts)
}

fn assistant(parts: Vec<Part>) -> Turn {
    Turn::new(Role::Assistant, parts)
}

fn call(id: &str) -> Part {
    let (name, arguments) = ("f".to_owned(), "{}".to_owned());
    Part::ToolCall(ToolCall { id: id.to_owned(), name, arguments, signature: None, cache: None })
}

fn result(id: &str, text: &str) -> Part {
    let parts = vec![Part::text(text)];
    Part::ToolResult(ToolResult { call_id: id.to_owned(), name: None, parts, is_error: false, cache: None })
}

fn request(turns: Vec<Turn>) -> Request {
    Request { turns, ..Request::new(Wire::Openai) }
}

fn wrong(turns: Vec<Turn>) -> String {
    match alternating(&request(turns)) {
        Err(Unwritable::Wrong(field)) => field.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_instruction_survives_in_order_wherever_it_stood_tr_01() {
    let request = request(vec![
        Turn::new(Role::System, vec![Part::text("Answer in French.")]),
        user(vec![Part::text("Hi")]),
        Turn::new(Role::Developer, vec![Part::text("Be brief."), Part::text(""), Part::text("Be kind.")]),
        user(vec![Part::text("there")]),
    ]);
    let texts: Vec<_> = instructions(&request).into_iter().map(|text| text.text.as_str()).collect();
    assert_eq!(texts, ["Answer in French.", "Be brief.", "Be kind."]);
    let turns = alternating(&request).unwrap();
    assert_eq!(turns, [user(vec![Part::text("Hi"), Part::text("there")])]);
}

#[test]
fn an_instruction_that_is_not_text_is_refused_rather_than_lost_tr_01() {
    let image = Part::Image(Media::new(Source::Url("https://x.example/a.png".to_owned()), None));
    let request = request(vec![Turn::new(Role::System, vec![Part::text("a"), image])]);
    let Err(Unwritable::Unsupported(field)) = alternating(&request) else { panic!() };
    assert_eq!(field.field, "messages[0].content[1]");
}

#[test]
fn neighbours_of_one_role_are_merged_and_results_come_first_tr_02() {
    let turns = alternating(&request(vec![
        user(vec![Part::text("a")]),
        user(vec![Part::text("b")]),
        assistant(vec![Part::text("c")]),
        assistant(vec![call("t1")]),
        user(vec![result("t1", "ok")]),
        user(vec![Part::text("d")]),
    ]))
    .unwrap();
    let expected = [
        user(vec![Part::text("a"), Part::text("b")]),
        assistant(vec![Part::text("c"), call("t1")]),
        user(vec![result("t1", "ok"), Part::text("d")]),
    ];
    assert_eq!(turns, expected);
}

#[test]
fn all_results_of_a_turn_are_in_the_next_one_whatever_came_between_tr_03() {
    let turns = alternating(&request(vec![
        user(vec![Part::text("q")]),
        assistant(vec![call("t1"), call("t2")]),
        user(vec![result("t2", "B")]),
        user(vec![Part::text("by the way")]),
        user(vec![result("t1", "A")]),
    ]))
    .unwrap();
    let last = user(vec![result("t2", "B"), result("t1", "A"), Part::text("by the way")]);
    assert_eq!(turns.last(), Some(&last));
}

#[test]
fn a_missing_an_unknown_and_a_doubled_result_are_refused_by_id_tr_03() {
    let question = || user(vec![Part::text("q")]);
    let calls = || assistant(vec![call("t1"), call("t2")]);
    let missing = wrong(vec![question(), calls(), user(vec![result("t1", "A")])]);
    assert_eq!(missing, "messages[1]: the tool call `t2` has no result in the next turn");
    let unknown = wrong(vec![question(), calls(), user(vec![result("t1", "A"), result("t9", "?")])]);
    assert!(unknown.starts_with("messages[2]") && unknown.contains("`t9`"), "{unknown}");
    let doubled = wrong(vec![
        question(),
        assistant(vec![call("t1")]),
        user(vec![result("t1", "A"), result("t1", "A")]),
    ]);
    assert!(doubled.contains("`t1`"), "{doubled}");
    let last = wrong(vec![question(), calls()]);
    assert_eq!(last, "messages[1]: the tool call `t1` has no result");
    let late = wrong(vec![
        question(),
        calls(),
        question(),
        assistant(vec![Part::text("x")]),
        user(vec![result("t1", "A")]),
    ]);
    assert!(late.contains("`t1`"), "{late}");
    let twins =
        wrong(vec![question(), assistant(vec![call("t1"), call("t1")]), user(vec![result("t1", "A")])]);
    assert!(twins.contains("two tool calls"), "{twins}");
}

#[test]
fn a_turn_of_nothing_but_empty_text_is_left_out() {
    let turns = alternating(&request(vec![
        user(vec![Part::text("a")]),
        assistant(vec![Part::text("")]),
        user(vec![Part::text(""), Part::text("b")]),
    ]))
    .unwrap();
    assert_eq!(turns, [user(vec![Part::text("a"), Part::text("b")])]);
}

#[test]
fn places_are_those_of_the_clients_own_list() {
    let mut request = request(vec![Turn::new(Role::System, vec![]), user(vec![])]);
    assert_eq!(place(&request, 1), "messages[1]");
    request.wire = Wire::Anthropic;
    assert_eq!(place(&request, 1), "messages[0]");
    request.wire = Wire::Gemini;
    request.turns.remove(0);
    assert_eq!(place(&request, 0), "contents[0]");
}

#[test]
fn image_types_are_a_table_tr_07() {
    let allowed = ["image/jpeg", "image/png"].map(str::to_owned);
    let kind = |written: Option<&str>, data: &str| {
        let media = Media::new(Source::Base64(data.to_owned()), written.map(str::to_owned));
        image_type(&media, &allowed, "messages[0].content[1]")
    };
    assert_eq!(kind(Some("image/jpg"), "/9j/2Q==").unwrap(), "image/jpeg");
    assert_eq!(kind(Some("IMAGE/PNG; charset=x"), "iVBORw0KGgo=").unwrap(), "image/png");
    assert_eq!(kind(None, "/9j/2Q==").unwrap(), "image/jpeg");
    let Err(Unwritable::Wrong(svg)) = kind(Some("image/svg+xml"), "PHN2Zy8+") else { panic!() };
    assert_eq!(svg.field, "messages[0].content[1]");
    assert!(svg.reason.contains("image/svg+xml") && svg.reason.contains("image/png"), "{}", svg.reason);
    assert!(matches!(kind(Some("image/webp"), "UklGR"), Err(Unwritable::Unsupported(_))));
    assert!(matches!(kind(None, "PHN2Zy8+"), Err(Unwritable::Wrong(_))));
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let part = prop_oneof![
        any::<String>().prop_map(Part::text),
        Just(Part::text("")),
        "t[0-3]".prop_map(|id| call(&id)),
        "t[0-3]".prop_map(|id| result(&id, "r")),
    ];
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)];
    (role, prop::collection::vec(part, 0..4)).prop_map(|(role, parts)| Turn::new(role, parts))
}

proptest! {
    #[test]
    fn what_is_accepted_alternates_and_has_one_result_for_each_call(turns in prop::collection::vec(any_turn(), 0..8)) {
        let Ok(turns) = alternating(&request(turns)) else { return Ok(()) };
        for pair in turns.windows(2) {
            prop_assert_ne!(pair[0].role, pair[1].role);
            let calls = pair[0].parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
            prop_assert_eq!(results(&pair[1]).count(), calls);
        }
        for turn in &turns {
            prop_assert!(!turn.parts.is_empty() && !turn.parts.iter().any(is_empty_text));
        }
    }
}
