"""What is measured. Each function returns rows; times are in microseconds.

Every comparison is taken in rounds: the floor first, then each server in turn, and again. A row has the middle of its
rounds and the lowest and highest, and its ratio to the floor of the same round.
"""

import contextlib
import fcntl
import multiprocessing
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from servers import Native, name_of, tree

TRUE = ["/bin/true"]
PRINTS_TIME = ["/bin/sh", "-c", "sleep 0.02; exec date +%s%N"]
OUTPUT_BYTES = 256 << 20
# A time that no other program sleeps.
SLEEP = f"20.{os.getpid():07}"
# Each `head` writes 64 KiB at a time or less.
OUTPUT = ["/usr/bin/head", "-c", str(OUTPUT_BYTES), "/dev/zero"]


class FloorMoved(Exception):
    """The machine was too busy to compare anything."""


def spawn_and_wait():
    """The floor: what the kernel needs for a child whose output is read to its end."""
    ours, theirs = os.pipe()
    pid = os.posix_spawn(TRUE[0], TRUE, {}, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
    os.close(theirs)
    while os.read(ours, 4096):
        pass
    os.close(ours)
    os.waitpid(pid, 0)


def timed(work, count):
    taken = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        work()
        taken.append((time.perf_counter_ns() - begun) / 1000)
    return statistics.median(taken)


def check_floor(floors):
    if max(floors) > min(floors) * 4 / 3:
        raise FloorMoved(f"the floor moved from {min(floors):.0f} to {max(floors):.0f}: run it on an idle machine")


def row(server, values, floors, **more):
    ratios = [value / floor for value, floor in zip(values, floors)]
    return {
        "server": server,
        "value": round(statistics.median(values), 1),
        "lowest": round(min(values), 1),
        "highest": round(max(values), 1),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        **more,
    }


def one_after_the_other(servers, rounds, count):
    """Start a command and wait for its end, one call after the other."""
    floors, calls, empties = [], {s.name: [] for s in servers}, {s.name: [] for s in servers}
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(server) for server in servers]
        for server in opened:
            code, *_ = server.run(TRUE)
            assert code == 0, f"{server.name}: {code}"
        for _ in range(rounds):
            floors.append(timed(spawn_and_wait, count))
            for server in opened:
                times = min(count, server.MOST_CALLS)
                empties[server.name].append(timed(server.empty, times))
                calls[server.name].append(timed(lambda: server.run(TRUE), times))
        check_floor(floors)
        rows = [row("floor: posix_spawn, a pipe read to its end, wait", floors, floors)]
        for server in opened:
            net = [call - empty for call, empty in zip(calls[server.name], empties[server.name])]
            empty = round(statistics.median(empties[server.name]), 1)
            net_ratio = round(statistics.median(n / f for n, f in zip(net, floors)), 2)
            rows.append(row(server.name, calls[server.name], floors, empty_call=empty, net_ratio=net_ratio))
    return rows


def exit_to_answer(servers, rounds, count):
    """From a command's last act, which is to print the time, to the answer that it has ended."""
    floors, times = [], {server.name: [] for server in servers}
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(server) for server in servers]
        for _ in range(rounds):
            floors.append(statistics.median(since_printed(own_child()) for _ in range(count)))
            for server in opened:
                taken = [since_printed(server.run(PRINTS_TIME)[2]) for _ in range(count)]
                times[server.name].append(statistics.median(taken))
        check_floor(floors)
    rows = [row("floor: a child of one's own", floors, floors)]
    for name, values in times.items():
        over = statistics.median(value - floor for value, floor in zip(values, floors))
        rows.append(row(name, values, floors, over_the_floor=round(over, 1)))
    return rows


def own_child():
    return subprocess.run(PRINTS_TIME, stdout=subprocess.PIPE).stdout


def since_printed(text):
    return (time.time_ns() - int(text)) / 1000


def sixteen_at_once(servers, rounds, seconds):
    """Commands a second by 16 clients of one server; the floor is two processes that spawn."""
    servers = [server for server in servers if hasattr(server, "run_over")]
    floors, rates = [], {server.name: [] for server in servers}
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(server) for server in servers]
        clients = {s.name: [s.another() for _ in range(16)] for s in opened if type(s).another is not None}
        for _ in range(rounds):
            floors.append(rate_of_two_processes(seconds))
            for server in opened:
                works = [lambda client=client: client.run(TRUE) for client in clients[server.name]]
                rates[server.name].append(rate(works, seconds))
        check_floor(floors)
    floor = [row("floor: posix_spawn by 2 processes", floors, floors)]
    return floor + [row(name, values, floors) for name, values in rates.items()]


