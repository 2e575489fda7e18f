"""The arguments of subprocess as a start request."""

from __future__ import annotations

import base64
import errno
import io
import locale
import math
import os
import signal
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

from ..errors import ApiError, LastbyteError, UnsupportedOption, refusal
from ..models import Limits, Sandbox, StopPolicy, Tty, encode
from . import verbs
from .exchange import Broken, ConnectFailed, Link, Outage, Pause, Send, Steps, after_failure, checked, exchange
from .place import UnixAddress

PIPE = subprocess.PIPE
STDOUT = subprocess.STDOUT
DEVNULL = subprocess.DEVNULL

Arg = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Args = Arg | Sequence[Arg]
Env = Mapping[str, str] | Mapping[bytes, bytes] | Mapping[str, Arg]
File = None | int | IO[Any]

# What a start carries itself; more is written once it runs.
INLINE_INPUT = 1 << 20
# A reader of a pipe expects all of it, unlike a reader of a log.
PIPE_QUOTA = 1 << 30


@dataclass(frozen=True)
class Options:
    """What a start can have beyond subprocess."""

    session: str | None = None
    name: str | None = None
    key: str | None = None
    labels: Mapping[str, str] | None = None
    limits: Limits | Mapping[str, Any] | None = None
    secrets: Mapping[str, str] | None = None
    sandbox: Sandbox | Mapping[str, Any] | str | None = None
    quota: int | None = None
    tty: Tty | tuple[int, int] | None = None
    stop: StopPolicy | Mapping[str, Any] | None = None
    server_timeout: float | None = None
    idle_timeout: float | None = None
    on_timeout: str | None = None
    on_disconnect: str | None = None
    disconnect_timeout: float | None = None

    def body(self) -> dict[str, Any]:
        sandbox = {"kind": self.sandbox} if isinstance(self.sandbox, str) else encode(self.sandbox)
        tty = Tty(*self.tty) if isinstance(self.tty, tuple) else self.tty
        given = {
            "session": self.session,
            "name": self.name,
            "key": self.key,
            "labels": dict(self.labels) if self.labels else None,
            "limits": encode(self.limits),
            "secrets": dict(self.secrets) if self.secrets else None,
            "sandbox": sandbox,
            "quota_bytes": self.quota,
            "tty": encode(tty),
            "stop": encode(self.stop),
            "timeout_ms": milliseconds(self.server_timeout),
            "idle_timeout_ms": milliseconds(self.idle_timeout),
            "on_timeout": self.on_timeout,
            "on_disconnect": self.on_disconnect,
            "disconnect_timeout_ms": milliseconds(self.disconnect_timeout),
        }
        return {name: value for name, value in given.items() if value is not None}


def new_key() -> str:
    """A key for one start, so that it can be repeated."""
    return f"python-{uuid.uuid4().hex}"


# The fields of a start request that this package can send. A test compares them with the document.
START_FIELDS = frozenset(
    {
        "command", "shell", "cwd", "env", "stdin", "streams", "wait", "view", "max_bytes",
        "session", "name", "key", "labels", "limits", "secrets", "sandbox", "quota_bytes", "tty", "stop",
        "timeout_ms", "idle_timeout_ms", "on_timeout", "on_disconnect", "disconnect_timeout_ms",
    }
)  # fmt: skip


@dataclass(frozen=True)
class TextMode:
    """Whether files carry text, and how it is encoded."""

    encoding: str | None
    errors: str | None
    is_text: bool

    @classmethod
    def new(
        cls, encoding: str | None, errors: str | None, text: bool | None, universal_newlines: bool | None
    ) -> TextMode:
        if text is not None and universal_newlines is not None and bool(text) != bool(universal_newlines):
            raise subprocess.SubprocessError(
                "Cannot disambiguate when both text and universal_newlines are supplied but different. "
                "Pass one or the other."
            )
        mode = cls(encoding, errors, bool(encoding or errors or text or universal_newlines))
        if encoding is not None:
            # Refuses what is no encoding of text, before anything is started.
            io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        return mode

    def encode(self, data: Any) -> bytes:
        if not self.is_text:
            return bytes(memoryview(data).cast("B")) if data else b""
        return bytes(data.encode(self._encoding, self.errors or "strict")) if data else b""

    def decode(self, data: bytes) -> str | bytes:
        if not self.is_text:
            return data
        text = data.decode(self._encoding, self.errors or "strict")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def _encoding(self) -> str:
        return self.encoding or locale.getpreferredencoding(False)


