"""What is compared: each door of lastbyte, and servers of others. All run the same commands.

A server has `run(argv)`, which returns exit code, length of the output and output once the command has ended,
`begin(argv, count)`, which starts commands and waits for none, `empty()`, a call that runs nothing, and `pids()`, the
processes of the server itself.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

from wire import Http, Rpc


class Server:
    """`missing` says why it cannot be compared here."""

    missing = None
    # In one round: a server that takes seconds for a command would make it last for hours.
    MOST_CALLS = 1000
    # The names that commands of the benchmark have, which are not the server's own processes.
    COMMANDS = {"sleep", "sh", "head", "true", "cat"}

    def __init__(self, programs):
        self.programs = programs
        self.folder = None

    def __enter__(self):
        # Not below /tmp, which is often in memory.
        self.folder = tempfile.mkdtemp(prefix="lastbyte-bench-", dir="/var/tmp")
        self.open()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, RuntimeError):
            self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def another(self):
        """One more client, with a connection of its own."""
        raise NotImplementedError

    def pids(self):
        return [pid for pid in tree(self.root_pid()) if name_of(pid) not in self.COMMANDS]


class Native(Server):
    name = "lastbyte, HTTP on a unix socket"
    tcp = False

    def open(self):
        arguments = ["serve", "--state", self.folder, "--listen", "127.0.0.1:0", "--log", "warn"]
        self.child = subprocess.Popen([self.programs.lastbyte, *arguments], stdout=subprocess.PIPE, text=True)
        for line in self.child.stdout:
            if found := re.search(r"http://([\d.]+):(\d+)", line):
                self.port = found[1], int(found[2])
                break
        self.token = pathlib.Path(self.folder, "token").read_text().strip()
        self.http = self.connection()

    def connection(self):
        headers = {"authorization": f"Bearer {self.token}"}
        return Http(self.port if self.tcp else f"{self.folder}/socket", headers)

    def another(self):
        return Another(self, self.connection())

    def run(self, argv):
        return self.run_over(self.http, argv)

    def run_over(self, http, argv):
        answer = http.ask("POST", "/v1/processes", {"command": argv, "wait": {"exit": True}})
        ending = answer["process"]["ending"]
        return ending["status"].get("code"), ending["final_len"], answer["output"]["content"].get("head")

    def begin(self, argv, count):
        for _ in range(count):
            self.start(argv)

    def start(self, argv):
        return self.http.ask("POST", "/v1/processes", {"command": argv})["process"]["id"]

    def stop(self, id):
        self.http.ask("POST", f"/v1/processes/{id}/stop", {"stop": {"grace_ms": 0}})

    def wait(self, id):
        answer = self.http.ask("POST", f"/v1/processes/{id}/wait", {"exit": True})
        return answer["process"]["ending"]["status"].get("code")

    def kept(self, id):
        """How much of the output can still be read."""
        process = self.http.ask("GET", f"/v1/processes/{id}")
        dropped = sum(gap["end"] - gap["start"] for gap in process.get("dropped", []))
        return process["ending"]["final_len"] - dropped

    def crash(self):
        """Kills what serves, and connects again."""
        worker = next(pid for pid in tree(self.root_pid()) if pid != self.root_pid() and name_of(pid) == "lastbyte")
        os.kill(worker, signal.SIGKILL)
        until = time.monotonic() + 20
        while True:
            try:
                self.http = self.connection()
                return self.empty()
            except (OSError, IndexError, RuntimeError):
                if time.monotonic() > until:
                    raise

    def empty(self):
        self.http.ask("GET", "/v1")

    def root_pid(self):
        return self.child.pid

    def close(self):
        with contextlib.suppress(OSError, RuntimeError):  # its clients may be gone before the answer
            self.http.ask("POST", "/v1/shutdown")
        ended(self.child)


class NativeTcp(Native):
    name = "lastbyte, HTTP over TCP"
    tcp = True


class Coder(Native):
    name = "lastbyte, Coder's API over TCP"
    tcp = True

    def run_over(self, http, argv):
        answer = http.ask("POST", "/api/v0/processes/start", {"command": "exec " + shlex.join(argv)})
        shown = http.ask("GET", f"/api/v0/processes/{answer['id']}/output?wait=true")
        return shown["exit_code"], len(shown["output"]), shown["output"]


class Another:
    """A further client of a server."""

    def __init__(self, server, connection):
        self.server, self.connection = server, connection

    def run(self, argv):
        return self.server.run_over(self.connection, argv)


class AppServer(Server):
    name = "lastbyte, Codex's app-server protocol"

    def command(self):
        return [self.programs.lastbyte, "app-server"]

    def open(self):
        self.rpc = self.connection()

    def connection(self):
        home = f"{self.folder}/{uuid.uuid4()}"
        os.mkdir(home)
        rpc = Rpc(self.command(), {"CODEX_HOME": home, "LASTBYTE_STATE": f"{home}/state"})
        rpc.call("initialize", {"clientInfo": {"name": "bench", "version": "1"}})
        rpc.tell("initialized", {})
        return rpc

    def run(self, argv):
        return self.run_over(self.rpc, argv)

    def run_over(self, rpc, argv):
        answer = rpc.call("command/exec", self.asked(argv))
        return answer["exitCode"], len(answer["stdout"]), answer["stdout"]

    def asked(self, argv):
        return {"command": argv, "sandboxPolicy": {"type": "dangerFullAccess"}, "timeoutMs": 600000}

    def begin(self, argv, count):
        for number in range(count):
            self.rpc.tell("command/exec", self.asked(argv), id=f"begin-{number}")

    def empty(self):
        # It is refused, which takes no work.
        with contextlib.suppress(RuntimeError):
            self.rpc.call("command/exec", {"command": []})

    def root_pid(self):
        return self.rpc.child.pid

    def close(self):
        self.rpc.close()


class Codex(AppServer):
    name = "Codex app-server"

    @property
    def missing(self):
        return None if self.programs.codex else "npm has no @openai/codex here"

    def command(self):
        return [self.programs.codex, "app-server"]


class SweRex(Server):
    name = "SWE-ReX server"

    @property
    def missing(self):
        return None if self.programs.swerex else "pip has no swe-rex here"

    def open(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()
        python = pathlib.Path(self.programs.swerex).parent / "python"
        arguments = ["-m", "swerex.server", "--port", str(self.port[1]), "--auth-token", "bench", "--host", "127.0.0.1"]
        self.child = subprocess.Popen([python, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                self.http = self.connection()
                return self.empty()
            except OSError:
                if time.monotonic() > until:
                    raise

    def connection(self):
        return Http(self.port, {"x-api-key": "bench"})

    def another(self):
        return Another(self, self.connection())

    def run(self, argv):
        return self.run_over(self.http, argv)

    def run_over(self, http, argv):
        answer = http.ask("POST", "/execute", {"command": argv, "shell": False, "timeout": 600})
        return answer["exit_code"], len(answer["stdout"]), answer["stdout"]

    def begin(self, argv, count):
        """Each call is answered when its command has ended, so each has a connection that nobody reads."""
        self.begun = [self.connection() for _ in range(count)]
        for connection in self.begun:
            connection.send("POST", "/execute", {"command": argv, "shell": False, "timeout": 600})

    def empty(self):
        self.http.ask("GET", "/is_alive")

    def root_pid(self):
        return self.child.pid

    def close(self):
        self.http.close()
        self.child.terminate()
        ended(self.child)


class CommandLine(Server):
    """`lastbyte start` and `lastbyte wait`, as a shell script uses it."""

    name = "lastbyte, its command line"

    def open(self):
        self.env = {**os.environ, "LASTBYTE_STATE": self.folder}
        self.child = subprocess.Popen(
            [self.programs.lastbyte, "serve", "--log", "warn"], env=self.env, stdout=subprocess.PIPE, text=True
        )
        self.child.stdout.readline()

    def call(self, *arguments):
        done = subprocess.run([self.programs.lastbyte, *arguments], env=self.env, capture_output=True, text=True)
        return done.returncode, done.stdout.strip()

    def run(self, argv):
        _, id = self.call("start", "--", *argv)
        code, _ = self.call("wait", id)
        return code, None, None

    def empty(self):
        self.call("--version")

    def root_pid(self):
        return self.child.pid

    def close(self):
        self.call("shutdown")
        ended(self.child)


class Pueue(CommandLine):
    MOST_CALLS = 2
    name = "pueue, its command line"

    @property
    def missing(self):
        return None if self.programs.pueue else "cargo has no pueue here"

    def open(self):
        runtime = pathlib.Path(self.folder, "run")
        runtime.mkdir(mode=0o700)
        config = pathlib.Path(self.folder, "pueue.yml")
        config.write_text(f"shared:\n  pueue_directory: {self.folder}/state\n  runtime_directory: {runtime}\n")
        self.options = ["-c", str(config)]
        self.child = subprocess.Popen([self.programs.pueue + "d", *self.options], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while self.call("status")[0] != 0 and time.monotonic() < until:
            pass

    def call(self, *arguments):
        done = subprocess.run([self.programs.pueue, *self.options, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout.strip()

    def run(self, argv):
        _, id = self.call("add", "--print-task-id", "--immediate", "--", *argv)
        self.call("wait", "--quiet", id)
        # `wait` has no exit code of the command.
        _, told = self.call("status", "--json")
        status = json.loads(told)["tasks"][id]["status"]["Done"]["result"]
        return 0 if status == "Success" else status["Failed"], None, None

    def close(self):
        self.child.terminate()
        ended(self.child)


ALL = [Native, NativeTcp, Coder, AppServer, Codex, SweRex, CommandLine, Pueue]


def ended(child):
    """Waits for a server that was asked to end, and kills one that waits for its commands."""
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def tree(root):
    """A process and all that descends from it."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, more = [], [root]
    while more:
        pid = more.pop()
        found.append(pid)
        more += [child for child, parent in parents.items() if parent == pid]
    return found
