"""Commands with the names of asyncio's subprocesses, run by the server."""

from __future__ import annotations

import asyncio
import contextlib
import signal as signals
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any

from .._core import verbs
from .._core.exchange import exchange
from .._core.launch import (
    DEVNULL,
    INLINE_INPUT,
    PIPE,
    PIPE_QUOTA,
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
    inline_input,
    new_key,
    returncode_of,
    signal_name,
    start,
    stop_interrupted,
)
from .._core.output import Cursor
from .._core.streams import Streams, close_all, refuse
from ..errors import ApiError, LastbyteError, ProcessLost, TimeoutExpired, UnsupportedOption
from ..models import Ending, Followed, Output, Process, Screen, SearchAnswer, StopProof, View, WaitAnswer, decode
from ..process import CompletedProcess
from ._client import AsyncClient, default_client
from ._streams import InputWriter, OutputReader, copy_output


class AsyncProcess:
    """A command on the server, with the names of `asyncio.subprocess.Process`.

    Every method can be cancelled: nothing is lost, and it can be called again. `returncode` is set
    by `wait`, `communicate` and `poll`.
    """

    args: Any
    id: str
    pid: int

    def __init__(self, client: AsyncClient, args: Any, process: dict[str, Any], attached: bool) -> None:
        self._client = client
        self.args = args
        self.id = process["id"]
        self.pid = process["pid"]
        self.attached = attached
        self.stdin: InputWriter | None = None
        self.stdout: OutputReader | None = None
        self.stderr: OutputReader | None = None
        self.returncode: int | None = None
        self._ending: dict[str, Any] | None = None
        self._copier: asyncio.Task[None] | None = None
        if process.get("ending"):
            self._end(process["ending"])

    @classmethod
    async def attach(cls, id: str, *, client: AsyncClient | None = None, stdin: int | None = None) -> AsyncProcess:
        """A handle of a process that is already there, by id, name or `last`."""
        client = client or await default_client()
        process = (await client._drive(exchange(client._link, verbs.show(id)))).json()
        handle = cls(client, process.get("command") or process.get("shell"), process, True)
        split = process["streams"] == "split"
        handle.stdout = OutputReader(client, Cursor(handle.id, "stdout" if split else None))
        handle.stderr = OutputReader(client, Cursor(handle.id, "stderr")) if split else None
        if stdin == PIPE:
            handle.stdin = InputWriter(client, handle.id, None)
        return handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} returncode={self.returncode}>"

    @property
    def ending(self) -> Ending | None:
        """How it ended, once that is known here."""
        return None if self._ending is None else decode(Ending, self._ending)

    async def process(self) -> Process:
        """What the server says of it at this instant."""
        return await self._client.process(self.id)

    async def poll(self) -> int | None:
        """Asks whether it has ended. Returns the exit code, or `None` while it runs."""
        if self._ending is None:
            ending = await self._client._ending_now(self.id)
            if ending is not None:
                self._end(ending)
        return None if self._ending is None else self._code()

    async def wait(self) -> int:
        """Waits until it has ended and all its output is stored, or copied. Returns the exit code."""
        if self._ending is None:
            self._end(await self._client._ending_of(self.id))
        if self._copier is not None:
            await asyncio.wait({self._copier})
            if not self._copier.cancelled():
                self._copier.result()
        return self._code()

    async def communicate(self, input: bytes | None = None) -> tuple[bytes | None, bytes | None]:
        """Sends the input, reads all output and waits. If it is cancelled, the command keeps running."""
        if self.stdin is not None and not self.stdin.is_closing():
            if input:
                self.stdin.write(input)
            self.stdin.close()
        await self.wait()
        # One after the other: a cancelled one has taken nothing from its buffer.
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                await stream._until_end()
        out = None if self.stdout is None else await self.stdout.read()
        err = None if self.stderr is None else await self.stderr.read()
        return out, err

    def send_signal(self, signal: int) -> asyncio.Task[None]:
        """Sends a signal to its process group, unless it has ended. Begins at once; can be awaited."""
        return self._client._spawn(self._signal(signal_name(int(signal))))

    def terminate(self) -> asyncio.Task[None]:
        """Sends SIGTERM."""
        return self.send_signal(signals.SIGTERM)

    def kill(self) -> asyncio.Task[None]:
        """Sends SIGKILL."""
        return self.send_signal(signals.SIGKILL)

    async def stop(self, *, signal: str | None = None, grace: float | None = None) -> StopProof:
        """Stops it with everything that it started, and returns the proof."""
        return await self._client.stop(self.id, signal=signal, grace=grace)

    def follow(
        self, *, start: int | None = None, late: bool | None = None, times: bool | None = None
    ) -> AsyncGenerator[Followed, None]:
        """Its output from a cursor on, as it comes: pieces, then the ending."""
        return self._client.follow(self.id, start=start, late=late, times=times)

    async def search(self, pattern: str, **options: Any) -> SearchAnswer:
        """Searches its output; see `AsyncClient.search`."""
        return await self._client.search(self.id, pattern, **options)

    async def read(self, view: View = "text", **options: Any) -> Output:
        """A view of its output; see `AsyncClient.read`."""
        return await self._client.read(self.id, view, **options)

    async def screen(self, **options: Any) -> Screen:
        """What a terminal shows that has read its output; see `AsyncClient.screen`."""
        return await self._client.screen(self.id, **options)

    async def wait_for(self, **conditions: Any) -> WaitAnswer:
        """Waits for the first of several conditions; see `AsyncClient.wait`."""
        return await self._client.wait(self.id, **conditions)

    async def forget(self, *, stop: bool = False) -> None:
        """Forgets it and its output, once it has ended."""
        await self._client.forget(self.id, stop=stop)

    async def _signal(self, name: str) -> None:
        if self._ending is not None:
            return
        try:
            await self._client.signal(self.id, name)
        except ApiError as error:
            if error.code != "process_exited":
                raise

    async def _send_sigpipe(self) -> None:
        """Nobody reads what it writes. One that was there before may have other readers."""
        if not self.attached:
            await self._signal(signal_name(signals.SIGPIPE))

    def _end(self, ending: dict[str, Any]) -> None:
        self.returncode = returncode_of(self.id, ending)
        self._ending = ending

    def _code(self) -> int:
        if self.returncode is None:
            raise ProcessLost(self.id, (self._ending or {}).get("status", {}).get("why"))
        return self.returncode


