"""Runs checks against services and reports each as a line of JSON: the part that the scripts of all clients share."""

import base64
import json
import struct
import sys
import time
import traceback
import urllib.request
import zlib


def _png():
    """A picture of one grey pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\x00\x80")) + chunk(b"IEND", b"")


PNG = _png()
PNG_BASE64 = base64.b64encode(PNG).decode()
SEEN = f"image/png of {len(PNG)} bytes"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}},
    "required": ["city"],
    "additionalProperties": False,
}
TIME = {
    "type": "object",
    "properties": {"zone": {"type": "string"}, "utc": {"type": "boolean"}},
    "required": ["zone", "utc"],
    "additionalProperties": False,
}
FORECAST = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
FORECAST_SAMPLE = {"city": "city", "days": 1}
REFUSED = "The request was refused."


class Service:
    """A service to call: where it is, the model to ask for, and where the simulated service behind it tells what it did."""

    def __init__(self, provider, url, model, stats):
        self.provider, self.url, self.model, self._stats = provider, url, model, stats

    def cancelled(self):
        with urllib.request.urlopen(self._stats, timeout=10) as answer:
            return json.load(answer)["cancelled"]

    def wait_until_cancelled(self, more_than, patience=10):
        """The simulated service saw its caller leave."""
        deadline = time.monotonic() + patience
        while self.cancelled() <= more_than:
            assert time.monotonic() < deadline, "the service behind was never told that the client left"
            time.sleep(0.05)

    def said(self, text):
        """Is this an answer of the service itself?"""
        assert text.startswith(f"sim-{self.provider}: ["), f"not an answer of {self.provider}: {text!r}"


class Tools:
    """What the tools answer."""

    weather = "21 degrees"
    time = "noon"


def run(client, protocol, checks):
    """Runs each check against each service given on the command line; `checks` are functions by feature."""
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    only = set(sys.argv[2:])
    # The services that limit the rate ask for a second of rest, which Penstock grants them; the client before met them.
    time.sleep(1.1)
    for target in plan["targets"]:
        services = {
            kind: Service(target["provider"], one["url"], one["model"], one["stats"])
            for kind, one in target["services"].items()
        }
        if protocol not in target.get("protocols", [protocol]):
            continue
        for feature, check in checks.items():
            if only and feature not in only:
                continue
            result = {
                "client": client, "protocol": protocol, "provider": target["name"], "feature": feature, "ok": True,
                "detail": "",
            }
            try:
                check(services)
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is the result
                result.update(ok=False, detail=f"{type(error).__name__}: {error}"[:600], where=_where(error))
            print(json.dumps(result), flush=True)


def _where(error):
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "conformance" in frame.filename]
    return f"{own[-1].name}:{own[-1].lineno}" if own else ""


def raises(kind, function, message=None):
    """The exception of this type that `function` must raise, with a message that holds `message`."""
    try:
        function()
    except kind as error:
        assert message is None or message in str(error), f"the message is lost: {error}"
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
