"""What the API answers, as values. A test compares each with the OpenAPI document.

A field that the server does not send is `None` (or empty, for lists and mappings). What is one of
several kinds has `kind` (or `met`, `view`, `to`), and only the fields of that kind are set.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar

Phase = Literal["running", "draining", "ended", "lost"]
Stream = Literal["stdout", "stderr"]
Streams = Literal["merged", "split", "tty"]
StreamsAsked = Literal["merged", "split"]
View = Literal["lines", "raw", "text", "head_tail", "screen"]
Reach = Literal["leaf", "scan", "group"]
TimeoutKind = Literal["wall", "idle"]
StopVerb = Literal["stop", "close", "disconnect"]
OnTimeout = Literal["stop", "background"]
OnDisconnect = Literal["keep", "stop"]
LimitKind = Literal["memory", "cpus", "pids", "open_files", "file_size", "cpu_time"]
LimitEnforcement = Literal["kernel", "sampled"]
Enforcement = Literal["mounts", "user_mounts", "landlock"]
SearchStopped = Literal["end", "matches", "bytes", "work"]
HealthStatus = Literal["ok", "degraded"]


@dataclass(frozen=True)
class Range:
    """The bytes of a log from `start` up to, not with, `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Status:
    """How the leader ended."""

    kind: Literal["exited", "signalled", "lost"]
    code: int | None = None
    signal: int | None = None
    name: str | None = None
    core_dumped: bool | None = None
    why: str | None = None
    running_pid: int | None = None


@dataclass(frozen=True)
class Cause:
    """Why it ended."""

    kind: Literal["own", "timed_out", "stopped", "limit"]
    which: str | None = None
    verb: StopVerb | None = None
    escalated: bool | None = None


@dataclass(frozen=True)
class Holder:
    """A process that holds the output of another one open."""

    pid: int
    name: str


@dataclass(frozen=True)
class Closing:
    """How its output ended."""

    kind: Literal["eof", "held"]
    holders: list[Holder] | None = None


@dataclass(frozen=True)
class Kept:
    """Whether every byte can still be read."""

    kind: Literal["whole", "dropped", "failed"]
    dropped: list[Range] = field(default_factory=list)
    errno: int | None = None
    at: int | None = None


@dataclass(frozen=True)
class Times:
    """When it started and ended."""

    started_unix_ns: int
    exited_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    ran_ns: int | None = None
    drained_ns: int | None = None
    found_unix_ns: int | None = None


@dataclass(frozen=True)
class Usage:
    """Processor time and peak memory of the command and of the children it waited for."""

    user_ns: int
    system_ns: int
    peak_memory: int | None = None


@dataclass(frozen=True)
class Ending:
    """How a process ended, and whether its output is whole."""

    status: Status
    final_len: int
    times: Times
    cause: Cause | None = None
    closing: Closing | None = None
    kept: Kept | None = None
    usage: Usage | None = None
    limits_hit: list[LimitKind] = field(default_factory=list)
    masked: int = 0
    oom_killed: bool = False
    sandbox_denied: bool = False


@dataclass(frozen=True)
class Limits:
    """How much a command and everything it starts may use."""

    memory_bytes: int | None = None
    cpus: float | None = None
    pids: int | None = None
    open_files: int | None = None
    file_size_bytes: int | None = None
    cpu_time_ms: int | None = None
    strict: bool = False


@dataclass(frozen=True)
class LimitsEnforced:
    """How each limit is enforced."""

    memory: LimitEnforcement | None = None
    cpus: LimitEnforcement | None = None
    pids: LimitEnforcement | None = None
    open_files: LimitEnforcement | None = None
    file_size: LimitEnforcement | None = None
    cpu_time: LimitEnforcement | None = None


@dataclass(frozen=True)
class Sandbox:
    """What a command and everything it starts may do."""

    kind: Literal["full_access", "external", "read_only", "workspace_write"]
    network: bool | None = None
    writable: list[str] | None = None
    protect: list[str] | None = None
    allow_startup_files: bool | None = None
    exclude_cwd: bool | None = None
    exclude_slash_tmp: bool | None = None
    exclude_tmpdir: bool | None = None


@dataclass(frozen=True)
class StopPolicy:
    """The first signal of a stop, and how long until KILL follows."""

    signal: str | None = None
    grace_ms: int | None = None


@dataclass(frozen=True)
class Tty:
    """The size of a terminal."""

    rows: int
    cols: int


@dataclass(frozen=True)
class Keyboard:
    """Who has the keyboard of a process, so that nobody else can write."""

    holder: str
    since_unix_ns: int
    secret: bool


@dataclass(frozen=True)
class Process:
    """A process at one instant."""

    id: str
    pid: int
    cwd: str
    streams: Streams
    sandbox: Sandbox
    started_unix_ns: int
    phase: Phase
    total: int
    dropped: list[Range]
    log_open: bool
    command: list[str] | None = None
    shell: str | None = None
    session: str | None = None
    name: str | None = None
    key: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    limits_enforced: LimitsEnforced | None = None
    log_file: str | None = None
    recorded: bool | None = None
    keyboard: Keyboard | None = None
    stdin_uncertain: Range | None = None
    node: str | None = None
    timed_out_at_unix_ns: int | None = None
    ending: Ending | None = None


# How a hand-over of a keyboard to a person ended.
HandOverEnd = Literal["done", "left", "expired"]

# Where a process reads its input from.
InputKind = Literal["pipe", "terminal"]


@dataclass(frozen=True)
class InputUnknown:
    """A process that may have been waiting for input, but that the server may not look at."""

    pid: int
    name: str


@dataclass(frozen=True)
class Met:
    """Which condition of a wait held first."""

    met: Literal["exit", "hand_over", "needs_input", "output_past", "pattern", "port", "silence", "timeout"]
    total: int | None = None
    range: Range | None = None
    text: str | None = None
    port: int | None = None
    pid: int | None = None
    name: str | None = None
    on: InputKind | None = None
    secret: bool | None = None
    how: HandOverEnd | None = None
    input_unknown: InputUnknown | None = None


@dataclass(frozen=True)
class WaitAnswer:
    """The condition that held first, and the process at that instant."""

    process: Process
    wait: Met


@dataclass(frozen=True)
class WaitOutcome:
    """The same for one of several processes; `wait` is `None` if it has met none."""

    process: Process
    wait: Met | None = None


@dataclass(frozen=True)
class StopProof:
    """What a stop signalled, what is gone, what is left, and whether that is proved."""

    signalled: list[int]
    gone: list[int]
    left: list[int]
    reach: Reach
    proved: bool = False
    names: dict[str, str] = field(default_factory=dict)
    unattributed: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Delivered:
    """Which processes a signal reached."""

    to: Literal["group", "survivors", "nobody"]
    count: int | None = None


@dataclass(frozen=True)
class Error:
    """An error of the API, for one of several processes."""

    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a request for one of several processes."""

    id: str
    name: str | None = None
    proof: StopProof | None = None
    delivered: Delivered | None = None
    ended_before: Ending | None = None
    error: Error | None = None


@dataclass(frozen=True)
class Line:
    """A line, without its newline."""

    text: str
    range: Range
    cut: Range | None = None


@dataclass(frozen=True)
class Fold:
    """Repeats of a line that are shown once."""

    count: int
    range: Range


@dataclass(frozen=True)
class TextLine:
    """A line as a person sees it."""

    text: str
    range: Range
    cut: Range | None = None
    repeats: Fold | None = None


@dataclass(frozen=True)
class ScreenCursor:
    """Where the cursor is; the first row and column are 0."""

    row: int
    col: int


@dataclass(frozen=True)
class Screen:
    """What a terminal shows."""

    rows: int
    cols: int
    lines: list[str]
    alternate: bool
    cursor: ScreenCursor | None = None
    title: str | None = None
    ansi_lines: list[str] | None = None
    ansi_state: str | None = None
    ansi_at: int | None = None


@dataclass(frozen=True)
class Content:
    """What a view shows."""

    view: View
    base64: str | None = None
    head: str | None = None
    tail: str | None = None
    omitted: Range | None = None
    lines: list[TextLine] | None = None
    screen: Screen | None = None


@dataclass(frozen=True)
class Output:
    """A view of the output, with the state of the process at the same instant."""

    next: int
    total: int
    dropped: list[Range]
    phase: Phase
    log_open: bool
    content: Content
    # The API calls it `from`, which is a keyword of Python.
    from_: int = field(default=0, metadata={"name": "from"})
    final_len: int | None = None
    ending: Ending | None = None


@dataclass(frozen=True)
class SearchLine:
    """A line as it was matched."""

    text: str
    range: Range


@dataclass(frozen=True)
class SearchMatch:
    """A matching line, with the lines around it."""

    line: SearchLine
    hits: list[Range]
    number: int | None = None
    before: list[SearchLine] = field(default_factory=list)
    after: list[SearchLine] = field(default_factory=list)


@dataclass(frozen=True)
class SearchAnswer:
    """What a search found, and where to continue."""

    matches: list[SearchMatch]
    stopped: SearchStopped
    next: int
    dropped: list[Range]
    total: int
    phase: Phase
    log_open: bool
    next_number: int | None = None


@dataclass(frozen=True)
class Survivor:
    """A live process of a tree."""

    pid: int
    name: str
    unattributed: bool = False


@dataclass(frozen=True)
class ProcessLimits:
    """How long a process may run, and how much of its output is kept."""

    on_timeout: OnTimeout
    quota_bytes: int
    timeout_ms: int | None = None
    idle_timeout_ms: int | None = None
    disconnect_timeout_ms: int | None = None


@dataclass(frozen=True)
class OutputHash:
    """The hash of the output, or why there is none."""

    kind: Literal["sha256", "not_ended", "dropped", "incomplete"]
    hex: str | None = None
    bytes: int | None = None
    dropped: list[Range] | None = None
    why: str | None = None


@dataclass(frozen=True)
class Receipt:
    """What was run, under which terms, and the hash of its output."""

    process: Process
    env_names: list[str]
    stop: StopPolicy
    output_hash: OutputHash
    secret_names: list[str] = field(default_factory=list)
    limits: ProcessLimits | None = None
    enforcement: Enforcement | None = None


@dataclass(frozen=True)
class KeeperHealth:
    """The keeper of a server, and its worker."""

    pid: int
    worker_pid: int
    worker_started_unix_ns: int
    restarts: int
    last_crash: str | None = None


@dataclass(frozen=True)
class JournalHealth:
    """Whether what the server knows is on disk."""

    kind: Literal["off", "ok", "waiting"]
    why: str | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Retention:
    """How long, how many and how much a server keeps."""

    at_least_ms: int
    at_most_ms: int
    per_session: int
    processes: int
    output_bytes: int


@dataclass(frozen=True)
class Health:
    """The server itself."""

    version: str
    pid: int
    started_unix_ns: int
    reach: Reach
    status: HealthStatus = "ok"
    journal: JournalHealth | None = None
    keeper: KeeperHealth | None = None
    processes: int | None = None
    running: int | None = None
    retention: Retention | None = None


@dataclass(frozen=True)
class EventKind:
    """What happened."""

    kind: Literal["started", "first_output", "timed_out", "ended", "workspace_touched", "forgotten"]
    which: TimeoutKind | None = None
    ending: Ending | None = None
    chats: list[str] | None = None
    paths: list[str] | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened to a process."""

    process: str
    at_unix_ns: int
    event: EventKind
    session: str | None = None
    name: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    command: list[str] | None = None
    shell: str | None = None


@dataclass(frozen=True)
class Gap:
    """Events between the last one seen and the next one are no longer kept."""


@dataclass(frozen=True)
class Piece:
    """Some bytes of a log. `stream` is `None` where streams are not told apart."""

    range: Range
    data: bytes
    stream: Stream | None = None
    at_unix_ns: int | None = None
    late: bool = False


@dataclass(frozen=True)
class Dropped:
    """These bytes of the log are gone."""

    range: Range


# What a follower meets, in order.
Followed = Piece | Dropped | Ending

T = TypeVar("T")


def decode(kind: type[T], value: Mapping[str, Any]) -> T:
    """The value of this class in a JSON object. Fields that are not known are left out."""
    given = {}
    for name, wire_name, convert in _plan(kind):
        found = value.get(wire_name)
        if found is not None:
            given[name] = found if convert is None else convert(found)
    return kind(**given)


def encode(value: Any) -> Any:
    """The JSON of a value of these classes, or of a mapping; absent fields are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        named = ((field.metadata.get("name", field.name), getattr(value, field.name)) for field in fields(value))
        return {name: encode(found) for name, found in named if found is not None}
    if isinstance(value, Mapping):
        return {name: encode(found) for name, found in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(found) for found in value]
    return value


_Convert = Callable[[Any], Any]
_Plan = tuple[tuple[str, str, _Convert | None], ...]
_plans: dict[type[Any], _Plan] = {}


def _plan(kind: type[Any]) -> _Plan:
    plan = _plans.get(kind)
    if plan is None:
        hints = typing.get_type_hints(kind)
        plan = _plans[kind] = tuple(
            (found.name, found.metadata.get("name", found.name), _converter(hints[found.name]))
            for found in fields(kind)
        )
    return plan


def _converter(hint: Any) -> _Convert | None:
    """What turns JSON into a value of this type; `None` if they are the same."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (hint,) = (part for part in parts if part is not type(None))
        return _converter(hint)
    if origin is list:
        convert = _converter(parts[0])
        return None if convert is None else functools.partial(_each, convert)
    if isinstance(hint, type) and is_dataclass(hint):
        return functools.partial(decode, hint)
    return None


def _each(convert: _Convert, values: list[Any]) -> list[Any]:
    return [convert(value) for value in values]
