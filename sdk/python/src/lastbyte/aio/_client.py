"""The asyncio client: a method for each verb, and few connections for many processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from .._core import calls, output, place, verbs
from .._core.exchange import (
    Broken,
    ConnectFailed,
    Link,
    NoAnswer,
    Outage,
    Pause,
    Send,
    StartServer,
    Steps,
    after_failure,
    checked,
    exchange,
)
from .._core.http import Answer, Request
from .._core.sse import GAP, EventParser, Message
from ..models import (
    Delivered,
    Event,
    Followed,
    Gap,
    Health,
    Output,
    Process,
    Receipt,
    Screen,
    SearchAnswer,
    StopProof,
    Survivor,
    View,
    WaitAnswer,
    WaitOutcome,
)
from ._connection import Connection, Slots
from ._endings import Endings

if TYPE_CHECKING:
    from ._process import AsyncProcess

T = TypeVar("T")

# A program may have 1024 descriptors, and a server half as many connections.
_SHORT_REQUESTS = 64
_WAITING_REQUESTS = 64
_KEPT_CONNECTIONS = 64


class AsyncClient:
    """A client of one server for one event loop; arguments as for `lastbyte.Client`.

    It uses at most about 130 connections on its own, however many processes there are: requests
    take turns, and beyond 64 waits at a time endings are learnt from the feed of events.
    """

    def __init__(
        self,
        *,
        socket: str | os.PathLike[str] | None = None,
        server: str | None = None,
        token: str | None = None,
        patience: float = 10.0,
    ) -> None:
        chosen = place.chosen(socket, server, token)
        self._link = Link.of(chosen, patience)
        self._kept: list[Connection] = []
        self._slots = Slots(_SHORT_REQUESTS)
        self._waiting = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._copiers: set[asyncio.Task[Any]] = set()
        self._endings = Endings(self)
        self._closing = False

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Waits for what was begun (signals, input), then closes its connections. Commands keep running."""
        self._closing = True
        try:
            for copier in self._copiers:
                copier.cancel()
            while self._tasks:
                await asyncio.wait(set(self._tasks))
            await self._endings.aclose()
        finally:
            self._closing = False
            self._close_connections()

    async def health(self) -> Health:
        """The state of the server."""
        return await self._drive(calls.health(self._link))

    async def processes(
        self,
        *,
        phase: str | None = None,
        session: str | None = None,
        label: str | None = None,
        name: str | None = None,
        failed: bool | None = None,
        limit: int | None = None,
    ) -> list[Process]:
        """The processes that the server knows, newest first."""
        query = {"phase": phase, "session": session, "label": label, "name": name, "failed": failed}
        return await self._drive(calls.processes(self._link, query, limit))

    async def process(self, id: str) -> Process:
        """One process at this instant."""
        return await self._drive(calls.show(self._link, id))

    async def attach(self, id: str, **options: Any) -> AsyncProcess:
        """A handle of a process that is already there, by id, name or `last`."""
        from ._process import AsyncProcess

        return await AsyncProcess.attach(id, client=self, **options)

    async def wait(
        self,
        id: str,
        *,
        exit: bool | None = None,
        pattern: str | None = None,
        port: int | None = None,
        output_past: int | None = None,
        needs_input: bool | None = None,
        hand_over: bool | None = None,
        silence: float | None = None,
        timeout: float | None = None,
        start: int | None = None,
        raw: bool | None = None,
    ) -> WaitAnswer:
        """Waits for the first of several conditions; a timeout is one of them and no error."""
        found = calls.conditions(exit, pattern, port, output_past, needs_input, hand_over, silence, timeout, start, raw)
        return await self._drive(calls.wait(self._link, id, found))

    async def wait_any(self, processes: Iterable[Any], timeout: float | None = None) -> list[WaitOutcome]:
        """Waits until one has ended; returns each as it is then."""
        return await self._drive(calls.wait_many(self._link, calls.ids_of(processes), True, timeout))

    async def wait_all(self, processes: Iterable[Any], timeout: float | None = None) -> list[WaitOutcome]:
        """Waits until all have ended."""
        return await self._drive(calls.wait_many(self._link, calls.ids_of(processes), False, timeout))

    async def stop(self, id: str, *, signal: str | None = None, grace: float | None = None) -> StopProof:
        """Stops a process with its whole tree, and returns the proof."""
        return await self._drive(calls.stop(self._link, id, calls.stop_policy(signal, grace)))

    async def press(self, id: str, *keys: str) -> None:
        """Types keys by name, such as `C-c`, `Enter` or `Up`."""
        await self._drive(calls.press(self._link, id, keys))

    async def signal(self, id: str, name: str) -> Delivered:
        """Sends a signal to its process group."""
        return await self._drive(calls.signal(self._link, id, name))

    async def read(
        self,
        id: str,
        view: View = "text",
        *,
        start: int | None = None,
        max_bytes: int | None = None,
        stream: str | None = None,
        first: int | None = None,
        last: int | None = None,
        late: bool | None = None,
        wait_ms: int | None = None,
    ) -> Output:
        """A view of its output."""
        query = calls.read_query(view, start, max_bytes, stream, first, last, late, wait_ms)
        return await self._drive(calls.output(self._link, id, query))

    async def screen(
        self,
        id: str,
        *,
        at: int | None = None,
        rows: int | None = None,
        cols: int | None = None,
        ansi: bool | None = None,
        late: bool | None = None,
    ) -> Screen:
        """What a terminal shows that has read its output, up to byte `at` or to its end."""
        query = calls.screen_query(at, rows, cols, ansi, late)
        return await self._drive(calls.screen(self._link, id, query))

    async def search(
        self,
        id: str,
        pattern: str,
        *,
        start: int | None = None,
        before: int | None = None,
        after: int | None = None,
        max_matches: int | None = None,
        stream: str | None = None,
        late: bool | None = None,
        raw: bool | None = None,
    ) -> SearchAnswer:
        """Searches its output for a regular expression."""
        query = calls.search_query(pattern, start, before, after, max_matches, stream, late, raw)
        return await self._drive(calls.search(self._link, id, query))

    async def follow(
        self, id: str, *, start: int | None = None, late: bool | None = None, times: bool | None = None
    ) -> AsyncGenerator[Followed, None]:
        """Its output as it comes: pieces, then the ending. Goes on at its cursor if a connection breaks."""
        query = {"from": start, "late": late, "times": times}
        messages = self._messages(lambda last: verbs.follow(id, calls.resumed(query, last), last))
        async with contextlib.aclosing(messages):
            async for message in messages:
                yield output.followed(message)

    async def events(
        self, *, session: str | None = None, chat: str | None = None, last_event_id: str | None = None
    ) -> AsyncGenerator[Event | Gap, None]:
        """The events of all processes, from the first step on. `Gap` says that some may be missing."""
        query = {"session": session, "chat": chat}
        messages = self._messages(lambda last: verbs.events(query, last), last_event_id, endless=True)
        async with contextlib.aclosing(messages):
            async for message in messages:
                yield output.event(message)

    async def receipt(self, id: str) -> Receipt:
        """What was run, under which terms, and the hash of its output."""
        return await self._drive(calls.receipt(self._link, id))

    async def survivors(self, id: str) -> list[Survivor]:
        """The live processes of its tree."""
        return await self._drive(calls.survivors(self._link, id))

    async def forget(self, id: str, *, stop: bool = False) -> None:
        """Forgets an ended process and its output."""
        await self._drive(calls.forget(self._link, id, stop))

    # The shell: does what the conversations ask for.

    async def _drive(self, steps: Steps[T]) -> T:
        try:
            effect = next(steps)
            while True:
                try:
                    came = await self._do(effect)
                except (ConnectFailed, Broken, NoAnswer) as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(came)
        except StopIteration as done:
            value: T = done.value
            return value
        finally:
            steps.close()

    async def _do(self, effect: Send | Pause | StartServer) -> Answer | None:
        if isinstance(effect, Send):
            if effect.request.waits:
                return await self._send(effect.request)
            async with self._slots:
                return await self._send(effect.request)
        if isinstance(effect, Pause):
            await asyncio.sleep(effect.seconds)
        else:
            await self._start_server()
        return None

    async def _send(self, request: Request) -> Answer:
        # Counted before anything is awaited, so that any number of tasks see what is taken.
        self._waiting += request.waits
        try:
            connection = await self._connection()
            try:
                answer = await connection.exchange(request)
            except BaseException as error:
                connection.close()
                if isinstance(error, Broken):
                    self._link.breaks += 1
                raise
        finally:
            self._waiting -= request.waits
        if connection.release() and len(self._kept) < _KEPT_CONNECTIONS:
            self._kept.append(connection)
        else:
            connection.close()
        return answer

    def _can_wait(self) -> bool:
        """Whether another request may keep a connection for as long as it waits."""
        return self._waiting < _WAITING_REQUESTS

    async def _connection(self) -> Connection:
        while self._kept:
            kept = self._kept.pop()
            if kept.is_open():
                return kept
            self._link.breaks += 1
            kept.close()
        return await Connection.open(self._link)

    def _close_connections(self) -> None:
        while self._kept:
            self._kept.pop().close()

    async def _start_server(self) -> None:
        for command in place.start_commands():
            try:
                ran = await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                )  # fmt: skip
            except OSError as error:
                raise place.not_started(command, str(error)) from error
            _, said = await ran.communicate()
            self._link.has_moved()
            try:
                (await Connection.open(self._link)).close()
            except ConnectFailed:
                continue
            return
        raise place.not_started(command, said.decode(errors="replace"))

    async def _messages(
        self, ask: Callable[[str | None], Request], last: str | None = None, endless: bool = False
    ) -> AsyncGenerator[Message, None]:
        """The events of a stream. If the connection breaks, it goes on after the last one."""
        outage = Outage(self._link)
        while True:
            events = EventParser()
            try:
                stream = self._stream(ask(last), events)
                async with contextlib.aclosing(stream):
                    async for message in stream:
                        outage.over()
                        if message is not None:
                            last = message.id or last
                            yield message
                if not endless:
                    return
                raise Broken("the server ended the stream")
            except (ConnectFailed, Broken) as error:
                last = events.id or last
                if endless and events.begun and last is None:
                    yield GAP
                self._link.breaks += 1
                await self._drive(after_failure(self._link, outage, error))

    async def _stream(self, request: Request, events: EventParser) -> AsyncGenerator[Message | None, None]:
        """`None` once, when the stream has begun; then its events."""
        self._waiting += 1
        try:
            connection = await Connection.open(self._link)
        except BaseException:
            self._waiting -= 1
            raise
        try:
            await connection.send(request)
            begun = False
            while True:
                parser = await connection.receive()
                if parser.head is None:
                    continue
                if parser.head[0] != 200:
                    if parser.done:
                        checked(parser.answer())
                        return
                    continue
                if not begun:
                    begun = self._link.was_there = True
                    yield None
                for message in events.feed(parser.take()):
                    yield message
                if parser.done:
                    return
        finally:
            self._waiting -= 1
            connection.close()

    async def _ending_of(self, id: str) -> dict[str, Any]:
        """Waits for the ending, by a request of its own or by the feed of events."""
        while True:
            if not self._can_wait():
                return await self._endings.wait(id)
            process = await self._drive(calls.wait_for_exit(self._link, id, None))
            if process is not None:
                ending: dict[str, Any] = process["ending"]
                return ending

    async def _ending_now(self, id: str) -> dict[str, Any] | None:
        process = (await self._drive(exchange(self._link, verbs.show(id)))).json()
        ending: dict[str, Any] | None = process.get("ending")
        return ending

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that belongs to this client: `aclose` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _copy(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """The same, but `aclose` cancels it: it ends with a command, which may run for ever."""
        task = self._spawn(work)
        self._copiers.add(task)
        task.add_done_callback(self._copied)
        if self._closing:
            # A start that was still under way.
            task.cancel()
        return task

    def _copied(self, task: asyncio.Task[None]) -> None:
        self._copiers.discard(task)
        if not task.cancelled():
            # `wait` raises it. Without a wait, it must not be reported as forgotten.
            task.exception()

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Does it to the end even if the caller is cancelled, and only then says so."""
        task = self._spawn(work)
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            if not task.cancelled():
                task.exception()
            raise cancelled
        return task.result()


_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncClient, AsyncGenerator[None, None]]] = (
    weakref.WeakKeyDictionary()
)


async def default_client() -> AsyncClient:
    """The client of the module's functions, one for each event loop. It is closed with the loop."""
    loop = asyncio.get_running_loop()
    found = _clients.get(loop)
    if found is None:
        client = AsyncClient()
        # The loop finishes generators before it closes.
        ends_with_loop = _close_with_loop(client)
        _clients[loop] = found = (client, ends_with_loop)
        await ends_with_loop.asend(None)
    return found[0]


async def _close_with_loop(client: AsyncClient) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.aclose()
