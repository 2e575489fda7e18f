"""Checks the bytes of every request before they are sent.

It does not rely on the generator. A request is not sent if it could run anything but the calls of
narrow.py, or if its path is not in the document.
"""

import json
import re
from urllib.parse import unquote, urlsplit

import narrow

# Requests below one process start nothing.
BELOW = re.compile(
    r"/v1/processes/[^/]+/(output|output/(search|times|lines)|follow|attach|receipt|survivors|wait|stdin|signal"
    r"|stop|resize)"
)
OTHERS = re.compile(
    r"/healthz|/metrics|/openapi\.json|/v1|/v1/(events|wait|signal|stop|forget|processes|tokens|links|links/trade|tickets|nodes)"
    r"|/v1/processes/[^/]*"
)
# Schemathesis probes the server with these.
PROBES = re.compile(r"/(schemathesis-probe[^/]*)?")


class Blocked(Exception):
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
            raise Blocked(f"a path that is not in the document: {method} {path!r}")
        # For every method and content type, because the server may ignore both.
        self._check_launch(parsed(body))

    def _check_launch(self, launch):
        if isinstance(launch, list):
            raise Blocked("a list in place of a launch")
        if not isinstance(launch, dict):
            return  # A number or a string cannot name a command.
        if launch.get("shell") is not None:
            raise Blocked("a shell command")
        if launch.get("command") is not None and launch["command"] not in self._calls:
            raise Blocked("another command")
        if launch.get("cwd") not in (None, self._workdir):
            raise Blocked("another directory")
        for env in (launch.get("env", {}), launch.get("secrets", {})):
            if isinstance(env, list) or isinstance(env, dict) and not set(env) <= set(narrow.VARIABLES):
                raise Blocked("another environment")


def parsed(body):
    """The parsed body, if it can have only one meaning."""
    text = body.encode() if isinstance(body, str) else body
    if not text or is_noise(text):
        return None
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=without_doubles)
    except (AttributeError, ValueError, RecursionError) as error:
        raise Blocked("a body that may not be JSON") from error


def is_noise(text) -> bool:
    """Whether this is not UTF-8, and has no byte that could start an object or a list."""
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
        raise Blocked("a duplicate member")
    return members
