"""Where the three streams of a command go."""

from __future__ import annotations

import fcntl
import os
from typing import Any, Protocol

from ..errors import UnsupportedOption
from .launch import DEVNULL, INLINE_INPUT, PIPE, STDOUT, File, inline_input, milliseconds


class Readable(Protocol):
    """The output of another process."""

    def read(self, size: int = -1, /) -> bytes: ...


Source = int | Readable


class Streams:
    """Where the three streams of a command go."""

    def __init__(self, stdin: File, stdout: File, stderr: File, is_tty: bool) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        if stdin == STDOUT or stdout == STDOUT:
            raise ValueError("STDOUT can only be used for stderr")
        discards = stdout == DEVNULL and stderr == DEVNULL
        self.streams = "merged" if stderr == STDOUT or discards else "split"
        self.stdout_stream = None if self.streams == "merged" or is_tty else "stdout"
        self._sinks: dict[str | None, int] = {}
        self._source: Source | None = None
        try:
            self._add_sink(self.stdout_stream, stdout, 1)
            if self.streams == "split" and not is_tty:
                self._add_sink("stderr", stderr, 2)
            if stdin is not None and stdin not in (PIPE, DEVNULL):
                rest = getattr(innermost(stdin), "rest", None)
                self._source = rest() if rest is not None else duplicate(_descriptor(stdin))
        except BaseException:
            self.close()
            raise

    def _add_sink(self, stream: str | None, file: File, own: int) -> None:
        if file in (PIPE, DEVNULL):
            return
        if file is not None:
            self._sinks[stream] = duplicate(_descriptor(file))
        elif is_open(own):
            # If this program has closed its own output, there is nothing to copy to.
            self._sinks[stream] = own

    def stdin_asked(self, whole: bytes | None) -> Any:
        if whole is not None and len(whole) <= INLINE_INPUT:
            return inline_input(whole) if whole else "closed"
        is_open = whole is not None or self.stdin == PIPE or self._source is not None
        return "open" if is_open else "closed"

    def wait(self, timeout: tuple[float | None] | None) -> dict[str, Any]:
        """What the start waits for: the ending, or output that has to be copied."""
        if timeout is None or self.stdin == PIPE or self._source is not None:
            return {}
        conditions: dict[str, Any] = {"exit": True}
        if timeout[0] is not None:
            conditions["timeout_ms"] = milliseconds(timeout[0])
        if self._sinks:
            conditions["output_past"] = 0
        return {"wait": conditions, "view": "head_tail", "max_bytes": 1}

    def take_sinks(self) -> dict[str | None, int]:
        sinks, self._sinks = self._sinks, {}
        return sinks

    def take_source(self) -> Source | None:
        source, self._source = self._source, None
        return source

    def close(self) -> None:
        close_all(self.take_sinks())
        source = self.take_source()
        if isinstance(source, int):
            os.close(source)


def refuse(
    preexec_fn: Any = None,
    startupinfo: Any = None,
    creationflags: int = 0,
    pass_fds: Any = (),
    user: Any = None,
    group: Any = None,
    extra_groups: Any = None,
    umask: int = -1,
    process_group: int | None = None,
) -> None:
    """Raises for what only a child of this program could have. A process group of its own each command has."""
    given = {
        "preexec_fn": preexec_fn is not None,
        "startupinfo": startupinfo is not None,
        "creationflags": creationflags != 0,
        "pass_fds": bool(pass_fds),
        "user": user is not None,
        "group": group is not None,
        "extra_groups": extra_groups is not None,
        "umask": umask >= 0,
        "process_group": bool(process_group) and process_group != -1,
    }
    for name in (name for name, is_given in given.items() if is_given):
        raise UnsupportedOption(f"{name}= is not supported: the command is a child of the server, not of this program")


def duplicate(descriptor: int) -> int:
    """A descriptor of ours for the same file, so that the caller can close its own. Never 0, 1 or 2."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)


def is_open(descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def close_all(sinks: dict[str | None, int]) -> None:
    """Closes the duplicates, and not this program's own output."""
    for sink in sinks.values():
        if sink > 2:
            os.close(sink)


def write_all(descriptor: int, data: bytes) -> bool:
    """`False` if nobody reads it any more."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        return False
    return True


def innermost(file: Any) -> Any:
    """The raw file below a buffer and a decoder."""
    for name in ("buffer", "raw"):
        file = getattr(file, name, file)
    return file


def _descriptor(file: Any) -> int:
    return file if isinstance(file, int) else int(file.fileno())
