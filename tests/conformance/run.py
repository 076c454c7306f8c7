"""The official clients against every dialect, straight and through Penstock. Called by run.sh; see README.md."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from matrix import CLIENTS, IMPOSSIBLE, PROVIDERS, page

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
# Each kind of service and the fault that is in force in it from the start.
KINDS = {
    "good": "clear",
    "refuse": "errors=1,status=400",
    "limit": "errors=1,status=429,retry_after=1",
    "broken": "late_error",
    "stall": "stall",
}
# What the services want, and the gateway is given. The clients bring the first themselves.
SECRETS = {"CONFORMANCE_KEY": "conformance", "CONFORMANCE_AWS": "AKIDCONFORMANCE00:wJalrXUtnFEMI/K7MDENG"}
TRAFFIC, ADMIN, GRPC, HTTP = 28300, 28301, 28302, 28303


def start_services(program):
    """One service of each kind for each provider, and where each is: {provider: {kind: address}}."""
    command, order = [program], []
    for kind, fault in KINDS.items():
        command += ["--fault", fault]
        for provider in PROVIDERS:
            command += ["--models", provider.model_name()]
            command += ["--key", SECRETS[provider.credential]] if provider.credential else []
            command.append(f"{provider.dialect}=127.0.0.1:0")
            order.append((provider.name, kind))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    places = {}
    for name, kind in order:
        line = process.stdout.readline().split()
        if len(line) != 2:
            raise SystemExit("the simulated services did not start")
        places.setdefault(name, {})[kind] = line[1]
    return process, places


def policy(places):
    """A policy with one route for each provider and kind, chosen by the name of the model."""
    backends, routes = {}, []
    for provider in PROVIDERS:
        for kind, address in places[provider.name].items():
            name = f"{provider.name}-{kind}"
            backends[name] = {
                "provider": provider.vendor, "base_url": f"http://{address}{provider.base_path}",
                "capabilities": ["chat"], "models": [{"name": provider.model_name()}], **provider.backend,
            }
            if provider.credential:
                backends[name]["credential"] = f"env:{provider.credential}"
            routes.append({"name": name, "match": {"models": [name]}, "targets": [{"backend": name}],
                           "retry": {"attempts": 1}})
    routes.append({"name": "default"})
    return {"version": 1, "capabilities": {"chat": {"default": True}}, "backends": backends, "routes": routes}


def start_penstock(program, places, folder):
    document = folder / "policy.json"
    document.write_text(json.dumps(policy(places), indent=1))
    log = open(folder / "penstock.log", "wb")  # noqa: SIM115 - it lives as long as the process
    command = [
        program, "up", "--policy", document, "--data-dir", folder / "data", "--listen", f"127.0.0.1:{TRAFFIC}",
        "--admin-listen", f"127.0.0.1:{ADMIN}", "--grpc-listen", f"127.0.0.1:{GRPC}", "--http-listen", f"127.0.0.1:{HTTP}",
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **SECRETS})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ADMIN}/ready", timeout=2) as answer:
                if answer.status == 200:
                    return process
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    text = (folder / "penstock.log").read_text(errors="replace")
    raise SystemExit(f"penstock is not up:\n{text[-4000:]}")


def stop(process):
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def plan(places, names, through_penstock):
    """Whom a client calls: straight, or through Penstock with the route's name for a model."""
    targets = []
    for provider in PROVIDERS:
        if provider.name not in names:
            continue
        services = {}
        for kind, address in places[provider.name].items():
            services[kind] = {
                "url": f"http://127.0.0.1:{TRAFFIC}" if through_penstock else f"http://{address}",
                "model": f"{provider.name}-{kind}" if through_penstock else provider.model_name(),
                "stats": f"http://{address}/sim/stats",
            }
        target = {"provider": provider.dialect, "name": provider.name, "services": services}
        if not through_penstock:
            target["protocols"] = provider.protocols
        targets.append(target)
    return {"targets": targets}


def run_client(client, places, names, through_penstock, folder, features):
    file = folder / f"{client}-{'gateway' if through_penstock else 'straight'}.json"
    file.write_text(json.dumps(plan(places, names, through_penstock)))
    python = ROOT / ".tools/conformance/venv/bin/python"
    command = ["node", HERE / client] if client.endswith(".mjs") else [python, HERE / client]
    done = subprocess.run([*command, file, *features], capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode:
        raise SystemExit(f"{client} broke:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def versions():
    """Names and versions of the clients, as they are pinned."""
    pinned = [line.split("==") for line in (HERE / "requirements.txt").read_text().splitlines()]
    # The others call no service through Penstock.
    pinned = [one for one in pinned if one[0] in ("openai", "anthropic", "google-genai")]
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    node = [(name, version) for name, version in packages.items() if name != "zod"]
    return [(f"{name} (Python)", version) for name, version in pinned] + [(f"{name} (Node)", version) for name, version in node]


def judge(results):
    """Failures; what is known to be impossible must fail, and is no failure then."""
    failures = []
    for result in results:
        key = (result["protocol"], result["provider"], result["feature"])
        result["why"] = IMPOSSIBLE.get(key) or IMPOSSIBLE.get((key[0], "*", key[2])) or IMPOSSIBLE.get(("*", *key[1:]))
        if result["ok"] == bool(result["why"]):
            failures.append(result)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--services", required=True, help="the program that starts the simulated services")
    parser.add_argument("--penstock", help="without it, only the clients straight against the services of their vendor")
    parser.add_argument("--write", help="the page that is written")
    parser.add_argument("--client", action="append", help="only these scripts")
    parser.add_argument("--provider", action="append", help="only these providers")
    parser.add_argument("--feature", action="append", default=[], help="only these features")
    options = parser.parse_args()
    clients = [client for client in CLIENTS if not options.client or client in options.client]
    names = [one.name for one in PROVIDERS if not options.provider or one.name in options.provider]
    services = gateway = None
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as folder:
        folder = pathlib.Path(folder)
        try:
            services, places = start_services(options.services)
            if options.penstock:
                gateway = start_penstock(pathlib.Path(options.penstock).resolve(), places, folder)
            # One after the other: a rate limit that one client has met would meet the next as well.
            results = []
            for client in clients:
                for through in (False, True) if gateway and client != "vendors.py" else (False,):
                    done = run_client(client, places, names, through, folder, options.feature)
                    results += [{**result, "through": through} for result in done]
                    print(f"{client}{' through Penstock' if through else ''}: {len(done)}", file=sys.stderr)
        finally:
            log = folder / "penstock.log"
            if sys.exc_info()[0] and log.exists():
                print(log.read_text(errors="replace")[-2000:], file=sys.stderr)
            stop(gateway)
            stop(services)
    failures = judge(results)
    for result in failures:
        way = "through Penstock" if result["through"] else "straight"
        detail = "passes, though it is said to be impossible" if result["ok"] else result["detail"]
        print(f"FAILED {result['client']} {way} to {result['provider']}, {result['feature']}: {detail} ({result.get('where', '')})")
    print(f"{len(results) - len(failures)} of {len(results)} as they should be")
    if options.write and not failures:
        pathlib.Path(options.write).write_text(page(results, versions()), encoding="utf-8")
    sys.exit(bool(failures))


main()
