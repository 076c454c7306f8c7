"""OpenAI's Python client: the Responses API."""

import json

import openai
from report import (
    FORECAST, FORECAST_SAMPLE, PNG_BASE64, REFUSED, SEEN, TIME, WEATHER, Tools, raises, run,
)

TOOLS = [
    {"type": "function", "name": name, "description": f"Tells the {name}", "parameters": schema, "strict": False}
    for name, schema in (("weather", WEATHER), ("time", TIME))
]


def ask(service, given, **more):
    client = openai.OpenAI(base_url=f"{service.url}/v1", api_key="conformance", max_retries=0, timeout=30)
    return client.responses.create(model=service.model, input=given, store=False, **more)


def gather(stream):
    """Names of the events, text by deltas, and the final response."""
    names, text, final = [], "", None
    for event in stream:
        names.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            final = event.response
    assert names[0] == "response.created", names
    assert final is not None, names
    return names, text, final


def calls_of(response):
    return [item for item in response.output if item.type == "function_call"]


def plain(services):
    service = services["good"]
    given = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Name three rivers: 潮🚲"}]},
    ]
    answer = ask(service, given, instructions="Be brief.")
    service.said(answer.output_text)
    assert answer.status == "completed", answer.status
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer.usage


def stream(services):
    service = services["good"]
    _, text, final = gather(ask(service, "Hello", stream=True))
    service.said(text)
    assert final.output_text == text and final.usage.output_tokens > 0, final


def tools(services):
    service = services["good"]
    given = [{"role": "user", "content": "Please use tool weather"}]
    first = ask(service, given, tools=TOOLS)
    (call,) = calls_of(first)
    assert call.name == "weather" and json.loads(call.arguments) == {"city": "city"}, call
    given += [item.model_dump(exclude_none=True) for item in first.output]
    given.append({"type": "function_call_output", "call_id": call.call_id, "output": Tools.weather})
    second = ask(service, given, tools=TOOLS)
    assert Tools.weather in second.output_text, second.output_text


def stream_tools(services):
    service = services["good"]
    given = [{"role": "user", "content": "Please use tools weather and time"}]
    names, _, final = gather(ask(service, given, tools=TOOLS, stream=True))
    assert "response.function_call_arguments.delta" in names, names
    calls = calls_of(final)
    assert [call.name for call in calls] == ["weather", "time"], calls
    assert json.loads(calls[1].arguments) == {"zone": "zone", "utc": True}, calls
    given += [item.model_dump(exclude_none=True) for item in final.output]
    for call, said in zip(calls, (Tools.weather, Tools.time), strict=True):
        given.append({"type": "function_call_output", "call_id": call.call_id, "output": said})
    _, text, _ = gather(ask(service, given, tools=TOOLS, stream=True))
    assert Tools.weather in text and Tools.time in text, text


def tool_choice(services):
    service = services["good"]
    answer = ask(service, "Hello", tools=TOOLS, tool_choice={"type": "function", "name": "time"})
    assert [call.name for call in calls_of(answer)] == ["time"], answer
    answer = ask(service, "Please use tool weather", tools=TOOLS, tool_choice="none")
    assert not calls_of(answer), answer


def images(services):
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG_BASE64}", "detail": "auto"},
    ]
    answer = ask(services["good"], [{"role": "user", "content": content}])
    assert SEEN in answer.output_text, answer.output_text


def structured(services):
    form = {"format": {"type": "json_schema", "name": "forecast", "schema": FORECAST, "strict": True}}
    answer = ask(services["good"], "Forecast as JSON", text=form)
    assert json.loads(answer.output_text) == FORECAST_SAMPLE, answer.output_text
    _, text, final = gather(ask(services["good"], "Forecast as JSON", text=form, stream=True))
    assert json.loads(text) == FORECAST_SAMPLE and not calls_of(final), text


def reasoning(services):
    service = services["good"]
    more = {
        "tools": TOOLS, "max_output_tokens": 4096, "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
    }
    given = [{"role": "user", "content": "Please use tool weather"}]
    first = ask(service, given, **more)
    told = [part.text for item in first.output if item.type == "reasoning" for part in item.summary]
    assert "Water finds its way" in "".join(told), first.output
    (call,) = calls_of(first)
    given += [item.model_dump(exclude_none=True) for item in first.output]
    given.append({"type": "function_call_output", "call_id": call.call_id, "output": Tools.weather})
    assert Tools.weather in ask(service, given, **more).output_text
    names, _, _ = gather(ask(service, "Hello", stream=True, **more))
    assert "response.reasoning_summary_text.delta" in names, names


def error(services):
    raises(openai.BadRequestError, lambda: ask(services["refuse"], "Hello"), REFUSED)


def rate_limit(services):
    raises(openai.RateLimitError, lambda: ask(services["limit"], "Hello"))


def stream_error(services):
    """An error event, a failed response or an exception; never a stream that seems complete."""
    try:
        names = [event.type for event in ask(services["broken"], "Hello", stream=True)]
    except openai.APIError:
        return
    assert "error" in names or "response.failed" in names, names
    assert "response.completed" not in names, names


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
    run("openai (Python)", "responses", CHECKS)
