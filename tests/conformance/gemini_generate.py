"""Google's Python client (google-genai): generate content."""

import json

from google import genai
from google.genai import errors, types
from report import FORECAST, FORECAST_SAMPLE, PNG, REFUSED, SEEN, TIME, WEATHER, Tools, raises, run

TOOLS = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name=name, description=f"Tells the {name}", parameters_json_schema=schema)
            for name, schema in (("weather", WEATHER), ("time", TIME))
        ]
    )
]


def models_of(service):
    options = types.HttpOptions(base_url=service.url, timeout=30_000)
    client = genai.Client(api_key="conformance", http_options=options)
    # Kept alive with its models: the client closes its connections when it is collected.
    client.models.owner = client
    return client.models


def config(**fields):
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(automatic_function_calling=off, **fields)


def ask(service, contents, **fields):
    return models_of(service).generate_content(model=service.model, contents=contents, config=config(**fields))


def stream_of(service, contents, **fields):
    return models_of(service).generate_content_stream(model=service.model, contents=contents, config=config(**fields))


def user(*parts):
    return types.Content(role="user", parts=list(parts))


def text(words):
    return types.Part.from_text(text=words)


def parts_of(chunks):
    contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
    return [part for content in contents if content for part in content.parts or []]


def said(parts):
    return "".join(part.text for part in parts if part.text and not part.thought)


def calls_of(parts):
    return [part.function_call for part in parts if part.function_call]


def results(calls, answers):
    parts = []
    for call, answer in zip(calls, answers, strict=True):
        part = types.Part.from_function_response(name=call.name, response={"result": answer})
        part.function_response.id = call.id
        parts.append(part)
    return user(*parts)


def plain(services):
    service = services["good"]
    contents = [
        user(text("Hello")), types.Content(role="model", parts=[text("Hi")]), user(text("Name three rivers: 潮🚲")),
    ]
    answer = ask(service, contents, system_instruction="Be brief.", temperature=0.5)
    service.said(answer.text)
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP, answer
    usage = answer.usage_metadata
    assert usage.prompt_token_count > 0 and usage.candidates_token_count > 0, usage
    short = ask(service, "Hello", max_output_tokens=3)
    assert short.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS, short


def stream(services):
    service = services["good"]
    chunks = list(stream_of(service, "Hello"))
    service.said(said(parts_of(chunks)))
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP, chunks[-1]
    assert chunks[-1].usage_metadata.candidates_token_count > 0, chunks[-1]


def tools(services):
    service = services["good"]
    contents = [user(text("Please use tool weather"))]
    first = ask(service, contents, tools=TOOLS)
    content = first.candidates[0].content
    (call,) = calls_of(content.parts)
    assert call.name == "weather" and call.args == {"city": "city"}, call
    second = ask(service, [*contents, content, results([call], [Tools.weather])], tools=TOOLS)
    assert Tools.weather in second.text, second.text


def stream_tools(services):
    service = services["good"]
    contents = [user(text("Please use tools weather and time"))]
    parts = parts_of(stream_of(service, contents, tools=TOOLS))
    calls = calls_of(parts)
    assert [call.name for call in calls] == ["weather", "time"], calls
    assert calls[1].args == {"zone": "zone", "utc": True}, calls
    back = types.Content(role="model", parts=[part for part in parts if part.text or part.function_call])
    answers = results(calls, [Tools.weather, Tools.time])
    words = said(parts_of(stream_of(service, [*contents, back, answers], tools=TOOLS)))
    assert Tools.weather in words and Tools.time in words, words


def calling(mode, names=None):
    return types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(mode=mode, allowed_function_names=names)
    )


def tool_choice(services):
    service = services["good"]
    answer = ask(service, "Hello", tools=TOOLS, tool_config=calling("ANY", ["time"]))
    assert [call.name for call in calls_of(answer.candidates[0].content.parts)] == ["time"], answer
    answer = ask(service, "Please use tool weather", tools=TOOLS, tool_config=calling("NONE"))
    assert not calls_of(answer.candidates[0].content.parts), answer


def images(services):
    picture = types.Part.from_bytes(data=PNG, mime_type="image/png")
    answer = ask(services["good"], [user(text("What is this?"), picture)])
    assert SEEN in answer.text, answer.text


def structured(services):
    fields = {"response_mime_type": "application/json", "response_json_schema": FORECAST}
    answer = ask(services["good"], "Forecast as JSON", **fields)
    assert json.loads(answer.text) == FORECAST_SAMPLE, answer.text
    parts = parts_of(stream_of(services["good"], "Forecast as JSON", **fields))
    assert json.loads(said(parts)) == FORECAST_SAMPLE and not calls_of(parts), parts


def reasoning(services):
    service = services["good"]
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_budget=1024)
    fields = {"tools": TOOLS, "thinking_config": thinking, "max_output_tokens": 4096}
    contents = [user(text("Please use tool weather"))]
    first = ask(service, contents, **fields).candidates[0].content
    thoughts = "".join(part.text for part in first.parts if part.thought)
    assert "Water finds its way" in thoughts, first.parts
    second = ask(service, [*contents, first, results(calls_of(first.parts), [Tools.weather])], **fields)
    assert Tools.weather in second.text, second.text
    parts = parts_of(stream_of(service, "Hello", **fields))
    assert "Water finds its way" in "".join(part.text for part in parts if part.thought), parts


def count_tokens(services):
    service = services["good"]
    counted = models_of(service).count_tokens(model=service.model, contents="Hello")
    assert counted.total_tokens > 0, counted


def error(services):
    service = services["refuse"]
    refused = raises(errors.ClientError, lambda: ask(service, "Hello"), REFUSED)
    assert refused.code == 400, refused
    raises(errors.ClientError, lambda: list(stream_of(service, "Hello")), REFUSED)


def rate_limit(services):
    limited = raises(errors.ClientError, lambda: ask(services["limit"], "Hello"))
    assert limited.code == 429 and limited.status == "RESOURCE_EXHAUSTED", limited


def stream_error(services):
    raises(errors.APIError, lambda: list(stream_of(services["broken"], "Hello")))


def cancel(services):
    service = services["stall"]
    before = service.cancelled()
    answer = stream_of(service, "Hello")
    next(answer)
    answer.close()
    service.wait_until_cancelled(before)


CHECKS = {
    "plain": plain, "streamed": stream, "tools": tools, "streamed tools": stream_tools, "tool choice": tool_choice,
    "images": images, "structured output": structured, "reasoning": reasoning, "token counting": count_tokens,
    "error": error, "rate limit": rate_limit, "error in a stream": stream_error, "cancel": cancel,
}

if __name__ == "__main__":
    run("google-genai (Python)", "generate", CHECKS)
