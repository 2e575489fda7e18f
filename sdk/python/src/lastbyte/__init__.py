"""Run commands on a lastbyte server with the names of subprocess.

    import lastbyte

    done = lastbyte.run(["make", "test"], capture_output=True, text=True)
    print(done.returncode, done.stdout, done.id)

The server is started on first use. Commands survive this program and crashes of the server, and
`lastbyte.attach(id)` finds them again. `lastbyte.aio` has the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import models
from ._core.launch import DEVNULL, PIPE, STDOUT
from ._sync import Client, default_client
from .errors import (
    ApiError,
    BadDirectory,
    CalledProcessError,
    LastbyteError,
    OutputDropped,
    ProcessLost,
    ProcessNotFound,
    ProgramNotFound,
    ProgramNotRunnable,
    ProtocolError,
    StdinClosed,
    TimeoutExpired,
    Unreachable,
    UnsupportedOption,
)
from .models import Ending, Event, Gap, Limits, Piece, Process, Sandbox, StopPolicy, StopProof, Tty, WaitOutcome
from .process import (
    CompletedProcess,
    Popen,
    call,
    check_call,
    check_output,
    getoutput,
    getstatusoutput,
    run,
)


def __getattr__(name: str) -> str:
    if name == "__version__":
        # The version of the workspace, which a wheel has in its metadata.
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("lastbyte")
        except PackageNotFoundError:
            return "0+source"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def attach(id: str, **options: Any) -> Popen:
    """A handle of a process that is already there, by id, name or `last`; see `Popen.attach`."""
    return Popen.attach(id, **options)


def processes(**query: Any) -> list[Process]:
    """The processes that the server knows, newest first; see `Client.processes`."""
    return default_client().processes(**query)


def wait_any(processes: Iterable[Popen | str], timeout: float | None = None) -> list[WaitOutcome]:
    """Waits until one has ended; returns each as it is then."""
    return default_client().wait_any(processes, timeout)


def wait_all(processes: Iterable[Popen | str], timeout: float | None = None) -> list[WaitOutcome]:
    """Waits until all have ended."""
    return default_client().wait_all(processes, timeout)


def stop(id: str, *, signal: str | None = None, grace: float | None = None) -> StopProof:
    """Stops a process with everything that it started, and returns the proof."""
    return default_client().stop(id, signal=signal, grace=grace)


def events(**query: Any) -> Iterator[Event | Gap]:
    """The events of all processes, from the first step on; see `Client.events`."""
    return default_client().events(**query)


__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "ApiError",
    "BadDirectory",
    "CalledProcessError",
    "Client",
    "CompletedProcess",
    "Ending",
    "Event",
    "Gap",
    "LastbyteError",
    "Limits",
    "OutputDropped",
    "Piece",
    "Popen",
    "Process",
    "ProcessLost",
    "ProcessNotFound",
    "ProgramNotFound",
    "ProgramNotRunnable",
    "ProtocolError",
    "Sandbox",
    "StdinClosed",
    "StopPolicy",
    "StopProof",
    "TimeoutExpired",
    "Tty",
    "Unreachable",
    "UnsupportedOption",
    "WaitOutcome",
    "attach",
    "call",
    "check_call",
    "check_output",
    "default_client",
    "events",
    "getoutput",
    "getstatusoutput",
    "models",
    "processes",
    "run",
    "stop",
    "wait_all",
    "wait_any",
]
