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
# A command has the environment and the directory of its node, not of the gateway.
LEFT_OUT = ["test_a_given_environment_is_the_whole_one", "test_over_tcp_a_given_environment_is_the_whole_one"]
MODULES = ["tests.test_conversations", "tests.test_sync", "tests.test_async"]
RUN = """
import sys, unittest

def each(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from each(one)
        elif one.id().rpartition(".")[2] not in {left_out}:
            yield one

found = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
done = unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite(each(found)))
sys.exit(not done.wasSuccessful())
"""


def main(programs, nats_server, *wanted):
    with tempfile.TemporaryDirectory(prefix="lastbyte-fleet-") as folder:
        with Cluster(folder, pathlib.Path(programs).resolve(), pathlib.Path(nats_server).resolve()) as fleet:
            fleet.start_broker()
            node = fleet.node("one", "--slots", "5000")
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
            program = RUN.replace("{left_out}", repr(LEFT_OUT))
            command = [sys.executable, "-W", "error", "-c", program, *(wanted or MODULES)]
            return subprocess.run(command, cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
