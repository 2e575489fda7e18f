"""Tests the native API against its own OpenAPI document with Schemathesis.

Requests are generated from the document and sent to a daemon that only the tests use; every answer must
be in the document. Only the calls of `testchild` in narrow.py are ever run, as an unprivileged user if we
are root; guard.py checks every request. Usage: check.py FOLDER-OF-PROGRAMS [NATS-SERVER]; with it, requests are sent
to a gateway of a fleet.
"""

import os

# First, because libraries read these: our requests go to our own daemon, without a proxy, which would see
# its token, and without any other token.
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]
os.environ["NO_PROXY"] = "*"
os.environ["NETRC"] = os.devnull

import json
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import narrow
import processes
from daemon import Daemon, Gateway
from schemathesis.cli import schemathesis
from trial import Trial

HERE = Path(__file__).absolute().parent
# A longer run sets these: more requests, and other ones.
EXAMPLES = int(os.environ.get("LASTBYTE_TEST_API_EXAMPLES", "20"))
SEED = os.environ.get("LASTBYTE_TEST_API_SEED", "1")
# Only to fail: nothing here takes that long.
LIMIT_SECONDS = 600 + 30 * EXAMPLES
# An operation with fewer requests counts as untested.
LEAST_REQUESTS = 5


def main():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, lambda number, _: sys.exit(f"ended by signal {number}"))
    signal.alarm(LIMIT_SECONDS)
    programs, *nats_server = (Path(given).absolute() for given in sys.argv[1:])
    daemon = Gateway(programs, *nats_server) if nats_server else Daemon(programs)
    # Files that Schemathesis writes are removed with the folder.
    os.chdir(daemon.folder)
    try:
        faults = tried(daemon)
        if faults:
            print(f"\nthe end of the daemon's log:\n{daemon.log_end()}")
            sys.exit("\n".join(faults))
    finally:
        daemon.end()


def tried(daemon) -> list[str]:
    """Runs all tests and returns the problems."""
    _, document = daemon.ask("GET", "/openapi.json")
    document = narrow.narrowed(document, daemon.testchild, str(daemon.workdir), processes.WORDS, daemon.members_not_offered)
    trial = Trial(daemon)
    trial.watch()
    code = run(daemon, document)
    tell(trial, narrow.excluded(daemon.not_offered))
    faults = [] if code == 0 else [f"Schemathesis exited with {code}"]
    faults += [f"blocked by the guard: {breach}" for breach in trial.breaches]
    faults += untried(trial, document, narrow.excluded(daemon.not_offered))
    return faults + ended(daemon)


def run(daemon, document: dict) -> int:
    path = daemon.folder / "openapi.json"
    path.write_text(json.dumps(document))
    arguments = ["--config-file", str(HERE / "schemathesis.toml"), "run", str(path)]
    arguments += ["--url", daemon.url, "--header", f"Authorization: Bearer {daemon.token}"]
    arguments += ["--seed", SEED, "--max-examples", str(EXAMPLES), "--no-color"]
    for operation in narrow.excluded(daemon.not_offered):
        arguments += ["--exclude-operation-id", operation]
    with quiet_unless_it_fails() as outcome:
        try:
            schemathesis.main(arguments)
        except SystemExit as end:
            outcome["code"] = end.code or 0
    return outcome["code"]


@contextmanager
def quiet_unless_it_fails():
    """Shows what was printed only if the exit code is not 0."""
    outcome = {"code": 1}
    with tempfile.TemporaryFile() as printed:
        sys.stdout.flush()
        kept = [os.dup(1), os.dup(2)]
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
        try:
            yield outcome
        finally:
            sys.stdout.flush()
            for stream, descriptor in zip((1, 2), kept):
                os.dup2(descriptor, stream)
                os.close(descriptor)
            if outcome["code"] != 0:
                printed.seek(0)
                print(printed.read().decode(errors="replace"))


def tell(trial, excluded: dict[str, str]):
    for operation, answers in sorted(trial.answers.items()):
        statuses = ", ".join(f"{count} x {status}" for status, count in sorted(answers.items()))
        print(f"{operation}: {statuses}")
    for operation, why in excluded.items():
        print(f"{operation}: left out: {why}")
    for why, count in trial.blocked.most_common():
        print(f"not sent: {count} x {why}")


def untried(trial, document: dict, excluded: dict[str, str]) -> list[str]:
    """The operations with too few requests."""
    faults = []
    for operation in narrow.operations(document):
        name = operation["operationId"]
        answers = trial.answers[name]
        if name in excluded:
            continue
        if answers.total() < LEAST_REQUESTS:
            faults.append(f"{name} got only {answers.total()} requests")
        for status in operation["responses"]:
            # `attach` needs a WebSocket, which this is not.
            if "101" < status < "400" and int(status) not in answers:
                faults.append(f"{name} never answered with {status}")
    return faults


def ended(daemon) -> list[str]:
    """Checks that the daemon still works, shuts down, and leaves no process."""
    if not daemon.alive():
        return ["the daemon died"]
    if daemon.ask("GET", "/healthz")[0] != 200:
        return ["the daemon is unhealthy"]
    faults = []
    code = daemon.shut_down()
    if code != 0:
        faults.append(f"the daemon exited with {code}")
    left = daemon.left()
    if left:
        faults.append(f"processes are left: {left}")
    return faults


if __name__ == "__main__":
    main()