def rate(works, seconds):
    end, counts = time.monotonic() + seconds, [0] * len(works)

    def go(index):
        while time.monotonic() < end:
            works[index]()
            counts[index] += 1

    threads = [threading.Thread(target=go, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def rate_of_two_processes(seconds):
    """Two threads of Python take turns; two processes use both cores."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.map(spawn_rate, [seconds] * 2, chunksize=1))


def spawn_rate(seconds):
    return rate([spawn_and_wait], seconds)


def copied_by_hand():
    """The floor of large output: a child's pipe moved into a file."""
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        child = subprocess.Popen(OUTPUT, stdout=subprocess.PIPE)
        fcntl.fcntl(child.stdout.fileno(), 1031, 1 << 20)  # F_SETPIPE_SZ
        while os.splice(child.stdout.fileno(), file.fileno(), 1 << 20):
            pass
        child.wait()


def large_output(servers, rounds):
    """MiB of output a second, until the server says that the command has ended."""
    floors, rates, kept, cpu = [], {s.name: [] for s in servers}, {}, {s.name: [] for s in servers}
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(server) for server in servers]
        for _ in range(rounds):
            floors.append(mib_a_second(copied_by_hand))
            for server in opened:
                before = cpu_seconds(server)
                rates[server.name].append(mib_a_second(lambda: kept.update({server.name: server.run(OUTPUT)[1]})))
                cpu[server.name].append((cpu_seconds(server) - before) * (1 << 30) / OUTPUT_BYTES)
        check_floor(floors)
    rows = [row("floor: splice from the pipe into a file", floors, floors)]
    for name, values in rates.items():
        rows.append(row(name, values, floors, returned=kept[name], cpu_per_gib=round(statistics.median(cpu[name]), 2)))
    return rows


def mib_a_second(work):
    begun = time.perf_counter()
    work()
    return OUTPUT_BYTES / (1 << 20) / (time.perf_counter() - begun)


def cpu_seconds(server):
    """Of the server's own processes, which live on."""
    ticks = 0
    for pid in server.pids():
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def background_child(servers):
    """A command that leaves a child behind, which holds its output: how long it takes, and the exit code."""
    rows = []
    for server in servers:
        with server:
            begun = time.perf_counter()
            try:
                code, *_ = server.run(["/bin/sh", "-c", f"sleep {SLEEP} & exit 3"])
            except (RuntimeError, OSError) as error:
                code = str(error)[:60]
            seconds = time.perf_counter() - begun
            lives = any(name_of(pid) == "sleep" for pid in sleeping())
            rows.append({"server": server.name, "value": round(seconds, 3), "code": code, "child_lives": lives})
        for pid in sleeping():
            os.kill(pid, signal.SIGKILL)
    return rows


def sleeping():
    """The sleeping commands that the benchmark has started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().endswith(f"sleep\0{SLEEP}\0".encode()):
                found.append(int(entry.name))
    return found


def running(servers, count):
    """KB of the server for each command that runs, once as many run as it lets run at a time."""
    rows = []
    for server in servers:
        with server:
            server.run(TRUE)
            fresh = megabytes(server)
            server.begin(["/bin/sleep", SLEEP], count)
            run = until_all_run(count)
            grown = (megabytes(server) - fresh) * 1000
            rows.append({"server": server.name, "value": round(grown / max(run, 1), 1), "running": run, "of": count})
        for pid in sleeping():
            os.kill(pid, signal.SIGKILL)
    return rows


def until_all_run(count):
    """How many run after at most ten seconds."""
    until = time.monotonic() + 10
    while (run := len(sleeping())) < count and time.monotonic() < until:
        time.sleep(0.1)
    return run


def memory(servers, count):
    """MB of a fresh server, pages that are shared counted once, and after many commands have ended."""
    rows = []
    for server in servers:
        with server:
            server.run(TRUE)
            fresh = megabytes(server)
            for _ in range(count):
                server.run(TRUE)
            rows.append({"server": server.name, "value": fresh, "after": megabytes(server), "commands": count})
    return rows


def megabytes(server):
    total = 0
    for pid in server.pids():
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return round(total / 1024, 1)


def promises(programs):
    """What others do not do: a kill that is proved, a crash that loses nothing, all output kept to the quota."""
    with Native(programs) as server:
        id = server.start(["/bin/sh", "-c", "sleep 0.5; exit 7"])
        server.crash()
        code = server.wait(id)
        id = server.start(["/bin/sh", "-c", f"for i in 1 2 3 4 5; do setsid sleep {SLEEP} & done; exec sleep {SLEEP}"])
        server.stop(id)
        left = len(sleeping())
    return [
        {"server": server.name, "value": code, "what": "exit code of a command whose server was killed (7)"},
        {"server": server.name, "value": left, "what": "processes left of a stopped tree with five setsid children"},
    ]
