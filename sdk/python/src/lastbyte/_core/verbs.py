"""The request for each verb of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .http import Request

# The parameters that these functions know, by operation. A test compares them with the document.
PARAMETERS: dict[tuple[str, str], frozenset[str]] = {
    ("get", "/v1/processes"): frozenset(
        {"before", "failed", "label", "limit", "name", "phase", "session", "survivors"}
    ),
    ("get", "/v1/processes/{id}/output"): frozenset(
        {"ansi", "at", "cols", "first", "from", "last", "late", "max_bytes", "rows", "stream", "view", "wait_ms"}
    ),
    ("get", "/v1/processes/{id}/output/search"): frozenset(
        {"after", "before", "from", "late", "max_matches", "pattern", "raw", "stream"}
    ),
    ("get", "/v1/processes/{id}/follow"): frozenset({"from", "late", "times", "last-event-id"}),
    ("post", "/v1/processes/{id}/stdin"): frozenset({"close", "keys", "offset"}),
    ("delete", "/v1/processes/{id}"): frozenset({"stop"}),
    ("get", "/v1/events"): frozenset({"chat", "last_event_id", "session", "last-event-id"}),
}

# Sent twice, these signals do what they do once.
_REPEATABLE_SIGNALS = frozenset({"9", "15", "KILL", "TERM", "SIGKILL", "SIGTERM"})


def start(body: Mapping[str, Any]) -> Request:
    """Safe to repeat, because every start of this package has a key."""
    return _post("/v1/processes", body, waits="wait" in body)


def show(id: str) -> Request:
    return Request("GET", _path(id))


def processes(query: Mapping[str, Any]) -> Request:
    return Request("GET", "/v1/processes", query)


def wait(id: str, conditions: Mapping[str, Any]) -> Request:
    return _post(_path(id, "wait"), conditions, waits=True)


def wait_many(ids: Sequence[str], conditions: Mapping[str, Any], any: bool) -> Request:
    return _post("/v1/wait", {"select": {"ids": list(ids)}, "wait": conditions, "any": any}, waits=True)


def output(id: str, query: Mapping[str, Any]) -> Request:
    return Request("GET", _path(id, "output"), query, waits=query.get("wait_ms") is not None)


def search(id: str, query: Mapping[str, Any]) -> Request:
    return Request("GET", _path(id, "output/search"), query)


def follow(id: str, query: Mapping[str, Any], last_id: str | None) -> Request:
    return Request("GET", _path(id, "follow"), query, headers=_resume(last_id))


def events(query: Mapping[str, Any], last_id: str | None) -> Request:
    return Request("GET", "/v1/events", query, headers=_resume(last_id))


def write(id: str, data: bytes, offset: int, close: bool) -> Request:
    """Safe to repeat: bytes that were accepted are not written again."""
    return Request("POST", _path(id, "stdin"), {"offset": offset, "close": close or None}, data)


def press(id: str, keys: Sequence[str]) -> Request:
    """Not safe to repeat: nobody knows what a key does."""
    return Request("POST", _path(id, "stdin"), {"keys": ",".join(keys)}, b"", repeatable=False)


def stdin_length(id: str) -> Request:
    """Writes nothing, and is answered with how much was written so far."""
    return Request("POST", _path(id, "stdin"), body=b"")


def signal(id: str, name: str) -> Request:
    request = _post(_path(id, "signal"), {"signal": name})
    if name in _REPEATABLE_SIGNALS:
        return request
    return Request("POST", request.path, body=request.body, repeatable=False)


def stop(id: str, policy: Mapping[str, Any] | None) -> Request:
    return _post(_path(id, "stop"), {"stop": policy} if policy else {})


def stop_many(select: Mapping[str, Any], policy: Mapping[str, Any] | None) -> Request:
    return _post("/v1/stop", {"select": select, "stop": policy} if policy else {"select": select})


def resize(id: str, rows: int, cols: int) -> Request:
    return _post(_path(id, "resize"), {"rows": rows, "cols": cols})


def receipt(id: str) -> Request:
    return Request("GET", _path(id, "receipt"))


def survivors(id: str) -> Request:
    return Request("GET", _path(id, "survivors"))


def forget(id: str, stop: bool) -> Request:
    return Request("DELETE", _path(id), {"stop": stop or None})


def health() -> Request:
    return Request("GET", "/healthz")


def _path(id: str, rest: str = "") -> str:
    path = f"/v1/processes/{quote(id, safe='')}"
    return f"{path}/{rest}" if rest else path


def _post(path: str, body: Mapping[str, Any], *, waits: bool = False) -> Request:
    return Request("POST", path, body=json.dumps(body).encode(), waits=waits)


def _resume(last_id: str | None) -> tuple[tuple[str, str], ...]:
    return () if last_id is None else (("last-event-id", last_id),)
