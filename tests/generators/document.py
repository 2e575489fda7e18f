"""The OpenAPI document, and what a generator is told of it."""

import json
import subprocess
import sys
from pathlib import Path

PATH = Path("crates/wire/openapi.json").absolute()
DOCUMENT = json.loads(PATH.read_text())


def operations() -> list[str]:
    """The id of each operation."""
    methods = [method for methods in DOCUMENT["paths"].values() for method in methods.values()]
    return [method["operationId"] for method in methods]


def run(command: list, **options) -> str:
    """Runs a generator and returns what it prints. It must succeed and warn of nothing."""
    result = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    if result.returncode != 0 or "warn" in result.stdout.lower():
        sys.exit(f"{Path(command[0]).name} (exit code {result.returncode}):\n{result.stdout}")
    return result.stdout
