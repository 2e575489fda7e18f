"""The files of a blocking process: its input and its output as raw streams, and what copies them elsewhere."""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import threading
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from ._core import calls, verbs
from ._core.exchange import exchange
from ._core.launch import TextMode
from ._core.output import Cursor
from ._core.streams import Source, close_all, innermost, write_all
from .errors import LastbyteError, OutputDropped, ProcessNotFound, StdinClosed
from .models import Dropped, Ending

if TYPE_CHECKING:
    from ._sync import Client, Connection

_COPY_BYTES = 256 << 10
_AHEAD_BYTES = 64 << 10
_FIRST_PAUSE = 0.002
_LAST_PAUSE = 0.05
# How soon the ending is watched again after a connection broke.
_WATCH_AGAIN_MS = 200


class OutputFile(io.RawIOBase):
    """The output of a process, or one stream of it, as a raw file. It ends at the ending."""

    def __init__(self, client: Client, cursor: Cursor) -> None:
        super().__init__()
        self._client = client
        self._cursor = cursor
        self._rest = memoryview(b"")
        # A request that was sent before its answer is wanted.
        self._ahead: Connection | None = None
        # Threads that read the same file get different bytes, as they do from a pipe.
        self._turn = threading.Lock()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._turn:
            self._fetch()
            target = memoryview(buffer).cast("B")
            count = min(len(target), len(self._rest))
            target[:count] = self._rest[:count]
            self._rest = self._rest[count:]
            return count

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        with self._turn:
            self._fetch()
            part = bytes(self._rest[:size])
            self._rest = self._rest[size:]
            return part

    def readall(self) -> bytes:
        parts: list[bytes | memoryview] = []
        with self._turn:
            while True:
                try:
                    self._fetch()
                except BaseException:
                    # Nothing of what is there is lost to a reader that goes on.
                    self._rest = memoryview(b"".join([*parts, self._rest]))
                    raise
                if not self._rest:
                    return b"".join(parts)
                parts.append(self._rest)
                self._rest = memoryview(b"")

    def at_end(self) -> bool:
        return self._cursor.at_end and not self._rest

    def rest(self) -> OutputFile:
        """Another file that begins where this one is."""
        cursor = Cursor(self._cursor.id, self._cursor.stream, self._cursor.position, self._cursor.at_end)
        other = OutputFile(self._client, cursor)
        other._rest = self._rest
        return other

    def available(self) -> bytes:
        """What could be read without waiting; it stays to be read."""
        other, parts = self.rest(), [bytes(self._rest)]
        while not other._cursor.at_end:
            part = other._ask(wait_ms=0)
            if not part:
                break
            parts.append(bytes(part))
        return b"".join(parts)

    def _fetch(self) -> None:
        """Waits until there is something to read, or nothing more to come."""
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        pause = _FIRST_PAUSE
        while not self._rest and not self._cursor.at_end:
            self._rest = memoryview(self._ask())
            self._cursor.check()
            if not self._rest and not self._cursor.at_end and self._cursor.stream:
                # Only the other stream was written to, maybe fast: it must not be asked about at every piece.
                time.sleep(pause)
                pause = min(pause * 2, _LAST_PAUSE)

    def _ask(self, **given: int) -> bytes | bytearray:
        connection, self._ahead = self._ahead, None
        answer = None if connection is None else self._client._receive(connection)
        if answer is None:
            answer = self._client._drive(exchange(self._client._link, self._cursor.request(**given)))
        part = self._cursor.take(answer)
        if len(part) >= _AHEAD_BYTES and not self._cursor.at_end and not given:
            # There is much: the server prepares the next piece while this one is used.
            self._ahead = self._client._send_ahead(self._cursor.request())
        return part

    def close(self) -> None:
        connection, self._ahead = self._ahead, None
        if connection is not None:
            connection.close()
        super().close()


class InputFile(io.RawIOBase):
    """The standard input of a process as a raw file."""

    def __init__(self, client: Client, id: str, offset: int | None = 0) -> None:
        super().__init__()
        self._client = client
        self.id = id
        self._input = calls.Input(id)
        self._input.offset = -1 if offset is None else offset
        # Two writes at the same offset would be taken for one that is repeated.
        self._turn = threading.Lock()
        self._pid = os.getpid()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("write to closed file")
        # What one request carries: a buffer that is written comes again with the rest of its data.
        with memoryview(data) as view, view.cast("B") as all_of_it:
            part = bytes(all_of_it[: calls.WRITE_BYTES])
        return self.send(memoryview(part), close=False)

    def send(self, data: memoryview, *, close: bool, deadline: float | None = None) -> int:
        link = self._client._link
        with self._turn:
            if self._input.offset < 0:
                # Of a process that somebody else may have written to.
                request = verbs.stdin_length(self.id)
                self._input.offset = int(self._client._drive(exchange(link, request)).json()["accepted"])
            return self._client._drive(self._input.write(link, data, close, deadline))

    def close(self) -> None:
        if self.closed:
            return
        try:
            # A forked program has a copy: the input ends when the one that opened it closes it.
            if not self._input.closed and self._pid == os.getpid():
                # A process that has ended reads nothing more.
                with contextlib.suppress(StdinClosed):
                    self.send(memoryview(b""), close=True)
        finally:
            super().close()


