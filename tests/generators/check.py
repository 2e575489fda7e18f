"""Generates a client with openapi-python-client, checks that it has every operation, and runs a command with
it. Usage: check.py FOLDER-OF-PROGRAMS."""

import importlib
import os
import re
import sys
import tempfile
from pathlib import Path

from document import PATH, operations, run

sys.path.append(str(Path(__file__).absolute().parent.parent / "schemathesis"))
from daemon import Daemon

# As in tests/schemathesis/check.py: requests go to our own daemon, not to a proxy.
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]


def main():
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        sys.path.append(folder)
        missing = [name for name in operations() if not is_generated(name)]
        if missing:
            sys.exit(f"openapi-python-client left out: {', '.join(missing)}")
        daemon = Daemon(Path(sys.argv[1]).absolute())
        try:
            use(daemon)
        finally:
            daemon.end()
    print(f"openapi-python-client: {len(operations())} operations")


def generate(folder: Path):
    programs = Path(sys.executable).parent
    # It formats what it generates with ruff.
    path = f"{programs}:{os.environ['PATH']}"
    command = [programs / "openapi-python-client", "generate", "--path", PATH, "--meta", "none"]
    command += ["--output-path", folder / "generated", "--fail-on-warning"]
    run(command, env={**os.environ, "PATH": path})


def module(operation: str):
    name = re.sub("([A-Z])", r"_\1", operation).lower()
    return importlib.import_module(f"generated.api.default.{name}")


def is_generated(operation: str) -> bool:
    try:
        return hasattr(module(operation), "sync_detailed")
    except ModuleNotFoundError:
        return False


def use(daemon):
    """Starts a command, waits for it and reads its output."""
    generated = importlib.import_module("generated")
    models = importlib.import_module("generated.models")
    client = generated.AuthenticatedClient(
        base_url=daemon.url, token=daemon.token, raise_on_unexpected_status=True
    )
    command = [daemon.testchild, "print", "hello", "then", "exit", "3"]
    start = models.StartRequest(command=command, labels=models.StartRequestLabels.from_dict({"a": "b"}))
    process = module("startProcess").sync(client=client, body=start).process
    waited = module("waitForProcess").sync(process.id, client=client, body=models.Wait(exit_=True))
    ending = waited.process.ending.status.to_dict()
    expect(ending, {"kind": "exited", "code": 3})
    output = module("readOutput").sync(process.id, client=client, view=models.View.HEAD_TAIL)
    expect(output.content.to_dict(), {"view": "head_tail", "head": "hello", "tail": ""})


def expect(found, want):
    if found != want:
        sys.exit(f"the generated client found {found}, not {want}")


if __name__ == "__main__":
    main()
