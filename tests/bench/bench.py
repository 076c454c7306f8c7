"""Measures Penstock beside nginx, HAProxy and Envoy, one after the other: the gateway alone on core 0, the service and
the load on core 1. Writes target/bench/results.json and the table in docs/benchmarks.md."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import gateways
import report

RATE = 2000
STREAMS, STREAM_RATE, STREAM_EVENTS = 400, 50, 500
HELD = 1000


def load(options, mode, port, **flags):
    """Starts the load generator on its core."""
    command = ["taskset", "-c", str(gateways.LOAD_CORE), options.loadgen, mode, "--target", f"127.0.0.1:{port}"]
    for flag, value in flags.items():
        command += [f"--{flag.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def expect(process, line):
    got = process.stdout.readline().strip()
    if got != line:
        raise SystemExit(f"the load generator said {got!r}, not {line!r}")


def measure(process, gateway):
    """Waits for the load's end; its result, and the processor time the gateway took in the measured time."""
    expect(process, "begin")
    before, busy = gateway.cpu_seconds() if gateway else 0, core_busy_seconds()
    started = time.monotonic()
    expect(process, "end")
    took = time.monotonic() - started
    after, busy_after = gateway.cpu_seconds() if gateway else 0, core_busy_seconds()
    result = json.loads(process.stdout.readline())
    if process.wait() != 0 or result["errors"]:
        raise SystemExit(f"the load failed: {result}")
    result["cpu_seconds"] = after - before
    result["foreign_share"] = max(0, (busy_after - busy) - (after - before)) / took
    return result


def core_busy_seconds():
    """Time the gateway's core did not idle."""
    with open("/proc/stat", encoding="ascii") as stat:
        line = next(line for line in stat if line.startswith(f"cpu{gateways.GATEWAY_CORE} "))
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / gateways.TICK


def with_gateway(gateway, service, body):
    """Runs `body(port, process)` with the gateway up; the process is None where there is no gateway."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        os.chmod(folder, 0o755)
        folder = pathlib.Path(folder)
        for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
            (folder / name).mkdir()
        processes = gateway.start(folder, service)
        try:
            return body(gateway.port, processes[0] if processes else None)
        finally:
            for process in processes:
                process.stop()


def calls(options, gateway):
    def body(port, process):
        time.sleep(1)
        result = {"idle_mib": process.memory_mib() if process else None}
        if process:
            flags = {"connections": 32, "seconds": options.seconds}
            full = measure(load(options, "saturate", port, **flags), process)
            result["calls_per_cpu_second"] = full["calls"] / full["cpu_seconds"]
            result["foreign_share"] = full["foreign_share"]
        flags = {"connections": 32, "per_second": RATE, "seconds": options.seconds * 2}
        paced = measure(load(options, "rate", port, **flags), process)
        result["latency_us"] = paced["latency_us"]
        result["late_us"] = paced["late_us"]
        return result

    return with_gateway(gateway, gateways.CALLS_PORT, body)


def streams(options, gateway):
    def body(port, process):
        flags = {"connections": STREAMS, "seconds": options.seconds, "warm_up": 4}
        paced = measure(load(options, "streams", port, **flags), process)
        result = {
            "chunks_per_second": paced["chunks"] / options.seconds,
            "chunks_per_read": paced["chunks"] / paced["frames"],
        }
        if process:
            result["us_per_chunk"] = paced["cpu_seconds"] / paced["chunks"] * 1e6
            result["stream_foreign_share"] = paced["foreign_share"]
        if gateway.translates:
            # The same stream for a client that speaks another protocol.
            paced = measure(load(options, "streams", port, messages=True, **flags), process)
            result["us_per_translated_chunk"] = paced["cpu_seconds"] / paced["chunks"] * 1e6
        return result

    return with_gateway(gateway, gateways.STREAMS_PORT, body)


def held(options, gateway):
    def body(port, process):
        holding = load(options, "hold", port, connections=HELD, seconds=5)
        expect(holding, "ready")
        time.sleep(2)
        result = {"held_mib": process.memory_mib()}
        holding.stdout.readline()
        if holding.wait() != 0:
            raise SystemExit("streams were lost")
        return result

    return with_gateway(gateway, gateways.STREAMS_PORT, body)


def services(options, folder):
    """The services behind the gateways, on the load's core."""
    for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (folder / name).mkdir()
    file = gateways.configuration("service-nginx.conf", folder, 0)
    whole = gateways.Process("service", ["nginx", "-p", folder, "-c", file], gateways.LOAD_CORE, folder)
    whole.wait_for(gateways.CALLS_PORT)
    streaming = gateways.Process("streams", [
        options.loadgen, "upstream", "--listen", f"127.0.0.1:{gateways.STREAMS_PORT}",
        "--tokens-per-second", STREAM_RATE, "--tokens", STREAM_EVENTS,
    ], gateways.LOAD_CORE, folder)
    streaming.wait_for(gateways.STREAMS_PORT)
    return [whole, streaming]


def one_round(options, chosen):
    results = {}
    for gateway in chosen:
        print(f"  {gateway.name}", flush=True)
        result = calls(options, gateway) | streams(options, gateway)
        if gateway.name != "direct":
            result |= held(options, gateway)
        results[gateway.name] = result
    return results


def middle(rounds):
    """The median of every number over the rounds."""
    if isinstance(rounds[0], dict):
        return {key: middle([one[key] for one in rounds]) for key in rounds[0]}
    return None if rounds[0] is None else statistics.median(rounds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", default="target/dist/penstock")
    parser.add_argument("--loadgen", default="target/release/loadgen")
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="the table shows the median")
    parser.add_argument("--only", help="names, separated by commas; the table is left as it is")
    options = parser.parse_args()

    if os.cpu_count() < 2:
        raise SystemExit("the benchmark needs two cores")
    gateways.raise_open_files()
    os.sched_setaffinity(0, {gateways.LOAD_CORE})
    wanted = options.only and options.only.lower().split(",")
    chosen = [kind(options) for kind in gateways.ALL if not wanted or kind.name.lower() in ["direct", *wanted]]
    load_before = os.getloadavg()[0]

    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        os.chmod(folder, 0o755)
        running = services(options, pathlib.Path(folder))
        try:
            rounds = []
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", flush=True)
                rounds.append(one_round(options, chosen))
        finally:
            for process in running:
                process.stop()

    result = {
        "machine": report.machine(load_before),
        "versions": {gateway.name: gateway.version() for gateway in chosen if gateway.name != "direct"},
        "gateways": middle(rounds),
        "rounds": rounds,
    }
    out = pathlib.Path("target/bench")
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(result, indent=2), encoding="utf-8")
    table = report.table(result, options)
    print(table)
    if not wanted:
        report.write(table)


main()
