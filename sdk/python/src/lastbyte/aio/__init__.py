"""The same for asyncio: `create_subprocess_exec`, `create_subprocess_shell`, `run`, and a client.

    from lastbyte import aio

    process = await aio.create_subprocess_exec("make", "test", stdout=aio.PIPE)
    async for line in process.stdout:
        print(line)

Every await can be cancelled. A cancelled start or `run` leaves nothing running; a cancelled read,
write or wait loses nothing and can be done again.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from .._core.launch import DEVNULL, PIPE, STDOUT
from ..models import Event, Gap, Process, StopProof, WaitOutcome
from ._client import AsyncClient, default_client
from ._process import AsyncProcess, create_subprocess_exec, create_subprocess_shell, run
from ._streams import InputWriter, OutputReader


async def attach(id: str, **options: Any) -> AsyncProcess:
    """A handle of a process that is already there, by id, name or `last`."""
    return await AsyncProcess.attach(id, **options)


async def processes(**query: Any) -> list[Process]:
    """The processes that the server knows, newest first; see `AsyncClient.processes`."""
    return await (await default_client()).processes(**query)


async def wait_any(processes: Iterable[AsyncProcess | str], timeout: float | None = None) -> list[WaitOutcome]:
    """Waits until one has ended; returns each as it is then."""
    return await (await default_client()).wait_any(processes, timeout)


async def wait_all(processes: Iterable[AsyncProcess | str], timeout: float | None = None) -> list[WaitOutcome]:
    """Waits until all have ended."""
    return await (await default_client()).wait_all(processes, timeout)


async def stop(id: str, *, signal: str | None = None, grace: float | None = None) -> StopProof:
    """Stops a process with everything that it started, and returns the proof."""
    return await (await default_client()).stop(id, signal=signal, grace=grace)


async def events(**query: Any) -> AsyncGenerator[Event | Gap, None]:
    """The events of all processes, from the first step on; see `AsyncClient.events`."""
    found = (await default_client()).events(**query)
    async with contextlib.aclosing(found):
        async for event in found:
            yield event


__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "AsyncClient",
    "AsyncProcess",
    "InputWriter",
    "OutputReader",
    "attach",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "default_client",
    "events",
    "processes",
    "run",
    "stop",
    "wait_all",
    "wait_any",
]
