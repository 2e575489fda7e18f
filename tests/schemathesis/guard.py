"""The last look at every request, at the bytes that are about to be sent.

It relies on nothing that generated them. What could run anything but the calls of narrow.py is not
sent, and neither is what leaves the paths of the document.
"""

import json
import re
from urllib.parse import unquote, urlsplit

import narrow

# Below one process nothing is started.
BELOW = re.compile(
    r"/v1/processes/[^/]+/(output|output/(search|times)|follow|attach|survivors|wait|stdin|signal"
    r"|stop|resize)"
)
OTHERS = re.compile(r"/healthz|/metrics|/openapi\.json|/v1|/v1/events|/v1/processes|/v1/processes/[^/]*")
# What Schemathesis asks to learn whom it talks to.
PROBES = re.compile(r"/(schemathesis-probe[^/]*)?")


class KeptBack(Exception):
    """A request that is not sent."""


class Guard:
    def __init__(self, testchild: str, workdir: str):
        self._calls = narrow.calls(testchild)
        self._workdir = workdir

    def check(self, method: str, url: str, body):
        path = unquote(urlsplit(url).path)
        if BELOW.fullmatch(path) and ".." not in path:
            return
        if method == "GET" and PROBES.fullmatch(path):
            return
        if not OTHERS.fullmatch(path) or ".." in path:
            raise KeptBack(f"no path of the document: {method} {path!r}")
        # Whatever the method and the type of content: the server may look at neither.
        self._check_launch(parsed(body))

    def _check_launch(self, launch):
        if isinstance(launch, list):
            raise KeptBack("a list in the place of a launch")
        if not isinstance(launch, dict):
            return  # Neither a number nor a text names a command.
        if launch.get("shell") is not None:
            raise KeptBack("text for a shell")
        if launch.get("command") is not None and launch["command"] not in self._calls:
            raise KeptBack("another command")
        if launch.get("cwd") not in (None, self._workdir):
            raise KeptBack("another directory")
        env = launch.get("env", {})
        if isinstance(env, list) or isinstance(env, dict) and not set(env) <= set(narrow.VARIABLES):
            raise KeptBack("another environment")


def parsed(body):
    """The body as the one thing that it can mean."""
    text = body.encode() if isinstance(body, str) else body
    if not text or is_noise(text):
        return None
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=without_doubles)
    except (AttributeError, ValueError, RecursionError) as error:
        raise KeptBack("a body that is not plainly JSON") from error


def is_noise(text) -> bool:
    """Bytes that are no text, and would hold nothing if they were."""
    try:
        text.decode("utf-8")
        return False
    except UnicodeDecodeError:
        return not set(text) & set(b"{[")
    except AttributeError:
        return False


def without_doubles(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise KeptBack("a name that comes twice")
    return members
