//! Every dialect takes what its vendor takes, refuses what its vendor refuses, and fails in its vendor's words.

use penstock_sim::{Dialect, Fault, Running, ServiceConfig, start};
use serde_json::{Value, json};

use crate::client::{Answer, call};
use crate::until;

/// One way to call one dialect.
struct Way {
    dialect: Dialect,
    path: &'static str,
    /// For streams, where it differs.
    stream_path: &'static str,
    headers: &'static str,
    /// What a stream's body or header says beside.
    stream: fn(&mut Value),
    body: fn() -> Value,
    /// What is in the first text of a stream's error.
    error: &'static str,
    /// A field of the error body that holds the message.
    message: &'static str,
}

const JSON: &str = "content-type: application/json\r\n";
const ANTHROPIC: &str = "content-type: application/json\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
const GOOGLE: &str = "content-type: application/json\r\nx-goog-api-key: k\r\n";
const BEARER: &str = "content-type: application/json\r\nauthorization: Bearer k\r\n";
const AZURE: &str = "content-type: application/json\r\napi-key: k\r\n";
const DASHSCOPE_SSE: &str =
    "content-type: application/json\r\nauthorization: Bearer k\r\nx-dashscope-sse: enable\r\n";

fn streams(body: &mut Value) {
    body["stream"] = json!(true);
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

fn chat_tools() -> Value {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": schema()}});
    json!([tool("weather"), tool("time")])
}

fn chat() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "use tool weather"}], "tools": chat_tools()})
}

fn responses() -> Value {
    let tool = json!({"type": "function", "name": "weather", "parameters": schema()});
    json!({"model": "m", "input": "use tool weather", "tools": [tool]})
}

fn messages() -> Value {
    json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "use tool weather"}],
        "tools": [{"name": "weather", "input_schema": schema()}]})
}

fn on_vertex() -> Value {
    let mut body = messages();
    body.as_object_mut().unwrap().remove("model");
    body["anthropic_version"] = json!("vertex-2023-10-16");
    body
}

fn generate() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "use tool weather"}]}],
        "tools": [{"functionDeclarations": [{"name": "weather", "parameters": schema()}]}]})
}