@dataclass(frozen=True)
class Launch:
    """What to start, before the environment of the server is known."""

    args: Args
    command: dict[str, Any]
    cwd: str | None
    env: Mapping[str, str] | None
    options: Options = field(default_factory=Options)
    stdin: Any = "closed"
    streams: str = "split"
    quota: int | None = None

    def body(self) -> dict[str, Any]:
        body = {**self.command, **self.options.body(), "stdin": self.stdin}
        if "tty" not in body:
            body["streams"] = self.streams
        if self.quota is not None:
            body.setdefault("quota_bytes", self.quota)
        if self.cwd is not None:
            body["cwd"] = self.cwd
        return body

    @property
    def program(self) -> str | None:
        command: list[str] | None = self.command.get("command")
        return command[0] if command else None


def command_of(args: Args, shell: bool, executable: Arg | None) -> dict[str, Any]:
    if shell:
        if isinstance(args, os.PathLike):
            raise TypeError("path-like args is not allowed when shell is true")
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
        # A shell runs an empty command, but the API takes it for a mistake.
        if executable is None and len(words) == 1 and utf8(words[0], "the command").strip():
            return {"shell": utf8(words[0], "the command")}
        return {"command": [utf8(executable or "/bin/sh", "executable"), "-c", *(utf8(word, "args") for word in words)]}
    words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    if not words:
        raise IndexError("list index out of range")
    command = [utf8(word, "args") for word in words]
    if executable is not None and utf8(executable, "executable") != command[0]:
        raise UnsupportedOption("executable= without shell=True must be the program itself: the server takes one name")
    return {"command": command}


def environment_of(env: Env | None, link: Link) -> Mapping[str, str] | None:
    """The variables that the command is to have; `None` for those of the server.

    On another machine, the variables of this one make no sense: there the default is the server's.
    """
    if env is None:
        if not isinstance(link.address, UnixAddress):
            return None
        return _own_environment()
    named: dict[str, str] = {}
    for name, value in env.items():
        name_text = utf8(name, "a name in env")
        if "=" in name_text or not name_text:
            raise ValueError("illegal environment variable name")
        named[name_text] = utf8(value, f"env[{name_text!r}]")
    return named


# The variables of this program as they were last looked at, as the system has them and as text.
_looked_at: tuple[object, dict[str, str]] = (None, {})


def _own_environment() -> Mapping[str, str]:
    """The variables of this program. They seldom change, and decoding them takes as long as the rest of a start."""
    global _looked_at
    # Not public, but older than asyncio; without it they are decoded each time.
    found = getattr(os.environ, "_data", None)
    before, decoded = _looked_at
    if found is None or found != before:
        # A value that is not UTF-8 cannot be sent, and nobody chose to send it.
        decoded = {name: value for name, value in os.environ.items() if _is_utf8(name) and _is_utf8(value)}
        _looked_at = (None if found is None else dict(found), decoded)
    return decoded


def directory_of(cwd: Arg | None, link: Link) -> str | None:
    if cwd is None:
        return os.getcwd() if isinstance(link.address, UnixAddress) else None
    path = utf8(cwd, "cwd")
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return path if os.path.isabs(path) or not isinstance(link.address, UnixAddress) else os.path.abspath(path)


