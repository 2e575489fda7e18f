"""The blocking surface against a real server."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import lastbyte
from lastbyte import DEVNULL, PIPE, STDOUT, aio
from lastbyte._sync import Connection

from .daemon import PATIENCE, Daemon, is_alive, until

daemon: Daemon
client: lastbyte.Client


def setUpModule() -> None:
    global daemon, client
    daemon = Daemon("--listen", "127.0.0.1:0")
    client = daemon.client()


def tearDownModule() -> None:
    client.close()
    daemon.end()


def run(*args: Any, **kwargs: Any) -> lastbyte.CompletedProcess:
    return lastbyte.run(*args, client=client, **kwargs)


def popen(*args: Any, **kwargs: Any) -> lastbyte.Popen:
    return lastbyte.Popen(*args, client=client, **kwargs)


class Run(unittest.TestCase):
    def test_a_result_has_what_subprocess_has_and_an_ending(self) -> None:
        done = run("echo out; echo err >&2; exit 3", shell=True, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "out\n", "err\n"))
        assert done.ending is not None and done.ending.cause is not None
        self.assertEqual((done.ending.status.code, done.ending.cause.kind), (3, "own"))
        self.assertIsInstance(done, subprocess.CompletedProcess)

    def test_a_signal_is_a_negative_code(self) -> None:
        self.assertEqual(run("kill -9 $$", shell=True).returncode, -9)

    def test_merged_output_is_in_its_order(self) -> None:
        done = run("echo 1; echo 2 >&2; echo 3", shell=True, stdout=PIPE, stderr=STDOUT)
        self.assertEqual((done.stdout, done.stderr), (b"1\n2\n3\n", None))

    def test_binary_data_comes_back_as_it_was(self) -> None:
        data = bytes(range(256)) * 300
        self.assertEqual(run(["cat"], input=data, capture_output=True).stdout, data)

    def test_input_of_several_megabytes_comes_back(self) -> None:
        data = os.urandom(5 << 20) + b"end"
        self.assertEqual(run(["cat"], input=data, stdout=PIPE).stdout, data)

    def test_more_input_than_the_server_queues_waits_for_the_command(self) -> None:
        # It reads nothing until the second half was refused for the first time.
        script = "read first; head -c 20000000 | wc -c"
        process = popen(script, shell=True, stdin=PIPE, stdout=PIPE)
        data = b"go\n" + bytes(20_000_000)
        out, _ = process.communicate(data)
        self.assertEqual(int(out), 20_000_000)

    def test_a_request_copies_no_more_input_than_it_carries(self) -> None:
        """Else a large write takes time that grows with the square of its length."""
        data = memoryview(bytes(64 << 20))
        with popen(["cat"], stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, bufsize=0) as process:
            assert process.stdin is not None
            tracemalloc.start()
            written = process.stdin.write(data)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        self.assertGreater(written, 0)
        self.assertLess(most, 16 << 20)

    def test_input_that_nobody_reads_is_no_error(self) -> None:
        self.assertEqual(run(["true"], input=bytes(3 << 20)).returncode, 0)

    def test_a_checked_failure_is_subprocess_s_error(self) -> None:
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            run("echo why; exit 7", shell=True, stdout=PIPE, check=True)
        error = caught.exception
        assert isinstance(error, lastbyte.CalledProcessError) and error.ending is not None
        self.assertEqual((error.returncode, error.stdout, error.ending.status.code), (7, b"why\n", 7))

    def test_a_timeout_stops_the_whole_tree_and_keeps_the_output(self) -> None:
        with self.assertRaises(subprocess.TimeoutExpired) as caught:
            run("setsid sleep 1000 & echo $!; wait", shell=True, stdout=PIPE, timeout=1)
        assert caught.exception.stdout is not None
        child = int(caught.exception.stdout)
        until(lambda: not is_alive(child), "the end of the child")

    def test_a_background_child_that_holds_the_pipe_delays_nothing(self) -> None:
        done = run("sleep 1000 & echo $!", shell=True, stdout=PIPE, timeout=PATIENCE)
        assert done.ending is not None and done.ending.closing is not None
        self.assertEqual(done.ending.closing.kind, "held")
        proof = client.stop(done.id, grace=0)
        self.assertIn(int(done.stdout), proof.gone)
        self.assertEqual(proof.left, [])

    def test_errors_of_a_start_are_those_of_subprocess(self) -> None:
        with self.assertRaises(FileNotFoundError) as missing:
            run(["no-such-program-at-all"])
        self.assertEqual(missing.exception.filename, "no-such-program-at-all")
        with self.assertRaises(FileNotFoundError) as directory:
            run(["true"], cwd="/no/such/directory")
        self.assertEqual(directory.exception.filename, "/no/such/directory")
        with tempfile.NamedTemporaryFile() as file, self.assertRaises(PermissionError) as caught:
            os.chmod(file.name, 0o644)
            run([file.name])
        assert isinstance(caught.exception, lastbyte.ApiError)
        self.assertEqual(caught.exception.code, "program_not_runnable")

    def test_mistakes_are_told_as_by_subprocess_and_leave_nothing_running(self) -> None:
        mistakes: list[tuple[Any, dict[str, Any], type[BaseException]]] = [
            ("", {}, OSError),
            (["sleep", "1000"], {"cwd": ""}, FileNotFoundError),
            (["cat"], {"input": b"bytes", "text": True}, AttributeError),
            (["cat"], {"input": "text"}, TypeError),
            (["sleep", "1000"], {"stdout": PIPE, "encoding": "nonsense"}, LookupError),
            (["sleep", "1000"], {"stdout": PIPE, "encoding": "hex"}, LookupError),
        ]
        for args, options, kind in mistakes:
            with self.subTest(args=args, options=options):
                with self.assertRaises((kind, TypeError)):
                    subprocess.run(args, **options)
                with self.assertRaises(kind):
                    run(args, **options)
                if "input" not in options:
                    with self.assertRaises(kind):
                        popen(args, session="mistakes", **options)
        with self.assertRaises(MemoryError):
            popen(["sleep", "1000"], stdout=PIPE, bufsize=1 << 62, session="mistakes")
        self.assertEqual(client.processes(session="mistakes", phase="running"), [])

    def test_an_empty_shell_command_does_nothing(self) -> None:
        for command in ("", " \n"):
            self.assertEqual(run(command, shell=True).returncode, 0)

    def test_a_timeout_can_be_infinite(self) -> None:
        for timeout in (float("inf"), 1e12):
            self.assertEqual(run(["true"], timeout=timeout).returncode, 0)
            process = popen("echo x", shell=True, stdin=PIPE, stdout=PIPE)
            self.assertEqual(process.communicate(b"y", timeout=timeout)[0], b"x\n")
            self.assertEqual(popen(["true"]).wait(timeout), 0)

    def test_the_command_sees_the_caller_s_environment_and_directory(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            code = "import lastbyte, sys; lastbyte.run('echo $MINE; pwd; env', shell=True)"
            env = {**os.environ, **daemon.environment, "MINE": "a b", "HOME": "/elsewhere"}
            env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
            shown = subprocess.run([sys.executable, "-c", code], env=env, cwd=folder, capture_output=True, text=True)
            lines = shown.stdout.splitlines()
            self.assertEqual(lines[:2], ["a b", os.path.realpath(folder)], shown.stderr)
            self.assertIn("HOME=/elsewhere", lines)

    def test_a_variable_that_changes_between_two_commands_is_seen_by_the_second(self) -> None:
        def seen() -> bytes:
            found: bytes = run("echo ${LASTBYTE_TEST_CHANGES-none}", shell=True, stdout=PIPE).stdout
            return found.strip()

        self.assertEqual(seen(), b"none")
        try:
            os.environ["LASTBYTE_TEST_CHANGES"] = "one"
            self.assertEqual(seen(), b"one")
            os.environ["LASTBYTE_TEST_CHANGES"] = "two"
            self.assertEqual(seen(), b"two")
        finally:
            os.environ.pop("LASTBYTE_TEST_CHANGES", None)
        self.assertEqual(seen(), b"none")

    def test_a_given_environment_is_the_whole_one(self) -> None:
        done = run(["/usr/bin/env"], env={"ONLY": "this"}, stdout=PIPE, text=True)
        names = {line.partition("=")[0] for line in done.stdout.splitlines()}
        # The server marks every command with its id.
        self.assertEqual(names - {"LASTBYTE_ID"}, {"ONLY"})

    def test_over_tcp_a_given_environment_is_the_whole_one(self) -> None:
        with lastbyte.Client(server=daemon.url, token=daemon.token()) as remote:
            done = lastbyte.run(["/usr/bin/env"], env={"ONLY": "this"}, stdout=PIPE, text=True, client=remote)
            names = {line.partition("=")[0] for line in done.stdout.splitlines()}
            self.assertEqual(names - {"LASTBYTE_ID"}, {"ONLY"})
            # Without one, it is the server's: the caller may be on another machine.
            done = lastbyte.run("echo $HOME", shell=True, stdout=PIPE, text=True, client=remote)
            self.assertEqual(done.stdout.strip(), str(daemon.folder))

    def test_a_secret_is_masked(self) -> None:
        done = run("echo $TOKEN", shell=True, stdout=PIPE, secrets={"TOKEN": "hunter22"})
        self.assertEqual(done.stdout, b"***TOKEN***\n")

    def test_output_goes_to_files_and_to_this_program_s_own(self) -> None:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            run("echo out; echo err >&2", shell=True, stdout=out, stderr=err)
            for file, want in ((out, b"out\n"), (err, b"err\n")):
                file.seek(0)
                self.assertEqual(file.read(), want)
        code = "import lastbyte; lastbyte.run('echo out; echo err >&2', shell=True)"
        env = {**os.environ, **daemon.environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
        self.assertEqual((shown.stdout, shown.stderr), (b"out\n", b"err\n"))

    def test_options_that_a_server_cannot_have_are_refused(self) -> None:
        # Values that are false mean something, too: root, and a file mode without restrictions.
        refused: list[dict[str, Any]] = [
            {"preexec_fn": lambda: None}, {"user": 0}, {"group": 0}, {"extra_groups": []}, {"umask": 0},
            {"pass_fds": [3]}, {"process_group": 1},
        ]  # fmt: skip
        for options in refused:
            with self.subTest(options), self.assertRaises(lastbyte.UnsupportedOption):
                run(["true"], **options)
        self.assertEqual(run(["true"], umask=-1, pass_fds=(), process_group=0).returncode, 0)
        with self.assertRaises(lastbyte.UnsupportedOption):
            run(["echo", b"\xff"])

    def test_a_wrong_token_says_what_the_server_says(self) -> None:
        with (
            lastbyte.Client(server=daemon.url, token="wrong") as remote,
            self.assertRaises(lastbyte.ApiError) as caught,
        ):
            remote.processes()
        self.assertEqual((caught.exception.code, caught.exception.status), ("unauthorized", 401))


class Handles(unittest.TestCase):
    def test_a_conversation_over_pipes(self) -> None:
        with popen(["cat"], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as process:
            assert process.stdin is not None and process.stdout is not None
            for line in ("one\n", "zwei ä\n"):
                process.stdin.write(line)
                self.assertEqual(process.stdout.readline(), line)
            self.assertIsNone(process.poll())
            process.stdin.close()
            self.assertEqual(process.stdout.read(), "")
        self.assertEqual(process.returncode, 0)

    def test_a_timeout_of_communicate_loses_nothing(self) -> None:
        process = popen("echo early; read line; echo $line", shell=True, stdin=PIPE, stdout=PIPE)
        process.wait_for(output_past=5)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)
        with self.assertRaises(subprocess.TimeoutExpired) as caught:
            popen_timeout(process)
        self.assertEqual(caught.exception.stdout, b"early\n")
        client._drive(
            __import__("lastbyte")._sync.calls.Input(process.id).write(client._link, memoryview(b"late\n"), True)
        )
        self.assertEqual(process.communicate()[0], b"early\nlate\n")

    def test_signals_reach_it(self) -> None:
        process = popen("trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done", shell=True, stdout=PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(PATIENCE), 5)
        process.kill()
        killed = popen(["sleep", "1000"])
        killed.terminate()
        self.assertEqual(killed.wait(PATIENCE), -15)

    def test_a_reader_that_goes_away_ends_the_writer(self) -> None:
        with popen(["yes"], stdout=PIPE) as process:
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), b"y\n")
        self.assertEqual(process.returncode, -13)

    def test_a_reader_of_this_program_s_output_that_goes_away_ends_the_writer(self) -> None:
        for options in ({"stderr": DEVNULL}, {}):
            with self.subTest(options):
                reader, writer = os.pipe()
                process = popen(["yes"], stdout=writer, **options)
                os.close(writer)
                self.assertEqual(os.read(reader, 2), b"y\n")
                os.close(reader)
                self.assertEqual(process.wait(PATIENCE), -13)

    def test_a_reader_of_another_s_command_that_goes_away_ends_nothing(self) -> None:
        first = popen("while read line; do echo $line; done", shell=True, stdin=PIPE, stdout=DEVNULL, bufsize=0)
        again = client.attach(first.id)
        assert first.stdin is not None and again.stdout is not None
        again.stdout.close()
        waiting = threading.Thread(target=again.wait)
        waiting.start()
        for total in range(2, 100, 2):
            with suppress(BrokenPipeError):
                first.stdin.write(b"x\n")
            first.wait_for(output_past=total - 1)
        first.stdin.close()
        waiting.join()
        self.assertEqual(again.returncode, 0)

    def test_the_output_of_one_is_the_input_of_another(self) -> None:
        first = popen("seq 100000", shell=True, stdout=PIPE)
        second = popen(["wc", "-l"], stdin=first.stdout, stdout=PIPE)
        assert first.stdout is not None
        first.stdout.close()
        self.assertEqual(int(second.communicate()[0]), 100000)

    def test_attach_finds_it_again_with_all_its_output(self) -> None:
        process = popen("echo one; read line; echo $line", shell=True, stdin=PIPE, name="again")
        again = client.attach("again", stdin=PIPE, text=True)
        self.assertEqual((again.id, again.pid), (process.id, process.pid))
        assert again.stdout is not None
        self.assertEqual(again.stdout.readline(), "one\n")
        self.assertEqual(again.communicate("two\n"), ("two\n", ""))

    def test_a_key_finds_the_same_process(self) -> None:
        first = popen(["sleep", "1000"], key="once", env={})
        second = popen(["sleep", "1000"], key="once", env={})
        self.assertEqual((first.id, first.attached, second.attached), (second.id, False, True))
        self.assertEqual(second.stop(grace=0).left, [])

    def test_a_slow_reader_gets_every_byte(self) -> None:
        process = popen(["seq", "200000"], stdout=PIPE)
        assert process.stdout is not None
        process.wait()
        parts = list(iter(lambda: process.stdout.read(997), b""))  # type: ignore[union-attr]
        want = "".join(f"{number}\n" for number in range(1, 200001)).encode()
        self.assertEqual(b"".join(parts), want)

    def test_dropped_output_is_an_error_and_what_is_left_can_be_read(self) -> None:
        process = popen("seq 500000", shell=True, stdout=PIPE, stderr=STDOUT, quota=128 << 10, bufsize=0)
        process.wait()
        everything = "".join(f"{number}\n" for number in range(1, 500001)).encode()
        for bufsize, size in ((0, 997), (0, -1), (-1, -1)):
            gaps, found = [], b""
            file = client.attach(process.id, bufsize=bufsize).stdout
            assert file is not None
            while True:
                try:
                    part = file.read(size)
                except lastbyte.OutputDropped as error:
                    gaps.append(error.range)
                    continue
                if not part:
                    break
                found += part
            (gap,) = gaps
            self.assertEqual(len(found), len(everything) - (gap.end - gap.start))
            self.assertTrue(found == everything[: gap.start] + everything[gap.end :])

    def test_a_command_that_asks_is_answered_by_keys(self) -> None:
        process = popen("stty -echo; read -r word; echo $word", shell=True, stdin=PIPE, stdout=PIPE, tty=(24, 80))
        met = client.wait(process.id, needs_input=True, timeout=20).wait
        self.assertEqual((met.met, met.name, met.on, met.secret), ("needs_input", "sh", "terminal", True))
        client.press(process.id, "a", "b", "Backspace", "Enter")
        self.assertEqual(process.wait(), 0)
        assert process.stdout is not None
        self.assertEqual(process.stdout.read(), b"a\r\n")

    def test_follow_goes_on_at_a_cursor(self) -> None:
        process = popen("echo one; echo two >&2", shell=True, stdout=PIPE, stderr=PIPE)
        process.wait()
        *pieces, ending = process.follow(start=4)
        self.assertEqual(b"".join(piece.data for piece in pieces if isinstance(piece, lastbyte.Piece)), b"two\n")
        assert isinstance(pieces[0], lastbyte.Piece) and isinstance(ending, lastbyte.Ending)
        self.assertEqual((pieces[0].stream, ending.final_len), ("stderr", 8))

    def test_views_and_searches(self) -> None:
        process = popen(
            "echo one; echo two; printf '\\033[31mred\\033[0m\\n'", shell=True, stdout=DEVNULL, stderr=DEVNULL
        )
        process.wait()
        self.assertEqual(process.logs, "one\ntwo\nred\n")
        (match,) = process.search("^t.o$", before=1).matches
        self.assertEqual((match.line.text, match.before[0].text), ("two", "one"))
        output = process.read("lines", last=2)
        self.assertEqual(len(output.content.lines or ()), 2)
        screen = process.screen(rows=3, ansi=True)
        self.assertEqual((screen.rows, screen.lines), (3, ["two", "red", ""]))
        self.assertIn("\033[31mred", (screen.ansi_lines or [])[1])

    def test_input_that_comes_after_the_ending_stays_where_it_is(self) -> None:
        """A pipe, a terminal or a socket that is given as standard input belongs to its owner again."""
        reader, writer = os.pipe()
        try:
            copied = popen(["head", "-n", "1"], stdin=reader, stdout=PIPE)
            self.assertIsNone(copied.poll())
            os.write(writer, b"one\n")
            self.assertEqual(copied.communicate()[0], b"one\n")
            self.assertNotIn("lastbyte-copy", [thread.name for thread in threading.enumerate()])
            run(["true"], stdin=reader)
            os.write(writer, b"two\n")
            self.assertEqual(os.read(reader, 100), b"two\n")
        finally:
            os.close(reader)
            os.close(writer)

    def test_a_terminal_is_one_stream(self) -> None:
        done = run("test -t 1 && echo yes", shell=True, stdout=PIPE, tty=(24, 80))
        self.assertEqual(done.stdout, b"yes\r\n")

    def test_limits_and_sandboxes_are_passed_on(self) -> None:
        done = run("ulimit -n", shell=True, stdout=PIPE, limits=lastbyte.Limits(open_files=77), labels={"a": "b"})
        self.assertEqual(done.stdout, b"77\n")
        shown = client.process(done.id)
        assert shown.limits is not None
        self.assertEqual((shown.limits.open_files, shown.labels), (77, {"a": "b"}))
        self.assertEqual([one.id for one in client.processes(label="a=b")], [done.id])


def popen_timeout(process: lastbyte.Popen) -> None:
    """A timeout of communicate without closing the input."""
    stdin, process.stdin = process.stdin, None
    try:
        process.communicate(timeout=0.01)
    finally:
        process.stdin, process._communicating = stdin, False


class Several(unittest.TestCase):
    def test_wait_any_and_wait_all(self) -> None:
        slow, fast = popen(["sleep", "1000"]), popen(["true"])
        ended = [one.process.id for one in client.wait_any([slow, fast]) if one.process.ending]
        self.assertEqual(ended, [fast.id])
        self.assertFalse(all(one.process.ending for one in client.wait_all([slow, fast.id], timeout=0.01)))
        slow.kill()
        self.assertTrue(all(one.process.ending for one in client.wait_all([slow, fast])))

    def test_events_come_in_order(self) -> None:
        feed = client.events(session="of-events", last_event_id="0-0")
        done = run(["true"], session="of-events")
        kinds = []
        for event in feed:
            if isinstance(event, lastbyte.Event) and event.process == done.id:
                kinds.append(event.event.kind)
            if kinds[-1:] == ["ended"]:
                break
        self.assertEqual(kinds, ["started", "ended"])

    def test_threads_share_the_streams_of_a_process(self) -> None:
        count, lines = 4, 200
        process = popen(["cat"], stdin=PIPE, stdout=PIPE, bufsize=0)
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None
        # They fit into a pipe, so no line is cut.
        want = [f"{number:04}\n".encode() for number in range(count * lines)]

        def write(first: int) -> None:
            for line in want[first : first + lines]:
                stdin.write(line)

        def read() -> None:
            while line := stdout.read(5):
                found.append(line)

        found: list[bytes] = []
        readers = [threading.Thread(target=read) for _ in range(count)]
        writers = [threading.Thread(target=write, args=(number * lines,)) for number in range(count)]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        stdin.close()
        for thread in readers:
            thread.join()
        self.assertEqual(sorted(found), want)

    def test_forty_threads_share_a_client(self) -> None:
        found: dict[int, bytes] = {}

        def one(number: int) -> None:
            found[number] = run(["echo", str(number)], stdout=PIPE).stdout

        threads = [threading.Thread(target=one, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, {number: f"{number}\n".encode() for number in range(40)})


class Pickled(unittest.TestCase):
    def test_errors_and_results_go_from_one_process_of_a_pool_to_another(self) -> None:
        def error_of(*args: Any, **kwargs: Any) -> BaseException:
            with self.assertRaises(lastbyte.LastbyteError) as caught:
                run(*args, **kwargs)
            return caught.exception

        found = [
            error_of(["no-such-program"]),
            error_of(["true"], cwd="/no-such-directory"),
            error_of(["false"], check=True),
            error_of(["sleep", "1000"], timeout=0.01),
            error_of(["true"], umask=7),
            error_of(["true"], name="no name"),
            lastbyte.OutputDropped("id", lastbyte.models.Range(1, 2)),
            lastbyte.ProcessLost("id", "why"),
            run(["true"]),
        ]
        for one in found:
            copied = pickle.loads(pickle.dumps(one))
            self.assertIs(type(copied), type(one))
            self.assertEqual((str(copied), vars(copied)), (str(one), vars(one)))
            self.assertEqual(getattr(copied, "filename", None), getattr(one, "filename", None))
            self.assertEqual(getattr(copied, "errno", None), getattr(one, "errno", None))


class Interrupted(unittest.TestCase):
    """Ctrl-C comes before and after the n-th use of a socket, for growing n, until the call is done before."""

    def at_every_use_of_a_socket(
        self, session: str, call: Callable[[lastbyte.Client], None], afterwards: Callable[[], object] = object
    ) -> None:
        for number in range(1, 100):
            count = 0

            def one_more(number: int = number) -> None:
                nonlocal count
                count += 1
                if count == number:
                    raise KeyboardInterrupt

            def interrupted(method: Callable[..., Any], one_more: Callable[[], None] = one_more) -> Callable[..., Any]:
                def wrapped(*args: Any) -> Any:
                    one_more()
                    result = method(*args)
                    one_more()
                    return result

                return wrapped

            send, receive = interrupted(Connection.send), interrupted(Connection.receive)
            with daemon.client() as mine:
                with mock.patch.multiple(Connection, send=send, receive=receive), suppress(KeyboardInterrupt):
                    call(mine)
                afterwards()
                left = mine.processes(session=session, phase="running")
            self.assertEqual(left, [], f"left running after an interrupt at use {number}")
            if count < number:
                return
        self.fail("it never ended by itself")

    def test_an_interrupted_run_leaves_nothing_running(self) -> None:
        def call(client: lastbyte.Client) -> None:
            with suppress(lastbyte.TimeoutExpired):
                lastbyte.run(["sleep", "1000"], timeout=0.1, session="interrupted-runs", client=client)

        self.at_every_use_of_a_socket("interrupted-runs", call)

    def test_an_interrupted_start_leaves_nothing_running(self) -> None:
        def call(client: lastbyte.Client) -> None:
            started.append(lastbyte.Popen(["sleep", "1000"], session="interrupted-starts", client=client))

        def stop() -> None:
            while started:
                started.pop().stop(grace=0)

        started: list[lastbyte.Popen] = []
        self.at_every_use_of_a_socket("interrupted-starts", call, stop)


class Forks(unittest.TestCase):
    def test_a_fork_in_the_middle_of_a_stream_leaves_both_every_byte(self) -> None:
        everything = "".join(f"{number}\n" for number in range(400000)).encode()
        command = "seq 0 399999; read go"
        with popen(command, shell=True, stdin=PIPE, stdout=PIPE, stderr=STDOUT, bufsize=0) as process:
            file: Any = process.stdout
            until(lambda: process.process.total == len(everything), "the output")
            begin = file.read(1 << 10)
            while file._ahead is None:
                begin += file.read(1 << 20)
            rest = everything[len(begin) :]
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                # More than the answer that the parent has asked for.
                with suppress(BaseException):
                    os.write(writer, b"same" if exactly(file, 1 << 20) == rest[: 1 << 20] else b"other")
                os._exit(0)
            os.close(writer)
            said = os.read(reader, 10)
            os.close(reader)
            os.waitpid(child, 0)
            assert process.stdin is not None
            process.stdin.close()
            breaks = client._link.breaks
            self.assertEqual(exactly(file, len(rest)), rest)
            self.assertEqual(said, b"same")
            self.assertEqual(client._link.breaks, breaks, "the child took the parent's answer")

    def test_a_fork_that_closes_its_copies_ends_no_input(self) -> None:
        with popen(["cat"], stdin=PIPE, stdout=PIPE) as process:
            child = os.fork()
            if child == 0:
                with suppress(BaseException):
                    process.__exit__(KeyboardInterrupt, None, None)
                os._exit(0)
            os.waitpid(child, 0)
            self.assertEqual(process.communicate(b"still open")[0], b"still open")


def exactly(file: Any, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = file.read(count - len(found))
        if not part:
            break
        found += part
    return found


class Crashes(unittest.TestCase):
    def test_a_worker_that_is_killed_in_the_middle_of_a_stream_loses_no_byte(self) -> None:
        process = popen("seq 50000; read go; seq 50001 100000", shell=True, stdin=PIPE, stdout=PIPE)
        assert process.stdout is not None and process.stdin is not None
        got = process.stdout.read(1000)
        daemon.kill_worker()
        process.stdin.write(b"go\n")
        process.stdin.close()
        got += process.stdout.read()
        want = "".join(f"{number}\n" for number in range(1, 100001)).encode()
        self.assertTrue(got == want, f"{len(got)} bytes instead of {len(want)}")
        self.assertEqual(process.wait(), 0)

    def test_a_worker_that_is_killed_during_a_wait_and_a_follow_changes_nothing(self) -> None:
        process = popen("echo one; read go; echo two; exit 4", shell=True, stdin=PIPE, stdout=DEVNULL)
        seen: list[bytes] = []
        codes: list[int] = []
        first = threading.Event()

        def follow() -> None:
            for piece in process.follow():
                if isinstance(piece, lastbyte.Piece):
                    seen.append(piece.data)
                    first.set()

        threads = [
            threading.Thread(target=follow),
            threading.Thread(target=lambda: codes.append(client.attach(process.id).wait())),
        ]
        for thread in threads:
            thread.start()
        self.assertTrue(first.wait(PATIENCE))
        daemon.kill_worker()
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.close()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual((b"".join(seen), codes), (b"one\ntwo\n", [4]))

    def test_a_worker_that_is_killed_while_input_is_written_gets_each_byte_once(self) -> None:
        data = os.urandom(8 << 20)
        process = popen(["cat"], stdin=PIPE, stdout=PIPE, bufsize=0)
        assert process.stdin is not None
        half = len(data) // 2
        written = 0
        while written < half:
            written += process.stdin.write(data[written:half])
        daemon.kill_worker()
        while written < len(data):
            written += process.stdin.write(data[written:])
        out, _ = process.communicate()
        self.assertTrue(out == data, f"{len(out)} bytes instead of {len(data)}")

    def test_starts_during_crashes_happen_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            file = Path(folder) / "lines"
            for number in range(6):
                killer = threading.Thread(target=daemon.kill_worker)
                killer.start()
                run(f"echo {number} >> {file}", shell=True)
                killer.join()
            self.assertEqual(file.read_text().split(), [str(number) for number in range(6)])


class FirstUse(unittest.TestCase):
    def test_the_server_is_started_on_first_use(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for state in ({}, {"LASTBYTE_STATE": f"{folder}/named"}):
                from .daemon import program

                env = {
                    "HOME": folder,
                    "PATH": os.environ["PATH"],
                    "LASTBYTE_PROGRAM": program(),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                    **state,
                }
                code = "import lastbyte; lastbyte.run(['echo', 'started'])"
                try:
                    shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
                    self.assertEqual(shown.stdout, "started\n", shown.stderr)
                finally:
                    subprocess.run([program(), "shutdown"], env=env, capture_output=True)

    def test_a_server_with_other_variables_is_found_by_its_state_directory(self) -> None:
        """It was started with XDG_RUNTIME_DIR, by a login for instance, and the caller is a cron job."""
        environment = {name: value for name, value in daemon.environment.items() if name != "XDG_RUNTIME_DIR"}
        env = {
            **environment,
            "LASTBYTE_PROGRAM": "/bin/false",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        by_asyncio = "import asyncio; from lastbyte import aio; asyncio.run(aio.run(['echo', 'found']))"
        for code in ("import lastbyte; lastbyte.run(['echo', 'found'])", by_asyncio):
            shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
            self.assertEqual((shown.stdout, shown.stderr), ("found\n", ""))

    def test_without_a_server_and_a_program_the_error_says_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            nobody = lastbyte.Client(socket=f"{folder}/socket")
            with self.assertRaises(lastbyte.Unreachable) as caught:
                nobody.health()
            self.assertIn(folder, str(caught.exception))
            self.assertIsInstance(caught.exception, ConnectionError)

    def test_a_program_that_starts_no_server_is_named(self) -> None:
        for program, reason in (("/no/such/program", "No such file"), ("/bin/false", "no server is there")):
            with (
                self.subTest(program),
                tempfile.TemporaryDirectory() as folder,
                mock.patch.dict(os.environ, {"LASTBYTE_PROGRAM": program, "LASTBYTE_STATE": folder}),
            ):
                os.environ.pop("LASTBYTE_SOCKET", None)

                async def by_asyncio() -> None:
                    async with aio.AsyncClient() as nobody:
                        await nobody.health()

                for call in (lambda: lastbyte.Client().health(), lambda: asyncio.run(by_asyncio())):
                    with self.assertRaisesRegex(
                        lastbyte.Unreachable, f"cannot start the server with {program}: .*{reason}"
                    ):
                        call()


if __name__ == "__main__":
    unittest.main()
