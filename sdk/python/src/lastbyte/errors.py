"""What can go wrong, and what the server says about it.

Errors of a command are subclasses of subprocess's own, and errors of a start are subclasses of the
`OSError` that subprocess raises, so existing `except` clauses keep working.
"""

from __future__ import annotations

import errno
import os
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import Ending, Range


class LastbyteError(Exception):
    """The base of all errors of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors go from one process of a pool to another, and their constructors take more than a text.
        state = dict(vars(self))
        if isinstance(self, OSError):
            state.update(errno=self.errno, strerror=self.strerror, filename=self.filename)
        return _unpickled, (type(self), self.args, state)


def _unpickled(kind: type[LastbyteError], args: tuple[Any, ...], state: dict[str, Any]) -> LastbyteError:
    error = kind.__new__(kind, *args)
    error.args = args
    for name, value in state.items():
        setattr(error, name, value)
    return error


class ApiError(LastbyteError):
    """The server refused a request: its code, its message, and its hint about what to do."""

    def __init__(self, code: str, message: str, hint: str | None = None, status: int = 0) -> None:
        text = f"{message} ({hint})" if hint else message
        super().__init__(text)
        self.code = code
        self.message = message
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class _StartError(ApiError, OSError):
    """A start that failed, as an `OSError` with the errno and the file name that subprocess gives."""

    _errno = errno.EIO

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        status: int = 0,
        filename: str | None = None,
    ) -> None:
        ApiError.__init__(self, code, message, hint, status)
        self.errno = _errno_in(message) or self._errno
        self.strerror = os.strerror(self.errno)
        self.filename = filename


class ProgramNotFound(_StartError, FileNotFoundError):
    """There is no such program."""

    _errno = errno.ENOENT


class ProgramNotRunnable(_StartError, PermissionError):
    """The program cannot be executed."""

    _errno = errno.EACCES


class BadDirectory(_StartError, FileNotFoundError):
    """The working directory does not exist, or cannot be entered."""

    _errno = errno.ENOENT


class ProcessNotFound(ApiError, LookupError):
    """The server knows no process with this id or name."""


class StdinClosed(ApiError, BrokenPipeError):
    """The process has ended or its standard input is closed."""


class Unreachable(LastbyteError, ConnectionError):
    """No connection to the server, or it broke and did not come back in time."""


class ProtocolError(LastbyteError):
    """The other side does not speak this protocol, or not this version of it."""


class OutputDropped(LastbyteError):
    """Output was dropped to stay within the quota before it was read. `range` is what is missing."""

    def __init__(self, id: str, range: Range) -> None:
        super().__init__(
            f"bytes {range.start} to {range.end} of the output of {id} were dropped before they were read: "
            "give a larger quota= or read faster"
        )
        self.id = id
        self.range = range


class ProcessLost(LastbyteError):
    """Nobody saw how the process ended, because the server was killed; it is never guessed."""

    def __init__(self, id: str, why: str | None) -> None:
        super().__init__(f"the exit status of {id} is not known: {why or 'the server was killed'}")
        self.id = id


class UnsupportedOption(LastbyteError, ValueError):
    """An option of subprocess that a command on a server cannot have."""


class CalledProcessError(LastbyteError, subprocess.CalledProcessError):
    """A checked command failed. Has subprocess's attributes, `id` and `ending`."""

    def __init__(
        self,
        returncode: int,
        cmd: Any,
        output: Any = None,
        stderr: Any = None,
        *,
        id: str | None = None,
        ending: Ending | None = None,
    ) -> None:
        subprocess.CalledProcessError.__init__(self, returncode, cmd, output, stderr)
        self.id = id
        self.ending = ending

    __str__ = subprocess.CalledProcessError.__str__


class TimeoutExpired(LastbyteError, subprocess.TimeoutExpired):
    """The timeout of a wait passed. Has subprocess's attributes, and `id`."""

    def __init__(
        self, cmd: Any, timeout: float, output: Any = None, stderr: Any = None, *, id: str | None = None
    ) -> None:
        subprocess.TimeoutExpired.__init__(self, cmd, timeout, output, stderr)
        self.id = id

    __str__ = subprocess.TimeoutExpired.__str__


_NOT_OPEN = frozenset({"process_exited", "stdin_not_open"})


def refusal(status: int, error: dict[str, Any], *, program: str | None = None, cwd: str | None = None) -> ApiError:
    """The exception for an answer of the server."""
    code = str(error.get("code", "failed"))
    given = (code, str(error.get("message", "")), error.get("hint"), status)
    if code == "program_not_found":
        return ProgramNotFound(*given, filename=program)
    if code == "program_not_runnable" or (program == "" and code == "invalid_request"):
        return ProgramNotRunnable(*given, filename=program)
    if code == "bad_cwd":
        return BadDirectory(*given, filename=cwd)
    if code == "process_not_found":
        return ProcessNotFound(*given)
    if code in _NOT_OPEN:
        closed = StdinClosed(*given)
        closed.errno = errno.EPIPE
        return closed
    return ApiError(*given)


def _errno_in(message: str) -> int | None:
    _, found, rest = message.rpartition("(os error ")
    number = rest.partition(")")[0]
    return int(number) if found and number.isdigit() else None