def utf8(value: Any, what: str) -> str:
    """Text that can be sent: the API has JSON, so no bytes that are not UTF-8."""
    text = os.fsdecode(value)
    if "\0" in text:
        raise ValueError("embedded null byte")
    if not _is_utf8(text):
        raise UnsupportedOption(f"{what} is not UTF-8, and the API takes only UTF-8: {value!r}")
    return text


def inline_input(data: bytes) -> Any:
    """The whole input of a command, as a part of its start."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def start(link: Link, launch: Launch, more: Mapping[str, Any], timeout: float | None) -> Steps[dict[str, Any]]:
    """Starts it; repeating the start after a broken connection finds the same process."""
    body = {"key": new_key(), **launch.body(), **more}
    if launch.env is not None:
        names = yield from base_names(link)
        secrets = body.get("secrets", {})
        env: dict[str, str | None] = {name: None for name in names if name not in secrets}
        env.update((name, value) for name, value in launch.env.items() if name not in secrets)
        body["env"] = env
    request = verbs.start(body)
    outage = Outage(link)
    while True:
        try:
            answer = yield Send(request, timeout)
        except (ConnectFailed, Broken) as error:
            yield from after_failure(link, outage, error)
        else:
            link.was_there = True
            try:
                started: dict[str, Any] = checked(answer, launch.program, launch.cwd).json()
            except ApiError as error:
                yield Pause(outage.pause_if_busy(error, timeout))
            else:
                return started


def stop_interrupted(link: Link, launch: Launch) -> Steps[None]:
    """Stops what an interrupted start may have started: the same start, repeated, finds it by its key."""
    link = replace(link, may_start=False)
    started = yield from start(link, launch, {}, None)
    yield from exchange(link, verbs.stop(started["process"]["id"], {"grace_ms": 0}))


def base_names(link: Link) -> Steps[frozenset[str]]:
    """The names of the variables that a command has unless they are unset.

    The API edits the server's environment and cannot say "exactly these", so the rest is unset by
    name. The names are asked for once per server, and again only if the server is another one.
    """
    base = link.base
    if base.names is not None and base.breaks == link.breaks:
        return base.names
    breaks = link.breaks
    answer = yield from exchange(link, verbs.health())
    health = answer.json()
    server = (int(health["pid"]), int(health["started_unix_ns"]))
    if base.names is None or server != base.server:
        names = _names_of_process(health) if isinstance(link.address, UnixAddress) else None
        base.names = names if names is not None else (yield from _names_by_asking(link))
    base.server, base.breaks = server, breaks
    return base.names


def _names_of_process(health: Mapping[str, Any]) -> frozenset[str] | None:
    pid = (health.get("keeper") or {}).get("worker_pid", health["pid"])
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    names = (os.fsdecode(entry.partition(b"=")[0]) for entry in entries if b"=" in entry)
    return frozenset(name for name in names if name and _is_utf8(name))


def _names_by_asking(link: Link) -> Steps[frozenset[str]]:
    """Runs a command that prints the names, and forgets it. Without awk there, nothing is unset."""
    command = ["awk", "BEGIN { for (name in ENVIRON) print name }"]
    body = {"command": command, "key": new_key(), "wait": {"exit": True}, "view": "lines"}
    try:
        started = (yield from exchange(link, verbs.start(body))).json()
        lines = started["output"]["content"]["lines"]
        yield from exchange(link, verbs.forget(started["process"]["id"], stop=True))
    except ApiError:
        return frozenset()
    return frozenset(line["text"] for line in lines) - {"LASTBYTE_ID", "AWKPATH", "AWKLIBPATH"}


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None or seconds == math.inf else max(0, round(seconds * 1000))


def returncode_of(id: str, ending: Mapping[str, Any]) -> int | None:
    """As subprocess says it: the exit code, or minus the signal; `None` if nobody saw it."""
    status = ending["status"]
    if status["kind"] == "exited":
        return int(status["code"])
    if status["kind"] == "signalled":
        return -int(status["signal"])
    return None


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def raise_for(error: Mapping[str, Any]) -> LastbyteError:
    return refusal(0, dict(error))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
