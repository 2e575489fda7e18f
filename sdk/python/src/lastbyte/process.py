"""Commands with the names and meanings of subprocess, run by the server."""

from __future__ import annotations

import contextlib
import io
import signal as signals
import subprocess
import threading
import time
import types
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ._core import calls, verbs
from ._core.exchange import exchange
from ._core.launch import (
    INLINE_INPUT,
    PIPE,
    PIPE_QUOTA,
    STDOUT,
    Arg,
    Args,
    Env,
    File,
    Launch,
    Options,
    TextMode,
    command_of,
    directory_of,
    environment_of,
    milliseconds,
    new_key,
    returncode_of,
    signal_name,
    start,
    stop_interrupted,
)
from ._core.output import Cursor
from ._core.streams import Streams, close_all, innermost, refuse
from ._files import (
    Copier,
    InputFile,
    OutputFile,
    copy_input,
    copy_output,
    raw_of,
    wrapped_reader,
    wrapped_writer,
)
from ._sync import Client, default_client
from .errors import ApiError, CalledProcessError, LastbyteError, ProcessLost, StdinClosed, TimeoutExpired
from .models import (
    Ending,
    Followed,
    Limits,
    Output,
    Process,
    Sandbox,
    Screen,
    SearchAnswer,
    StopPolicy,
    StopProof,
    Tty,
    View,
    WaitAnswer,
    decode,
)

_SIGPIPE = "PIPE"
# How long the copier of the input may take to notice the ending.
_FEEDER_PATIENCE = 1.0
# In seconds: as long as a lock can be waited for at most.
_FOREVER = threading.TIMEOUT_MAX / 2


class CompletedProcess(subprocess.CompletedProcess[Any]):
    """A command that has ended: subprocess's attributes, `id` and `ending`."""

    def __init__(
        self,
        args: Any,
        returncode: int,
        stdout: Any = None,
        stderr: Any = None,
        *,
        id: str,
        ending: dict[str, Any] | None,
    ) -> None:
        super().__init__(args, returncode, stdout, stderr)
        self.id = id
        self._ending = ending

    @property
    def ending(self) -> Ending | None:
        """How it ended."""
        return None if self._ending is None else decode(Ending, self._ending)

    def check_returncode(self) -> None:
        if self.returncode:
            raise CalledProcessError(
                self.returncode, self.args, self.stdout, self.stderr, id=self.id, ending=self.ending
            )


