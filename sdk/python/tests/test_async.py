"""The asyncio surface against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import socket
import subprocess
import tempfile
import types
import unittest
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import lastbyte
from lastbyte import aio
from lastbyte._core import calls
from lastbyte._core.exchange import Link
from lastbyte.aio import DEVNULL, PIPE

from .daemon import PATIENCE, Daemon, is_alive, until

daemon: Daemon


def setUpModule() -> None:
    global daemon
    daemon = Daemon("--listen", "127.0.0.1:0")


def tearDownModule() -> None:
    daemon.end()


Case = TypeVar("Case", bound="AsyncCase")
T = TypeVar("T")


def with_client(test: Callable[[Case, aio.AsyncClient], Coroutine[Any, Any, None]]) -> Callable[[Case], None]:
    """Runs it in a loop of its own; nothing may be left of it."""

    def run(case: Case) -> None:
        async def main() -> None:
            async with aio.AsyncClient(socket=daemon.socket) as client:
                await asyncio.wait_for(test(case, client), PATIENCE)
            await case.assert_no_tasks()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            asyncio.run(main())
            gc.collect()

    run.__doc__ = test.__doc__
    return run


class AsyncCase(unittest.TestCase):
    async def assert_no_tasks(self) -> None:
        own = asyncio.current_task()
        for _ in range(10):
            left = {task for task in asyncio.all_tasks() if task is not own}
            if not left:
                return
            await asyncio.wait(left, timeout=PATIENCE / 10)
        self.fail(f"tasks are left: {left}")


async def running(client: aio.AsyncClient, session: str) -> list[str]:
    return [one.id for one in await client.processes(session=session, phase="running")]


class Processes(AsyncCase):
    @with_client
    async def test_a_result_has_what_subprocess_has(self, client: aio.AsyncClient) -> None:
        done = await aio.run(["cat"], input="ä", capture_output=True, text=True, client=client)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ä", ""))
        with self.assertRaises(subprocess.CalledProcessError):
            await aio.run("exit 3", shell=True, check=True, client=client)
        with self.assertRaises(FileNotFoundError):
            await aio.run(["no-such-program-at-all"], client=client)

    @with_client
    async def test_a_conversation_over_pipes(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, client=client)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"one\n")
        self.assertEqual(await process.stdout.readline(), b"one\n")
        process.stdin.write(b"two\nthree")
        await process.stdin.drain()
        process.stdin.close()
        self.assertEqual([line async for line in process.stdout], [b"two\n", b"three"])
        self.assertEqual(await process.wait(), 0)

    @with_client
    async def test_megabytes_of_binary_input_come_back(self, client: aio.AsyncClient) -> None:
        data = os.urandom(6 << 20)
        done = await aio.run(["cat"], input=data, stdout=PIPE, client=client)
        self.assertTrue(done.stdout == data)

    @with_client
    async def test_a_request_copies_no_more_input_than_it_carries(self, client: aio.AsyncClient) -> None:
        """Else a large write takes time that grows with the square of its length."""
        process = await aio.create_subprocess_exec("cat", stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, client=client)
        assert process.stdin is not None
        sizes: list[int] = []
        write = calls.Input.write

        def noted(stdin: calls.Input, link: Link, data: memoryview, *more: Any) -> Any:
            sizes.append(len(data))
            return write(stdin, link, data, *more)

        with mock.patch.object(calls.Input, "write", noted):
            process.stdin.write(bytes(64 << 20))
            process.stdin.close()
            await process.stdin.wait_closed()
        self.assertEqual(await process.wait(), 0)
        self.assertLessEqual(max(sizes), calls.WRITE_BYTES)

    @with_client
    async def test_a_timeout_stops_the_tree_and_keeps_the_output(self, client: aio.AsyncClient) -> None:
        with self.assertRaises(subprocess.TimeoutExpired) as caught:
            await aio.run("echo $$; sleep 1000", shell=True, stdout=PIPE, timeout=0.5, client=client)
        assert caught.exception.stdout is not None
        pid = int(caught.exception.stdout)
        until(lambda: not is_alive(pid), "the end of the shell")

    @with_client
    async def test_signals_can_be_sent_with_and_without_await(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("sleep", "1000", client=client)
        process.kill()
        self.assertEqual(await process.wait(), -9)
        await process.kill()
        other = await aio.create_subprocess_exec("sleep", "1000", client=client)
        await other.terminate()
        self.assertEqual(await other.wait(), -15)

    @with_client
    async def test_attach_search_and_follow(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_shell(
            "echo one; echo two; read x", stdin=PIPE, stdout=PIPE, client=client
        )
        again = await client.attach(process.id)
        assert again.stdout is not None and process.stdin is not None
        self.assertEqual(await again.stdout.readline(), b"one\n")
        await process.wait_for(pattern="two")
        self.assertEqual([match.line.text for match in (await process.search("t.o")).matches], ["two"])
        process.stdin.close()
        *pieces, ending = [one async for one in process.follow(start=4)]
        self.assertEqual([piece.data for piece in pieces if isinstance(piece, lastbyte.Piece)], [b"two\n"])
        assert isinstance(ending, lastbyte.Ending)
        self.assertEqual((ending.final_len, await again.wait()), (8, 1))

    @with_client
    async def test_a_background_child_that_holds_the_pipe_delays_nothing(self, client: aio.AsyncClient) -> None:
        done = await aio.run("sleep 1000 & echo $!", shell=True, stdout=PIPE, client=client)
        assert done.ending is not None and done.ending.closing is not None
        self.assertEqual(done.ending.closing.kind, "held")
        proof = await client.stop(done.id, grace=0)
        self.assertIn(int(done.stdout), proof.gone)
        self.assertEqual(proof.left, [])

    @with_client
    async def test_a_slow_reader_gets_every_byte(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("seq", "50000", stdout=PIPE, client=client)
        assert process.stdout is not None
        parts = []
        while part := await process.stdout.read(997):
            parts.append(part)
            await asyncio.sleep(0)
        self.assertEqual(b"".join(parts), "".join(f"{number}\n" for number in range(1, 50001)).encode())

    @with_client
    async def test_two_tasks_cannot_read_the_same_output(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, client=client)
        assert process.stdin is not None and process.stdout is not None
        first = asyncio.create_task(process.stdout.readline())
        await asyncio.sleep(0)
        with self.assertRaisesRegex(RuntimeError, "another coroutine"):
            await process.stdout.readline()
        process.stdin.write(b"one\n")
        self.assertEqual(await first, b"one\n")
        self.assertEqual(await process.communicate(b"two\n"), (b"two\n", None))

    @with_client
    async def test_a_reader_of_this_program_s_output_that_goes_away_ends_the_writer(
        self, client: aio.AsyncClient
    ) -> None:
        for stderr in (DEVNULL, None):
            reader, writer = os.pipe()
            process = await aio.create_subprocess_exec("yes", stdout=writer, stderr=stderr, client=client)
            os.close(writer)
            os.close(reader)
            self.assertEqual(await process.wait(), -13)

    def test_the_module_s_functions_leave_nothing_open(self) -> None:
        async def main() -> None:
            done = await aio.run(["echo", "x"], stdout=PIPE)
            self.assertEqual(done.stdout, b"x\n")
            self.assertEqual((await aio.processes(limit=1))[0].id, done.id)

        os.environ["LASTBYTE_SOCKET"] = str(daemon.socket)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                asyncio.run(main())
                gc.collect()
        finally:
            del os.environ["LASTBYTE_SOCKET"]


class Many(AsyncCase):
    @with_client
    async def test_a_thousand_processes_of_one_program(self, client: aio.AsyncClient) -> None:
        """As many at the same time as the server has descriptors for: each needs some."""
        together = 1000 if resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 8192 else 100
        for _ in range(0, 1000, together):
            await self.at_the_same_time(client, together)

    async def at_the_same_time(self, client: aio.AsyncClient, count: int) -> None:
        """Each waits for input that comes when all have started."""
        before = len(os.listdir("/proc/self/fd"))
        starts = (
            aio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, session="many", client=client)
            for _ in range(count)
        )
        processes = await asyncio.gather(*starts)
        waits = [asyncio.ensure_future(process.wait()) for process in processes]
        self.assertEqual(len(await running(client, "many")), count)
        most = len(os.listdir("/proc/self/fd")) - before
        self.assertLess(most, 200, "connections of one program")

        async def one(number: int, process: aio.AsyncProcess) -> bytes | None:
            return (await process.communicate(b"%d" % number))[0]

        out = await asyncio.gather(*(one(number, process) for number, process in enumerate(processes)))
        self.assertEqual(out, [b"%d" % number for number in range(count)])
        self.assertEqual(set(await asyncio.gather(*waits)), {0})

    @with_client
    async def test_runs_at_the_same_time_share_few_connections(self, client: aio.AsyncClient) -> None:
        """None is kept when they begin, and each would like to wait for its ending."""
        await client.health()
        client._close_connections()
        most, count = 0, 300

        async def one(number: int) -> int:
            nonlocal most
            done = await aio.run(["sh", "-c", f"exit {number % 100}"], capture_output=True, client=client)
            most = max(most, connections())
            return done.returncode

        codes = await asyncio.gather(*(one(number) for number in range(count)))
        self.assertEqual(codes, [number % 100 for number in range(count)])
        self.assertLess(most, 140)

    @with_client
    async def test_a_run_is_one_request(self, client: aio.AsyncClient) -> None:
        await aio.run(["true"], client=client)
        asked: list[str] = []
        send = client._send

        async def counted(request: Any) -> Any:
            asked.append(f"{request.method} {request.path}")
            return await send(request)

        with mock.patch.object(client, "_send", counted):
            await aio.run(["true"], capture_output=True, client=client)
            self.assertEqual(asked, ["POST /v1/processes"])

    @with_client
    async def test_closing_the_client_waits_for_no_command(self, client: aio.AsyncClient) -> None:
        run = asyncio.ensure_future(aio.run(["sleep", "1000"], session="closed", client=client))
        while not await running(client, "closed"):  # noqa: ASYNC110 (the server is asked, not this loop)
            await asyncio.sleep(0.001)
        await asyncio.wait_for(client.aclose(), PATIENCE / 2)
        run.cancel()
        await asyncio.wait({run})
        self.assertEqual(await running(client, "closed"), [])

    @with_client
    async def test_a_hundred_readers_at_a_time(self, client: aio.AsyncClient) -> None:
        """More than may wait at once: the others ask again and again, and none waits for another's turn."""
        count = 100

        async def one(number: int) -> bytes:
            process = await aio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, client=client)
            assert process.stdin is not None and process.stdout is not None
            ready.append(number)
            line = asyncio.ensure_future(process.stdout.readline())
            if len(ready) == count:
                all_ready.set()
            await all_ready.wait()
            process.stdin.write(b"%d\n" % number)
            found = await line
            process.stdin.close()
            await process.wait()
            return found

        ready: list[int] = []
        all_ready = asyncio.Event()
        lines = await asyncio.gather(*(one(number) for number in range(count)))
        self.assertEqual(lines, [b"%d\n" % number for number in range(count)])


