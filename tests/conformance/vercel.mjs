// Vercel's AI SDK with its providers for OpenAI, services shaped like it, and Anthropic.

import assert from "node:assert/strict";
import {
  FORECAST, FORECAST_SAMPLE, PNG, REFUSED, SAID, SEEN, THOUGHT, TIME, WEATHER, load, rejects, run,
} from "./report.mjs";

const { generateText, streamText, Output, jsonSchema, stepCountIs, tool, APICallError } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createAnthropic } = await load("@ai-sdk/anthropic");

// Warnings of settings that a model does not support go to the results' stream otherwise.
globalThis.AI_SDK_LOG_WARNINGS = false;

const tools = Object.fromEntries(
  Object.entries({ weather: WEATHER, time: TIME }).map(([name, schema]) => [
    name,
    tool({ description: `Tells the ${name}`, inputSchema: jsonSchema(schema), execute: async () => SAID[name] }),
  ]),
);

// `always` is set with every call, `forReasoning` where reasoning is asked for.
function checks(modelOf, always, forReasoning) {
  const options = (service, more) => ({
    model: modelOf(service),
    maxRetries: 0,
    maxOutputTokens: 2048,
    providerOptions: always,
    ...(more.messages ? {} : { prompt: "Hello" }),
    ...more,
  });
  const ask = (service, more = {}) => generateText(options(service, more));
  // The whole of a stream; its errors are thrown here.
  const streamed = async (service, more = {}) => {
    const result = streamText({ ...options(service, more), onError: () => {} });
    let text = "";
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") text += part.text;
    }
    const [steps, usage, finishReason] = await Promise.all([result.steps, result.totalUsage, result.finishReason]);
    return { text, steps, usage, finishReason };
  };
  const toolLoop = async (answer, service, prompt, names, more = {}) => {
    const result = await answer(service, { prompt, tools, stopWhen: stepCountIs(3), ...more });
    const called = result.steps[0].toolCalls.map((call) => call.toolName);
    assert.deepEqual(called, names);
    assert.equal(result.steps.length, 2);
    for (const name of names) assert(result.steps[1].text.includes(SAID[name]), result.steps[1].text);
    return result;
  };
  const isCall = (status) => (error) => APICallError.isInstance(error) && error.statusCode === status;
  return {
    async plain({ good }) {
      const answer = await ask(good, { system: "Be brief.", prompt: "Name three rivers: 潮🚲" });
      good.said(answer.text);
      assert.equal(answer.finishReason, "stop");
      assert(answer.usage.inputTokens > 0 && answer.usage.outputTokens > 0);
    },
    async streamed({ good }) {
      const answer = await streamed(good);
      good.said(answer.text);
      assert.equal(answer.finishReason, "stop");
      assert(answer.usage.outputTokens > 0, JSON.stringify(answer.usage));
    },
    tools: ({ good }) => toolLoop(ask, good, "Please use tool weather", ["weather"]),
    "streamed tools": ({ good }) => toolLoop(streamed, good, "Please use tools weather and time", ["weather", "time"]),
    async "tool choice"({ good }) {
      const answer = await ask(good, { tools, toolChoice: { type: "tool", toolName: "time" } });
      assert.deepEqual(answer.toolCalls.map((call) => call.toolName), ["time"]);
    },
    async images({ good }) {
      const content = [{ type: "text", text: "What is this?" }, { type: "image", image: PNG, mediaType: "image/png" }];
      const answer = await ask(good, { messages: [{ role: "user", content }] });
      assert(answer.text.includes(SEEN), answer.text);
    },
    async "structured output"({ good }) {
      const output = Output.object({ schema: jsonSchema(FORECAST) });
      const answer = await ask(good, { prompt: "Forecast as JSON", output });
      assert.deepEqual(answer.output, FORECAST_SAMPLE);
    },
    async reasoning({ good }) {
      const more = { providerOptions: forReasoning, maxOutputTokens: 4096 };
      const answer = await toolLoop(ask, good, "Please use tool weather", ["weather"], more);
      assert(answer.steps[0].reasoningText?.includes(THOUGHT), JSON.stringify(answer.steps[0].content));
      await toolLoop(streamed, good, "Please use tool weather", ["weather"], more);
    },
    async error({ refuse }) {
      await rejects(() => ask(refuse), isCall(400), REFUSED);
    },
    async "rate limit"({ limit }) {
      await rejects(() => ask(limit), isCall(429));
    },
    async "error in a stream"({ broken }) {
      await rejects(async () => {
        const { finishReason, text } = await streamed(broken);
        if (finishReason === "error") throw new Error("the stream ended in an error");
        return { finishReason, text };
      }, () => true);
    },
    async cancel({ stall }) {
      const before = await stall.cancelled();
      const abort = new AbortController();
      const { textStream } = streamText({ ...options(stall, {}), abortSignal: abort.signal, onError: () => {} });
      for await (const piece of textStream) {
        assert(piece);
        abort.abort();
        break;
      }
      await stall.waitUntilCancelled(before);
    },
  };
}

const settings = (service) => ({ baseURL: `${service.url}/v1`, apiKey: "conformance" });
const chat = (service) => createOpenAI(settings(service)).chat(service.model);
const responses = (service) => createOpenAI(settings(service)).responses(service.model);
const compatible = (service) =>
  createOpenAICompatible({ ...settings(service), name: "sim", includeUsage: true, supportsStructuredOutputs: true })
    .chatModel(service.model);
const anthropic = (service) => createAnthropic(settings(service))(service.model);

// This provider leaves out the reasoning that services tell in chat.
const { reasoning: _untold, ...chatChecks } = checks(chat, {}, {});
await run("ai + @ai-sdk/openai (chat)", "chat", chatChecks);
// Without `store: false` it refers to earlier items by ids that only OpenAI can resolve.
const stateless = { store: false };
const effort = { ...stateless, reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true };
await run("ai + @ai-sdk/openai", "responses", checks(responses, { openai: stateless }, { openai: effort }));
const low = { sim: { reasoningEffort: "low" } };
await run("ai + @ai-sdk/openai-compatible", "chat", checks(compatible, {}, low));
// It asks unknown models for structured output through a tool otherwise.
const format = { structuredOutputMode: "outputFormat" };
const thinking = { ...format, thinking: { type: "enabled", budgetTokens: 1024 } };
await run("ai + @ai-sdk/anthropic", "messages", checks(anthropic, { anthropic: format }, { anthropic: thinking }));
