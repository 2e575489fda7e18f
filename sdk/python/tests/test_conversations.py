"""Conversations without a server: what is sent again after an error, and what is not."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import tempfile
import threading
import unittest
from collections.abc import Iterator
from typing import Any

from lastbyte import ApiError, Client, Event, Gap, LastbyteError, Unreachable, aio
from lastbyte._core import calls, launch, verbs
from lastbyte._core.exchange import Broken, ConnectFailed, Link, Pause, Send, StartServer, Steps, exchange
from lastbyte._core.http import Answer, Request
from lastbyte._core.place import UnixAddress, from_environment, usual_socket
from lastbyte.aio._connection import Slots


def link(**given: Any) -> Link:
    return Link(UnixAddress("/socket"), **given)


def ok(**content: Any) -> Answer:
    return Answer(200, {}, json.dumps(content).encode())


def drive(steps: Steps[Any], *outcomes: Answer | LastbyteError) -> tuple[list[Request | str], Any]:
    """Plays the server; returns what was sent and what came of it."""
    sent: list[Request | str] = []
    left = list(outcomes)
    try:
        effect = next(steps)
        while True:
            if isinstance(effect, Pause):
                effect = steps.send(None)
                continue
            if isinstance(effect, StartServer):
                sent.append("start the server")
                effect = steps.send(None)
                continue
            assert isinstance(effect, Send)
            sent.append(effect.request)
            outcome = left.pop(0)
            effect = steps.throw(outcome) if isinstance(outcome, LastbyteError) else steps.send(outcome)
    except StopIteration as done:
        return sent, done.value


REFUSED = ConnectFailed(ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
ABSENT = ConnectFailed(FileNotFoundError(errno.ENOENT, "no such file"))


class Repeated(unittest.TestCase):
    def test_a_write_is_repeated_at_its_offset(self) -> None:
        stdin = calls.Input("x")
        stdin.offset = 7
        steps = stdin.write(link(), memoryview(b"data"), False)
        sent, count = drive(steps, Broken("gone"), REFUSED, ok(accepted=11))
        self.assertEqual([request.query["offset"] for request in sent if isinstance(request, Request)], [7, 7, 7])
        self.assertEqual((count, stdin.offset), (4, 11))

    def test_a_repeated_start_has_the_same_key(self) -> None:
        what = launch.Launch(["true"], {"command": ["true"]}, None, None)
        sent, _ = drive(launch.start(link(), what, {}, None), Broken("gone"), ok(process={}))
        first, second = (json.loads(request.body or b"") for request in sent if isinstance(request, Request))
        self.assertEqual(first, second)
        self.assertTrue(first["key"])

    def test_a_signal_that_may_have_arrived_is_not_sent_again(self) -> None:
        with self.assertRaises(Unreachable):
            drive(exchange(link(was_there=True), verbs.signal("x", "SIGUSR1")), Broken("gone"))
        # Nothing was sent: it can be.
        sent, _ = drive(exchange(link(was_there=True), verbs.signal("x", "SIGUSR1")), REFUSED, ok())
        self.assertEqual(len(sent), 2)

    def test_a_busy_server_is_asked_again(self) -> None:
        busy = Answer(503, {}, json.dumps({"error": {"code": "too_many_answers", "message": "too many"}}).encode())
        what = launch.Launch(["true"], {"command": ["true"]}, None, None)
        for steps in (exchange(link(), verbs.show("x")), launch.start(link(), what, {}, None)):
            sent, _ = drive(steps, busy, busy, ok(process={}))
            self.assertEqual(sent, [sent[0]] * 3)
        # It may have been carried out, or the time is over.
        for request, patience, within in (
            (verbs.press("x", ["Enter"]), 10.0, None),
            (verbs.show("x"), 0.0, None),
            (verbs.show("x"), 10.0, 0.0),
        ):
            with self.assertRaisesRegex(ApiError, "too many"):
                drive(exchange(link(patience=patience), request, within), busy)

        sent, _ = drive(exchange(link(may_start=True), verbs.health()), ABSENT, ok())
        self.assertEqual(sent[1], "start the server")
        with self.assertRaises(Unreachable):
            drive(exchange(link(), verbs.health()), ABSENT)

    def test_a_server_that_comes_back_elsewhere_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as state:
            there = os.path.join(state, "elsewhere")
            shared = link(may_start=True, was_there=True, state=state)
            # Nobody listens there, or others could have written it.
            for is_there, mode in ((False, 0o600), (True, 0o622)):
                self.written(os.path.join(state, "address"), there, mode)
                if is_there:
                    self.written(there, "", 0o600)
                self.assertFalse(shared.has_moved())
            self.written(os.path.join(state, "address"), there, 0o600)
            sent, _ = drive(exchange(shared, verbs.health()), REFUSED, ok())
            self.assertEqual((str(shared.address), len(sent)), (there, 2))
            self.assertFalse(shared.has_moved())

    def written(self, path: str, text: str, mode: int) -> None:
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def test_while_one_starts_the_server_the_others_wait(self) -> None:
        shared = link(may_start=True)
        first = exchange(shared, verbs.health())
        next(first)
        self.assertIsInstance(first.throw(ABSENT), StartServer)
        second = exchange(shared, verbs.health())
        next(second)
        self.assertIsInstance(second.throw(ABSENT), Pause)
        self.assertIsInstance(first.send(None), Send)
        self.assertIsInstance(second.send(None), Send)

    def test_patience_ends(self) -> None:
        with self.assertRaises(Unreachable):
            drive(exchange(link(was_there=True, patience=0.0), verbs.health()), REFUSED)


class Places(unittest.TestCase):
    def test_the_socket_is_where_the_command_line_has_it(self) -> None:
        self.assertEqual(usual_socket({"HOME": "/home/me"}), "/home/me/.local/state/lastbyte/socket")
        self.assertEqual(usual_socket({"HOME": "/h", "XDG_STATE_HOME": "/state"}), "/state/lastbyte/socket")
        # A folder that is not there belongs to nobody.
        self.assertEqual(
            usual_socket({"HOME": "/h", "XDG_RUNTIME_DIR": "/no/where"}), "/h/.local/state/lastbyte/socket"
        )
        with self.assertRaises(LastbyteError):
            usual_socket({"HOME": "relative"})

    def test_variables_name_another_server(self) -> None:
        self.assertEqual(str(from_environment({"LASTBYTE_SOCKET": "/a/socket"}).address), "/a/socket")
        named = from_environment({"LASTBYTE_STATE": "/a"})
        self.assertEqual((str(named.address), named.may_start), ("/a/socket", True))
        both = from_environment({"LASTBYTE_SERVER": "http://127.0.0.1:8722", "LASTBYTE_SOCKET": "/a/socket"})
        self.assertEqual(str(both.address), "http://127.0.0.1:8722")


class Canned:
    """A server that answers each connection with the next text and closes it. `heard` is what it was asked."""

    def __init__(self, *answers: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self._folder.name, "socket")
        self.heard: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket)
        self._listener.listen()
        # Only to fail.
        self._listener.settimeout(10)
        self._thread = threading.Thread(target=self._serve, args=(answers,))
        self._thread.start()

    def __enter__(self) -> Canned:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listener.close()
        self._folder.cleanup()

    def _serve(self, answers: tuple[str, ...]) -> None:
        for answer in answers:
            connection, _ = self._listener.accept()
            with connection:
                self.heard.append(connection.recv(65536).decode())
                connection.sendall(f"HTTP/1.1 200 OK\r\n\r\n{answer}".encode())


class Feeds(unittest.TestCase):
    """A feed that breaks before its first event."""

    EVENT = 'id: 5-4\nevent: forgotten\ndata: {"process":"p","at_unix_ns":1,"event":{"kind":"forgotten"}}\n\n'

    def first(self, count: int, *answers: str) -> Iterator[tuple[list[Event | Gap], list[str]]]:
        """The first events, read by each of the clients."""
        with Canned(*answers) as server, Client(socket=server.socket) as client:
            feed = client.events()
            yield [next(feed) for _ in range(count)], server.heard
        with Canned(*answers) as server:

            async def main() -> list[Event | Gap]:
                async with (
                    aio.AsyncClient(socket=server.socket) as client,
                    contextlib.aclosing(client.events()) as feed,
                ):
                    return [await anext(feed) for _ in range(count)]

            yield asyncio.run(main()), server.heard

    def test_it_goes_on_where_it_began(self) -> None:
        for (found,), heard in self.first(1, "id: 5-3\n\n", self.EVENT):
            assert isinstance(found, Event)
            self.assertEqual(found.event.kind, "forgotten")
            self.assertNotIn("last-event-id", heard[0])
            self.assertIn("last-event-id: 5-3\r\n", heard[1])

    def test_if_that_is_not_known_there_is_a_gap(self) -> None:
        for found, _ in self.first(2, ":\n\n", self.EVENT):
            self.assertEqual([type(one) for one in found], [Gap, Event])


class Turns(unittest.TestCase):
    def test_a_turn_that_is_cancelled_as_it_comes_goes_to_the_next(self) -> None:
        async def take(slots: Slots) -> None:
            async with slots:
                pass

        async def main() -> None:
            slots = Slots(1)
            async with slots:
                second, third = (asyncio.ensure_future(take(slots)) for _ in range(2))
                await asyncio.sleep(0)
            # It is the second's turn, and it has not run yet.
            second.cancel()
            await asyncio.wait_for(third, 10)
            self.assertEqual(slots._free, 1)

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