async def create_subprocess_exec(
    program: Arg,
    *args: Arg,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    limit: int = 0,
    client: AsyncClient | None = None,
    **kwargs: Any,
) -> AsyncProcess:
    """Starts a program, as `asyncio.create_subprocess_exec` does. If it is cancelled, nothing is left running."""
    return await _start((program, *args), False, (stdin, stdout, stderr), client, None, **kwargs)


async def create_subprocess_shell(
    cmd: str | bytes,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    limit: int = 0,
    client: AsyncClient | None = None,
    **kwargs: Any,
) -> AsyncProcess:
    """Starts a shell command, as `asyncio.create_subprocess_shell` does."""
    return await _start(cmd, True, (stdin, stdout, stderr), client, None, **kwargs)


async def run(
    args: Args,
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    shell: bool = False,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    encoding: str | None = None,
    errors: str | None = None,
    text: bool | None = None,
    universal_newlines: bool | None = None,
    client: AsyncClient | None = None,
    **kwargs: Any,
) -> CompletedProcess:
    """Runs a command and waits for it, as `subprocess.run` does.

    On a timeout, and if it is cancelled, the command is stopped with everything that it started.
    """
    if input is not None and stdin is not None:
        raise ValueError("stdin and input arguments may not both be used.")
    if capture_output:
        if stdout is not None or stderr is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        stdout = stderr = PIPE
    mode = TextMode.new(encoding, errors, text, universal_newlines)
    whole = None if input is None else mode.encode(input)
    begun = asyncio.get_running_loop().time()
    process = await _start(args, shell, (stdin, stdout, stderr), client, whole, wait=(timeout,), **kwargs)
    try:
        left = None if timeout is None else timeout - (asyncio.get_running_loop().time() - begun)
        out, err = await asyncio.wait_for(process.communicate(), left)
    except asyncio.TimeoutError:
        await process._client._finish(process.stop(grace=0))
        parts = [await stream.available() if stream else None for stream in (process.stdout, process.stderr)]
        raise TimeoutExpired(args, timeout or 0, parts[0] or None, parts[1] or None, id=process.id) from None
    except BaseException:
        # The caller gets no handle, so nothing may be left running.
        with contextlib.suppress(LastbyteError):
            await process._client._finish(process.stop(grace=0))
        raise
    result = CompletedProcess(
        args,
        process.returncode or 0,
        None if out is None else mode.decode(out),
        None if err is None else mode.decode(err),
        id=process.id,
        ending=process._ending,
    )
    if check:
        result.check_returncode()
    return result


