"""Figures, measured in turn with subprocess in the same run.

    LASTBYTE_PROGRAM=target/release/lastbyte PYTHONPATH=sdk/python/src:sdk/python \
        python3 sdk/python/benchmarks/figures.py

Each round measures subprocess, then lastbyte, so that load on the machine reaches both. The figure is the median,
with the lowest and the highest ratio of a round.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import lastbyte
from tests.daemon import Daemon, program

SIZE = int(os.environ.get("SIZE", 1 << 30))
ROUNDS = int(os.environ.get("ROUNDS", 5))
RUNS = int(os.environ.get("RUNS", 200))
READ_BYTES = 1 << 18


def stream(popen: Callable[..., Any], **options: Any) -> float:
    """MiB per second of a large output through a pipe."""
    begun = time.perf_counter()
    total = 0
    process = popen(["head", "-c", str(SIZE), "/dev/zero"], stdout=subprocess.PIPE, bufsize=0, **options)
    while part := process.stdout.read(READ_BYTES):
        total += len(part)
    process.stdout.close()
    process.wait()
    seconds = time.perf_counter() - begun
    if isinstance(process, lastbyte.Popen):
        # Else the disk is still busy with this log while the next round is measured.
        process.forget()
    assert total == SIZE, f"{total} bytes instead of {SIZE}"
    return total / seconds / (1 << 20)


def runs(run: Callable[..., Any], **options: Any) -> float:
    """Milliseconds of one short command."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        run(["true"], **options)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def compare(what: str, unit: str, floor: Callable[[], float], ours: Callable[[], float]) -> None:
    floors, found = [], []
    for _ in range(ROUNDS):
        floors.append(floor())
        found.append(ours())
    ratios = [one / other for one, other in zip(found, floors, strict=True)]
    print(
        f"{what}: subprocess {statistics.median(floors):.2f} {unit}, "
        f"lastbyte {statistics.median(found):.2f} {unit}, "
        f"{statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


def main() -> None:
    print(f"{program()}, Python {sys.version.split()[0]}, {ROUNDS} rounds")
    daemon = Daemon()
    try:
        client = daemon.client()
        lastbyte.run(["true"], client=client)
        for captured in (False, True):
            compare(
                f"run(['true'], capture_output={captured})",
                "ms",
                lambda captured=captured: runs(subprocess.run, capture_output=captured),  # type: ignore[misc]
                lambda captured=captured: runs(lastbyte.run, client=client, capture_output=captured),  # type: ignore[misc]
            )
        merged: dict[str, Any] = {"stderr": subprocess.STDOUT}
        alone: dict[str, Any] = {}
        for name, options in (("merged", merged), ("stdout alone", alone)):
            compare(
                f"{SIZE >> 20} MiB streamed, {name}",
                "MiB/s",
                lambda options=options: stream(subprocess.Popen, **options),  # type: ignore[misc]
                lambda options=options: stream(lastbyte.Popen, client=client, **options),  # type: ignore[misc]
            )
    finally:
        daemon.end()


if __name__ == "__main__":
    main()
