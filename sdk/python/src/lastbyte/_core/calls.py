"""The verbs that both clients have, as conversations."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ProcessNotFound, StdinClosed
from ..models import (
    Delivered,
    Health,
    Output,
    Process,
    Receipt,
    Screen,
    SearchAnswer,
    StopProof,
    Survivor,
    View,
    WaitAnswer,
    WaitOutcome,
    decode,
)
from . import verbs
from .exchange import Link, NoAnswer, Pause, Steps, exchange
from .launch import milliseconds

# A server that waits for as long as it was asked answers a little later.
_SLACK = 1.0
# What one write carries, and how long to wait while the command does not read.
WRITE_BYTES = 1 << 20
_FIRST_PAUSE = 0.001
_LAST_PAUSE = 0.05


def health(link: Link) -> Steps[Health]:
    return decode(Health, (yield from exchange(link, verbs.health())).json())


def show(link: Link, id: str) -> Steps[Process]:
    return decode(Process, (yield from exchange(link, verbs.show(id))).json())


def processes(link: Link, query: Mapping[str, Any], limit: int | None) -> Steps[list[Process]]:
    """All pages, or as many as the limit needs."""
    found: list[Process] = []
    before: str | None = None
    while True:
        count = 1000 if limit is None else min(1000, limit - len(found))
        page = (yield from exchange(link, verbs.processes({**query, "limit": count, "before": before}))).json()
        found.extend(decode(Process, one) for one in page["processes"])
        before = page.get("next")
        if before is None or (limit is not None and len(found) >= limit):
            return found


def wait(link: Link, id: str, conditions: Mapping[str, Any]) -> Steps[WaitAnswer]:
    answer = yield from exchange(link, verbs.wait(id, conditions))
    return decode(WaitAnswer, answer.json())


def wait_for_exit(link: Link, id: str, timeout: float | None) -> Steps[dict[str, Any] | None]:
    """The process once it has ended, as the answer has it; `None` if the timeout passed before."""
    deadline = None if timeout is None else time.monotonic() + timeout
    conditions: dict[str, Any] = {"exit": True}
    within = None
    if deadline is not None:
        left = max(0.0, deadline - time.monotonic())
        conditions["timeout_ms"] = milliseconds(left)
        within = left + _SLACK
    try:
        answer = (yield from exchange(link, verbs.wait(id, conditions), within)).json()
    except NoAnswer:
        return None
    process: dict[str, Any] = answer["process"]
    return process if process.get("ending") else None


def wait_many(link: Link, ids: Sequence[str], is_any: bool, timeout: float | None) -> Steps[list[WaitOutcome]]:
    conditions: dict[str, Any] = {"exit": True}
    if timeout is not None:
        conditions["timeout_ms"] = milliseconds(timeout)
    answer = yield from exchange(link, verbs.wait_many(ids, conditions, is_any))
    return [decode(WaitOutcome, one) for one in answer.json()["processes"]]


def output(link: Link, id: str, query: Mapping[str, Any]) -> Steps[Output]:
    return decode(Output, (yield from exchange(link, verbs.output(id, query))).json())


def search(link: Link, id: str, query: Mapping[str, Any]) -> Steps[SearchAnswer]:
    return decode(SearchAnswer, (yield from exchange(link, verbs.search(id, query))).json())


def signal(link: Link, id: str, name: str) -> Steps[Delivered]:
    answer = yield from exchange(link, verbs.signal(id, name))
    return decode(Delivered, answer.json()["delivered"])


def press(link: Link, id: str, keys: Sequence[str]) -> Steps[None]:
    yield from exchange(link, verbs.press(id, keys))


def stop(link: Link, id: str, policy: Mapping[str, Any] | None) -> Steps[StopProof]:
    return decode(StopProof, (yield from exchange(link, verbs.stop(id, policy))).json())


def receipt(link: Link, id: str) -> Steps[Receipt]:
    return decode(Receipt, (yield from exchange(link, verbs.receipt(id))).json())


def survivors(link: Link, id: str) -> Steps[list[Survivor]]:
    answer = (yield from exchange(link, verbs.survivors(id))).json()
    return [decode(Survivor, one) for one in answer]


def resize(link: Link, id: str, rows: int, cols: int) -> Steps[None]:
    yield from exchange(link, verbs.resize(id, rows, cols))


def forget(link: Link, id: str, stop: bool) -> Steps[None]:
    breaks = link.breaks
    try:
        yield from exchange(link, verbs.forget(id, stop))
    except ProcessNotFound:
        # Gone after a repeated request: the first one did it.
        if breaks == link.breaks:
            raise


class Input:
    """The standard input of a process: what is still to be sent, and at which offset it begins."""

    def __init__(self, id: str) -> None:
        self._id = id
        self.offset = 0
        self.closed = False

    def write(self, link: Link, data: memoryview, close: bool, deadline: float | None = None) -> Steps[int]:
        """Sends some of it; returns how much. 0 if the deadline passed while the command did not read."""
        part = bytes(data[:WRITE_BYTES])
        closes = close and len(part) == len(data)
        request = verbs.write(self._id, part, self.offset, closes)
        pause = _FIRST_PAUSE
        while True:
            try:
                answer = yield from exchange(link, request)
                break
            except StdinClosed:
                self.closed = True
                raise
            except Exception as error:
                if getattr(error, "code", None) != "stdin_full":
                    raise
            if deadline is not None and time.monotonic() >= deadline:
                return 0
            yield Pause(pause)
            pause = min(pause * 2, _LAST_PAUSE)
        accepted = int(answer.json()["accepted"])
        count = max(0, accepted - self.offset)
        self.offset = accepted
        self.closed = closes
        return count


def conditions(
    exit: bool | None,
    pattern: str | None,
    port: int | None,
    output_past: int | None,
    needs_input: bool | None,
    hand_over: bool | None,
    silence: float | None,
    timeout: float | None,
    start: int | None,
    raw: bool | None,
) -> dict[str, Any]:
    """What a wait waits for; without any condition, for the ending."""
    given = {
        "exit": exit,
        "pattern": pattern,
        "port": port,
        "output_past": output_past,
        "needs_input": needs_input,
        "hand_over": hand_over,
        "silence_ms": milliseconds(silence),
        "timeout_ms": milliseconds(timeout),
        "from": start,
        "raw": raw,
    }
    found = {name: value for name, value in given.items() if value is not None}
    if not found.keys() & CONDITIONS:
        found["exit"] = True
    return found


CONDITIONS = frozenset({"exit", "pattern", "port", "output_past", "needs_input", "hand_over", "silence_ms"})
# The members of a wait that `conditions` knows.
WAIT_FIELDS = CONDITIONS | {"timeout_ms", "from", "raw"}


def ids_of(processes: Iterable[Any]) -> list[str]:
    """Ids, of handles as well as of ids."""
    return [one if isinstance(one, str) else str(one.id) for one in processes]


def stop_policy(signal: str | None, grace: float | None) -> dict[str, Any] | None:
    policy: dict[str, Any] = {}
    if signal is not None:
        policy["signal"] = signal
    if grace is not None:
        policy["grace_ms"] = round(grace * 1000)
    return policy or None


def read_query(
    view: View,
    start: int | None,
    max_bytes: int | None,
    stream: str | None,
    first: int | None,
    last: int | None,
    late: bool | None,
    wait_ms: int | None,
) -> dict[str, Any]:
    if view == "raw":
        raise ValueError("view='raw' has no JSON: read stdout, or follow()")
    return {
        "view": view,
        "from": start,
        "max_bytes": max_bytes,
        "stream": stream,
        "first": first,
        "last": last,
        "late": late,
        "wait_ms": wait_ms,
    }


def screen_query(
    at: int | None, rows: int | None, cols: int | None, ansi: bool | None, late: bool | None
) -> dict[str, Any]:
    return {"view": "screen", "at": at, "rows": rows, "cols": cols, "ansi": ansi, "late": late}


def screen(link: Link, id: str, query: dict[str, Any]) -> Steps[Screen]:
    shown = yield from output(link, id, query)
    assert shown.content.screen is not None, "a screen was asked for"
    return shown.content.screen


def search_query(
    pattern: str,
    start: int | None,
    before: int | None,
    after: int | None,
    max_matches: int | None,
    stream: str | None,
    late: bool | None,
    raw: bool | None,
) -> dict[str, Any]:
    return {
        "pattern": pattern,
        "from": start,
        "before": before,
        "after": after,
        "max_matches": max_matches,
        "stream": stream,
        "late": late,
        "raw": raw,
    }


def resumed(query: Mapping[str, Any], last: str | None) -> Mapping[str, Any]:
    """The query of a follower that goes on: the id of the last event says where."""
    return query if last is None else {**query, "from": None}
