"""OpenAI's Python client: chat completions."""

import json

import openai
from report import (
    FORECAST, FORECAST_SAMPLE, PNG_BASE64, REFUSED, SEEN, TIME, WEATHER, Tools, raises, run,
)

TOOLS = [
    {"type": "function", "function": {"name": name, "description": f"Tells the {name}", "parameters": schema}}
    for name, schema in (("weather", WEATHER), ("time", TIME))
]


def client(service):
    return openai.OpenAI(base_url=f"{service.url}/v1", api_key="conformance", max_retries=0, timeout=30)


def ask(service, messages, **more):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return client(service).chat.completions.create(model=service.model, messages=messages, **more)


def gather(stream):
    """Text, reasoning, calls by index, finish reason and usage of a stream."""
    text, reasoning, calls, finish, usage = "", "", {}, None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            text += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
                known["id"] += call.id or ""
                known["name"] += (call.function and call.function.name) or ""
                known["arguments"] += (call.function and call.function.arguments) or ""
    return text, reasoning, calls, finish, usage


def plain(services):
    service = services["good"]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Name three rivers: 潮🚲"},
    ]
    answer = ask(service, messages, temperature=0.5)
    service.said(answer.choices[0].message.content)
    assert answer.choices[0].finish_reason == "stop", answer.choices[0].finish_reason
    assert answer.usage.prompt_tokens > 0 and answer.usage.completion_tokens > 0, answer.usage
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, answer.usage
    short = ask(service, "Hello", max_tokens=3)
    assert short.choices[0].finish_reason == "length", short.choices[0].finish_reason


def stream(services):
    service = services["good"]
    text, _, _, finish, usage = gather(ask(service, "Hello", stream=True, stream_options={"include_usage": True}))
    service.said(text)
    assert finish == "stop", finish
    assert usage and usage.completion_tokens > 0, usage
    _, _, _, _, usage = gather(ask(service, "Hello", stream=True))
    assert usage is None, "usage came without being asked for"


def tools(services):
    service = services["good"]
    messages = [{"role": "user", "content": "Please use tool weather"}]
    first = ask(service, messages, tools=TOOLS).choices[0]
    assert first.finish_reason == "tool_calls", first
    assert first.message.content is None, first.message.content
    (call,) = first.message.tool_calls
    assert call.function.name == "weather" and json.loads(call.function.arguments) == {"city": "city"}, call
    messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": Tools.weather}]
    second = ask(service, messages, tools=TOOLS).choices[0]
    assert second.finish_reason == "stop" and Tools.weather in second.message.content, second


def stream_tools(services):
    service = services["good"]
    messages = [{"role": "user", "content": "Please use tools weather and time"}]
    text, _, calls, finish, _ = gather(ask(service, messages, tools=TOOLS, stream=True))
    assert finish == "tool_calls" and sorted(calls) == [0, 1], (finish, calls)
    assert [calls[0]["name"], calls[1]["name"]] == ["weather", "time"], calls
    assert json.loads(calls[1]["arguments"]) == {"zone": "zone", "utc": True}, calls
    assert calls[0]["id"] and calls[0]["id"] != calls[1]["id"], calls
    as_sent = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in calls.values()
    ]
    messages += [
        {"role": "assistant", "content": text or None, "tool_calls": as_sent},
        {"role": "tool", "tool_call_id": calls[1]["id"], "content": Tools.time},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": Tools.weather},
    ]
    text, _, _, finish, _ = gather(ask(service, messages, tools=TOOLS, stream=True))
    assert Tools.weather in text and Tools.time in text and finish == "stop", text


def tool_choice(services):
    service = services["good"]
    named = {"type": "function", "function": {"name": "time"}}
    answer = ask(service, "Hello", tools=TOOLS, tool_choice=named).choices[0]
    assert [call.function.name for call in answer.message.tool_calls] == ["time"], answer
    answer = ask(service, "Please use tool weather", tools=TOOLS, tool_choice="none").choices[0]
    assert not answer.message.tool_calls, answer


def images(services):
    service = services["good"]
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_BASE64}"}},
    ]
    answer = ask(service, [{"role": "user", "content": content}])
    assert SEEN in answer.choices[0].message.content, answer.choices[0].message.content


def structured(services):
    service = services["good"]
    form = {"type": "json_schema", "json_schema": {"name": "forecast", "schema": FORECAST, "strict": True}}
    answer = ask(service, "Forecast as JSON", response_format=form)
    assert json.loads(answer.choices[0].message.content) == FORECAST_SAMPLE, answer.choices[0].message
    assert answer.choices[0].finish_reason == "stop" and not answer.choices[0].message.tool_calls, answer
    text, _, calls, finish, _ = gather(ask(service, "Forecast as JSON", response_format=form, stream=True))
    assert json.loads(text) == FORECAST_SAMPLE and not calls and finish == "stop", (text, calls, finish)


def reasoning(services):
    """Reasoning is told, and goes back with its signature when a tool has answered."""
    service = services["good"]
    more = {"tools": TOOLS, "reasoning_effort": "low", "max_completion_tokens": 4096}
    messages = [{"role": "user", "content": "Please use tool weather"}]
    first = ask(service, messages, **more).choices[0]
    told = getattr(first.message, "reasoning_content", None)
    assert told and "Water finds its way" in told, first.message
    (call,) = first.message.tool_calls
    messages += [
        first.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": Tools.weather},
    ]
    second = ask(service, messages, **more).choices[0]
    assert Tools.weather in second.message.content, second
    _, told, _, finish, _ = gather(ask(service, "Hello", stream=True, **more))
    assert "Water finds its way" in told and finish == "stop", told


def error(services):
    service = services["refuse"]
    raises(openai.BadRequestError, lambda: ask(service, "Hello"), REFUSED)
    raises(openai.BadRequestError, lambda: ask(service, "Hello", stream=True), REFUSED)


def rate_limit(services):
    raises(openai.RateLimitError, lambda: ask(services["limit"], "Hello"))


def stream_error(services):
    raises(openai.APIError, lambda: gather(ask(services["broken"], "Hello", stream=True)))


def cancel(services):
    service = services["stall"]
    before = service.cancelled()
    answer = ask(service, "Hello", stream=True)
    next(iter(answer))
    answer.close()
    service.wait_until_cancelled(before)


CHECKS = {
    "plain": plain, "streamed": stream, "tools": tools, "streamed tools": stream_tools, "tool choice": tool_choice,
    "images": images, "structured output": structured, "reasoning": reasoning, "error": error,
    "rate limit": rate_limit, "error in a stream": stream_error, "cancel": cancel,
}

if __name__ == "__main__":
    run("openai (Python)", "chat", CHECKS)