def wrapped_reader(raw: OutputFile, bufsize: int, mode: TextMode) -> IO[Any]:
    file: Any = raw if bufsize == 0 else io.BufferedReader(raw, bufsize if bufsize > 1 else io.DEFAULT_BUFFER_SIZE)
    return io.TextIOWrapper(file, encoding=mode.encoding, errors=mode.errors) if mode.is_text else file


def wrapped_writer(raw: InputFile, bufsize: int, mode: TextMode) -> IO[Any]:
    file: Any = raw if bufsize == 0 else io.BufferedWriter(raw, bufsize if bufsize > 1 else io.DEFAULT_BUFFER_SIZE)
    if not mode.is_text:
        return file  # type: ignore[no-any-return]
    return io.TextIOWrapper(
        file, write_through=True, line_buffering=bufsize == 1, encoding=mode.encoding, errors=mode.errors
    )


def raw_of(file: Any) -> OutputFile | None:
    """The raw file below a reader of this package, if it is one."""
    raw = innermost(file)
    return raw if isinstance(raw, OutputFile) else None


class Copier(threading.Thread):
    """Copies in the background. An error is kept for `finish`."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="lastbyte-copy", daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def finish(self, timeout: float | None) -> bool:
        """Waits for it; `False` if it takes longer. Raises what it met."""
        self.join(timeout)
        if self.is_alive():
            return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True


def copy_output(client: Client, id: str, sinks: dict[str | None, int], unread: Callable[[], None]) -> None:
    """Writes output to descriptors as it comes, in its order, and closes them. Calls `unread` if a reader is gone."""
    try:
        if len(sinks) == 1:
            ((stream, only),) = sinks.items()
            if not _copy_stream(OutputFile(client, Cursor(id, stream)), only):
                unread()
            return
        for found in client.follow(id):
            if isinstance(found, Ending):
                return
            if isinstance(found, Dropped):
                # The log has it on record; the descriptor is no place to say so.
                continue
            sink = sinks.get(found.stream)
            if sink is not None and not write_all(sink, found.data):
                close_all({None: sinks.pop(found.stream)})
                unread()
                if not sinks:
                    return
    finally:
        close_all(sinks)


def _copy_stream(file: OutputFile, sink: int) -> bool:
    """`False` if nobody reads it any more."""
    while True:
        try:
            part = file.read(_COPY_BYTES)
        except OutputDropped:
            continue
        if not part:
            return True
        if not write_all(sink, part):
            return False


def copy_input(client: Client, source: Source, target: InputFile) -> None:
    """Writes a descriptor, or the output of another process, to the standard input, and closes it.

    Ends with the process: what a descriptor has then is left for others to read.
    """
    watch = EndWatch(client, target.id)
    try:
        while True:
            if isinstance(source, int):
                if not watch.until_readable(source):
                    return
                part = os.read(source, _COPY_BYTES)
            else:
                part = source.read(_COPY_BYTES)
            if not part:
                return
            view = memoryview(part)
            while view:
                view = view[target.send(view, close=False) :]
    except StdinClosed:
        return
    finally:
        watch.close()
        if isinstance(source, int):
            os.close(source)
        with contextlib.suppress(LastbyteError):
            target.close()


class EndWatch:
    """Waits for a descriptor and for the ending of a process at the same time."""

    def __init__(self, client: Client, id: str) -> None:
        self._client = client
        self._id = id
        # Its answer comes when the process has ended.
        self._waits: Connection | None = None

    def until_readable(self, source: int) -> bool:
        """Waits until the descriptor has something, or its end, to be read; `False` if the process ended before."""
        if stat.S_ISREG(os.fstat(source).st_mode) or _is_readable(source, 0):
            return True
        while True:
            if self._waits is None:
                self._waits = self._client._send_ahead(verbs.wait(self._id, {"exit": True}))
            poll = select.poll()
            poll.register(source, select.POLLIN)
            if self._waits is not None:
                poll.register(self._waits, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(None if self._waits else _WATCH_AGAIN_MS)}
            if self._waits is not None and self._waits.fileno() in ready:
                if self._has_ended():
                    return False
                if _is_readable(source, _WATCH_AGAIN_MS):
                    return True
            elif source in ready:
                return True

    def close(self) -> None:
        connection, self._waits = self._waits, None
        if connection is not None:
            connection.close()

    def _has_ended(self) -> bool:
        connection, self._waits = self._waits, None
        assert connection is not None
        try:
            answer = self._client._receive(connection)
        except ProcessNotFound:
            # It has ended and was forgotten.
            return True
        except LastbyteError:
            # The server has too much to do for another wait.
            return False
        return answer is not None and bool(answer.json()["process"].get("ending"))


def _is_readable(source: int, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(timeout_ms))