class Feed(AsyncCase):
    """Waits for which the feed of events is used."""

    @with_client
    async def test_closing_the_client_ends_them(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("sleep", "1000", stdout=DEVNULL, stderr=DEVNULL, client=client)
        client._can_wait = lambda: False  # type: ignore[method-assign]
        wait = asyncio.ensure_future(process.wait())
        await steps(1)
        await client._endings._begun.wait()
        await client.aclose()
        with self.assertRaises(lastbyte.Unreachable):
            await asyncio.wait_for(wait, PATIENCE)
        self.assertEqual((await process.stop(grace=0)).left, [])

    @with_client
    async def test_an_event_that_cannot_be_read_ends_them(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("sleep", "1000", stdout=DEVNULL, stderr=DEVNULL, client=client)
        client._can_wait = lambda: False  # type: ignore[method-assign]
        # It has not ended when it is asked for, and what tells that it has is not understood.
        with (
            mock.patch.object(client, "_ending_now", mock.AsyncMock(return_value=None)),
            mock.patch.object(client._endings, "_tell", side_effect=KeyError("event")),
        ):
            wait = asyncio.ensure_future(process.wait())
            await steps(1)
            await client._endings._begun.wait()
            await process.stop(grace=0)
            with self.assertRaises(lastbyte.ProtocolError):
                await asyncio.wait_for(wait, PATIENCE)
        self.assertEqual(await process.wait(), -9)


class AtSuspension:
    """Does something when the coroutines that it awaits wait for the n-th time."""

    def __init__(self, number: int, act: Callable[[], object]) -> None:
        self._number, self._act = number, act
        self.count = 0

    async def of(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._steps(work)

    @types.coroutine
    def _steps(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        error: BaseException | None = None
        while True:
            try:
                waited = work.send(None) if error is None else work.throw(error)
            except StopIteration as done:
                value: T = done.value
                return value
            self.count += 1
            if self.count == self._number:
                self._act()
            try:
                error = None
                yield waited
            except BaseException as raised:
                error = raised


class KilledAtEveryAwait(AsyncCase):
    """The worker is killed when an operation waits for the first time, for the second, and so on."""

    def setUp(self) -> None:
        # A server for each test: a keeper that sees many crashes waits between two starts, as long as a client waits.
        global daemon
        self._others, daemon = daemon, Daemon()

    def tearDown(self) -> None:
        global daemon
        daemon.end()
        daemon = self._others

    async def at_every_await(self, begin: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        for number in range(1, 5):
            suspension = AtSuspension(number, daemon.kill_worker)
            await suspension.of(begin(number))
            if suspension.count < number:
                self.assertGreater(number, 1, "it never waited")
                return

    @with_client
    async def test_a_start_happens_once(self, client: aio.AsyncClient) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            file, started = Path(folder) / "lines", []

            async def begin(number: int) -> None:
                started.append(str(number))
                process = await aio.create_subprocess_shell(f"echo {number} >> {file}", client=client)
                self.assertEqual(await process.wait(), 0)

            await self.at_every_await(begin)
            self.assertEqual(file.read_text().split(), started)

    @with_client
    async def test_a_read_has_every_byte(self, client: aio.AsyncClient) -> None:
        want = "".join(f"{number}\n" for number in range(1, 100001)).encode()

        async def begin(_: int) -> None:
            process = await aio.create_subprocess_exec("seq", "100000", stdout=PIPE, client=client)
            assert process.stdout is not None
            self.assertTrue(await process.stdout.read() == want)
            self.assertEqual(await process.wait(), 0)

        await self.at_every_await(begin)

    @with_client
    async def test_a_write_is_written_once(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, client=client)
        data = os.urandom(3 << 20)
        written = 0

        async def begin(_: int) -> None:
            nonlocal written
            assert process.stdin is not None
            process.stdin.write(data)
            await process.stdin.drain()
            written += 1

        await self.at_every_await(begin)
        out, _ = await process.communicate()
        self.assertTrue(out == data * written, f"{len(out or b'')} bytes of {len(data)} times {written}")

    @with_client
    async def test_a_wait_has_the_exit_code(self, client: aio.AsyncClient) -> None:
        async def begin(number: int) -> None:
            process = await aio.create_subprocess_shell(f"read go; exit {number}", stdin=PIPE, client=client)
            assert process.stdin is not None
            process.stdin.close()
            self.assertEqual(await process.wait(), number)

        await self.at_every_await(begin)


class Crashes(AsyncCase):
    @with_client
    async def test_a_worker_that_is_killed_during_a_stream_loses_no_byte(self, client: aio.AsyncClient) -> None:
        script = "seq 50000; read go; seq 50001 100000"
        process = await aio.create_subprocess_shell(script, stdin=PIPE, stdout=PIPE, client=client)
        assert process.stdin is not None and process.stdout is not None
        got = await process.stdout.read(1000)
        daemon.kill_worker()
        process.stdin.write(b"go\n")
        process.stdin.close()
        got += await process.stdout.read()
        self.assertTrue(got == "".join(f"{number}\n" for number in range(1, 100001)).encode())
        self.assertEqual(await process.wait(), 0)

    @with_client
    async def test_a_worker_that_is_killed_during_waits_changes_nothing(self, client: aio.AsyncClient) -> None:
        """More than 64, so that some are waited for by the feed of events."""
        processes = await asyncio.gather(
            *(
                aio.create_subprocess_shell(f"read go; exit {number}", stdin=PIPE, client=client)
                for number in range(100)
            )
        )
        waits = [asyncio.ensure_future(process.wait()) for process in processes]
        follower = asyncio.ensure_future(collect(client.follow(processes[0].id)))
        await asyncio.sleep(0)
        daemon.kill_worker()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.close()
        self.assertEqual(await asyncio.gather(*waits), list(range(100)))
        self.assertIsInstance((await follower)[-1], lastbyte.Ending)

    def test_a_worker_that_is_killed_during_a_run_runs_nothing_twice(self) -> None:
        """The start waits for the ending in the same request."""

        async def main() -> None:
            command = f"echo once >> {file}; until [ $(wc -l < {file}) = 2 ]; do sleep 0.01; done; exit 5"
            async with aio.AsyncClient(socket=own.socket) as client:
                run = asyncio.ensure_future(aio.run(command, shell=True, client=client))
                while not file.exists() or not file.read_text():  # noqa: ASYNC110 (the command is asked)
                    await asyncio.sleep(0.001)
                own.kill_worker()
                file.write_text(file.read_text() + "go\n")
                self.assertEqual((await asyncio.wait_for(run, PATIENCE)).returncode, 5)

        # Its own server, because a keeper that sees too many crashes waits between two starts.
        own = Daemon()
        self.addCleanup(own.end)
        file = own.folder / "lines"
        asyncio.run(main())
        self.assertEqual(file.read_text(), "once\ngo\n")


async def collect(found: Any) -> list[Any]:
    return [one async for one in found]


def connections() -> int:
    """How many sockets to the server this program has open."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        # The folder itself is gone when it is looked at.
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    found += one.family == socket.AF_UNIX and _peer(one) == str(daemon.socket)
    return found


def _peer(one: socket.socket) -> object:
    try:
        return one.getpeername()
    except OSError:
        return None


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Cancelled(AsyncCase):
    """Each operation is cancelled when it waits for the n-th time, and after n steps of the loop, for growing n, until
    it is done before."""

    async def at_every_await(
        self, begin: Callable[[], Coroutine[Any, Any, Any]], check: Callable[[bool], Awaitable[None]], most: int = 400
    ) -> None:
        await self.when_it_waits(begin, check, most)
        await self.after_steps(begin, check, most)

    async def when_it_waits(
        self, begin: Callable[[], Coroutine[Any, Any, Any]], check: Callable[[bool], Awaitable[None]], most: int
    ) -> None:
        def cancel() -> None:
            task.cancel()

        for number in range(1, most):
            suspension = AtSuspension(number, cancel)
            task = asyncio.ensure_future(suspension.of(begin()))
            await asyncio.wait({task}, timeout=PATIENCE)
            self.assertTrue(task.done(), f"stuck after it was cancelled at wait {number}")
            was_cancelled = task.cancelled()
            if not was_cancelled:
                task.result()
            await check(was_cancelled)
            if suspension.count < number:
                return

    async def after_steps(
        self, begin: Callable[[], Awaitable[Any]], check: Callable[[bool], Awaitable[None]], most: int
    ) -> None:
        count = 0
        for _ in range(most):
            task = asyncio.ensure_future(begin())
            await steps(count)
            done = task.done()
            if not done:
                task.cancel()
            await asyncio.wait({task}, timeout=PATIENCE)
            self.assertTrue(task.done(), f"stuck after it was cancelled at step {count}")
            was_cancelled = task.cancelled()
            if not was_cancelled:
                task.result()
            await check(was_cancelled)
            if done:
                return
            # All the first steps, then fewer: later ones are spent waiting for the server.
            count += 1 if count < 60 else count // 4

    async def assert_usable(self, client: aio.AsyncClient) -> None:
        """Each connection that is kept answers what it is asked, and no turn is lost."""
        # What a cancelled call leaves to be done in the background, such as a write.
        while begun := client._tasks - client._copiers:
            await asyncio.wait(begun)
        asked = (
            client.health() if number % 2 else client.processes(limit=1) for number in range(len(client._kept) + 1)
        )
        for number, answer in enumerate(await asyncio.gather(*asked)):
            self.assertIsInstance(answer, lastbyte.models.Health if number % 2 else list)
        self.assertEqual(client._slots._free, 64)

    @with_client
    async def test_a_cancelled_request_leaves_no_connection_with_another_s_answer(
        self, client: aio.AsyncClient
    ) -> None:
        async def check(_: bool) -> None:
            await self.assert_usable(client)

        await self.at_every_await(client.health, check)

    @with_client
    async def test_a_cancelled_start_leaves_nothing_running(self, client: aio.AsyncClient) -> None:
        async def begin() -> None:
            process = await aio.create_subprocess_exec("sleep", "1000", session="starts", stdout=PIPE, client=client)
            await client._finish(process.stop(grace=0))

        async def check(_: bool) -> None:
            await self.assert_usable(client)
            self.assertEqual(await running(client, "starts"), [])

        await self.at_every_await(begin, check)

    @with_client
    async def test_a_cancelled_run_leaves_nothing_running(self, client: aio.AsyncClient) -> None:
        async def begin() -> None:
            await aio.run("echo x; sleep 0.02", shell=True, capture_output=True, session="runs", client=client)

        async def check(_: bool) -> None:
            await self.assert_usable(client)
            self.assertEqual(await running(client, "runs"), [])

        await self.at_every_await(begin, check)

    @with_client
    async def test_a_cancelled_run_does_not_wait_for_the_command(self, client: aio.AsyncClient) -> None:
        given: list[dict[str, Any]] = [{}, {"capture_output": True}, {"key": "of-its-own"}, {"input": bytes(2 << 20)}]
        for options in given:
            run = asyncio.ensure_future(aio.run(["sleep", "1000"], session="long", client=client, **options))
            while not await running(client, "long"):  # noqa: ASYNC110 (the server is asked, not this loop)
                await asyncio.sleep(0.001)
            run.cancel()
            await asyncio.wait({run}, timeout=PATIENCE)
            self.assertTrue(run.cancelled(), options)
            self.assertEqual(await running(client, "long"), [])

    @with_client
    async def test_cancelled_reads_lose_nothing(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("seq", "20000", stdout=PIPE, client=client)
        assert process.stdout is not None
        got = bytearray()

        async def begin() -> None:
            assert process.stdout is not None
            got.extend(await process.stdout.readline())

        async def check(_: bool) -> None:
            await self.assert_usable(client)

        await self.at_every_await(begin, check)
        got += await process.stdout.read()
        self.assertEqual(bytes(got), "".join(f"{number}\n" for number in range(1, 20001)).encode())

    @with_client
    async def test_cancelled_writes_are_written_once(self, client: aio.AsyncClient) -> None:
        process = await aio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, client=client)
        number = 0

        async def begin() -> None:
            nonlocal number
            assert process.stdin is not None
            process.stdin.write(b"%d\n" % number)
            number += 1
            await process.stdin.drain()

        async def check(_: bool) -> None:
            await self.assert_usable(client)

        await self.at_every_await(begin, check)
        out, _ = await process.communicate()
        self.assertEqual(out, b"".join(b"%d\n" % one for one in range(number)))

    @with_client
    async def test_cancelled_waits_can_be_done_again(self, client: aio.AsyncClient) -> None:
        async def started() -> aio.AsyncProcess:
            return await aio.create_subprocess_shell(
                "sleep 0.02; exit 7", stdout=DEVNULL, stderr=DEVNULL, client=client
            )

        process = await started()
        were_cancelled = 0

        async def begin() -> None:
            self.assertEqual(await process.wait(), 7)

        async def check(was_cancelled: bool) -> None:
            nonlocal process, were_cancelled
            were_cancelled += was_cancelled
            self.assertEqual(await asyncio.wait_for(process.wait(), PATIENCE), 7)
            # An unfinished task gives its place back when it has run once more.
            await steps(3)
            self.assertEqual((client._endings._waiting, client._waiting), ({}, 0))
            process = await started()

        for limit in (64, 0):
            # With no request left that may wait, the feed of events is used.
            client._can_wait = lambda limit=limit: client._waiting < limit  # type: ignore[method-assign, misc]
            were_cancelled = 0
            await self.at_every_await(begin, check)
            self.assertGreater(were_cancelled, 5)

    @with_client
    async def test_cancelled_followers_leave_no_connection(self, client: aio.AsyncClient) -> None:
        async def started() -> aio.AsyncProcess:
            return await aio.create_subprocess_shell("echo x; sleep 0.02", stdout=PIPE, stderr=DEVNULL, client=client)

        process = await started()
        were_cancelled = 0

        async def begin() -> None:
            *_, ending = await collect(client.follow(process.id))
            self.assertIsInstance(ending, lastbyte.Ending)

        async def check(was_cancelled: bool) -> None:
            nonlocal process, were_cancelled
            were_cancelled += was_cancelled
            await steps(3)
            # The connections that are kept for other requests are the only ones.
            self.assertEqual(client._waiting, 0)
            self.assertEqual(connections(), len(client._kept))
            # A new one, so that there is something to wait for.
            await process.wait()
            process = await started()

        await self.at_every_await(begin, check)
        self.assertGreater(were_cancelled, 5)

    @with_client
    async def test_requests_in_turn_survive_cancelled_ones(self, client: aio.AsyncClient) -> None:
        """Of 200 requests for 64 slots every third is cancelled; the others are answered."""
        tasks = [asyncio.ensure_future(client.health()) for _ in range(200)]
        await steps(3)
        for task in tasks[::3]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        self.assertEqual(sum(isinstance(one, lastbyte.models.Health) for one in answers), 200 - len(tasks[::3]))
        self.assertEqual(client._slots._free, 64)


if __name__ == "__main__":
    unittest.main()
