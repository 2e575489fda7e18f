"""Makes generated requests more useful without changing whether they are valid."""

import hashlib
import json

MOMENT_MS = 300
LONGEST = 2**64 - 1
# The parameters of `view=screen` alone.
OF_SCREEN = ("at", "rows", "cols", "ansi")


def shorten(operation: str, query, body):
    """Replaces long waits by short ones, which are as valid. Invalid values stay, to be refused."""
    match operation:
        case "waitForProcess":
            shorten_wait(body)
        case "waitForProcesses" if isinstance(body, dict):
            shorten_wait(body.get("wait"))
        case "startProcess" if isinstance(body, dict):
            shorten_wait(body.get("wait"))
            shorten_stop(body.get("stop"))
        case "stopProcess" | "stopProcesses" if isinstance(body, dict):
            shorten_stop(body.get("stop"))
        case "readOutput":
            shorten_member(query, "wait_ms")


def shorten_wait(wait):
    # An empty wait is refused, so it takes no time.
    if isinstance(wait, dict) and wait:
        wait.setdefault("timeout_ms", MOMENT_MS)
        shorten_member(wait, "timeout_ms")


def shorten_stop(stop):
    if isinstance(stop, dict):
        stop.setdefault("grace_ms", MOMENT_MS)
        shorten_member(stop, "grace_ms")


def shorten_member(members, name: str):
    value = members.get(name, 0) if isinstance(members, dict) else 0
    too_long = isinstance(value, int) and MOMENT_MS < value <= LONGEST
    if value is None or too_long:
        members[name] = MOMENT_MS


def each_id(select, words: list[str], id_of):
    """Replaces the placeholders of a selection by ids of existing processes."""
    ids = select.get("ids") if isinstance(select, dict) else None
    if isinstance(ids, list):
        select["ids"] = [id_of(given) if given in words else given for given in ids]


def agree(case, operation: str):
    """Changes a valid request so that the server can act on it."""
    match operation:
        case "readOutput":
            keep_what_goes_together(case.query)
        case "readEvents" if "last-event-id" not in (case.headers or {}):
            # From the beginning, because the next event may not come for a long time.
            case.query = {**(case.query or {}), "last_event_id": "0-0"}
        case "startProcess" if isinstance(case.body, dict) and case.body.get("key") == "":
            # The shortest key is generated most often, and would always return its first launch. With one
            # key for each command, a key comes again with the same launch.
            command = case.body.get("command")
            launch = json.dumps(command)
            case.body = {"command": command, "key": hashlib.sha256(launch.encode()).hexdigest()}


def keep_what_goes_together(query):
    query = query or {}
    view = query.get("view")
    dropped = {
        "lines": ["from", "last" if "first" in query else None, *OF_SCREEN],
        "screen": ["from", "first", "last"],
    }.get(view, ["first", "last", *OF_SCREEN])
    for name in dropped:
        query.pop(name, None)
