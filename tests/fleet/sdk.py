"""The tests of the Python package, with each of their servers a gateway of a fleet with one node."""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from cluster import Cluster, ask, eventually

SDK = pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python"
MODULES = ["tests.test_conversations", "tests.test_sync", "tests.test_async"]


def main(programs, nats_server, *wanted):
    with tempfile.TemporaryDirectory(prefix="lastbyte-fleet-") as folder:
        with Cluster(folder, pathlib.Path(programs).resolve(), pathlib.Path(nats_server).resolve()) as fleet:
            fleet.start_broker()
            node = fleet.node("one")
            # A server that these tests start becomes a gateway.
            program = fleet.folder / "program"
            lastbyte = shlex.quote(str(fleet.lastbyte))
            program.write_text(
                "#!/bin/sh\n"
                f'[ "$1" = serve ] && exec {lastbyte} "$@" --nats {fleet.url} --gateway\n'
                f'exec {lastbyte} "$@"\n'
            )
            program.chmod(0o755)
            eventually("the node answers", lambda: ask(node, "GET", "/healthz")[0] == 200)
            environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
            environment |= {
                "LASTBYTE_PROGRAM": str(program),
                "PYTHONPATH": f"{SDK / 'src'}:{SDK}",
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            command = [sys.executable, "-W", "error", "-m", "unittest", "-v", *(wanted or MODULES)]
            return subprocess.run(command, cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
