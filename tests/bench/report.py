"""The benchmark's table."""

import datetime
import os
import pathlib
import platform
import re

PAGE = pathlib.Path("docs/benchmarks.md")
BEGIN, END = "<!-- measured: written by make bench -->", "<!-- end of measured -->"


def machine(load_before):
    model = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.date.today().isoformat(),
        "processor": model.group(1) if model else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "kernel": platform.release().split("-")[0],
        "load_before": round(load_before, 2),
    }


def table(result, options):
    found, direct = result["gateways"], result["gateways"]["direct"]
    machine = result["machine"]
    lines = [
        f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']}; load average before the run {machine['load_before']}; median of "
        f"{options.rounds} round{'s' * (options.rounds > 1)} of {options.seconds:g} s.",
        "",
        "| gateway | calls per CPU-second | CPU per call | added p50 | added p99 | added p99.9 | CPU per chunk "
        "| translated | memory idle | with 1,000 streams | other work on its core |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, version in result["versions"].items():
        one = found[name]
        added = [one["latency_us"][p] - direct["latency_us"][p] for p in ("p50", "p99", "p999")]
        foreign = max(one["foreign_share"], one["stream_foreign_share"])
        cells = [
            f"{name} {version}",
            f"{one['calls_per_cpu_second']:,.0f}",
            f"{1e6 / one['calls_per_cpu_second']:.1f} µs",
            *(f"{microseconds / 1000:.2f} ms" for microseconds in added),
            f"{one['us_per_chunk']:.1f} µs",
            f"{one['us_per_translated_chunk']:.1f} µs" if "us_per_translated_chunk" in one else "–",
            f"{one['idle_mib']:.0f} MiB",
            f"{one['held_mib']:.0f} MiB",
            f"{foreign:.0%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    going = direct["latency_us"]
    lines += [
        "",
        f"Going direct takes {going['p50'] / 1000:.2f} ms at p50, {going['p99'] / 1000:.2f} ms at p99 and "
        f"{going['p999'] / 1000:.2f} ms at p99.9.",
    ]
    return "\n".join(lines)


def write(table):
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
