"""Conversations with the server as generators, so that both shells share them.

A generator yields an effect and is sent what came of it. If the effect fails, the error is thrown
into it: `ConnectFailed`, `Broken` or `NoAnswer`.

A server that goes away and comes back, because it crashed or was upgraded, is waited for: a request
that is safe to repeat is repeated for up to ten seconds.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import ApiError, LastbyteError, ProtocolError, Unreachable, refusal
from .http import Answer, Request
from .place import Address, Place, UnixAddress, read_address

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Send this and receive the answer, in at most so many seconds."""

    request: Request
    timeout: float | None = None


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True)
class StartServer:
    """Run the program that starts the server."""


Effect = Send | Pause | StartServer
Steps = Generator[Effect, Any, T]


class ConnectFailed(LastbyteError):
    """No connection: nothing was sent."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Broken(LastbyteError):
    """The connection ended before the answer was whole."""


class NoAnswer(LastbyteError):
    """The answer has not come in time."""


# For a file that is missing, which belongs to a server that has shut down or, for a moment, to one
# that takes the place of another.
_SHORT = 0.5
_FIRST_PAUSE = 0.001
_LAST_PAUSE = 0.064
_ABSENT = (errno.ENOENT, errno.ECONNREFUSED)
# The server has too much to do for the moment.
_BUSY = frozenset({"too_many_connections", "too_many_waits", "too_many_bodies", "too_many_answers"})


@dataclass
class Link:
    """The way to one server, for every connection of a client."""

    address: Address
    token: str | None = None
    may_start: bool = False
    patience: float = 10.0
    starting: bool = False
    # Only a server that was there will be back.
    was_there: bool = False
    # Counts connections that ended: after each, the server may be another one.
    breaks: int = 0
    base: BaseEnvironment = field(default_factory=lambda: BaseEnvironment())
    state: str | None = None

    @classmethod
    def of(cls, place: Place, patience: float) -> Link:
        return cls(place.address, place.token, place.may_start, patience, state=place.state)

    def has_moved(self) -> bool:
        """Whether the server of this state directory says that it listens elsewhere, and from now on is looked for
        there."""
        found = read_address(self.state) if self.state is not None else None
        if found is None or found == self.address or not os.path.exists(found.path):
            return False
        self.address = found
        # It is another server, with other variables.
        self.breaks += 1
        return True

    def encode(self, request: Request) -> bytes:
        return request.encode(self.address.host, self.token)

    def patience_with(self, error: LastbyteError) -> float:
        """How long to go on after this error."""
        if isinstance(error, ConnectFailed):
            code = error.cause.errno
            if code == errno.ENOENT:
                return min(self.patience, _SHORT) if self.was_there else 0
            if code == errno.ECONNREFUSED:
                return self.patience if self.was_there else 0
            is_busy = code in (errno.EAGAIN, errno.ECONNRESET)
            return self.patience if is_busy else 0
        if isinstance(error, Broken):
            return self.patience if self.was_there else min(self.patience, _SHORT)
        return 0


@dataclass
class BaseEnvironment:
    """The names of the variables of the server itself, as far as they were asked for."""

    names: frozenset[str] | None = None
    # Of the server that has them, and how many connections had ended then.
    server: tuple[int, int] = (0, 0)
    breaks: int = -1


class Outage:
    """From the first error to the next answer, also of a server that is too busy to give one."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._begun: float | None = None
        self._attempts = 0

    def pause(self, error: LastbyteError) -> float:
        """How long to wait before another attempt; raises if there is to be none."""
        if isinstance(error, Broken) and isinstance(self._link.address, UnixAddress):
            # Another program may have the port, but hardly the file.
            self._link.was_there = True
        if self._has_lasted(self._link.patience_with(error)):
            raise Unreachable(f"cannot reach the server at {self._link.address}: {error}") from error
        return self._next_pause()

    def pause_if_busy(self, error: ApiError, within: float | None) -> float:
        """How long to wait before the server is asked again; raises any other refusal."""
        patience = self._link.patience if within is None else min(within, self._link.patience)
        if error.code not in _BUSY or self._has_lasted(patience):
            raise error
        return self._next_pause()

    def _has_lasted(self, seconds: float) -> bool:
        now = time.monotonic()
        self._begun = now if self._begun is None else self._begun
        return now - self._begun >= seconds

    def _next_pause(self) -> float:
        pause = min(_FIRST_PAUSE * 2.0 ** min(self._attempts, 10), _LAST_PAUSE)
        self._attempts += 1
        return pause

    def over(self) -> None:
        self._begun, self._attempts = None, 0


def after_failure(link: Link, outage: Outage, error: LastbyteError) -> Steps[None]:
    """Looks for the server elsewhere, or starts it if it was never there, else waits a moment for it to come back."""
    absent = isinstance(error, ConnectFailed) and error.cause.errno in _ABSENT
    if absent and link.has_moved():
        return
    if absent and link.starting:
        # Another thread or task starts it.
        yield Pause(_LAST_PAUSE)
    elif absent and link.may_start and not link.was_there:
        link.starting = True
        try:
            yield StartServer()
            link.was_there = True
        finally:
            link.starting = False
    else:
        yield Pause(outage.pause(error))


def exchange(link: Link, request: Request, timeout: float | None = None) -> Steps[Answer]:
    """Sends a request until there is an answer. Raises what the server refuses."""
    outage = Outage(link)
    while True:
        try:
            answer = yield Send(request, timeout)
        except ConnectFailed as error:
            yield from after_failure(link, outage, error)
        except Broken as error:
            if not request.repeatable:
                raise Unreachable(f"the connection broke before the answer to {request.path}") from error
            yield from after_failure(link, outage, error)
        else:
            link.was_there = True
            try:
                return checked(answer)
            except ApiError as error:
                if not request.repeatable:
                    raise
                yield Pause(outage.pause_if_busy(error, timeout))


def is_busy(answer: Answer) -> bool:
    """Whether the same request may be answered in a moment."""
    try:
        checked(answer)
    except ApiError as error:
        return error.code in _BUSY
    return False


def checked(answer: Answer, program: str | None = None, cwd: str | None = None) -> Answer:
    if answer.status < 400:
        return answer
    content = answer.json() if answer.body else {}
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict):
        raise ProtocolError(f"the server answered {answer.status} without an error")
    raise refusal(answer.status, error, program=program, cwd=cwd)
