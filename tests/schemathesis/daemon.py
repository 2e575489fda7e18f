"""A daemon for the tests: unprivileged, in its own folder, and ended with them."""

import errno
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

NOBODY = 65534
# Only to fail: a daemon that does nothing for this long is broken.
PATIENCE = 30


class Daemon:
    """`lastbyte serve` on a free loopback port, with a token, and a copy of `testchild`."""

    # What the document has and this server does not offer.
    not_offered = ("listNodes", "drainNode", "forgetNode")
    members_not_offered = ("on", "replace")

    def __init__(self, programs: Path):
        # Temporary folders of root may be closed to other users.
        place = "/tmp" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="lastbyte-schemathesis-", dir=place))
        self.log = self.folder / "log"
        self.workdir = self.folder / "workdir"
        self._process = None
        try:
            self._furnish(programs)
            self._start()
        except BaseException:
            self.end()
            raise

    def _furnish(self, programs: Path):
        for name in ("lastbyte", "testchild"):
            # Copied, because the build folder may be closed to the user who runs them.
            shutil.copy2(programs / name, self.folder / name)
        self.folder.chmod(0o711)
        self._user = unprivileged()
        for folder in (self.workdir, self.folder / "state"):
            folder.mkdir(mode=0o700)
            if self._user:
                os.chown(folder, NOBODY, NOBODY)

    def _run(self, *command) -> subprocess.Popen:
        environment = {"HOME": str(self.workdir), "PATH": "/usr/bin:/bin"}
        with self.log.open("a") as log:
            return subprocess.Popen(
                command, cwd=self.workdir, env=environment, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, **self._user,
            )

    def _start(self, *options):
        command = [self.folder / "lastbyte", "serve", "--listen", "127.0.0.1:0"]
        command += ["--state", self.folder / "state", "--workdir", self.workdir, *options]
        self._process = self._run(*command)
        for line in self._process.stdout:
            address = line.split()[-1]
            if address.startswith("http://"):
                self.url = address
                self.token = (self.folder / "state" / "token").read_text().strip()
                return
        raise RuntimeError(f"the daemon did not start:\n{self.log.read_text()}")

    @property
    def testchild(self) -> str:
        return str(self.folder / "testchild")

    def ask(self, method: str, path: str, body=None):
        """Status and JSON of a hand-written request."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENCE)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else None
        finally:
            connection.close()

    def alive(self) -> bool:
        return self._process.poll() is None

    def log_end(self) -> str:
        return "".join(self.log.open().readlines()[-40:])

    def shut_down(self) -> int:
        """Shuts it down and returns its exit code."""
        status, _ = self.ask("POST", "/v1/shutdown")
        if status != 202:
            raise RuntimeError(f"a shutdown was answered with {status}")
        return self._process.wait(PATIENCE)

    def left(self) -> list[int]:
        """The processes that run a program from this daemon's folder."""
        found = []
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and os.readlink(process / "exe").startswith(f"{self.folder}/"):
                    found.append(int(process.name))
            except OSError:
                pass  # It has ended, or belongs to another user.
        return found

    def end(self):
        """Leaves no process and no file, whatever happened."""
        end(self._process)
        shutil.rmtree(self.folder, ignore_errors=True)


class Gateway(Daemon):
    """The same as a gateway of a fleet: one server of the broker, and one node."""

    not_offered = ("drainNode", "forgetNode")
    members_not_offered = ()

    def __init__(self, programs: Path, nats_server: Path):
        self._nats_server, self._others = nats_server, []
        super().__init__(programs)

    def _furnish(self, programs: Path):
        super()._furnish(programs)
        shutil.copy2(self._nats_server, self.folder / "nats-server")

    def _start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        storage = self.workdir / "nats"
        self._others.append(
            self._run(self.folder / "nats-server", "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", storage)
        )
        url = f"nats://127.0.0.1:{port}"
        state = self.workdir / "node"
        node = [self.folder / "lastbyte", "serve", "--state", state, "--socket", state / "socket"]
        self._others.append(self._run(*node, "--workdir", self.workdir, "--nats", url, "--node", "node"))
        end_at = time.monotonic() + PATIENCE
        while not listens(port):
            if time.monotonic() > end_at:
                raise RuntimeError(f"the broker did not start:\n{self.log.read_text()}")
            time.sleep(0.05)
        super()._start("--nats", url, "--gateway")
        while "present" not in json.dumps(self.ask("GET", "/v1/nodes")):
            if time.monotonic() > end_at:
                raise RuntimeError(f"the node did not join:\n{self.log.read_text()}")
            time.sleep(0.05)

    def shut_down(self) -> int:
        code = super().shut_down()
        for process in reversed(self._others):
            end(process)
        return code

    def end(self):
        for process in reversed(self._others):
            end(process)
        super().end()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def end(process):
    if process is not None and process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def unprivileged() -> dict:
    """Options that run a child as nobody; none if we are not root, or only root of our own user namespace."""
    if os.geteuid() != 0:
        return {}
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        subprocess.run(["/bin/true"], check=True, **user)
    except OSError as error:
        # A user namespace may have no other user, or may not let us switch to one.
        if error.errno not in (errno.EINVAL, errno.EPERM):
            raise
        print(f"the daemon runs as we do: root cannot become user {NOBODY} here ({error.strerror})")
        return {}
    return user
