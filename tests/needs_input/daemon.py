"""A daemon of its own for one run, and requests to it over its port."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import tempfile


HOME = pathlib.Path(os.path.expanduser("~"))


class Daemon:
    """Ends, with all that it started, at the end of a `with` block."""

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="needs-input-")
        state = pathlib.Path(self.folder.name, "state")
        arguments = ["serve", "--no-auth", "--listen", "127.0.0.1:0", "--state", str(state)]
        self.server = subprocess.Popen(
            [self.program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        for line in self.server.stdout:
            if found := re.search(r"http://(\S+)", line):
                self.address = found[1]
                return self
        raise SystemExit("the daemon did not start")

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()

    def post(self, path, body):
        return self.ask("POST", path, json.dumps(body))

    def get(self, path):
        return self.ask("GET", path, None)

    def ask(self, method, path, body):
        connection = http.client.HTTPConnection(self.address, timeout=120)
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = json.loads(answer.read())
        connection.close()
        if answer.status >= 400:
            raise RuntimeError(text["error"]["message"])
        return text

    def start(self, command, on, folder):
        """Starts a shell command on a terminal, or with a pipe as its input; returns its path."""
        request = {"shell": command, "stdin": "open", "cwd": str(folder)}
        request["env"] = {"TERM": "xterm", "LESS": "", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        # Rust is usually installed in a home.
        for name, usual in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            request["env"][name] = os.environ.get(name, str(HOME / usual))
        if on == "terminal":
            request["tty"] = {"rows": 24, "cols": 80}
        return "/v1/processes/" + self.post("/v1/processes", request)["process"]["id"]

    def wait(self, path, timeout_ms):
        """Which condition was met, and the exit code if it has exited."""
        answer = self.post(path + "/wait", {"needs_input": True, "timeout_ms": timeout_ms})
        status = answer["process"].get("ending", {}).get("status", {})
        return answer["wait"], status.get("code")

    def stop(self, path):
        self.post(path + "/stop", {"stop": {"grace_ms": 0}})
