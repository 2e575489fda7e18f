"""A valid request is refused only for reasons that a schema cannot express."""

import re

from schemathesis.core.failures import Failure

# Things this machine cannot do, and the syntax of patterns.
CODES = ["sandbox_unavailable", "limit_unavailable", "invalid_pattern"]
REASONS = [
    # Two members that contradict each other.
    r"cannot be combined",
    r"is given more than once, at least once as a secret",
    r"need `view=(lines|screen)`",
    r"`once` needs `process`",
    r"`max_bytes` must be at most \d+ for this view",
    r"no condition to wait for",
    r"nothing is selected",
    # Whether something exists.
    r"lies past them",
    r"past the end",
    # A secret is measured without terminal control.
    r"is shorter than \d+ characters",
    # A limit in bytes; a schema counts characters.
    r"is longer than \d+ bytes",
    r"too many labels: at most \d+ labels with \d+ bytes in all",
    # Its own syntax.
    r"base64",
    r"NUL",
    r"invalid event id",
    r"is not the id of an event",
    r"unknown key ",
    # Not every key can be typed on a pipe.
    r"the key .* cannot be typed without a terminal",
    r"a terminal has no bytes for the key",
    # A schema only knows that it is an integer.
    r"floating point `\d+\.0`, expected u",
    r"this route needs a WebSocket request",
]


class Refused(Failure):
    pass


def check(context, response, case):
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    if not positive or response.status_code not in (400, 422):
        return None
    error = response.json()["error"]
    if error["code"] in CODES or any(re.search(reason, error["message"]) for reason in REASONS):
        return None
    raise Refused(
        operation=case.operation.label,
        title="A request that the document allows is refused",
        message=f"{error['code']}: {error['message']}",
    )
