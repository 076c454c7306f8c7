"""Clients of vendors whose protocols Penstock does not offer: they prove the simulated services behind it."""

import json

import boto3
import botocore.config
import botocore.exceptions
import cohere
import cohere.errors
import dashscope
import ollama
import openai
from report import PNG, SEEN, WEATHER, Tools, raises, run

TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells it", "parameters": WEATHER}}]


def bedrock(service):
    key, secret = "AKIDCONFORMANCE00", "wJalrXUtnFEMI/K7MDENG"
    config = botocore.config.Config(retries={"max_attempts": 0})
    return boto3.client(
        "bedrock-runtime", endpoint_url=service.url, region_name="us-east-1", aws_access_key_id=key,
        aws_secret_access_key=secret, config=config,
    )


def bedrock_tools(services):
    """With reasoning, whose signature goes back."""
    service = services["good"]
    more = {
        "modelId": service.model, "inferenceConfig": {"maxTokens": 2048},
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": WEATHER}}}]},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    }
    messages = [{"role": "user", "content": [{"text": "Please use tool weather"}]}]
    first = bedrock(service).converse(messages=messages, **more)
    said = first["output"]["message"]
    call = said["content"][-1]["toolUse"]
    assert first["stopReason"] == "tool_use" and call["input"] == {"city": "city"}, first
    result = {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": Tools.weather}]}}
    second = bedrock(service).converse(messages=[*messages, said, {"role": "user", "content": [result]}], **more)
    assert Tools.weather in second["output"]["message"]["content"][-1]["text"], second
    events = list(bedrock(service).converse_stream(messages=messages, **more)["stream"])
    assert "messageStart" in events[0] and "metadata" in events[-1], events
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert json.loads("".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta)) == call["input"]


def bedrock_images(services):
    service = services["good"]
    content = [{"text": "What is this?"}, {"image": {"format": "png", "source": {"bytes": PNG}}}]
    answer = bedrock(service).converse(modelId=service.model, messages=[{"role": "user", "content": content}])
    assert SEEN in answer["output"]["message"]["content"][0]["text"], answer


def bedrock_errors(services):
    messages = [{"role": "user", "content": [{"text": "Hello"}]}]
    limit, broken = services["limit"], services["broken"]
    limited = bedrock(limit)
    raises(
        limited.exceptions.ThrottlingException,
        lambda: limited.converse(modelId=limit.model, messages=messages),
    )
    raises(
        botocore.exceptions.EventStreamError,
        lambda: list(bedrock(broken).converse_stream(modelId=broken.model, messages=messages)["stream"]),
        "serviceUnavailableException",
    )


def cohere_tools(services):
    service = services["good"]
    client = cohere.ClientV2(api_key="conformance", base_url=service.url)
    messages = [{"role": "user", "content": "Please use tool weather"}]
    first = client.chat(model=service.model, messages=messages, tools=TOOLS)
    assert first.finish_reason == "TOOL_CALL", first
    (call,) = first.message.tool_calls
    messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": Tools.weather}]
    second = client.chat(model=service.model, messages=messages, tools=TOOLS)
    assert Tools.weather in second.message.content[0].text, second
    events = list(client.chat_stream(model=service.model, messages=[{"role": "user", "content": "Hello"}]))
    service.said("".join(event.delta.message.content.text for event in events if event.type == "content-delta"))
    assert events[-1].delta.usage.tokens.output_tokens > 0, events[-1]


def cohere_errors(services):
    limit = services["limit"]
    client = cohere.ClientV2(api_key="conformance", base_url=limit.url)
    messages = [{"role": "user", "content": "Hello"}]
    once = {"max_retries": 0}
    raises(
        cohere.errors.TooManyRequestsError,
        lambda: client.chat(model=limit.model, messages=messages, request_options=once),
    )


def ollama_tools(services):
    service = services["good"]
    client = ollama.Client(host=service.url)
    messages = [{"role": "user", "content": "Please use tool weather"}]
    first = client.chat(service.model, messages, tools=TOOLS)
    (call,) = first.message.tool_calls
    assert call.function.arguments == {"city": "city"}, call
    messages += [first.message, {"role": "tool", "tool_name": "weather", "content": Tools.weather}]
    assert Tools.weather in client.chat(service.model, messages, tools=TOOLS).message.content
    pieces = list(client.chat(service.model, [{"role": "user", "content": "Hello"}], stream=True))
    service.said("".join(piece.message.content for piece in pieces))
    assert pieces[-1].done and pieces[-1].eval_count > 0, pieces[-1]
    thought = client.chat(service.model, [{"role": "user", "content": "Hello"}], think=True)
    assert "Water finds its way" in thought.message.thinking, thought


def ollama_images(services):
    service = services["good"]
    messages = [{"role": "user", "content": "What is this?", "images": [PNG]}]
    assert SEEN in ollama.Client(host=service.url).chat(service.model, messages).message.content


def dashscope_call(service, text, **more):
    dashscope.base_http_api_url = f"{service.url}/api/v1"
    messages = [{"role": "user", "content": text}]
    return dashscope.Generation.call(
        api_key="conformance", model=service.model, messages=messages, result_format="message", **more
    )


def dashscope_tools(services):
    service = services["good"]
    answer = dashscope_call(service, "Please use tool weather", tools=TOOLS)
    assert answer.output.choices[0].finish_reason == "tool_calls", answer
    for incremental in (True, False):
        pieces = list(dashscope_call(service, "Hello", stream=True, incremental_output=incremental))
        texts = [piece.output.choices[0].message.content for piece in pieces]
        service.said("".join(texts) if incremental else texts[-1])
        assert pieces[-1].usage.output_tokens > 0, pieces[-1]


def dashscope_errors(services):
    refused = dashscope_call(services["limit"], "Hello")
    assert refused.status_code == 429 and refused.code == "Throttling.RateQuota", refused


def azure(service):
    return openai.AzureOpenAI(
        azure_endpoint=service.url, api_key="conformance", api_version="2024-10-21", max_retries=0
    )


def azure_plain(services):
    service = services["good"]
    messages = [{"role": "user", "content": "Hello"}]
    answer = azure(service).chat.completions.create(model=service.model, messages=messages)
    service.said(answer.choices[0].message.content)
    chunks = azure(service).chat.completions.create(model=service.model, messages=messages, stream=True)
    service.said("".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices))
    raises(openai.NotFoundError, lambda: azure(service).chat.completions.create(model="other", messages=messages))


if __name__ == "__main__":
    run("boto3 (Python)", "converse", {"tools": bedrock_tools, "images": bedrock_images, "rate limit": bedrock_errors})
    run("cohere (Python)", "cohere", {"tools": cohere_tools, "rate limit": cohere_errors})
    run("ollama (Python)", "ollama", {"tools": ollama_tools, "images": ollama_images})
    run("dashscope (Python)", "dashscope", {"tools": dashscope_tools, "rate limit": dashscope_errors})
    run("openai (Python)", "azure", {"plain": azure_plain})
