"""Server-sent events without I/O: a parser that is fed bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ProtocolError

# A piece of output has at most 16 KiB; an event never comes near this.
_MAX_EVENT = 16 << 20


@dataclass(frozen=True)
class Message:
    """One event. `id` is what continues after it."""

    event: str
    data: str
    id: str | None


# Events between two connections are missing.
GAP = Message("gap", "{}", None)


class EventParser:
    """Bytes in, events out. Comments, which keep a connection alive, are left out."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        # Of the last event; before there is one, of the place at which the server began.
        self.id: str | None = None
        # Whether the server has said anything.
        self.begun = False

    def feed(self, data: bytes) -> list[Message]:
        self.begun = self.begun or bool(data)
        self._pending += data
        found: list[Message] = []
        while True:
            end = self._pending.find(b"\n\n", max(self._searched - 1, 0))
            if end < 0:
                self._searched = len(self._pending)
                if self._searched > _MAX_EVENT:
                    raise ProtocolError("an event is too large")
                return found
            block = bytes(self._pending[:end])
            del self._pending[: end + 2]
            self._searched = 0
            message = self._parse(block.decode("utf-8"))
            if message is not None:
                found.append(message)

    def _parse(self, block: str) -> Message | None:
        event, data = "message", []
        # Not splitlines(), which also splits at characters that an event may contain.
        for line in block.split("\n"):
            name, _, value = line.rstrip("\r").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "event":
                event = value
            elif name == "data":
                data.append(value)
            elif name == "id":
                self.id = value
        return Message(event, "\n".join(data), self.id) if data else None
