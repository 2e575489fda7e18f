"""The asyncio shell: a connection, and how many there may be."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque

from .._core.exchange import Broken, ConnectFailed, Link
from .._core.http import Answer, AnswerParser, Request
from .._core.place import UnixAddress

_READ_BYTES = 256 << 10


class Connection:
    """One connection, used for one request at a time."""

    def __init__(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._link = link
        self._reader = reader
        self._writer = writer
        self._parser = AnswerParser()

    @classmethod
    async def open(cls, link: Link) -> Connection:
        address = link.address
        try:
            if isinstance(address, UnixAddress):
                streams = await asyncio.open_unix_connection(address.path, limit=_READ_BYTES)
            else:
                streams = await asyncio.open_connection(address.name, address.port, limit=_READ_BYTES)
        except OSError as error:
            raise ConnectFailed(error) from error
        found = streams[1].get_extra_info("socket")
        if not isinstance(address, UnixAddress) and found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return cls(link, *streams)

    async def send(self, request: Request) -> None:
        try:
            self._writer.write(self._link.encode(request))
            await self._writer.drain()
        except OSError as error:
            raise Broken(str(error)) from error

    async def exchange(self, request: Request) -> Answer:
        await self.send(request)
        while not self._parser.done:
            await self.receive()
        return self._parser.answer()

    async def receive(self) -> AnswerParser:
        """Receives some bytes."""
        try:
            self._parser.feed(await self._reader.read(_READ_BYTES))
        except (OSError, EOFError) as error:
            raise Broken(str(error)) from error
        return self._parser

    def release(self) -> bool:
        """Ready for the next request; `False` if there can be none."""
        reusable = self._parser.reusable and self._parser.is_idle and self.is_open()
        if reusable:
            self._parser.reset()
        return reusable

    def is_open(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing() or self._reader.exception())

    def close(self) -> None:
        """At once: nobody waits for what is still to be sent."""
        # A RuntimeError says that the loop is closed, and so the connection will be.
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.transport.abort()


class Slots:
    """So many at a time; the others wait in turn. A cancelled waiter loses nothing."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                # It was our turn when we were cancelled: the next one's.
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
