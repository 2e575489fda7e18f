"""The streams of a process for asyncio, with the names of `asyncio.StreamReader` and `StreamWriter`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from .._core import calls, verbs
from .._core.exchange import exchange
from .._core.output import WAIT_MS, Cursor
from .._core.streams import close_all, write_all
from ..errors import LastbyteError, OutputDropped, StdinClosed
from ..models import Dropped, Ending

if TYPE_CHECKING:
    from ._client import AsyncClient

# How often output is asked for if there are too many waits for one more: less and less often.
_FIRST_POLL = 0.005
_LAST_POLL = 0.2
_COPY_BYTES = 256 << 10


class OutputReader:
    """The output of a process, or one stream of it. It ends at the ending. A cancelled read loses nothing."""

    def __init__(self, client: AsyncClient, cursor: Cursor) -> None:
        self._client = client
        self._cursor = cursor
        self._buffer = bytearray()
        self._asking = False

    def at_eof(self) -> bool:
        return self._cursor.at_end and not self._buffer

    async def read(self, n: int = -1) -> bytes:
        """Up to `n` bytes, as soon as there are some; all of them without `n`. Empty at the end."""
        if n == 0:
            return b""
        if n < 0:
            await self._until_end()
            return self._take(len(self._buffer))
        while not self._buffer and not self._cursor.at_end:
            await self._fetch()
        return self._take(n)

    async def readline(self) -> bytes:
        """One line with its newline; what is left at the end."""
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        searched = 0
        while True:
            found = self._buffer.find(separator, max(0, searched - len(separator) + 1))
            if found >= 0:
                return self._take(found + len(separator))
            searched = len(self._buffer)
            if self._cursor.at_end:
                raise asyncio.IncompleteReadError(self._take(searched), None)
            await self._fetch()

    async def readexactly(self, n: int) -> bytes:
        while len(self._buffer) < n:
            if self._cursor.at_end:
                raise asyncio.IncompleteReadError(self._take(len(self._buffer)), n)
            await self._fetch()
        return self._take(n)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lines()

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            line = await self.readline()
            if not line:
                return
            yield line

    async def available(self) -> bytes:
        """What could be read without waiting; it stays to be read."""
        while not self._cursor.at_end:
            before = len(self._buffer)
            await self._ask(0)
            if len(self._buffer) == before:
                break
        return bytes(self._buffer)

    async def _until_end(self) -> None:
        """Collects everything in the buffer."""
        while not self._cursor.at_end:
            await self._fetch()

    def _take(self, count: int) -> bytes:
        part = bytes(self._buffer[:count])
        del self._buffer[:count]
        return part

    async def _fetch(self) -> None:
        """Some more bytes, or the end."""
        before, pause = len(self._buffer), _FIRST_POLL
        while len(self._buffer) == before and not self._cursor.at_end:
            can_wait = self._client._can_wait()
            await self._ask(WAIT_MS if can_wait else 0)
            if can_wait and self._cursor.stream is None:
                continue
            # Or only the other stream was written to, maybe fast: it must not be asked about at every piece.
            if len(self._buffer) == before and not self._cursor.at_end:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LAST_POLL)

    async def _ask(self, wait_ms: int) -> None:
        if self._asking:
            # As in asyncio. Both would get the same bytes.
            raise RuntimeError("read() called while another coroutine is already waiting for incoming data")
        self._asking = True
        try:
            answer = await self._client._drive(exchange(self._client._link, self._cursor.request(wait_ms)))
        finally:
            self._asking = False
        # Nothing is awaited from here on: the bytes and the cursor change together.
        self._buffer += self._cursor.take(answer)
        self._cursor.check()


class InputWriter:
    """The standard input of a process. What is written is sent in the background, in order."""

    def __init__(self, client: AsyncClient, id: str, offset: int | None = 0) -> None:
        self._client = client
        self._id = id
        self._input = calls.Input(id)
        self._input.offset = -1 if offset is None else offset
        self._buffer = bytearray()
        self._closing = False
        self._sender: asyncio.Task[None] | None = None
        self._error: LastbyteError | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing:
            raise RuntimeError("write to a closed standard input")
        self._buffer += data
        self._wake()

    def writelines(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))

    async def drain(self) -> None:
        """Waits until everything was accepted. Raises `BrokenPipeError` if nobody reads it any more."""
        if self._sender is not None:
            await asyncio.wait({self._sender})
        if self._error is not None:
            raise self._error

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.close()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._wake()

    def is_closing(self) -> bool:
        return self._closing

    async def wait_closed(self) -> None:
        with contextlib.suppress(StdinClosed):
            await self.drain()

    def _wake(self) -> None:
        if self._error is None and (self._sender is None or self._sender.done()):
            self._sender = self._client._spawn(self._send())

    async def _send(self) -> None:
        client = self._client
        try:
            if self._input.offset < 0:
                answer = await client._drive(exchange(client._link, verbs.stdin_length(self._id)))
                self._input.offset = int(answer.json()["accepted"])
            while self._buffer or (self._closing and not self._input.closed):
                # A copy, because more may be written meanwhile; of what one request carries.
                part = memoryview(bytes(self._buffer[: calls.WRITE_BYTES]))
                closes = self._closing and len(part) == len(self._buffer)
                count = await client._drive(self._input.write(client._link, part, closes))
                del self._buffer[:count]
        except LastbyteError as error:
            if isinstance(error, StdinClosed) and not self._buffer:
                return
            self._error = error
            self._buffer.clear()


async def copy_output(
    client: AsyncClient, id: str, sinks: dict[str | None, int], unread: Callable[[], Awaitable[None]]
) -> None:
    """Writes output to descriptors as it comes, in its order, and closes them. Calls `unread` if a reader is gone."""
    try:
        if not client._can_wait():
            # Too many connections: then it is copied when it is whole.
            await client._endings.wait(id)
        if len(sinks) == 1:
            ((stream, only),) = sinks.items()
            if not await _copy_stream(OutputReader(client, Cursor(id, stream)), only):
                await unread()
            return
        async for found in client.follow(id):
            if isinstance(found, Ending):
                return
            if isinstance(found, Dropped):
                continue
            sink = sinks.get(found.stream)
            if sink is not None and not await _write(sink, found.data):
                close_all({None: sinks.pop(found.stream)})
                await unread()
                if not sinks:
                    return
    finally:
        close_all(sinks)


async def _copy_stream(reader: OutputReader, sink: int) -> bool:
    """`False` if nobody reads it any more."""
    while True:
        try:
            part = await reader.read(_COPY_BYTES)
        except OutputDropped:
            continue
        if not part:
            return True
        if not await _write(sink, part):
            return False


async def _write(descriptor: int, data: bytes) -> bool:
    """`False` if nobody reads it any more. A terminal or pipe that is not read must not stop the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, write_all, descriptor, data)
