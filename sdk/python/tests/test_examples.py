"""The examples, and those of the documents, do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from .daemon import TREE, Daemon

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DOCUMENTS = (TREE / "docs/sdk-python.md", TREE / "sdk/python/README.md")
daemon: Daemon


def setUpModule() -> None:
    global daemon
    daemon = Daemon()


def tearDownModule() -> None:
    daemon.end()


def output_of(*command: str) -> str:
    env = {**os.environ, "LASTBYTE_SOCKET": str(daemon.socket)}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, "-W", "error", *command], env=env, capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Examples(unittest.TestCase):
    def test_the_agent_runs_waits_searches_and_leaves_nothing(self) -> None:
        text = (EXAMPLES / "agent.py").read_text()
        self.assertLess(text.count("\n"), 80)
        out = output_of(str(EXAMPLES / "agent.py"))
        for part in ("[exit code 0]\ncompiling", "still running, id", "warning: unused\n[", "left: []"):
            self.assertIn(part, out)

    def test_the_same_code_runs_with_the_names_of_subprocess(self) -> None:
        want = "hello\nfrom a pipe\ntimed out, and nothing is left of it\n"
        self.assertEqual(output_of(str(EXAMPLES / "drop_in.py")), want)

    def test_a_command_is_found_again_by_its_key(self) -> None:
        self.assertIn("True True\n0 ['building', 'built']\n", output_of(str(EXAMPLES / "survive.py")))

    def test_many_at_a_time(self) -> None:
        self.assertEqual(output_of(str(EXAMPLES / "many.py")), "1225\n1\n2\n3\n0\n")

    def test_the_documents_show_what_their_examples_print(self) -> None:
        count = 0
        for document in DOCUMENTS:
            pattern = r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?"
            for code, want in re.findall(pattern, document.read_text(), re.DOTALL):
                with self.subTest(document=document.name, code=code):
                    self.assertEqual(output_of("-c", code), want)
                count += 1
        self.assertGreater(count, 5)


if __name__ == "__main__":
    unittest.main()
