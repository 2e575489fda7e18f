"""An agent loop: a model asks for commands, and is shown what came of them.

The model is a script here. A real one is asked with `messages` in the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lastbyte

SHOWN_LINES = 20


@dataclass
class ScriptedModel:
    """Answers with the next of its steps."""

    steps: list[dict[str, Any]]

    def ask(self, messages: list[str]) -> dict[str, Any]:
        return self.steps.pop(0)


def show(process: lastbyte.Popen) -> str:
    """What the model is told: how it ended, or that it runs, and the last lines of its output."""
    code = process.poll()
    state = f"still running, id {process.id}" if code is None else f"exit code {code}"
    lines = process.read("lines", last=SHOWN_LINES).content.lines or []
    return "\n".join([f"[{state}]", *(line.text for line in lines)])


def start(command: str, session: str, seconds: float) -> str:
    """Starts a command and waits a little. One that takes longer keeps running and can be asked about."""
    process = lastbyte.Popen(
        command, shell=True, session=session, stdout=lastbyte.PIPE, stderr=lastbyte.STDOUT, sandbox="full_access"
    )
    process.wait_for(exit=True, timeout=seconds)
    return show(process)


def loop(model: ScriptedModel, session: str) -> list[str]:
    """Does what the model asks until it is done. Returns the conversation."""
    messages = ["Build the project and say whether it works."]
    while True:
        step = model.ask(messages)
        if "run" in step:
            messages.append(start(step["run"], session, step.get("seconds", 10)))
        elif "wait" in step:
            process = lastbyte.attach(step["wait"])
            process.wait_for(pattern=step.get("pattern"), timeout=step.get("seconds", 10))
            messages.append(show(process))
        elif "search" in step:
            found = lastbyte.attach("last").search(step["search"]).matches
            messages.append("\n".join(match.line.text for match in found))
        else:
            messages.append(step["done"])
            break
    # Nothing that the agent started outlives it.
    for left in lastbyte.processes(session=session, phase="running"):
        proof = lastbyte.stop(left.id, grace=1)
        messages.append(f"stopped {left.name or left.id}, left: {proof.left}")
    return messages


if __name__ == "__main__":
    model = ScriptedModel(
        [
            {"run": "echo compiling; echo 'warning: unused'; exit 0"},
            {"search": "warning: .*"},
            {"run": "echo listening; sleep 1000", "seconds": 0.3},
            {"wait": "last", "pattern": "listening"},
            {"done": "It works, with one warning."},
        ]
    )
    print("\n".join(loop(model, "example")))
