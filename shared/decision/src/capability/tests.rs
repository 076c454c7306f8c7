use proptest::prelude::*;

use super::*;
use crate::testing::policy;

fn classifier() -> (Policy, Classifier) {
    let policy = policy(penstock_model::DEMO_POLICY);
    let classifier = Classifier::new(&policy, None);
    (policy, classifier)
}

fn classify(text: &str) -> (String, f64, CapabilitySource) {
    let (policy, classifier) = classifier();
    let found = classifier.classify([text]);
    (policy.capabilities[found.capability.index()].name.clone(), found.confidence, found.source)
}

fn capability(text: &str) -> String {
    classify(text).0
}

#[test]
fn the_three_prompts_of_the_readme_need_what_their_reader_thinks_they_need() {
    assert_eq!(classify("帮我写一个快速排序算法"), ("code".to_owned(), 1.0, CapabilitySource::Keyword));
    assert_eq!(
        classify("请总结这篇文章的核心要点"),
        ("summarize".to_owned(), 1.0, CapabilitySource::Keyword)
    );
    assert_eq!(classify("你好今天天气怎么样"), ("chat".to_owned(), 0.0, CapabilitySource::Default));
}

#[test]
fn case_is_ignored_in_any_script_that_has_it() {
    assert_eq!(capability("Write a PYTHON function"), "code");
    let policy = policy(
        "
version: 1
capabilities: {chat: {default: true}, greet: {keywords: [grüße, привет]}}
backends: {a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat, greet], models: [{name: m}]}}
routes: [{name: rest}]
",
    );
    let classifier = Classifier::new(&policy, None);
    for text in ["Viele GRÜSSE und GRÜßE", "Schöne Grüße!", "ПРИВЕТ, как дела"] {
        assert_eq!(classifier.classify([text]).source, CapabilitySource::Keyword, "{text}");
    }
}

#[test]
fn a_latin_keyword_matches_whole_words_only() {
    assert_eq!(capability("please decode this barcode"), "chat");
    assert_eq!(capability("debugger"), "chat");
    assert_eq!(capability("re-code it"), "code");
    assert_eq!(capability("code"), "code");
    assert_eq!(capability("my_code"), "chat", "the underscore is part of a word");
    assert_eq!(capability("caférust"), "chat", "so is a letter with an accent");
    assert_eq!(capability("用python写"), "code", "a Chinese character is not");
}

#[test]
fn a_keyword_that_ends_in_a_sign_needs_no_boundary_there() {
    assert_eq!(capability("C++17 templates"), "code");
    assert_eq!(capability("tl;dr"), "summarize");
}

#[test]
fn chinese_keywords_match_anywhere() {
    assert_eq!(capability("我的代码坏了"), "code");
    assert_eq!(capability("abc总结abc"), "summarize");
}

#[test]
fn the_capability_with_more_different_keywords_wins_and_confidence_says_by_how_much() {
    let (name, confidence, _) = classify("总结这段代码的要点, 要点, 要点 and give a summary");
    assert_eq!(name, "summarize");
    assert!((confidence - 0.75).abs() < 1e-9, "three against one: {confidence}");
}

#[test]
fn a_tie_goes_to_the_longer_keyword_and_then_to_the_first_capability() {
    assert_eq!(capability("summarize the bug"), "summarize");
    assert_eq!(capability("javascript recap"), "code");
    assert_eq!(capability("quicksort summarize"), "code", "both have nine letters");
}

#[test]
fn an_instruction_after_a_long_text_is_found_and_one_in_its_middle_is_not() {
    let long = "好的天气 ".repeat(10_000);
    assert_eq!(capability(&format!("{long}请总结")), "summarize");
    assert_eq!(capability(&format!("请总结{long}")), "summarize");
    assert_eq!(capability(&format!("{long}请总结{long}")), "chat");
}

#[test]
fn the_first_turn_that_says_anything_decides() {
    let (policy, classifier) = classifier();
    let capability = |turns: &[&str]| {
        let found = classifier.classify(turns.iter().copied());
        policy.capabilities[found.capability.index()].name.clone()
    };
    assert_eq!(capability(&["and now for longer texts", "summarize this"]), "summarize");
    assert_eq!(capability(&["now summarize it", "write a python function"]), "summarize");
    assert_eq!(capability(&["hello", "hi"]), "chat");
    assert_eq!(classifier.classify([]).source, CapabilitySource::Default);
}

#[test]
fn without_keywords_everything_needs_the_default() {
    let policy = policy(
        "
version: 1
capabilities: {chat: {default: true}}
backends: {a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: [{name: m}]}}
routes: [{name: rest}]
",
    );
    let found = Classifier::new(&policy, None).classify(["总结 code"]);
    assert_eq!((found.source, found.capability), (CapabilitySource::Default, policy.default_capability));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(texts in proptest::collection::vec("[ab总结é𝄞 ]{0,3000}", 0..4)) {
        let (_, classifier) = classifier();
        let found = classifier.classify(texts.iter().map(String::as_str));
        prop_assert!((0.0..=1.0).contains(&found.confidence));
    }
}
