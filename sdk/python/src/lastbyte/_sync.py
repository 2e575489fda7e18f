"""The blocking shell: sockets, and a client with a method for each verb."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ._core import calls, output, place, verbs
from ._core.exchange import (
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
    is_busy,
)
from ._core.http import Answer, AnswerParser, Request
from ._core.place import UnixAddress
from ._core.sse import GAP, EventParser, Message
from .models import (
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

if TYPE_CHECKING:
    from .process import Popen

T = TypeVar("T")

_KEPT_CONNECTIONS = 16
_CONNECT_TIMEOUT = 10.0


class Connection:
    """One connection, used for one request at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._parser = AnswerParser()
        self._pid = os.getpid()
        try:
            self._socket = _connect(link)
        except OSError as error:
            raise ConnectFailed(error) from error

    def send(self, request: Request) -> None:
        try:
            self._socket.sendall(self._link.encode(request))
        except TimeoutError as error:
            raise NoAnswer("the server does not read the request") from error
        except OSError as error:
            raise Broken(str(error)) from error

    def exchange(self, request: Request, timeout: float | None) -> Answer:
        deadline = None if timeout is None else time.monotonic() + timeout
        self._limit(deadline)
        self.send(request)
        return self.answer(deadline)

    def answer(self, deadline: float | None = None) -> Answer:
        """Receives the answer to what was sent."""
        while not self._parser.done:
            self.receive(deadline)
        return self._parser.answer()

    def receive(self, deadline: float | None = None) -> AnswerParser:
        """Receives some bytes."""
        self._limit(deadline)
        try:
            self._parser.received(self._socket.recv_into(self._parser.buffer()))
        except TimeoutError as error:
            raise NoAnswer("no answer in time") from error
        except (OSError, EOFError) as error:
            raise Broken(str(error)) from error
        return self._parser

    def release(self) -> bool:
        """Ready for the next request; `False` if there can be none."""
        reusable = self._parser.reusable and self._parser.is_idle
        if reusable:
            self._parser.reset()
            # A look at a socket with a timeout would wait.
            self._socket.settimeout(None)
        return reusable

    def is_inherited(self) -> bool:
        """Whether this program was forked since: then its answers are the parent's."""
        return self._pid != os.getpid()

    def is_open(self) -> bool:
        """Whether the server has not closed it meanwhile."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _limit(self, deadline: float | None) -> None:
        if deadline is None:
            if self._socket.gettimeout() is not None:
                self._socket.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("no answer in time")
        self._socket.settimeout(left)


def _connect(link: Link) -> socket.socket:
    address = link.address
    if not isinstance(address, UnixAddress):
        found = socket.create_connection((address.name, address.port), _CONNECT_TIMEOUT)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        found.settimeout(None)
        return found
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.connect(address.path)
    except BaseException:
        found.close()
        raise
    return found


class Client:
    """A client of one server. Threads can share it.

    Without arguments it is the server that the command line would use, which is started on first
    use. `socket` is the path of another server's socket, `server` a URL like http://127.0.0.1:8722
    with its `token`. `patience` is how many seconds a server that went away is waited for.
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
        self._kept: deque[Connection] = deque()
        self._pid = os.getpid()
        self._starting = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections. Commands keep running; the client can be used again."""
        while True:
            try:
                self._kept.pop().close()
            except IndexError:
                return

    # What needs no process handle.

    def health(self) -> Health:
        """The state of the server."""
        return self._drive(calls.health(self._link))

    def processes(
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
        return self._drive(calls.processes(self._link, query, limit))

    def process(self, id: str) -> Process:
        """One process at this instant."""
        return self._drive(calls.show(self._link, id))

    def attach(self, id: str, **options: Any) -> Popen:
        """A handle of a process that is already there, by id, name or `last`."""
        from .process import Popen

        return Popen.attach(id, client=self, **options)

    def wait(
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
        return self._drive(calls.wait(self._link, id, found))

    def wait_any(self, processes: Iterable[Any], timeout: float | None = None) -> list[WaitOutcome]:
        """Waits until one has ended; returns each as it is then. Those that have ended have an `ending`."""
        return self._drive(calls.wait_many(self._link, calls.ids_of(processes), True, timeout))

    def wait_all(self, processes: Iterable[Any], timeout: float | None = None) -> list[WaitOutcome]:
        """Waits until all have ended."""
        return self._drive(calls.wait_many(self._link, calls.ids_of(processes), False, timeout))

    def stop(self, id: str, *, signal: str | None = None, grace: float | None = None) -> StopProof:
        """Stops a process with its whole tree, and returns the proof."""
        return self._drive(calls.stop(self._link, id, calls.stop_policy(signal, grace)))

    def press(self, id: str, *keys: str) -> None:
        """Types keys by name, such as `C-c`, `Enter` or `Up`."""
        self._drive(calls.press(self._link, id, keys))

    def signal(self, id: str, name: str) -> Delivered:
        """Sends a signal to its process group."""
        return self._drive(calls.signal(self._link, id, name))

    def read(
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
        return self._drive(calls.output(self._link, id, query))

    def screen(
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
        return self._drive(calls.screen(self._link, id, query))

    def search(
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
        return self._drive(calls.search(self._link, id, query))

    def follow(
        self, id: str, *, start: int | None = None, late: bool | None = None, times: bool | None = None
    ) -> Iterator[Followed]:
        """Its output as it comes: pieces, then the ending. Goes on at its cursor if a connection breaks."""
        query = {"from": start, "late": late, "times": times}
        for message in self._messages(lambda last: verbs.follow(id, calls.resumed(query, last), last)):
            yield output.followed(message)

    def events(
        self, *, session: str | None = None, chat: str | None = None, last_event_id: str | None = None
    ) -> Iterator[Event | Gap]:
        """The events of all processes, from the first `next` on. `Gap` says that some may be missing."""
        query = {"session": session, "chat": chat}
        for message in self._messages(lambda last: verbs.events(query, last), last_event_id, endless=True):
            yield output.event(message)

    def receipt(self, id: str) -> Receipt:
        """What was run, under which terms, and the hash of its output."""
        return self._drive(calls.receipt(self._link, id))

    def survivors(self, id: str) -> list[Survivor]:
        """The live processes of its tree."""
        return self._drive(calls.survivors(self._link, id))

    def forget(self, id: str, *, stop: bool = False) -> None:
        """Forgets an ended process and its output."""
        self._drive(calls.forget(self._link, id, stop))

    # The shell: does what the conversations ask for.

    def _drive(self, steps: Steps[T]) -> T:
        try:
            effect = next(steps)
            while True:
                try:
                    came = self._do(effect)
                except (ConnectFailed, Broken, NoAnswer) as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(came)
        except StopIteration as done:
            value: T = done.value
            return value

    def _do(self, effect: Send | Pause | StartServer) -> Answer | None:
        if isinstance(effect, Send):
            return self._send(effect)
        if isinstance(effect, Pause):
            time.sleep(effect.seconds)
        else:
            self._start_server()
        return None

    def _send(self, send: Send) -> Answer:
        connection = self._connection()
        try:
            answer = connection.exchange(send.request, send.timeout)
        except BaseException as error:
            connection.close()
            if isinstance(error, Broken):
                self._link.breaks += 1
            raise
        self._keep(connection)
        return answer

    def _send_ahead(self, request: Request) -> Connection | None:
        """Sends a request whose answer is wanted later; `None` if that failed, and it has to be sent then."""
        try:
            connection = self._connection()
        except ConnectFailed:
            return None
        try:
            connection.send(request)
        except Broken:
            connection.close()
            return None
        return connection

    def _receive(self, connection: Connection) -> Answer | None:
        """The answer to it; `None` if it has to be sent again: the connection broke or is the parent's, or the server
        is busy."""
        if connection.is_inherited():
            connection.close()
            return None
        try:
            answer = connection.answer()
        except BaseException as error:
            connection.close()
            if not isinstance(error, Broken):
                raise
            self._link.breaks += 1
            return None
        self._keep(connection)
        return None if is_busy(answer) else checked(answer)

    def _connection(self) -> Connection:
        if self._pid != os.getpid():
            self._forked()
        while True:
            try:
                kept = self._kept.pop()
            except IndexError:
                return Connection(self._link)
            if kept.is_open():
                return kept
            self._link.breaks += 1
            kept.close()

    def _forked(self) -> None:
        """The connections are the parent's, and a thread of it that starts the server is not here."""
        self._pid = os.getpid()
        self._starting, self._link.starting = threading.Lock(), False
        self.close()

    def _keep(self, connection: Connection) -> None:
        if connection.release() and len(self._kept) < _KEPT_CONNECTIONS:
            self._kept.append(connection)
        else:
            connection.close()

    def _start_server(self) -> None:
        with self._starting:
            for command in place.start_commands():
                try:
                    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                except OSError as error:
                    raise place.not_started(command, str(error)) from error
                self._link.has_moved()
                try:
                    Connection(self._link).close()
                except ConnectFailed:
                    continue
                return
            raise place.not_started(command, ran.stderr.decode(errors="replace"))

    def _messages(
        self, ask: Callable[[str | None], Request], last: str | None = None, endless: bool = False
    ) -> Iterator[Message]:
        """The events of a stream. If the connection breaks, it goes on after the last one."""
        outage = Outage(self._link)
        while True:
            events = EventParser()
            try:
                for message in self._stream(ask(last), events):
                    outage.over()
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
                self._drive(after_failure(self._link, outage, error))

    def _stream(self, request: Request, events: EventParser) -> Iterator[Message]:
        connection = Connection(self._link)
        try:
            connection.send(request)
            while True:
                parser = connection.receive()
                if parser.head is None:
                    continue
                if parser.head[0] != 200:
                    if parser.done:
                        checked(parser.answer())
                        return
                    continue
                self._link.was_there = True
                yield from events.feed(parser.take())
                if parser.done:
                    return
        finally:
            connection.close()


_default: Client | None = None
_default_lock = threading.Lock()


def default_client() -> Client:
    """The client of the module's functions."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Client()
            atexit.register(_default.close)
        return _default
