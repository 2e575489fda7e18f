"""Which server to talk to, by the rules of the command line; and the program that starts one."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import LastbyteError, Unreachable


@dataclass(frozen=True)
class UnixAddress:
    path: str

    @property
    def host(self) -> str:
        return "localhost"

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class TcpAddress:
    name: str
    port: int

    @property
    def host(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{name}:{self.port}"

    def __str__(self) -> str:
        return f"http://{self.host}"


Address = UnixAddress | TcpAddress


@dataclass(frozen=True)
class Place:
    """A server, and whether it may be started if it is not there."""

    address: Address
    token: str | None = None
    may_start: bool = False
    # The state directory, in which a server says where it listens; its variables may differ from ours.
    state: str | None = None


def chosen(socket: str | os.PathLike[str] | None, server: str | None, token: str | None) -> Place:
    if server is not None:
        return from_url(server, token)
    if socket is not None:
        return Place(UnixAddress(os.path.abspath(os.fspath(socket))), token)
    found = from_environment()
    return found if token is None else replace(found, token=token)


def from_url(url: str, token: str | None) -> Place:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
        raise LastbyteError(f"invalid server {url!r}: give a URL like http://127.0.0.1:8722")
    return Place(TcpAddress(parts.hostname, parts.port or 80), token)


def from_environment(env: Mapping[str, str] = os.environ) -> Place:
    """The server that the command line would use: variables, then the config file, then the usual place."""
    named = _from_variables(env)
    if named is not None:
        return named
    config = env.get("LASTBYTE_CONFIG") or _below(_home(env, "XDG_CONFIG_HOME", ".config"), "lastbyte/config.toml")
    if config and os.path.lexists(config):
        return _from_program(env)
    return Place(UnixAddress(usual_socket(env)), may_start=True, state=_usual_state(env))


def _from_variables(env: Mapping[str, str]) -> Place | None:
    if env.get("LASTBYTE_SERVER"):
        file = env.get("LASTBYTE_TOKEN_FILE")
        return from_url(env["LASTBYTE_SERVER"], _token(file) if file else None)
    if env.get("LASTBYTE_SOCKET"):
        return Place(UnixAddress(os.path.abspath(env["LASTBYTE_SOCKET"])))
    if env.get("LASTBYTE_STATE"):
        state = os.path.abspath(env["LASTBYTE_STATE"])
        return Place(UnixAddress(os.path.join(state, "socket")), may_start=True, state=state)
    return None


def usual_socket(env: Mapping[str, str]) -> str:
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_ours(runtime):
        return os.path.join(runtime, "lastbyte/socket")
    state = _usual_state(env)
    if state is None:
        raise LastbyteError(
            "no state directory: neither HOME nor XDG_STATE_HOME is an absolute path; choose one with LASTBYTE_STATE"
        )
    return os.path.join(state, "socket")


def read_address(state: str) -> UnixAddress | None:
    """Where the server of this state directory listens or listened, if the file is from this user."""
    try:
        with open(os.path.join(state, "address"), "rb") as file:
            found = os.fstat(file.fileno())
            path = os.fsdecode(file.read())
    except OSError:
        return None
    is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return UnixAddress(path) if is_ours and os.path.isabs(path) else None


def program() -> str:
    """The program: `LASTBYTE_PROGRAM`, else the one that pip installed with this package, else the one in PATH."""
    found = os.environ.get("LASTBYTE_PROGRAM") or _installed() or shutil.which("lastbyte")
    if not found:
        raise Unreachable("no server is running, and there is no program lastbyte in PATH to start it")
    return found


def _installed() -> str | None:
    """The program of the wheel: where pip noted that it put it, or where it is after `pip install --target`."""
    from importlib.metadata import distributions  # here: it takes longer than everything else that is imported

    package = Path(__file__).parents[2]
    places = [package / "bin" / "lastbyte"]
    for distribution in distributions(name="lastbyte", path=[str(package)]):
        places += [Path(str(file.locate())) for file in distribution.files or [] if file.name == "lastbyte"]
    return next((str(place) for place in places if place.is_file() and os.access(place, os.X_OK)), None)


def start_commands() -> list[list[str]]:
    """The commands that start a server, to be tried in order until one is there.

    The first starts one unless the state directory was named and is empty, which may be a
    misspelling on a command line, but not here.
    """
    found = program()
    return [[found, "ps", "--limit", "1"], [found, "start", "--key", "lastbyte-python-first-use", "--", "true"]]


def not_started(command: list[str], said: str) -> Unreachable:
    """The error for the last of these commands."""
    return Unreachable(f"cannot start the server with {command[0]}: {said.strip() or 'no server is there after it'}")


def _from_program(env: Mapping[str, str]) -> Place:
    """What the config file says, in the words of the program that reads it."""
    shown = subprocess.run([program(), "config", "show", "--json"], capture_output=True, env=dict(env), check=False)
    if shown.returncode != 0:
        raise LastbyteError(shown.stderr.decode(errors="replace").strip())
    settings = {entry["name"]: entry for entry in json.loads(shown.stdout)["settings"]}
    server = settings["server"]["value"]
    if server:
        file = settings["token-file"]["value"]
        return from_url(server, _token(file) if file else None)
    is_default = settings["socket"]["from"]["source"] == "default"
    state = settings["state"]["value"] if is_default else None
    return Place(UnixAddress(settings["socket"]["value"]), may_start=is_default, state=state)


def _token(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise LastbyteError(f"cannot read the token file {file}: {error.strerror}") from error


def _usual_state(env: Mapping[str, str]) -> str | None:
    return _below(_home(env, "XDG_STATE_HOME", ".local/state"), "lastbyte")


def _home(env: Mapping[str, str], name: str, usual: str) -> str | None:
    given = env.get(name, "")
    return given if os.path.isabs(given) else _below(env.get("HOME"), usual)


def _below(folder: str | None, rest: str) -> str | None:
    return os.path.join(folder, rest) if folder and os.path.isabs(folder) else None


def _is_ours(folder: str) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return os.path.isdir(folder) and found.st_uid == os.geteuid()
