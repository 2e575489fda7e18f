"""Conversations without a server: what is sent again after an error, and what is not."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
import unittest
from typing import Any

from lastbyte import LastbyteError, Unreachable
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

    def test_a_server_that_never_was_there_is_started_once(self) -> None:
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
