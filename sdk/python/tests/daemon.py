"""A server for the tests: in a folder of its own, and ended with them."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import lastbyte

# Only to fail: a server that does nothing for this long is broken.
PATIENCE = 60.0
TREE = Path(__file__).resolve().parents[3]


def program() -> str:
    found = os.environ.get("LASTBYTE_PROGRAM") or shutil.which("lastbyte")
    return found or str(TREE / "target/debug/lastbyte")


class Daemon:
    """`lastbyte serve` with HOME, state and socket below a temporary folder."""

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lastbyte-python-"))
        runtime = self.folder / "run"
        runtime.mkdir(mode=0o700)
        self.environment = {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_RUNTIME_DIR": str(runtime),
            "PATH": os.environ["PATH"],
        }
        self.socket = runtime / "lastbyte/socket"
        self._log = (self.folder / "log").open("w")
        self._process = subprocess.Popen(
            [program(), "serve", "--log", "warn", *options],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.url = ""
        # Not a bound method of a test: also a run that is interrupted leaves nothing.
        atexit.register(self.end)
        wanted = 2 if "--listen" in options else 1
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "http://" in line:
                self.url = line.split()[-1]
            wanted -= line.startswith("listening on")
            if not wanted:
                return
        raise RuntimeError(f"the server did not start: {(self.folder / 'log').read_text()}")

    def client(self) -> lastbyte.Client:
        return lastbyte.Client(socket=self.socket)

    def token(self) -> str:
        return (self.folder / "state/lastbyte/token").read_text().strip()

    def kill_worker(self) -> int:
        """Kills the worker with SIGKILL, as the kernel would; returns its pid. The keeper starts another."""
        with self.client() as client:
            keeper = client.health().keeper
        assert keeper is not None
        os.kill(keeper.worker_pid, signal.SIGKILL)
        return keeper.worker_pid

    def end(self) -> None:
        atexit.unregister(self.end)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def until(condition: object, what: str) -> None:
    """Waits until the function returns something true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen in {PATIENCE} s")
        # Between two looks at something outside of this program, not instead of them.
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def openapi() -> dict[str, object]:
    found: dict[str, object] = json.loads((TREE / "crates/wire/openapi.json").read_text())
    return found
