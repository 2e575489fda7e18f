"""Runs cases of CPython's own `test_subprocess` against the package.

    python -m tests.cpython_subprocess

Prints how many passed, failed and were left out. Exits with 1 if an adopted case fails, and with 3 if this
Python has no such tests.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import types
import unittest
from collections.abc import Iterator
from typing import Any

import lastbyte

from .cpython_cases import ADOPTED_CLASSES, LEFT_OUT
from .daemon import Daemon

# Only to fail: a case that takes this long is stuck.
PATIENCE = 20

REPLACED = (
    "Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "CompletedProcess",
    "CalledProcessError", "TimeoutExpired",
)  # fmt: skip


def stand_in() -> types.ModuleType:
    """A module `subprocess` with the names of this package."""
    module = types.ModuleType("subprocess")
    module.__dict__.update({name: value for name, value in vars(subprocess).items() if not name.startswith("__")})
    module.__dict__.update({name: getattr(lastbyte, name) for name in REPLACED})
    module.__dict__.update({"_active": [], "_cleanup": lambda: None})
    return module


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


def run(case: unittest.TestCase, result: unittest.TestResult) -> None:
    def stuck(*_: object) -> None:
        raise TimeoutError(f"stuck for {PATIENCE} s")

    signal.signal(signal.SIGALRM, stuck)
    signal.alarm(PATIENCE)
    try:
        case.run(result)
    finally:
        signal.alarm(0)


def main() -> int:
    try:
        tests: Any = importlib.import_module("test.test_subprocess")
    except ImportError as error:
        print(f"this Python has no test package: {error}")
        return 3
    tests.subprocess = stand_in()
    left_out = frozenset[str]().union(*LEFT_OUT.values())
    result, not_adopted = unittest.TestResult(), 0
    daemon = Daemon()
    os.environ["LASTBYTE_SOCKET"] = str(daemon.socket)
    try:
        for case in cases(unittest.defaultTestLoader.loadTestsFromModule(tests)):
            if type(case).__name__ not in ADOPTED_CLASSES:
                continue
            if case._testMethodName in left_out:
                not_adopted += 1
            else:
                run(case, result)
    finally:
        daemon.end()
    for case, text in [*result.failures, *result.errors]:
        print(f"{case.id()}:\n{text}", file=sys.stderr)
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    passed = result.testsRun - failed - skipped
    print(f"test_subprocess of Python {sys.version.split()[0]}: {passed} passed, {failed} failed, ", end="")
    print(f"{skipped} skipped by themselves, {not_adopted} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
