"""HTTP/1.1 without I/O: requests as values, and a parser of answers that is fed bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from ..errors import ProtocolError

MAX_HEAD = 256 << 10
_CHUNK = 64 << 10


@dataclass(frozen=True)
class Request:
    """One request. `repeatable`: doing it twice is doing it once. `waits`: the answer may take any time."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    repeatable: bool = True
    waits: bool = False

    def target(self) -> str:
        given = {name: _text(value) for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given)}" if given else self.path

    def encode(self, host: str, token: str | None) -> bytes:
        lines = [f"{self.method} {self.target()} HTTP/1.1", f"host: {host}"]
        if token:
            lines.append(f"authorization: Bearer {token}")
        lines.extend(f"{name}: {value}" for name, value in self.headers)
        if self.body is not None:
            lines.append(f"content-length: {len(self.body)}")
        elif self.method == "POST":
            lines.append("content-length: 0")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
        return head + self.body if self.body else head


@dataclass
class Answer:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes | bytearray

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ProtocolError(f"the server answered {self.status} without JSON") from error


class AnswerParser:
    """Parses one answer at a time.

    Bytes come in through `buffer()` and `received()`, which let a shell receive a body without
    copying it, or through `feed()`. `head` is there once the head is whole. The body collects in
    `body()`, or is taken piece by piece with `take()`. `done` says that the answer is whole, and
    `reset()` begins with the next one. What came after an answer is kept for that one.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._scratch = bytearray(_CHUNK)
        self._begin()

    def _begin(self) -> None:
        self.head: tuple[int, dict[str, str]] | None = None
        self.done = False
        self.reusable = False
        self._whole = bytearray()
        self._filled = 0
        self._length: int | None = None
        self._chunks: _Chunks | None = None

    def reset(self) -> None:
        self._begin()
        self._advance()

    def buffer(self) -> memoryview:
        """Where the next bytes go."""
        if self._length is not None and not self.done:
            return memoryview(self._whole)[self._filled :]
        return memoryview(self._scratch)

    def received(self, count: int) -> None:
        """So many bytes were put into the buffer; 0 is the end of the connection."""
        if count == 0:
            self.ended()
        elif self._length is not None and not self.done:
            self._filled += count
            self.done = self._filled == self._length
        else:
            self._pending += memoryview(self._scratch)[:count]
            self._advance()

    def feed(self, data: bytes) -> None:
        if not data:
            self.ended()
            return
        self._pending += data
        self._advance()

    def ended(self) -> None:
        """The connection has ended; that is the end of a body of unknown length."""
        if self.head is not None and self._length is None and self._chunks is None:
            self.done = True
            return
        raise EOFError("the connection ended inside an answer")

    def body(self) -> bytearray:
        return self._whole

    def take(self) -> bytes:
        """The part of a chunked body that has come since the last call."""
        part = bytes(self._whole)
        self._whole.clear()
        return part

    def answer(self) -> Answer:
        if self.head is None or not self.done:
            raise ProtocolError("an answer was used before it was whole")
        return Answer(self.head[0], self.head[1], self._whole)

    @property
    def is_idle(self) -> bool:
        """Whether no byte of a further answer is there."""
        return not self._pending

    def _advance(self) -> None:
        if self.head is None and not self._parse_head():
            return
        if self.done:
            return
        if self._length is not None:
            self._fill()
        elif self._chunks is not None:
            self.done = self._chunks.move(self._pending, self._whole)
        else:
            self._whole += self._pending
            self._pending.clear()

    def _fill(self) -> None:
        length = self._length or 0
        count = min(length - self._filled, len(self._pending))
        self._whole[self._filled : self._filled + count] = self._pending[:count]
        del self._pending[:count]
        self._filled += count
        self.done = self._filled == length

    def _parse_head(self) -> bool:
        end = self._pending.find(b"\r\n\r\n")
        if end < 0:
            if len(self._pending) > MAX_HEAD:
                raise ProtocolError("the head of an answer is too large")
            return False
        lines = bytes(self._pending[:end]).decode("latin-1").split("\r\n")
        del self._pending[: end + 4]
        status = _status(lines[0])
        if 100 <= status < 200:
            return self._parse_head()
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise ProtocolError(f"invalid line in the head of an answer: {line!r}")
            headers[name.lower()] = value.strip()
        self.head = (status, headers)
        self._expect_body(status, headers)
        return True

    def _expect_body(self, status: int, headers: dict[str, str]) -> None:
        self.reusable = headers.get("connection", "").lower() != "close"
        if status in (204, 304):
            self._length, self.done = 0, True
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunks = _Chunks()
        elif "content-length" in headers:
            length = headers["content-length"]
            if not length.isdigit():
                raise ProtocolError(f"invalid content-length: {length!r}")
            self._length = int(length)
            self._whole = bytearray(self._length)
            self.done = self._length == 0
        else:
            self.reusable = False


class _Chunks:
    """The state of a chunked body."""

    def __init__(self) -> None:
        self._left = 0
        self._after_data = False
        self._trailers = False

    def move(self, source: bytearray, target: bytearray) -> bool:
        """Moves what is there; returns whether the body is whole."""
        while True:
            if self._left:
                count = min(self._left, len(source))
                target += source[:count]
                del source[:count]
                self._left -= count
                self._after_data = self._left == 0
                if self._left:
                    return False
            end = source.find(b"\r\n")
            if end < 0:
                if len(source) > MAX_HEAD:
                    raise ProtocolError("a line of a chunked body is too long")
                return False
            line = bytes(source[:end])
            del source[: end + 2]
            if self._trailers:
                if not line:
                    return True
            elif self._after_data:
                if line:
                    raise ProtocolError("a chunk is longer than it says")
                self._after_data = False
            else:
                self._left = _chunk_length(line)
                self._trailers = self._left == 0


def _chunk_length(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0].strip(), 16)
    except ValueError:
        raise ProtocolError(f"invalid length of a chunk: {line[:40]!r}") from None


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not code.isdigit():
        raise ProtocolError(f"not an answer of HTTP/1.1: {line[:80]!r}")
    return int(code)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
