"""What is measured: how each gateway is started, and what it used while it ran."""

import os
import pathlib
import resource
import signal
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).parent
GATEWAY_PORT = 28080
CALLS_PORT = 28081  # the service that answers at once
STREAMS_PORT = 28082  # the service that streams
GATEWAY_CORE, LOAD_CORE = 0, 1
TICK = os.sysconf("SC_CLK_TCK")


def raise_open_files():
    """A thousand streams are two thousand sockets."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def completion():
    """The answer of the service: a chat completion of exactly 1 KB."""
    text = (
        '{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,'
        '"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],'
        '"usage":{"prompt_tokens":200,"completion_tokens":160,"total_tokens":360}}'
    )
    sentence = "Water leaves the lake through the intake, falls in the penstock and turns the wheel. "
    room = 1024 - len(text % "")
    return text % (sentence * 20)[:room]


def configuration(name, folder, service):
    """A configuration file with its blanks filled in; its path."""
    text = (HERE / name).read_text(encoding="utf-8")
    blanks = {"FOLDER": folder, "PORT": GATEWAY_PORT, "SERVICE": service, "COMPLETION": completion()}
    for blank, value in blanks.items():
        text = text.replace(f"@{blank}@", str(value))
    path = folder / pathlib.Path(name).name
    path.write_text(text, encoding="utf-8")
    return path


class Process:
    """A program pinned to one core, with what it starts itself."""

    def __init__(self, name, command, core, folder):
        self.name = name
        self.log = folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", str(core), *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )

    def wait_for(self, port, path=None):
        """Until the port takes connections, and the path on it answers 200."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                    if path is None:
                        return
                    connection.sendall(f"GET {path} HTTP/1.0\r\nhost: bench\r\n\r\n".encode())
                    if b" 200 " in connection.recv(64):
                        return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"{self.name} is not up:\n{self.log.read_text(errors='replace')}")

    def family(self):
        """Its process id and those of its children."""
        ids = [self.process.pid]
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            ids += map(int, task.read_text().split())
        return ids

    def cpu_seconds(self):
        total = 0
        for pid in self.family():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICK

    def memory_mib(self):
        """Proportional set size: shared pages count once over all processes."""
        kib = 0
        for pid in self.family():
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        return kib / 1024

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


class Direct:
    """No gateway: what the others are compared with."""

    name = "direct"
    translates = False

    def __init__(self, _options):
        pass

    def start(self, _folder, service):
        self.port = service
        return []


class Peer:
    """A gateway of one process."""

    translates = False

    port = GATEWAY_PORT

    def __init__(self, _options):
        pass

    def start(self, folder, service):
        process = Process(self.name, self.command(folder, service), GATEWAY_CORE, folder)
        process.wait_for(self.port)
        return [process]


class Nginx(Peer):
    name = "nginx"

    def command(self, folder, service):
        return ["nginx", "-p", folder, "-c", configuration("peers/nginx.conf", folder, service)]

    def version(self):
        return first_line(["nginx", "-v"]).rpartition("/")[2]


class Haproxy(Peer):
    name = "HAProxy"

    def command(self, folder, service):
        return ["haproxy", "-db", "-f", configuration("peers/haproxy.cfg", folder, service)]

    def version(self):
        return first_line(["haproxy", "-v"]).split()[2]


class Envoy(Peer):
    name = "Envoy"

    def command(self, folder, service):
        file = configuration("peers/envoy.yaml", folder, service)
        return ["envoy", "-c", file, "--concurrency", 1, "--disable-hot-restart", "--log-level", "error"]

    def version(self):
        return first_line(["envoy", "--version"]).split("/")[1]


class Penstock:
    """A proxy with everything that is on by default, and an access log; its control plane is on the other core."""

    name = "Penstock"
    translates = True
    port = GATEWAY_PORT
    admin, grpc, http = GATEWAY_PORT + 10, GATEWAY_PORT + 11, GATEWAY_PORT + 12

    def __init__(self, options):
        self.binary = options.penstock

    def start(self, folder, service):
        policy = folder / "policy.yaml"
        text = (HERE / "policy.yaml").read_text(encoding="utf-8")
        policy.write_text(text.replace(str(CALLS_PORT), str(service)), encoding="utf-8")
        control = Process("control", [
            self.binary, "control", "--store", "embedded", "--data-dir", folder / "control", "--initial-policy", policy,
            "--listen", f"127.0.0.1:{self.grpc}", "--http-listen", f"127.0.0.1:{self.http}",
        ], LOAD_CORE, folder)
        control.wait_for(self.http, "/ready")
        proxy = Process(self.name, [
            self.binary, "proxy", "--control", f"http://127.0.0.1:{self.grpc}", "--data-dir", folder / "proxy",
            "--listen", f"127.0.0.1:{self.port}", "--admin-listen", f"127.0.0.1:{self.admin}",
            f"--access-log={folder / 'access.log'}",
        ], GATEWAY_CORE, folder)
        proxy.wait_for(self.admin, "/ready")
        return [proxy, control]

    def version(self):
        return first_line([self.binary, "--version"]).split()[-1]


def first_line(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).strip().splitlines()[0]


ALL = [Direct, Nginx, Haproxy, Envoy, Penstock]
