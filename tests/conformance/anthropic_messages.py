"""Anthropic's Python client: messages and the counting of tokens."""

import json

import anthropic
from report import (
    FORECAST, FORECAST_SAMPLE, PNG_BASE64, REFUSED, SEEN, TIME, WEATHER, Tools, raises, run,
)

TOOLS = [
    {"name": name, "description": f"Tells the {name}", "input_schema": schema}
    for name, schema in (("weather", WEATHER), ("time", TIME))
]


def messages_of(service):
    client = anthropic.Anthropic(base_url=service.url, api_key="conformance", max_retries=0, timeout=30)
    return client.messages


def with_defaults(service, given, more):
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    return {"model": service.model, "messages": given, "max_tokens": 2048, **more}


def ask(service, given, **more):
    return messages_of(service).create(**with_defaults(service, given, more))


def stream_of(service, given, **more):
    """The message that the client puts together from the events, which it checks for their order."""
    with messages_of(service).stream(**with_defaults(service, given, more)) as stream:
        return stream.get_final_message()


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def calls_of(message):
    return [block for block in message.content if block.type == "tool_use"]


def back(message):
    """The answer as it goes back into the conversation."""
    return {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}


def results(calls, said):
    content = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in zip(calls, said, strict=True)
    ]
    return {"role": "user", "content": content}


def plain(services):
    service = services["good"]
    given = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Name three rivers: 潮🚲"},
    ]
    answer = ask(service, given, system="Be brief.")
    service.said(text_of(answer))
    assert answer.stop_reason == "end_turn", answer.stop_reason
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer.usage
    short = ask(service, "Hello", max_tokens=3)
    assert short.stop_reason == "max_tokens", short.stop_reason


def stream(services):
    service = services["good"]
    answer = stream_of(service, "Hello")
    service.said(text_of(answer))
    assert answer.stop_reason == "end_turn" and answer.usage.output_tokens > 0, answer


def tools(services):
    service = services["good"]
    given = [{"role": "user", "content": "Please use tool weather"}]
    first = ask(service, given, tools=TOOLS)
    (call,) = calls_of(first)
    assert first.stop_reason == "tool_use" and call.name == "weather" and call.input == {"city": "city"}, first
    second = ask(service, [*given, back(first), results([call], [Tools.weather])], tools=TOOLS)
    assert second.stop_reason == "end_turn" and Tools.weather in text_of(second), second


def stream_tools(services):
    service = services["good"]
    given = [{"role": "user", "content": "Please use tools weather and time"}]
    first = stream_of(service, given, tools=TOOLS)
    calls = calls_of(first)
    assert [call.name for call in calls] == ["weather", "time"], first
    assert calls[1].input == {"zone": "zone", "utc": True}, calls
    second = stream_of(service, [*given, back(first), results(calls, [Tools.weather, Tools.time])], tools=TOOLS)
    text = text_of(second)
    assert Tools.weather in text and Tools.time in text, text


def tool_choice(services):
    service = services["good"]
    answer = ask(service, "Hello", tools=TOOLS, tool_choice={"type": "tool", "name": "time"})
    assert [call.name for call in calls_of(answer)] == ["time"], answer
    answer = ask(service, "Please use tool weather", tools=TOOLS, tool_choice={"type": "none"})
    assert not calls_of(answer), answer


def images(services):
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    content = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": source}]
    answer = ask(services["good"], [{"role": "user", "content": content}])
    assert SEEN in text_of(answer), answer


def structured(services):
    config = {"format": {"type": "json_schema", "schema": FORECAST}}
    answer = ask(services["good"], "Forecast as JSON", output_config=config)
    assert json.loads(text_of(answer)) == FORECAST_SAMPLE and not calls_of(answer), answer
    answer = stream_of(services["good"], "Forecast as JSON", output_config=config)
    assert json.loads(text_of(answer)) == FORECAST_SAMPLE and answer.stop_reason == "end_turn", answer


def reasoning(services):
    service = services["good"]
    more = {"tools": TOOLS, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    given = [{"role": "user", "content": "Please use tool weather"}]
    for answer in (ask, stream_of):
        first = answer(service, given, **more)
        assert first.content[0].type == "thinking" and "Water finds its way" in first.content[0].thinking, first.content
        second = answer(service, [*given, back(first), results(calls_of(first), [Tools.weather])], **more)
        assert Tools.weather in text_of(second), second


def count_tokens(services):
    service = services["good"]
    counted = messages_of(service).count_tokens(
        model=service.model, messages=[{"role": "user", "content": "Hello"}], system="Be brief.", tools=TOOLS
    )
    assert counted.input_tokens > 0, counted


def error(services):
    service = services["refuse"]
    raises(anthropic.BadRequestError, lambda: ask(service, "Hello"), REFUSED)
    raises(anthropic.BadRequestError, lambda: stream_of(service, "Hello"), REFUSED)


def rate_limit(services):
    raises(anthropic.RateLimitError, lambda: ask(services["limit"], "Hello"))


def stream_error(services):
    raises(anthropic.APIError, lambda: stream_of(services["broken"], "Hello"))


def cancel(services):
    service = services["stall"]
    before = service.cancelled()
    answer = ask(service, "Hello", stream=True)
    next(iter(answer))
    answer.close()
    service.wait_until_cancelled(before)


CHECKS = {
    "plain": plain, "streamed": stream, "tools": tools, "streamed tools": stream_tools, "tool choice": tool_choice,
    "images": images, "structured output": structured, "reasoning": reasoning, "token counting": count_tokens,
    "error": error, "rate limit": rate_limit, "error in a stream": stream_error, "cancel": cancel,
}

if __name__ == "__main__":
    run("anthropic (Python)", "messages", CHECKS)
