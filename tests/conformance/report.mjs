// Runs checks against services and reports each as a line of JSON: the part that the scripts of all Node clients share.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { deflateSync } from "node:zlib";

const modules = createRequire(fileURLToPath(new URL("../../.tools/conformance/package.json", import.meta.url)));

// A package of .tools/conformance/node_modules.
export const load = (name) => import(pathToFileURL(modules.resolve(name)));

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function chunk(kind, data) {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(data.length);
  const body = Buffer.concat([Buffer.from(kind), data]);
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(body));
  return Buffer.concat([head, body, tail]);
}

// A picture of one grey pixel.
const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
export const PNG = Buffer.concat([
  Buffer.from("89504e470d0a1a0a", "hex"),
  chunk("IHDR", header),
  chunk("IDAT", deflateSync(Buffer.from([0, 128]))),
  chunk("IEND", Buffer.alloc(0)),
]);
export const SEEN = `image/png of ${PNG.length} bytes`;

const object = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
export const WEATHER = object({ city: { type: "string", description: "Where" } });
export const TIME = object({ zone: { type: "string" }, utc: { type: "boolean" } });
export const FORECAST = object({ city: { type: "string" }, days: { type: "integer" } });
export const FORECAST_SAMPLE = { city: "city", days: 1 };
export const REFUSED = "The request was refused.";
export const SAID = { weather: "21 degrees", time: "noon" };
export const THOUGHT = "Water finds its way";

class Service {
  constructor(provider, { url, model, stats }) {
    Object.assign(this, { provider, url, model, stats });
  }

  async cancelled() {
    return (await (await fetch(this.stats)).json()).cancelled;
  }

  // The simulated service saw its caller leave.
  async waitUntilCancelled(before) {
    const deadline = Date.now() + 10_000;
    while ((await this.cancelled()) <= before) {
      assert(Date.now() < deadline, "the service behind was never told that the client left");
      await sleep(50);
    }
  }

  // Is this an answer of the service itself?
  said(text) {
    assert(text.startsWith(`sim-${this.provider}: [`), `not an answer of ${this.provider}: ${text}`);
  }
}

// Runs each check against each service given on the command line.
export async function run(client, protocol, checks) {
  const [file, ...only] = process.argv.slice(2);
  // The services that limit the rate ask for a second of rest, which Penstock grants them; the client before met them.
  await sleep(1100);
  const { targets } = JSON.parse(readFileSync(file, "utf8"));
  for (const target of targets) {
    if (target.protocols && !target.protocols.includes(protocol)) continue;
    const services = {};
    for (const [kind, one] of Object.entries(target.services)) services[kind] = new Service(target.provider, one);
    for (const [feature, check] of Object.entries(checks)) {
      if (only.length && !only.includes(feature)) continue;
      const result = { client, protocol, provider: target.name, feature, ok: true, detail: "" };
      try {
        await check(services);
      } catch (error) {
        const where = /conformance\/(\w+\.mjs:\d+)/.exec(error.stack ?? "")?.[1] ?? "";
        Object.assign(result, { ok: false, detail: `${error.name}: ${error.message}`.slice(0, 600), where });
      }
      console.log(JSON.stringify(result));
    }
  }
}

// The error that `call` must end with; `is` tells whether it is the right one.
export async function rejects(call, is, message) {
  let result;
  try {
    result = await call();
  } catch (error) {
    assert(is(error), `not the error that it should be: ${error.name}: ${error.message}`);
    if (message) assert(error.message.includes(message), `the message is lost: ${error.message}`);
    return error;
  }
  return assert.fail(`no error was raised, but this answered: ${JSON.stringify(result)?.slice(0, 200)}`);
}
