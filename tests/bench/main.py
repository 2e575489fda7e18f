"""Compares lastbyte with the servers that it replaces: `./bench` installs what is missing and runs this.

Prints tables, and writes `results.json` and charts into a folder. A comparison whose floor moved by more than a third
is refused. Python 3.11 or later; standard library only.
"""

import argparse
import json
import os
import pathlib
import platform
import sys

import charts
import measures
import servers
from measures import FloorMoved

UNITS = {
    "start and wait for /bin/true": "µs",
    "from the exit to the answer": "µs",
    "16 clients at once": "a second",
    "256 MiB of output": "MiB/s",
    "a command that leaves a child behind": "s",
    "memory of a running command": "KB",
    "memory of the server": "MB",
}
# Other doors of the same server.
MEASURED_AS_NATIVE = (servers.NativeTcp, servers.Coder)


def main():
    options = parsed()
    programs = options
    known = [kind(programs) for kind in servers.ALL]
    missing = [(server.name, server.missing) for server in known if server.missing]
    known = [server for server in known if not server.missing]
    api = [server for server in known if not isinstance(server, servers.CommandLine)]
    fast = {"rounds": 2, "count": 20} if options.quick else {"rounds": 7, "count": 100}
    with_clients = [server for server in api if isinstance(server, (servers.Native, servers.SweRex))]
    with_processes = [server for server in api if hasattr(server, "begin") and type(server) not in MEASURED_AS_NATIVE]
    plan = {
        "start and wait for /bin/true": lambda: measures.one_after_the_other(known, **fast),
        "from the exit to the answer": lambda: measures.exit_to_answer(api, fast["rounds"], fast["count"] // 4),
        "16 clients at once": lambda: measures.sixteen_at_once(with_clients, fast["rounds"], 0.5 if options.quick else 3),
        "256 MiB of output": lambda: measures.large_output(api, 2 if options.quick else 5),
        "a command that leaves a child behind": lambda: measures.background_child(api),
        "memory of a running command": lambda: measures.running(with_processes, 50 if options.quick else 300),
        "memory of the server": lambda: measures.memory(api, 50 if options.quick else 2000),
        "promises": lambda: measures.promises(programs),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine(options), "not compared": dict(missing), "results": {}}
    print(f"{results['machine']}\n", flush=True)
    refused = False
    for name, measure in plan.items():
        try:
            rows = measure()
        except FloorMoved as why:
            print(f"{name}: refused: {why}\n", flush=True)
            results["results"][name] = {"refused": str(why)}
            refused = True
            continue
        results["results"][name] = rows
        table(name, rows)
        if name in UNITS:
            (options.out / f"{name.replace('/', '').replace(' ', '-')}.svg").write_text(charts.bars(name, rows, UNITS[name]))
    for server, why in missing:
        print(f"not compared: {server}: {why}")
    (options.out / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(f"written: {options.out}/results.json and charts")
    return 1 if refused else 0


def parsed():
    parser = argparse.ArgumentParser(prog="./bench", description="Compare lastbyte with other process servers.")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it works, not for figures")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/bench"), help="folder for results")
    parser.add_argument("--lastbyte", required=True, help=argparse.SUPPRESS)
    for name in ("codex", "swerex", "pueue"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    return parser.parse_args()


def machine(options):
    cores, load = os.cpu_count(), os.getloadavg()[0]
    build = "a debug build" if "/debug/" in options.lastbyte else "the build of packages"
    return (
        f"{platform.system()} {platform.release()}, {cores} cores, load {load:.1f} at the start, "
        f"uid {os.getuid()}, lastbyte as {build}"
    )


def table(name, rows):
    columns = [column for column in rows[0] | rows[-1] if column != "ratios"]
    print(f"## {name} ({UNITS[name]})" if name in UNITS else f"## {name}")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(row.get(column, "")) for column in columns) + " |")
    print(flush=True)


sys.exit(main())