async def _start(
    args: Args,
    shell: bool,
    files: tuple[File, File, File],
    client: AsyncClient | None,
    whole: bytes | None,
    *,
    executable: Arg | None = None,
    cwd: Arg | None = None,
    env: Env | None = None,
    bufsize: int = 0,
    text: bool = False,
    universal_newlines: bool = False,
    encoding: None = None,
    errors: None = None,
    preexec_fn: Any = None,
    pass_fds: Any = (),
    close_fds: bool = True,
    restore_signals: bool = True,
    start_new_session: bool = False,
    process_group: int | None = None,
    user: Any = None,
    group: Any = None,
    extra_groups: Any = None,
    umask: int = -1,
    pipesize: int = -1,
    wait: tuple[float | None] | None = None,
    **options: Any,
) -> AsyncProcess:
    refuse(
        preexec_fn=preexec_fn, pass_fds=pass_fds, user=user, group=group, extra_groups=extra_groups,
        umask=umask, process_group=process_group,
    )  # fmt: skip
    if text or universal_newlines or encoding or errors:
        raise ValueError("text mode is only for run(): the streams of a process are bytes")
    if files[0] not in (None, PIPE, DEVNULL):
        raise UnsupportedOption("stdin= takes PIPE or DEVNULL here: write to the process instead")
    client = client or await default_client()
    link = client._link
    chosen = Options(**options)
    has_own_key = chosen.key is not None
    chosen = chosen if has_own_key else replace(chosen, key=new_key())
    plan = Streams(*files, chosen.tty is not None)
    is_inline = whole is not None and len(whole) <= INLINE_INPUT
    wants_pipe = PIPE in files[1:]
    try:
        launch = Launch(
            args=args,
            command=command_of(args, shell, executable),
            cwd=directory_of(cwd, link),
            env=environment_of(env, link),
            options=chosen,
            stdin=inline_input(whole or b"") if is_inline else "open" if whole or files[0] == PIPE else "closed",
            streams=plan.streams,
            quota=PIPE_QUOTA if wants_pipe else None,
        )
        # Not with a key of the caller's: there may be a process with it, which must not be started again to be stopped.
        can_wait = not has_own_key and (is_inline or not whole) and client._can_wait()
        started = await _started(client, launch, plan.wait(wait) if can_wait else {})
    except BaseException:
        plan.close()
        raise
    # Nothing is awaited from here on: the caller gets the handle.
    process = AsyncProcess(client, args, started["process"], bool(started.get("attached")))
    is_empty = process._ending is not None and process._ending["final_len"] == 0
    if files[1] == PIPE:
        process.stdout = OutputReader(client, Cursor(process.id, plan.stdout_stream, at_end=is_empty))
    if files[2] == PIPE:
        process.stderr = OutputReader(client, Cursor(process.id, "stderr", at_end=is_empty))
    if files[0] == PIPE or (whole and not is_inline):
        process.stdin = InputWriter(client, process.id)
        if whole:
            process.stdin.write(whole)
            process.stdin.close()
    sinks = plan.take_sinks()
    if is_empty:
        close_all(sinks)
    elif sinks:
        process._copier = client._copy(copy_output(client, process.id, sinks, process._send_sigpipe))
    return process


async def _started(client: AsyncClient, launch: Launch, more: Mapping[str, Any]) -> dict[str, Any]:
    """Starts it, or if it is cancelled meanwhile, leaves nothing running."""
    # Counted here, because the task begins later.
    client._waiting += bool(more)
    starting = client._drive(start(client._link, launch, more, None))
    # `aclose` waits for a start, but not for a command.
    task = asyncio.get_running_loop().create_task(starting) if more else client._spawn(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(LastbyteError):
            await client._finish(_undo(client, task, launch, bool(more)))
        raise
    finally:
        client._waiting -= bool(more)


async def _undo(client: AsyncClient, starting: asyncio.Task[dict[str, Any]], launch: Launch, waits: bool) -> None:
    if waits and not starting.done():
        # Its answer comes when the command has ended; the same start without a wait finds it.
        starting.cancel()
        await asyncio.wait({starting})
        await client._drive(stop_interrupted(client._link, launch))
        return
    # Whether it was started is known only at the end of the request.
    started = await starting
    if not started.get("attached"):
        await client.stop(started["process"]["id"], grace=0)