fn converse() -> Value {
    json!({"messages": [{"role": "user", "content": [{"text": "use tool weather"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": schema()}}}]}})
}

fn dashscope() -> Value {
    json!({"model": "m", "input": {"messages": [{"role": "user", "content": "use tool weather"}]},
        "parameters": {"result_format": "message", "tools": chat_tools(), "incremental_output": true}})
}

fn ollama() -> Value {
    let mut body = chat();
    body["stream"] = json!(false);
    body
}

const SILENT: fn(&mut Value) = |_| {};

#[rustfmt::skip]
fn ways() -> Vec<Way> {
    let way = |dialect, path, headers, body, stream, error, message| Way {
        dialect, path, stream_path: path, headers, stream, body, error, message,
    };
    let chat_path = "/v1/chat/completions";
    vec![
        way(Dialect::Openai, chat_path, JSON, chat, streams, "data: {\"error\":{", "/error/message"),
        way(Dialect::OpenaiStrict, "/v1/responses", JSON, responses, streams, "event: error\ndata: {\"type\":\"error\"", "/error/message"),
        way(Dialect::AzureOpenai, "/openai/deployments/m/chat/completions?api-version=2024-10-21", AZURE, chat, streams, "data: {\"error\":{", "/error/message"),
        way(Dialect::Anthropic, "/v1/messages", ANTHROPIC, messages, streams, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"", "/error/message"),
        Way { stream_path: "/v1beta/models/m:streamGenerateContent?alt=sse",
            ..way(Dialect::Gemini, "/v1beta/models/m:generateContent", GOOGLE, generate, SILENT, "data: {\"error\":{\"code\":503", "/error/message") },
        Way { stream_path: "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse",
            ..way(Dialect::Vertex, "/v1/projects/p/locations/l/publishers/google/models/m:generateContent", BEARER, generate, SILENT, "data: {\"error\":{\"code\":503", "/error/message") },
        Way { stream_path: "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
            ..way(Dialect::Vertex, "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict", BEARER, on_vertex, SILENT, "event: error", "/error/message") },
        Way { stream_path: "/model/m/converse-stream",
            ..way(Dialect::Bedrock, "/model/m/converse", BEARER, converse, SILENT, "serviceUnavailableException", "/message") },
        way(Dialect::Cohere, "/v2/chat", BEARER, chat, streams, "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"ERROR\"", "/message"),
        way(Dialect::Dashscope, "/api/v1/services/aigc/text-generation/generation", BEARER, dashscope, SILENT, "event:error\n:HTTP_STATUS/503\ndata:{\"code\":\"ServiceUnavailable\"", "/message"),
        way(Dialect::Ollama, "/api/chat", JSON, ollama, streams, "{\"error\":\"", "/error"),
    ]
}

impl Way {
    async fn start(&self) -> Running {
        let config =
            ServiceConfig { dialect: self.dialect, models: vec!["m".to_owned()], ..ServiceConfig::new("s") };
        start(config).await.unwrap()
    }

    async fn send(&self, service: &Running, body: &Value) -> Answer {
        call(service, "POST", self.path, self.headers, &body.to_string()).await
    }

    async fn stream(&self, service: &Running) -> Answer {
        let mut body = (self.body)();
        (self.stream)(&mut body);
        let headers = if self.dialect == Dialect::Dashscope { DASHSCOPE_SSE } else { self.headers };
        call(service, "POST", self.stream_path, headers, &body.to_string()).await
    }
}

#[tokio::test]
async fn each_dialect_calls_the_tool_that_it_is_told_to_whole_and_streamed() {
    for way in ways() {
        let service = way.start().await;
        let whole = way.send(&service, &(way.body)()).await;
        assert_eq!(whole.status, 200, "{} {}", way.path, whole.text());
        let text = whole.text();
        assert!(text.contains("weather") && text.contains("city"), "{} {text}", way.path);
        let stream = way.stream(&service).await;
        let text = String::from_utf8_lossy(&stream.body);
        assert_eq!(stream.status, 200, "{} {text}", way.stream_path);
        assert!(
            text.contains("weather") && text.contains("city") && stream.is_whole(),
            "{} {text}",
            way.path
        );
        assert_eq!(service.stats().ok, 2);
    }
}

#[tokio::test]
async fn each_dialect_fails_in_its_own_words() {
    for way in ways() {
        let service = way.start().await;
        service.set_fault(Fault::parse("errors=1,status=429,retry_after=7").unwrap());
        let limited = way.send(&service, &(way.body)()).await;
        assert_eq!(limited.status, 429, "{}", way.path);
        let message = limited.json();
        assert!(message.pointer(way.message).is_some_and(Value::is_string), "{} {message}", way.path);
        assert!(limited.head.contains("retry-after: 7"));
        for fault in ["stream_error", "late_error"] {
            service.set_fault(Fault::parse(fault).unwrap());
            let broken = way.stream(&service).await;
            let text = String::from_utf8_lossy(&broken.body).into_owned();
            assert!(broken.status == 200 && text.contains(way.error), "{} {fault} {text}", way.path);
        }
        assert_eq!(service.stats().server_error, 2, "{}", way.path);
        service.set_fault(Fault::parse("truncate").unwrap());
        let (cut, whole) = (way.stream(&service).await, way.start().await);
        let whole = way.stream(&whole).await;
        assert!(cut.is_whole() && cut.body.len() < whole.body.len(), "{}", way.path);
        service.set_fault(Fault::parse("stall").unwrap());
        let patience = std::time::Duration::from_millis(100);
        assert!(tokio::time::timeout(patience, way.stream(&service)).await.is_err());
        until(|| service.stats().cancelled == 1).await;
    }
}

#[tokio::test]
async fn a_call_without_its_credential_is_refused_where_the_vendor_wants_one() {
    for way in ways() {
        let service = way.start().await;
        let answer = call(&service, "POST", way.path, JSON, &(way.body)().to_string()).await;
        let free = matches!(way.dialect, Dialect::Openai | Dialect::OpenaiStrict | Dialect::Ollama);
        let expected: &[u16] = if free { &[200] } else { &[401, 403] };
        assert!(expected.contains(&answer.status), "{} {} {}", way.path, answer.status, answer.text());
    }
}

/// A body with a mistake in it.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match (body.pointer_mut(parent).unwrap(), value) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(field)),
        (Value::Object(fields), value) => drop(fields.insert(field.to_owned(), value)),
        (Value::Array(items), value) => items[field.parse::<usize>().unwrap()] = value,
        _ => unreachable!("a pointer ends in an object or a list"),
    }
    body
}

fn mistakes(way: &Way) -> Vec<Value> {
    let body = way.body;
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    match way.dialect {
        Dialect::Openai | Dialect::AzureOpenai | Dialect::Cohere if way.path != "/v1/responses" => vec![
            with(body(), "/messages", json!([])),
            with(body(), "/tools/0/function/name", Value::Null),
            with(body(), "/messages", json!([{"role": "tool", "tool_call_id": "x", "content": "a"}])),
            with(body(), "/max_tokens", json!(0)),
        ],
        Dialect::OpenaiStrict => vec![
            with(body(), "/unknown", json!(1)),
            with(body(), "/tools/0", json!({"type": "function", "function": {"name": "f"}})),
            with(body(), "/max_output_tokens", json!(1)),
        ],
        Dialect::Anthropic => vec![
            with(body(), "/unknown", json!(1)),
            with(body(), "/max_tokens", Value::Null),
            with(body(), "/messages", json!([])),
            with(body(), "/messages/0/role", json!("system")),
            with(body(), "/messages/0/role", json!("assistant")),
            with(body(), "/messages", user(json!([{"type": "text", "text": ""}]))),
            with(body(), "/messages", user(json!(""))),
            with(body(), "/messages/0/name", json!("me")),
            with(body(), "/stop_sequences", json!(["\n"])),
            with(body(), "/temperature", json!(1.5)),
            with(body(), "/thinking", json!({"type": "enabled", "budget_tokens": 1024})),
            with(body(), "/tool_choice", json!({"type": "tool", "name": "other"})),
            with(body(), "/tools/0/input_schema", json!({})),
            with(
                body(),
                "/messages",
                user(json!([{"type": "image", "source": {"type": "base64",
                "media_type": "image/jpg", "data": "/9j/2Q=="}}])),
            ),
            with(
                body(),
                "/messages",
                user(json!([{"type": "image", "source": {"type": "base64",
                "media_type": "image/png", "data": "/9j/2Q=="}}])),
            ),
        ],
        Dialect::Gemini => vec![
            with(body(), "/unknown", json!(1)),
            with(body(), "/contents", json!([])),
            with(body(), "/contents/0/role", json!("assistant")),
            with(body(), "/contents/0/parts/0", json!({})),
            with(body(), "/tools/0/functionDeclarations/0/parameters/additionalProperties", json!(false)),
            with(body(), "/generationConfig", json!({"stopSequences": ["a", "b", "c", "d", "e", "f"]})),
            with(body(), "/generationConfig", json!({"responseSchema": {"type": "string"}})),
            with(body(), "/generationConfig", json!({"max_tokens": 1})),
            with(
                body(),
                "/contents/0/parts/0",
                json!({"inlineData": {"mimeType": "image/svg+xml", "data": "PHN2Zy8+"}}),
            ),
        ],
        Dialect::Bedrock => vec![
            with(body(), "/modelId", json!("m")),
            with(body(), "/messages", json!([])),
            with(body(), "/messages/0/content/0", json!({"text": " "})),
            with(body(), "/messages/0/content/0", json!({"text": "a", "cachePoint": {"type": "default"}})),
            with(body(), "/messages/0/role", json!("assistant")),
            with(body(), "/toolConfig/tools", json!([])),
            with(body(), "/inferenceConfig", json!({"maxTokens": 0})),
            with(body(), "/inferenceConfig", json!({"topK": 1})),
            with(body(), "/additionalModelRequestFields", json!({"seed": 1})),
            with(
                body(),
                "/messages",
                json!([{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"text": "b"}]}]),
            ),
            with(
                body(),
                "/messages/0/content/0",
                json!({"image": {"format": "jpg", "source": {"bytes": "/9j/2Q=="}}}),
            ),
        ],
        Dialect::Dashscope => vec![
            with(body(), "/input/messages", json!([])),
            with(body(), "/parameters/result_format", Value::Null),
            with(body(), "/input/messages/0/content", json!([{"text": "a"}])),
        ],
        Dialect::Ollama => vec![
            with(body(), "/messages/0/content", json!([{"type": "text", "text": "a"}])),
            with(body(), "/messages/0/images", json!(["data:image/png;base64,iVBORw0KGgo="])),
            with(body(), "/stream", json!("yes")),
        ],
        // Claude there.
        Dialect::Vertex if way.path.contains("anthropic") => {
            vec![with(body(), "/model", json!("m")), with(body(), "/anthropic_version", Value::Null)]
        }
        _ => vec![with(body(), "/contents/0/role", Value::Null)],
    }
}

#[tokio::test]
async fn what_the_vendor_refuses_is_refused_in_its_error_shape() {
    for way in ways() {
        let service = way.start().await;
        for body in mistakes(&way) {
            let answer = way.send(&service, &body).await;
            assert_eq!(answer.status, 400, "{} {body} {}", way.path, answer.text());
            let error = answer.json();
            assert!(error.pointer(way.message).is_some_and(Value::is_string), "{} {error}", way.path);
        }
    }
}

#[tokio::test]
async fn reasoning_has_to_come_back_signed_as_it_went_out() {
    let way = ways().into_iter().find(|way| way.dialect == Dialect::Anthropic).unwrap();
    let service = way.start().await;
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let mut body = with(with(messages(), "/thinking", thinking), "/max_tokens", json!(2000));
    let first = way.send(&service, &body).await.json();
    assert_eq!(first["content"][0]["type"], "thinking");
    let result = json!({"type": "tool_result", "tool_use_id": first["content"][1]["id"], "content": "42"});
    let turns = [
        json!({"role": "user", "content": "use tool weather"}),
        json!({"role": "assistant", "content": first["content"]}),
        json!({"role": "user", "content": [result]}),
    ];
    body["messages"] = json!(turns);
    let second = way.send(&service, &body).await;
    assert_eq!(second.status, 200, "{}", second.text());
    assert!(second.text().contains("weather said 42"), "{}", second.text());

    let changed = with(body.clone(), "/messages/1/content/0/thinking", json!("other"));
    let answer = way.send(&service, &changed).await;
    assert!(answer.status == 400 && answer.text().contains("Invalid `signature`"), "{}", answer.text());
    body["messages"][1]["content"].as_array_mut().unwrap().remove(0);
    let answer = way.send(&service, &body).await;
    assert!(answer.status == 400 && answer.text().contains("Expected `thinking`"), "{}", answer.text());
}
