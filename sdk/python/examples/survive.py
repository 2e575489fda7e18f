"""A command outlives the program that started it, and is found again by its key."""

from __future__ import annotations

import lastbyte


def build() -> lastbyte.Popen:
    """Starts the build, or finds the one that is running or has ended."""
    script = "echo building; sleep 0.1; echo built"
    return lastbyte.Popen(script, shell=True, key="build-42", stdout=lastbyte.DEVNULL, env={}, cwd="/")


first, again = build(), build()
print(first.id == again.id, again.attached)
print(again.wait(), again.logs.split())