class Popen:
    """A command on the server, with the names and meanings of `subprocess.Popen`.

    It does not end with this program: `attach(id)` finds it again. Output that is neither a pipe
    nor discarded is copied to this program's own, or to the given file, by a thread. Standard input
    is empty unless it is given.
    """

    # As subprocess's, in annotations: Popen[bytes].
    __class_getitem__: Any = classmethod(types.GenericAlias)

    args: Any
    stdin: IO[Any] | None
    stdout: IO[Any] | None
    stderr: IO[Any] | None
    returncode: int | None

    def __init__(
        self,
        args: Args,
        bufsize: int | None = -1,
        executable: Arg | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        preexec_fn: Any = None,
        close_fds: bool = True,
        shell: bool = False,
        cwd: Arg | None = None,
        env: Env | None = None,
        universal_newlines: bool | None = None,
        startupinfo: Any = None,
        creationflags: int = 0,
        restore_signals: bool = True,
        start_new_session: bool = False,
        pass_fds: Any = (),
        *,
        user: Any = None,
        group: Any = None,
        extra_groups: Any = None,
        encoding: str | None = None,
        errors: str | None = None,
        text: bool | None = None,
        umask: int = -1,
        pipesize: int = -1,
        process_group: int | None = None,
        session: str | None = None,
        name: str | None = None,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        sandbox: Sandbox | Mapping[str, Any] | str | None = None,
        quota: int | None = None,
        tty: Tty | tuple[int, int] | None = None,
        stop: StopPolicy | Mapping[str, Any] | None = None,
        server_timeout: float | None = None,
        idle_timeout: float | None = None,
        on_timeout: str | None = None,
        on_disconnect: str | None = None,
        disconnect_timeout: float | None = None,
        client: Client | None = None,
        _input: Any = None,
        _wait: tuple[float | None] | None = None,
    ) -> None:
        refuse(
            preexec_fn=preexec_fn, startupinfo=startupinfo, creationflags=creationflags, pass_fds=pass_fds,
            user=user, group=group, extra_groups=extra_groups, umask=umask,
            process_group=process_group,
        )  # fmt: skip
        bufsize = -1 if bufsize is None else bufsize
        if not isinstance(bufsize, int):
            raise TypeError("bufsize must be an integer")
        self._empty()
        self._client = client or default_client()
        self._mode = TextMode.new(encoding, errors, text, universal_newlines)
        self.args = args
        options = Options(
            session, name, key or new_key(), labels, limits, secrets, sandbox, quota, tty, stop,
            server_timeout, idle_timeout, on_timeout, on_disconnect, disconnect_timeout,
        )  # fmt: skip
        plan = Streams(stdin, stdout, stderr, tty is not None)
        link = self._client._link
        whole = None if _input is None else self._mode.encode(_input)
        try:
            launch = Launch(
                args=args,
                command=command_of(args, shell, executable),
                cwd=directory_of(cwd, link),
                env=environment_of(env, link),
                options=options,
                stdin=plan.stdin_asked(whole),
                streams=plan.streams,
                quota=PIPE_QUOTA if PIPE in (stdout, stderr) else None,
            )
            started = self._start(launch, plan.wait(_wait), has_own_key=key is not None)
        except BaseException:
            plan.close()
            raise
        self._begin(started["process"])
        self._attached = bool(started.get("attached"))
        try:
            self._open(plan, bufsize, whole)
        except BaseException:
            # The caller gets no handle.
            plan.close()
            if key is None:
                with contextlib.suppress(LastbyteError):
                    self.stop(grace=0)
            raise

    @classmethod
    def attach(
        cls,
        id: str,
        *,
        client: Client | None = None,
        stdin: int | None = None,
        bufsize: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        text: bool | None = None,
    ) -> Popen:
        """A handle of a process that is already there, by id, name or `last`.

        `stdout` (and `stderr`, if its streams are split) begin with its first byte. With
        `stdin=PIPE`, writes continue after what was written so far.
        """
        handle = cls.__new__(cls)
        handle._empty()
        handle._client = client or default_client()
        handle._mode = TextMode.new(encoding, errors, text, None)
        process = handle._client._drive(exchange(handle._client._link, verbs.show(id))).json()
        handle.args = process.get("command") or process.get("shell")
        handle._attached = True
        handle._begin(process)
        split = process["streams"] == "split"
        handle.stdout = handle._reader("stdout" if split else None, bufsize)
        handle.stderr = handle._reader("stderr", bufsize) if split else None
        if stdin == PIPE:
            handle.stdin = wrapped_writer(InputFile(handle._client, handle.id, None), bufsize, handle._mode)
        return handle

    def _start(self, launch: Launch, wait: dict[str, Any], *, has_own_key: bool) -> dict[str, Any]:
        link = self._client._link
        try:
            return self._client._drive(start(link, launch, wait, None))
        except LastbyteError:
            raise
        except BaseException:
            # Interrupted, by Ctrl-C for instance. The caller gets no handle, and only a key of its own finds it again.
            if not has_own_key:
                with contextlib.suppress(LastbyteError):
                    self._client._drive(stop_interrupted(link, launch))
            raise

    def _empty(self) -> None:
        self.stdin = self.stdout = self.stderr = None
        self.returncode = None
        self._ending: dict[str, Any] | None = None
        self._copiers: list[Copier] = []
        self._feeder: Copier | None = None
        self._pending: memoryview | None = None
        self._communicating = False
        self._sent_sigpipe = False
        self._readers: list[OutputFile] = []

    def _begin(self, process: dict[str, Any]) -> None:
        self.id: str = process["id"]
        self.pid: int = process["pid"]
        self._total: int = process["total"]
        if process.get("ending"):
            self._end(process["ending"])

    def _open(self, plan: Streams, bufsize: int, whole: bytes | None) -> None:
        if plan.stdout == PIPE:
            self.stdout = self._reader(plan.stdout_stream, bufsize)
        if plan.stderr == PIPE:
            self.stderr = self._reader("stderr", bufsize)
        if plan.stdin == PIPE:
            self.stdin = wrapped_writer(InputFile(self._client, self.id), bufsize, self._mode)
        elif whole is not None and len(whole) > INLINE_INPUT:
            self.stdin = InputFile(self._client, self.id)  # type: ignore[assignment]
            self._pending = memoryview(whole)
        sinks, source = plan.take_sinks(), plan.take_source()
        if sinks and self._ending is not None and self._total == 0:
            close_all(sinks)
        elif sinks:
            client, id, unread = self._client, self.id, self._send_sigpipe
            self._copiers.append(Copier(lambda: copy_output(client, id, sinks, unread)))
        if source is not None:
            target, origin = InputFile(self._client, self.id), source
            feeder = Copier(lambda: copy_input(target._client, origin, target))
            # The output of another process can be read by any number: nobody waits for its copier.
            self._feeder = feeder if isinstance(origin, int) else None

    def _reader(self, stream: str | None, bufsize: int) -> IO[Any]:
        is_empty = self._ending is not None and self._ending["final_len"] == 0
        raw = OutputFile(self._client, Cursor(self.id, stream, at_end=is_empty))
        self._readers.append(raw)
        return wrapped_reader(raw, bufsize, self._mode)

    def __repr__(self) -> str:
        text = f"<{type(self).__name__}: returncode: {self.returncode} args: {self.args!r}>"
        return text if len(text) <= 80 else text[:76] + "...>"

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, exc_type: object, value: object, traceback: object) -> None:
        if self.stdout:
            self.stdout.close()
        if self.stderr:
            self.stderr.close()
        try:
            if self.stdin:
                self.stdin.close()
        finally:
            if exc_type is not KeyboardInterrupt:
                self.wait()

    @property
    def universal_newlines(self) -> bool:
        return self._mode.is_text

    @property
    def attached(self) -> bool:
        """Whether it was there before: its key had started it, or it is a handle of `attach`."""
        return self._attached

    @property
    def ending(self) -> Ending | None:
        """How it ended, once that is known here: after `poll`, `wait` or `communicate`."""
        return None if self._ending is None else decode(Ending, self._ending)

    @property
    def process(self) -> Process:
        """What the server says of it at this instant."""
        return self._client.process(self.id)

    def poll(self) -> int | None:
        """Asks whether it has ended. Returns the exit code, or `None` while it runs."""
        if self._ending is None:
            process = self._client._drive(exchange(self._client._link, verbs.show(self.id))).json()
            if process.get("ending"):
                self._end(process["ending"])
        return self._returncode() if self._ending is not None else None

    def wait(self, timeout: float | None = None) -> int:
        """Waits until it has ended and all its output is stored, or copied. Returns the exit code."""
        deadline = _deadline(timeout)
        while self._ending is None:
            if self._is_abandoned():
                self._wait_for_more_output(deadline)
            else:
                process = self._client._drive(calls.wait_for_exit(self._client._link, self.id, _left(deadline)))
                if process is not None:
                    self._end(process["ending"])
            if self._ending is None and deadline is not None and time.monotonic() >= deadline:
                raise TimeoutExpired(self.args, timeout or 0, id=self.id)
        for copier in self._copiers:
            if not copier.finish(_left(deadline)):
                raise TimeoutExpired(self.args, timeout or 0, id=self.id)
        self._copiers.clear()
        if self._feeder is not None:
            # It ends with the command, so that the caller can read on.
            self._feeder.join(_FEEDER_PATIENCE)
            self._feeder = None
        return self._returncode()

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Sends the input, reads all output and waits. Can be called again after a timeout."""
        if self._communicating and input:
            raise ValueError("Cannot send input after starting communication")
        deadline = _deadline(timeout)
        if not self._communicating and self.stdin and self._pending is None:
            if not self.stdin.closed:
                with contextlib.suppress(BrokenPipeError):
                    self.stdin.flush()
            self._pending = memoryview(self._mode.encode(input))
        self._communicating = True
        try:
            if self._pending is not None and not self._send_pending(deadline):
                raise TimeoutExpired(self.args, timeout or 0, id=self.id)
            self.wait(_left(deadline))
        except TimeoutExpired:
            raise TimeoutExpired(
                self.args, timeout or 0, _available(self.stdout), _available(self.stderr), id=self.id
            ) from None
        return _rest(self.stdout), _rest(self.stderr)

    def send_signal(self, sig: int) -> None:
        """Sends a signal to its process group, unless it has ended."""
        if self.poll() is not None:
            return
        try:
            self._client.signal(self.id, signal_name(int(sig)))
        except ApiError as error:
            # It ended in between.
            if error.code != "process_exited":
                raise

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signals.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signals.SIGKILL)

    def stop(self, *, signal: str | None = None, grace: float | None = None) -> StopProof:
        """Stops it with everything that it started, and returns the proof."""
        return self._client.stop(self.id, signal=signal, grace=grace)

    def follow(
        self, *, start: int | None = None, late: bool | None = None, times: bool | None = None
    ) -> Iterator[Followed]:
        """Its output from a cursor on, as it comes: pieces, then the ending."""
        return self._client.follow(self.id, start=start, late=late, times=times)

    def search(self, pattern: str, **options: Any) -> SearchAnswer:
        """Searches its output; see `Client.search`."""
        return self._client.search(self.id, pattern, **options)

    def read(self, view: View = "text", **options: Any) -> Output:
        """A view of its output; see `Client.read`."""
        return self._client.read(self.id, view, **options)

    def screen(self, **options: Any) -> Screen:
        """What a terminal shows that has read its output; see `Client.screen`."""
        return self._client.screen(self.id, **options)

    def wait_for(self, **conditions: Any) -> WaitAnswer:
        """Waits for the first of several conditions; see `Client.wait`."""
        return self._client.wait(self.id, **conditions)

    @property
    def logs(self) -> str:
        """The output so far as a person would read it, shortened if it is long."""
        lines = self.read("text").content.lines or []
        return "".join(f"{line.text}\n" for line in lines)

    def forget(self, *, stop: bool = False) -> None:
        """Forgets it and its output, once it has ended."""
        self._client.forget(self.id, stop=stop)

    def _end(self, ending: dict[str, Any]) -> None:
        self.returncode = returncode_of(self.id, ending)
        self._ending = ending

    def _returncode(self) -> int:
        if self.returncode is None:
            raise ProcessLost(self.id, (self._ending or {}).get("status", {}).get("why"))
        return self.returncode

    def _send_pending(self, deadline: float | None) -> bool:
        """`False` if the deadline passed while the command did not read."""
        file, pending = innermost(self.stdin), self._pending
        if not isinstance(file, InputFile) or file.closed or pending is None:
            self._pending = None
            return True
        try:
            while True:
                count = file.send(pending, close=True, deadline=deadline)
                pending = self._pending = pending[count:]
                if not pending:
                    break
                if count == 0:
                    return False
        except StdinClosed:
            pass
        self._pending = None
        if self.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        return True

    def _is_abandoned(self) -> bool:
        """Whether a pipe was closed before its end, so that the next write would have raised SIGPIPE."""
        if self._sent_sigpipe or self._attached:
            return False
        return any(file.closed and not file.at_end() for file in self._readers)

    def _wait_for_more_output(self, deadline: float | None) -> None:
        """Nobody reads its output any more: it gets the signal that a closed pipe would send."""
        conditions: dict[str, Any] = {"exit": True, "output_past": self.process.total}
        left = _left(deadline)
        if left is not None:
            conditions["timeout_ms"] = milliseconds(left)
        link = self._client._link
        answer = self._client._drive(exchange(link, verbs.wait(self.id, conditions))).json()
        if answer["process"].get("ending"):
            self._end(answer["process"]["ending"])
        elif answer["wait"]["met"] == "output_past":
            self._send_sigpipe()

    def _send_sigpipe(self) -> None:
        """Nobody reads what it writes. One that was there before may have other readers."""
        self._sent_sigpipe = True
        if not self._attached:
            with contextlib.suppress(ApiError):
                self._client.signal(self.id, _SIGPIPE)


def run(
    *popenargs: Any,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **kwargs: Any,
) -> CompletedProcess:
    """Runs a command and waits for it, as `subprocess.run` does.

    On a timeout, the command is stopped with everything that it started.
    """
    if input is not None and kwargs.get("stdin") is not None:
        raise ValueError("stdin and input arguments may not both be used.")
    if capture_output:
        if kwargs.get("stdout") is not None or kwargs.get("stderr") is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        kwargs["stdout"] = kwargs["stderr"] = PIPE
    begun = time.monotonic()
    # Not with a key of the caller's: there may be a process with it, which must not be started again to be stopped.
    if kwargs.get("key") is None and (input is None or _encoded_length(input) <= INLINE_INPUT):
        kwargs["_wait"] = (timeout,)
    process = Popen(*popenargs, _input=input, **kwargs)
    left = None if timeout is None else max(0.0, timeout - (time.monotonic() - begun))
    try:
        try:
            stdout, stderr = process.communicate(timeout=left)
        except TimeoutExpired as error:
            process.stop(grace=0)
            error.timeout = timeout or 0
            # As subprocess does: bytes, also in text mode.
            error.output, error.stderr = _available(process.stdout), _available(process.stderr)
            raise
    except BaseException:
        # The caller gets no handle, so nothing may be left running.
        with contextlib.suppress(LastbyteError):
            process.stop(grace=0)
        raise
    finally:
        for file in (process.stdin, process.stdout, process.stderr):
            if file and not isinstance(file, InputFile):
                file.close()
    result = CompletedProcess(
        process.args, process.returncode or 0, stdout, stderr, id=process.id, ending=process._ending
    )
    if check:
        result.check_returncode()
    return result


def call(*popenargs: Any, timeout: float | None = None, **kwargs: Any) -> int:
    """Runs a command and returns its exit code."""
    return run(*popenargs, timeout=timeout, **kwargs).returncode


def check_call(*popenargs: Any, **kwargs: Any) -> int:
    """Runs a command; raises `CalledProcessError` if it fails."""
    return run(*popenargs, check=True, **kwargs).returncode


def check_output(*popenargs: Any, timeout: float | None = None, **kwargs: Any) -> Any:
    """Runs a command and returns its output; raises `CalledProcessError` if it fails."""
    for name in ("stdout", "check"):
        if name in kwargs:
            raise ValueError(f"{name} argument not allowed, it will be overridden.")
    if "input" in kwargs and kwargs["input"] is None:
        is_text = any(kwargs.get(name) for name in ("universal_newlines", "text", "encoding", "errors"))
        kwargs["input"] = "" if is_text else b""
    return run(*popenargs, stdout=PIPE, timeout=timeout, check=True, **kwargs).stdout


def getstatusoutput(cmd: str, *, encoding: str | None = None, errors: str | None = None) -> tuple[int, str]:
    """Runs a shell command; returns its exit code and its output of both streams."""
    done = run(cmd, shell=True, text=True, stdout=PIPE, stderr=STDOUT, encoding=encoding, errors=errors)
    return done.returncode, done.stdout.removesuffix("\n")


def getoutput(cmd: str, *, encoding: str | None = None, errors: str | None = None) -> str:
    """Runs a shell command; returns its output of both streams."""
    return getstatusoutput(cmd, encoding=encoding, errors=errors)[1]


def _deadline(timeout: float | None) -> float | None:
    # Neither sockets nor locks take infinity, and nobody waits for a hundred years.
    return None if timeout is None or timeout > _FOREVER else time.monotonic() + timeout


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _encoded_length(data: Any) -> int:
    # At most four bytes for a character.
    return len(data) * 4 if isinstance(data, str) else memoryview(data).nbytes


def _rest(file: IO[Any] | None) -> Any:
    if file is None:
        return None
    try:
        return file.read()
    finally:
        file.close()


def _available(file: IO[Any] | None) -> bytes | None:
    if file is None or file.closed:
        return None
    raw = raw_of(file)
    if raw is None:
        return None
    buffered = getattr(file, "buffer", file)
    ahead = buffered.peek() if isinstance(buffered, io.BufferedReader) and raw.at_end() else b""
    return (ahead + raw.available()) or None
