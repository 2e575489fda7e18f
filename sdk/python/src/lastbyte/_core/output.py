"""Reading a log by cursor, and following it as events."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import OutputDropped, ProtocolError, refusal
from ..models import Dropped, Ending, Event, Followed, Gap, Piece, Range, decode
from . import verbs
from .http import Answer, Request
from .sse import Message

# The server gives no more while the log is open. It holds what was asked for and is not read yet, for all clients
# together at most 128 MiB.
READ_BYTES = 1 << 20
# A read waits this long for output; then it is repeated, so that a broken TCP connection is noticed.
WAIT_MS = 60_000


@dataclass
class Cursor:
    """Reads one log, or one stream of it, from its cursor to the end of the output."""

    id: str
    stream: str | None
    position: int = 0
    at_end: bool = False
    ending: dict[str, Any] | None = None
    # What was dropped before the bytes that were taken last.
    gap: Range | None = None

    def request(self, wait_ms: int = WAIT_MS) -> Request:
        query = {
            "from": self.position,
            "max_bytes": READ_BYTES,
            "wait_ms": wait_ms or None,
            "stream": self.stream,
        }
        return verbs.output(self.id, query)

    def take(self, answer: Answer) -> bytes | bytearray:
        """The bytes of an answer. Once they are kept, `check` says whether some before them were dropped."""
        head = answer.headers
        try:
            following = int(head["lastbyte-next"])
        except (KeyError, ValueError):
            raise ProtocolError("an answer with output does not say where it ends") from None
        self.gap = _gap(head.get("lastbyte-dropped", ""), self.position, following)
        self.position = max(self.position, following)
        final = head.get("lastbyte-final-len")
        if final is not None:
            self.at_end = following >= int(final)
            self.ending = json.loads(head["lastbyte-ending"])
        return answer.body

    def check(self) -> None:
        gap, self.gap = self.gap, None
        if gap is not None:
            raise OutputDropped(self.id, gap)


def _gap(dropped: str, start: int, end: int) -> Range | None:
    for part in filter(None, dropped.split(",")):
        first, _, last = part.partition("-")
        if int(first) < end and int(last) > start:
            return Range(max(int(first), start), int(last))
    return None


def followed(message: Message) -> Followed:
    """What an event of a follower says."""
    data = json.loads(message.data)
    if message.event in ("output", "late"):
        return piece(data, message.event == "late")
    if message.event == "dropped":
        return Dropped(decode(Range, data["range"]))
    if message.event == "ending":
        return decode(Ending, data)
    if message.event == "failed":
        raise refusal(500, data["error"])
    raise ProtocolError(f"unknown event of a follower: {message.event}")


def piece(data: Mapping[str, Any], late: bool) -> Piece:
    content = data["content"]
    found = content["text"].encode("utf-8") if "text" in content else base64.b64decode(content["base64"])
    return Piece(decode(Range, data["range"]), found, data.get("stream"), data.get("at_unix_ns"), late)


def event(message: Message) -> Event | Gap:
    """What an event of the feed says."""
    if message.event == "gap":
        return Gap()
    return decode(Event, json.loads(message.data))
