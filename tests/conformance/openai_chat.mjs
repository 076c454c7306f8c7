// OpenAI's Node client: chat completions.

import assert from "node:assert/strict";
import {
  FORECAST, FORECAST_SAMPLE, PNG, REFUSED, SAID, SEEN, THOUGHT, TIME, WEATHER, load, rejects, run,
} from "./report.mjs";

const { default: OpenAI } = await load("openai");

const TOOLS = Object.entries({ weather: WEATHER, time: TIME }).map(([name, parameters]) => ({
  type: "function",
  function: { name, description: `Tells the ${name}`, parameters },
}));

function chat(service) {
  const options = { baseURL: `${service.url}/v1`, apiKey: "conformance", maxRetries: 0, timeout: 30_000 };
  return new OpenAI(options).chat.completions;
}

function body(service, messages, more) {
  const list = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
  return { model: service.model, messages: list, ...more };
}

const ask = async (service, messages, more) => (await chat(service).create(body(service, messages, more))).choices[0];
// What the client puts together from the chunks.
const streamed = async (service, messages, more) =>
  (await chat(service).stream(body(service, messages, more)).finalChatCompletion()).choices[0];

const result = (call) => ({ role: "tool", tool_call_id: call.id, content: SAID[call.function.name] });

async function toolLoop(answer, service, text, names, more = {}) {
  const messages = [{ role: "user", content: text }];
  const first = await answer(service, messages, { tools: TOOLS, ...more });
  const calls = first.message.tool_calls;
  assert.equal(first.finish_reason, "tool_calls");
  assert.deepEqual(calls.map((call) => call.function.name), names);
  for (const call of calls) JSON.parse(call.function.arguments);
  const { parsed, ...message } = first.message;
  const back = [...messages, message, ...calls.map(result)];
  const second = await answer(service, back, { tools: TOOLS, ...more });
  for (const name of names) assert(second.message.content.includes(SAID[name]), second.message.content);
  return first;
}

await run("openai (Node)", "chat", {
  async plain({ good }) {
    const answer = await chat(good).create(body(good, "Name three rivers: 潮🚲"));
    good.said(answer.choices[0].message.content);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens > 0);
  },
  async streamed({ good }) {
    const stream = await chat(good).create(body(good, "Hello", { stream: true, stream_options: { include_usage: true } }));
    let [text, usage] = ["", null];
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    good.said(text);
    assert(usage.completion_tokens > 0);
  },
  tools: ({ good }) => toolLoop(ask, good, "Please use tool weather", ["weather"]),
  "streamed tools": ({ good }) => toolLoop(streamed, good, "Please use tools weather and time", ["weather", "time"]),
  async "tool choice"({ good }) {
    const named = { type: "function", function: { name: "time" } };
    const answer = await ask(good, "Hello", { tools: TOOLS, tool_choice: named });
    assert.deepEqual(answer.message.tool_calls.map((call) => call.function.name), ["time"]);
    const none = await ask(good, "Please use tool weather", { tools: TOOLS, tool_choice: "none" });
    assert(!none.message.tool_calls?.length);
  },
  async images({ good }) {
    const url = `data:image/png;base64,${PNG.toString("base64")}`;
    const content = [{ type: "text", text: "What is this?" }, { type: "image_url", image_url: { url } }];
    const answer = await ask(good, [{ role: "user", content }]);
    assert(answer.message.content.includes(SEEN), answer.message.content);
  },
  async "structured output"({ good }) {
    const json_schema = { name: "forecast", schema: FORECAST, strict: true };
    for (const answer of [ask, streamed]) {
      const one = await answer(good, "Forecast as JSON", { response_format: { type: "json_schema", json_schema } });
      assert.deepEqual(JSON.parse(one.message.content), FORECAST_SAMPLE);
      assert(!one.message.tool_calls?.length);
    }
  },
  async reasoning({ good }) {
    const more = { reasoning_effort: "low", max_completion_tokens: 4096 };
    const first = await toolLoop(ask, good, "Please use tool weather", ["weather"], more);
    assert(first.message.reasoning_content?.includes(THOUGHT), JSON.stringify(first.message));
  },
  async error({ refuse }) {
    await rejects(() => ask(refuse, "Hello"), (error) => error instanceof OpenAI.BadRequestError, REFUSED);
  },
  async "rate limit"({ limit }) {
    await rejects(() => ask(limit, "Hello"), (error) => error instanceof OpenAI.RateLimitError);
  },
  async "error in a stream"({ broken }) {
    await rejects(() => streamed(broken, "Hello"), (error) => error instanceof OpenAI.APIError);
  },
  async cancel({ stall }) {
    const before = await stall.cancelled();
    const stream = await chat(stall).create(body(stall, "Hello", { stream: true }));
    for await (const chunk of stream) {
      assert(chunk);
      break;
    }
    stream.controller.abort();
    await stall.waitUntilCancelled(before);
  },
});
