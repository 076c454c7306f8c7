// Anthropic's Node client: messages.

import assert from "node:assert/strict";
import {
  FORECAST, FORECAST_SAMPLE, PNG, REFUSED, SAID, SEEN, THOUGHT, TIME, WEATHER, load, rejects, run,
} from "./report.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");

const TOOLS = Object.entries({ weather: WEATHER, time: TIME }).map(([name, input_schema]) => ({
  name,
  description: `Tells the ${name}`,
  input_schema,
}));

function messages(service) {
  const options = { baseURL: service.url, apiKey: "conformance", maxRetries: 0, timeout: 30_000 };
  return new Anthropic(options).messages;
}

function body(service, given, more) {
  const list = typeof given === "string" ? [{ role: "user", content: given }] : given;
  return { model: service.model, max_tokens: 2048, messages: list, ...more };
}

const ask = (service, given, more) => messages(service).create(body(service, given, more));
// What the client puts together from the events, which it checks for their order.
const streamed = (service, given, more) => messages(service).stream(body(service, given, more)).finalMessage();
const text = (message) => message.content.map((block) => block.text ?? "").join("");
const calls = (message) => message.content.filter((block) => block.type === "tool_use");

async function toolLoop(answer, service, words, names, more = {}) {
  const given = [{ role: "user", content: words }];
  const first = await answer(service, given, { tools: TOOLS, ...more });
  assert.equal(first.stop_reason, "tool_use");
  assert.deepEqual(calls(first).map((call) => call.name), names);
  const results = calls(first).map((call) => ({ type: "tool_result", tool_use_id: call.id, content: SAID[call.name] }));
  const back = [...given, { role: "assistant", content: first.content }, { role: "user", content: results }];
  const second = await answer(service, back, { tools: TOOLS, ...more });
  for (const name of names) assert(text(second).includes(SAID[name]), text(second));
  return first;
}

await run("@anthropic-ai/sdk (Node)", "messages", {
  async plain({ good }) {
    const answer = await ask(good, "Name three rivers: 潮🚲", { system: "Be brief." });
    good.said(text(answer));
    assert.equal(answer.stop_reason, "end_turn");
    assert(answer.usage.input_tokens > 0 && answer.usage.output_tokens > 0);
  },
  async streamed({ good }) {
    const answer = await streamed(good, "Hello");
    good.said(text(answer));
    assert(answer.usage.output_tokens > 0);
  },
  tools: ({ good }) => toolLoop(ask, good, "Please use tool weather", ["weather"]),
  "streamed tools": ({ good }) => toolLoop(streamed, good, "Please use tools weather and time", ["weather", "time"]),
  async "tool choice"({ good }) {
    const answer = await ask(good, "Hello", { tools: TOOLS, tool_choice: { type: "tool", name: "time" } });
    assert.deepEqual(calls(answer).map((call) => call.name), ["time"]);
    const none = await ask(good, "Please use tool weather", { tools: TOOLS, tool_choice: { type: "none" } });
    assert.equal(calls(none).length, 0);
  },
  async images({ good }) {
    const source = { type: "base64", media_type: "image/png", data: PNG.toString("base64") };
    const content = [{ type: "text", text: "What is this?" }, { type: "image", source }];
    const answer = await ask(good, [{ role: "user", content }]);
    assert(text(answer).includes(SEEN), text(answer));
  },
  async "structured output"({ good }) {
    for (const answer of [ask, streamed]) {
      const one = await answer(good, "Forecast as JSON", {
        output_config: { format: { type: "json_schema", schema: FORECAST } },
      });
      assert.deepEqual(JSON.parse(text(one)), FORECAST_SAMPLE);
      assert.equal(calls(one).length, 0);
    }
  },
  async reasoning({ good }) {
    for (const answer of [ask, streamed]) {
      const more = { thinking: { type: "enabled", budget_tokens: 1024 } };
      const first = await toolLoop(answer, good, "Please use tool weather", ["weather"], more);
      assert(first.content[0].thinking?.includes(THOUGHT), JSON.stringify(first.content));
    }
  },
  async "token counting"({ good }) {
    const counted = await messages(good).countTokens({ model: good.model, messages: [{ role: "user", content: "Hi" }] });
    assert(counted.input_tokens > 0);
  },
  async error({ refuse }) {
    await rejects(() => ask(refuse, "Hello"), (error) => error instanceof Anthropic.BadRequestError, REFUSED);
  },
  async "rate limit"({ limit }) {
    await rejects(() => ask(limit, "Hello"), (error) => error instanceof Anthropic.RateLimitError);
  },
  async "error in a stream"({ broken }) {
    await rejects(() => streamed(broken, "Hello"), (error) => error instanceof Anthropic.APIError);
  },
  async cancel({ stall }) {
    const before = await stall.cancelled();
    const stream = await ask(stall, "Hello", { stream: true });
    for await (const event of stream) {
      assert(event);
      break;
    }
    stream.controller.abort();
    await stall.waitUntilCancelled(before);
  },
});
