"""What a fleet promises, with a real cluster of three NATS servers and real nodes on loopback."""

import base64
import concurrent.futures
import contextlib
import fcntl
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import uuid

sys.dont_write_bytecode = True

import events
from cluster import Cluster, Unix, ask, eventually, free_ports
from lossy import Lossy

NODES = ["one", "two", "three"]
# The test with keys ends after so many seconds, or when so many keys were started twice.
SECONDS = float(os.environ.get("LASTBYTE_TEST_FLEET_SECONDS", "30"))
KEYS = int(os.environ.get("LASTBYTE_TEST_FLEET_KEYS", "1000000"))
SEED = int(os.environ.get("LASTBYTE_TEST_FLEET_SEED", "1"))
CLIENTS = 8


def start(gateway, *words, **more):
    status, answer = ask(gateway, "POST", "/v1/processes", {"command": list(map(str, words)), **more})
    assert status in (200, 201), answer
    return answer


def nodes_are_listed_and_seen_by_the_tools_of_the_broker(fleet, gateway):
    status, answer = ask(gateway, "GET", "/v1/nodes")
    assert status == 200, answer
    assert [(node["name"], node["state"]) for node in answer["nodes"]] == [
        (name, "present") for name in sorted(NODES)
    ], answer
    assert fleet.services() == sorted(NODES), fleet.services()
    assert all(node["last"]["labels"] == {"zone": node["name"][0]} for node in answer["nodes"])


def a_start_goes_where_it_is_told_and_its_id_leads_there(fleet, gateway):
    for name in NODES:
        by_name = start(gateway, fleet.testchild, "print", "hello", on={"node": name}, wait={"exit": True})
        assert by_name["process"]["node"] == name, by_name
        assert by_name["output"]["content"]["head"] == "hello", by_name
        by_label = start(gateway, fleet.testchild, "print", "x", on={"labels": {"zone": name[0]}})
        assert by_label["process"]["node"] in [other for other in NODES if other[0] == name[0]], by_label
        process = by_name["process"]["id"]
        for given in [process, process[-8:]]:
            status, shown = ask(gateway, "GET", f"/v1/processes/{given}")
            assert (status, shown["node"], shown["id"]) == (200, name, process), shown
    status, answer = ask(gateway, "POST", "/v1/processes", {"shell": "true", "on": {"node": "nobody"}})
    assert (status, answer["error"]["code"]) == (404, "node_not_found"), answer
    status, answer = ask(gateway, "POST", "/v1/processes", {"shell": "true", "on": {"labels": {"zone": "q"}}})
    assert (status, answer["error"]["code"]) == (503, "no_node"), answer


def a_plain_server_refuses_what_is_for_a_gateway(fleet, gateway):
    node = fleet.folder / "one.sock"
    for member in ({"on": {"node": "one"}}, {"replace": True}):
        status, answer = ask(node, "POST", "/v1/processes", {"shell": "true", **member})
        assert (status, answer["error"]["code"]) == (422, "not_a_gateway"), answer
    status, answer = ask(node, "GET", "/v1/nodes")
    assert (status, answer["error"]["code"]) == (422, "not_a_gateway"), answer


def a_list_has_all_nodes_newest_first_and_pages(fleet, gateway):
    session = f"s{uuid.uuid4()}"
    ids = [
        start(gateway, fleet.testchild, "print", nth, on={"node": NODES[nth % 3]}, session=session)["process"]["id"]
        for nth in range(7)
    ]
    seen, before = [], ""
    while True:
        status, page = ask(gateway, "GET", f"/v1/processes?session={session}&limit=3{before}")
        assert status == 200 and "silent_nodes" not in page, page
        seen += [process["id"] for process in page["processes"]]
        if "next" not in page:
            break
        before = f"&before={page['next']}"
    assert seen == ids[::-1], (seen, ids)


def a_log_is_the_same_to_the_last_byte(fleet, gateway):
    size = 12 << 20
    want = random.Random(SEED).randbytes(size)
    path = fleet.folder / "bytes"
    path.write_bytes(want)
    process = start(gateway, "cat", path, on={"node": "two"}, wait={"exit": True})["process"]
    status, raw = ask(gateway, "GET", f"/v1/processes/{process['id']}/output?view=raw&max_bytes={size}")
    assert status == 200 and hashlib.sha256(raw).digest() == hashlib.sha256(want).digest(), len(raw)
    logs = fleet.call("logs", process["id"])
    assert logs.stdout == want, len(logs.stdout)
    followed = fleet.call("logs", "-f", process["id"])
    assert followed.stdout == want, len(followed.stdout)


def the_command_line_talks_to_the_fleet(fleet, gateway):
    done = fleet.call("start", "--on", "three", "--", fleet.testchild, "print", "from-three")
    process = done.stdout.decode().strip()
    fleet.call("wait", process)
    assert fleet.call("logs", process).stdout == b"from-three"
    assert "three" in next(
        line for line in fleet.call("ps").stdout.decode().splitlines() if process[-8:] in line
    )
    held = [
        fleet.call("start", "--on", name, "--label", "kind=held", "--", "sleep", "1000").stdout.decode().strip()
        for name in NODES
    ]
    stopped = fleet.call("stop", *held)
    for process in held:
        status, shown = ask(gateway, "GET", f"/v1/processes/{process}")
        assert (status, shown["phase"]) == (200, "ended"), (shown, stopped)
    done = fleet.call("nodes")
    assert all(name in done.stdout.decode() for name in NODES)


def a_wait_for_processes_of_several_nodes_is_for_all_or_for_any(fleet, gateway):
    held = [start(gateway, "sleep", "1000", on={"node": name})["process"]["id"] for name in ("one", "two")]
    short = start(gateway, fleet.testchild, "print", "x", on={"node": "three"})["process"]["id"]
    wait = {"select": {"ids": [*held, short]}, "wait": {"exit": True}, "any": True}
    status, answer = ask(gateway, "POST", "/v1/wait", wait)
    assert status == 200, answer
    met = [(outcome["process"]["id"], outcome.get("wait")) for outcome in answer["processes"]]
    assert met == [(held[0], None), (held[1], None), (short, {"met": "exit"})], met
    status, answer = ask(gateway, "POST", "/v1/stop", {"select": {"ids": [*held, "nobody-has-this"]}})
    assert status == 200 and [outcome.get("proof") is not None for outcome in answer["processes"]] == [
        True, True, False,
    ], answer
    assert answer["processes"][2]["error"]["code"] == "process_not_found", answer
    status, answer = ask(gateway, "POST", "/v1/wait", {"select": {"ids": held}, "wait": {"exit": True}})
    assert status == 200 and all(outcome["wait"] == {"met": "exit"} for outcome in answer["processes"]), answer


def a_client_that_goes_away_ends_its_request_on_the_node(fleet, gateway):
    process = start(gateway, "sleep", "1000", on={"node": "one"})["process"]["id"]
    waits = lambda: next(
        int(line.split()[-1])
        for line in ask(fleet.folder / "one.sock", "GET", "/metrics")[1].decode().splitlines()
        if line.startswith("lastbyte_http_waits")
    )
    before = waits()
    connection = Unix(gateway)
    connection.request("GET", f"/v1/processes/{process}/follow")
    connection.getresponse().read(1)
    eventually("the node follows", lambda: waits() == before + 1)
    connection.close()
    connection.sock = None
    eventually("the node follows no more", lambda: waits() == before, 20)
    ask(gateway, "POST", f"/v1/processes/{process}/stop", {"grace_ms": 0})


def attaching_types_on_another_machine(fleet, gateway):
    done = fleet.call("start", "--on", "two", "--stdin-open", "--", "cat")
    process = done.stdout.decode().strip()
    typed = fleet.call("attach", process, input=b"typed\n", check=False)
    assert b"typed" in typed.stdout, (typed.stdout, typed.stderr)
    ask(gateway, "POST", f"/v1/processes/{process}/stop", {"grace_ms": 0})


def a_node_that_drains_takes_nothing_and_goes_on(fleet, gateway):
    running = start(gateway, "sleep", "1000", on={"node": "two"})["process"]["id"]
    fleet.call("drain", "two")
    status, answer = ask(gateway, "POST", "/v1/processes", {"shell": "true", "on": {"node": "two"}})
    assert (status, answer["error"]["code"]) == (503, "no_node"), answer
    for _ in range(6):
        assert start(gateway, fleet.testchild, "print", "x")["process"]["node"] != "two"
    assert ask(gateway, "GET", f"/v1/processes/{running}")[1]["phase"] == "running"
    fleet.call("drain", "--undo", "two")
    eventually("it takes commands again", lambda: ask(
        gateway, "POST", "/v1/processes", {"shell": "true", "on": {"node": "two"}})[0] == 201)
    ask(gateway, "POST", f"/v1/processes/{running}/stop", {"grace_ms": 0})


def a_key_is_started_once_and_belongs_to_one_launch(fleet, gateway):
    key = f"k{uuid.uuid4()}"
    first = start(gateway, fleet.testchild, "print", "x", key=key)
    again = start(gateway, fleet.testchild, "print", "x", key=key)
    assert again["attached"] and again["process"]["id"] == first["process"]["id"], again
    other = {"command": [str(fleet.testchild), "print", "y"], "key": key}
    status, answer = ask(gateway, "POST", "/v1/processes", other)
    assert (status, answer["error"]["code"]) == (409, "key_conflict"), answer
    # A key whose command never ran can be used for another one.
    key = f"k{uuid.uuid4()}"
    status, answer = ask(gateway, "POST", "/v1/processes", {"command": ["/no/such/program"], "key": key})
    assert (status, answer["error"]["code"]) == (422, "program_not_found"), answer
    assert not start(gateway, fleet.testchild, "print", "x", key=key).get("attached")
    # Nor is one burned by a request that is invalid.
    key = f"k{uuid.uuid4()}"
    for more in ({"wait": {"exit": "soon"}}, {"limits": 7}, {"name": ["x"]}):
        status, answer = ask(gateway, "POST", "/v1/processes", {"shell": "true", "key": key, **more})
        assert 400 <= status < 500 and answer["error"]["code"] != "key_conflict", (more, status, answer)
    assert not start(gateway, fleet.testchild, "print", "x", key=key).get("attached")
    for more in ({"key": 7}, {"key": key, "replace": "yes"}):
        status, answer = ask(gateway, "POST", "/v1/processes", {"shell": "true", **more})
        assert (status, answer["error"]["code"]) == (400, "invalid_request"), (more, answer)


def a_claim_in_the_head_of_another_request_burns_no_key(fleet, gateway):
    """What gateways and nodes say to each other in heads is not for clients."""
    process = start(gateway, fleet.testchild, "print", "x", on={"node": "one"}, wait={"exit": True})["process"]["id"]
    nodes = ask(gateway, "GET", "/v1/nodes")[1]["nodes"]
    epoch = next(node["last"]["epoch"] for node in nodes if node["name"] == "one")
    key = f"k{uuid.uuid4()}"
    claim = {"node": "one", "epoch": epoch, "fingerprint": "x", "attempt": 1 << 30, "replaced": 0}
    connection = Unix(gateway)
    head = {"lastbyte-claim": json.dumps({"key": key, "claim": claim})}
    connection.request("GET", f"/v1/processes/{process}/no-such-thing", headers=head)
    assert connection.getresponse().status == 404
    connection.close()
    start(gateway, fleet.testchild, "print", "x", key=key, on={"node": "one"})


def a_node_takes_no_more_commands_than_it_has_slots(fleet, gateway):
    """Also when its last beat said that it has some left, and nobody asks it for a bid."""
    fleet.node("small", "--slots", "3")
    try:
        present(gateway, "small")
        launch = {"command": ["sleep", "1000"], "on": {"node": "small"}}
        started = [start(gateway, "sleep", "1000", on={"node": "small"})["process"]["id"] for _ in range(3)]
        status, answer = ask(gateway, "POST", "/v1/processes", launch)
        assert (status, answer["error"]["code"]) == (503, "no_node"), answer
        ask(gateway, "POST", "/v1/stop", {"select": {"ids": started}, "stop": {"grace_ms": 0}})
    finally:
        forget(fleet, gateway, "small")


def what_a_server_refuses_a_gateway_refuses_too(fleet, gateway):
    process = start(gateway, fleet.testchild, "print", "x", wait={"exit": True})["process"]["id"]
    for path, more in (("stop", {}), ("signal", {"signal": "TERM"}), ("forget", {}), ("wait", {"wait": {"exit": True}})):
        for select in ({"ids": [None, process]}, {"ids": [7]}, {"ids": process}, {"ids": ["x"] * 10_001}, {}, None):
            status, answer = ask(gateway, "POST", f"/v1/{path}", {"select": select, **more})
            assert (status, answer["error"]["code"]) == (400, "invalid_request"), (path, answer)
        status, answer = ask(gateway, "POST", f"/v1/{path}", {"select": {"ids": []}, "no-such-member": 1, **more})
        assert (status, answer["error"]["code"]) == (400, "invalid_request"), (path, answer)
        status, answer = ask(gateway, "PUT", f"/v1/{path}")
        assert (status, answer["error"]["code"]) == (405, "method_not_allowed"), (path, answer)
    assert ask(gateway, "GET", f"/v1/processes/{process}")[0] == 200, "an invalid request has forgotten it"
    status, answer = ask(gateway, "GET", "/v1/processes/%ff")
    assert (status, answer["error"]["code"]) == (404, "process_not_found"), answer
    # Each of these is asked of all nodes: not all at the same time.
    status, answer = ask(gateway, "POST", "/v1/stop", {"select": {"ids": [f"nobody-{nth}" for nth in range(1000)]}})
    assert status == 200 and len(answer["processes"]) == 1000, answer
    assert {outcome["error"]["code"] for outcome in answer["processes"]} == {"process_not_found"}, answer


def a_start_whose_caller_has_left_is_finished(fleet, gateway):
    """Its claim is written, and the answer to the write is lost: the gateway asks again two seconds later."""
    trace = fleet.folder / "left-trace"
    with Lossy(fleet.clients[0]) as lossy:
        left = fleet.serve("left", "--gateway", nats=lossy.url)
        try:
            eventually("it knows the nodes", lambda: len(ask(left, "GET", "/v1/nodes")[1]["nodes"]) >= 3)
            start(left, fleet.testchild, "print", "x", key=f"k{uuid.uuid4()}")
            lossy.loses = lambda subject, payload: subject.startswith("$KV.lb_claims.")
            connection = Unix(left)
            launch = {"shell": f"echo ran >> {trace}", "key": f"k{uuid.uuid4()}", "wait": {"exit": True}}
            connection.request("POST", "/v1/processes", json.dumps(launch))
            eventually("the claim is written", lambda: lossy.lost)
            connection.close()
            lossy.loses = lambda subject, payload: False
            eventually("the command ran", trace.exists, 20)
            assert trace.read_text() == "ran\n"
        finally:
            fleet.end("left", signal.SIGTERM)


def one_server_has_a_name(fleet, gateway):
    """A second one with the name waits, and takes it once the first one is gone."""
    fleet.node("twin")
    try:
        present(gateway, "twin")
        epoch = lambda: next(node for node in ask(gateway, "GET", "/v1/nodes")[1]["nodes"] if node["name"] == "twin")[
            "last"]["epoch"]
        first = epoch()
        second = fleet.serve("other", "--node", "twin")
        log = fleet.folder / "other.log"
        eventually("the second one is refused", lambda: "another server is the node twin" in log.read_text())
        for _ in range(5):
            process = start(gateway, fleet.testchild, "print", "x", on={"node": "twin"})["process"]["id"]
            assert ask(fleet.folder / "twin.sock", "GET", f"/v1/processes/{process}")[0] == 200
            assert ask(second, "GET", f"/v1/processes/{process}")[0] == 404
        assert epoch() == first, "the first one had to join again"
        # One that is started again on its own folder is the same server.
        fleet.end("twin", signal.SIGTERM)
        fleet.node("twin")
        eventually("it has joined again", lambda: epoch() > first, 8)
        fleet.end("twin", signal.SIGTERM)
        process = eventually("the second one takes over", lambda: found_on(gateway, "twin", fleet.testchild), 30)
        assert ask(second, "GET", f"/v1/processes/{process}")[0] == 200
    finally:
        for name in ("twin", "other"):
            if name in fleet.processes:
                fleet.end(name, signal.SIGTERM)
        eventually("it is forgotten", lambda: fleet.call("nodes", "--forget", "twin", check=False).returncode == 0)
        gone = lambda: all(node["name"] != "twin" for node in ask(gateway, "GET", "/v1/nodes")[1]["nodes"])
        eventually("the gateway has forgotten it", gone)


def found_on(gateway, node, program):
    launch = {"command": [str(program), "print", "x"], "on": {"node": node}}
    status, answer = ask(gateway, "POST", "/v1/processes", launch)
    return answer["process"]["id"] if status == 201 else None


def a_revoked_token_ends_an_attachment_to_another_machine(fleet, gateway):
    [port] = free_ports(1)
    door = fleet.gateway("door", "--listen", f"127.0.0.1:{port}")
    process = start(gateway, "cat", stdin="open", on={"node": "one"})["process"]["id"]
    try:
        present(door, "one")
        status, token = ask(door, "POST", "/v1/tokens", {})
        assert status in (200, 201), token
        with socket.create_connection(("127.0.0.1", port), timeout=20) as attached:
            attached.sendall(
                f"GET /v1/processes/{process}/attach HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                f"Authorization: Bearer {token['token']}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
            )
            head = attached.recv(1 << 16)
            assert head.startswith(b"HTTP/1.1 101"), head
            status, answer = ask(door, "DELETE", f"/v1/tokens/{token['info']['id']}")
            assert status in (200, 204), answer
            began = time.monotonic()
            while attached.recv(1 << 16):
                assert time.monotonic() - began < 10, "the attachment goes on"
    finally:
        fleet.end("door", signal.SIGTERM)
        ask(gateway, "POST", f"/v1/processes/{process}/stop", {"grace_ms": 0})


def a_broker_that_has_lost_everything_is_joined_again(fleet, gateway):
    epochs = lambda: {
        node["name"]: node["last"]["epoch"]
        for node in ask(gateway, "GET", "/v1/nodes")[1].get("nodes", [])
        if node["state"] == "present"
    }
    before = epochs()
    for nth in range(3):
        fleet.end(f"nats{nth}")
        shutil.rmtree(fleet.folder / f"nats{nth}")
    fleet.start_broker()
    for name in NODES:
        eventually(f"{name} has joined again", lambda: epochs().get(name, before[name]) != before[name])
    for name in NODES:
        assert found_on(gateway, name, fleet.testchild), name


def a_silent_node_is_named_and_its_processes_are_unknown(fleet, gateway):
    key = f"k{uuid.uuid4()}"
    kept = start(gateway, fleet.testchild, "print", "kept", on={"node": "three"}, key=key, wait={"exit": True})
    process = kept["process"]["id"]
    fleet.end("three", signal.SIGTERM)
    status, answer = ask(gateway, "GET", f"/v1/processes/{process}")
    assert (status, answer["error"]["code"]) == (503, "node_silent"), answer
    assert "three" in answer["error"]["message"], answer
    status, page = ask(gateway, "GET", "/v1/processes")
    assert status == 200 and page["silent_nodes"] == ["three"], page.get("silent_nodes")
    assert b"three" in fleet.call("ps").stderr
    # A name may stand for a process of the silent node, a whole id stands for itself.
    named = start(gateway, "sleep", "1000", name="here-and-perhaps-there", on={"node": "one"})["process"]["id"]
    for given in ("here-and-perhaps-there", named[-8:], "last"):
        status, answer = ask(gateway, "GET", f"/v1/processes/{given}")
        assert (status, answer["error"]["code"]) == (503, "node_silent"), (given, answer)
        assert "three" in answer["error"]["message"] and named in answer["error"]["hint"], answer
    assert ask(gateway, "GET", f"/v1/processes/{named}")[0] == 200
    ask(gateway, "POST", f"/v1/processes/{named}/stop", {"grace_ms": 0})
    launch = {"command": [str(fleet.testchild), "print", "kept"], "key": key, "wait": {"exit": True}}
    status, answer = ask(gateway, "POST", "/v1/processes", launch)
    assert (status, answer["error"]["code"]) == (503, "node_silent"), answer
    status, answer = ask(gateway, "POST", "/v1/processes", {**launch, "replace": True})
    assert status == 201 and answer["process"]["node"] != "three", answer
    replaced = answer["process"]["id"]
    fleet.node("three", "--label", "zone=t")
    present(gateway, "three")
    shown = eventually("its process is back", lambda: found(gateway, process))
    assert shown["ending"]["status"] == {"kind": "exited", "code": 0}, shown
    status, answer = ask(gateway, "POST", "/v1/processes", launch)
    assert (status, answer["process"]["id"]) == (200, replaced), answer


def found(gateway, process):
    status, shown = ask(gateway, "GET", f"/v1/processes/{process}")
    return shown if status == 200 else None


def present(gateway, name):
    def look():
        nodes = ask(gateway, "GET", "/v1/nodes")[1].get("nodes", [])
        return [node for node in nodes if node["name"] == name and node["state"] == "present"]

    eventually(f"{name} is present", look)


def keyed_starts_happen_once_while_all_is_killed_and_cut(fleet, gateway):
    """Each command writes one line into a file of its key: two lines are a double start."""
    folder = fleet.folder / "ran"
    folder.mkdir()
    acknowledged, more = {}, ["four", "five"]
    names = NODES + more
    # These two nodes and the second gateway reach the broker on ways that are cut.
    with Lossy(*fleet.clients) as first, Lossy(*fleet.clients) as second, Lossy(*fleet.clients) as third:
        urls = dict(zip(more, (first.url, second.url)))
        keep = ("--keep-processes", "1000000", "--keep-at-least", "24h")
        options = lambda name: (name, "--label", f"zone={name[0]}", *keep)
        serve = lambda name: fleet.node(*options(name), nats=urls.get(name))
        for name in NODES:
            fleet.end(name, signal.SIGTERM)
        for name in names:
            serve(name)
        gateways = [gateway, fleet.gateway("second", nats=third.url)]
        for name in names:
            for one in gateways:
                present(one, name)
        try:
            starts, killed = start_and_kill(fleet, gateways, folder, acknowledged, (names, serve, (first, second, third)))
        finally:
            fleet.end("second", signal.SIGTERM)
        for name in names:
            present(gateway, name)
        check_all(gateway, folder, acknowledged, starts, killed)
        for name in more:
            forget(fleet, gateway, name)
    assert killed, "nothing was killed"


def start_and_kill(fleet, gateways, folder, acknowledged, what):
    numbers, done, killed, starts = itertools.count(), threading.Event(), {}, {"acknowledged": 0, "repeated": 0}
    end = time.monotonic() + SECONDS

    def client(nth):
        while time.monotonic() < end and not done.is_set():
            # Each key is wanted by two clients at about the same time, and each repeats its start.
            number = next(numbers)
            if number >= 2 * KEYS:
                return
            key = f"key-{number // 2}"
            launch = {"shell": f"echo ran >> {folder / key}", "key": key, "wait": {"exit": True}}
            for repeated in itertools.count():
                if done.is_set():
                    return
                try:
                    status, answer = ask(gateways[(number + repeated) % 2], "POST", "/v1/processes", launch)
                except (OSError, http.client.HTTPException):
                    continue
                if status in (200, 201):
                    process = answer["process"]["id"]
                    known = acknowledged.setdefault(key, process)
                    assert known == process, f"{key} has two processes: {known} and {process}"
                    starts["acknowledged"] += 1
                    starts["repeated"] += repeated
                    break
                assert status == 503, (key, status, answer)
            done.wait(0.05)  # so that there are not too many processes to look at

    def kill_until_done():
        try:
            kill(fleet, done, killed, *what)
        finally:
            done.set()  # what it could not start again is waited for by clients

    with concurrent.futures.ThreadPoolExecutor(CLIENTS + 1) as pool:
        killer = pool.submit(kill_until_done)
        try:
            list(pool.map(client, range(CLIENTS)))
        finally:
            done.set()
        killer.result()
    return starts, killed


def kill(fleet, done, killed, names, serve, ways):
    dice = random.Random(SEED)
    while not done.wait(dice.uniform(0.5, 2)):
        what = dice.choice(["worker", "worker", "node", "machine", "nats", "frozen nats", "cut", "deaf"])
        if "nats" in what:
            leader = fleet.leader()
            if not leader:
                continue
            if what == "nats":
                fleet.end(f"nats{leader - 1}")
                done.wait(dice.uniform(0, 1))
                fleet.start_nats(leader - 1)
            else:
                # It does not know that another one leads meanwhile.
                frozen = fleet.processes[f"nats{leader - 1}"]
                frozen.send_signal(signal.SIGSTOP)
                done.wait(dice.uniform(1, 8))
                frozen.send_signal(signal.SIGCONT)
            eventually("the cluster has a leader again", fleet.leader)
        elif what in ("cut", "deaf"):
            way = dice.choice(ways)
            if what == "cut":
                way.cut()
            else:
                way.loses = lambda subject, payload: True
            done.wait(dice.uniform(0.2, 12))
            way.mend()
        else:
            name = dice.choice(names)
            if what in ("worker", "machine"):
                try:
                    worker = ask(fleet.folder / f"{name}.sock", "GET", "/healthz")[1]["keeper"]["worker_pid"]
                    if what == "machine":
                        fleet.end(name)
                    os.kill(worker, signal.SIGKILL)
                except OSError:
                    pass  # it has just been killed
                if what == "machine":
                    eventually(f"{name} is gone", lambda: is_unlocked(fleet.folder / name / "lock"))
            elif what == "node":
                fleet.end(name, signal.SIGTERM)
            if name not in fleet.processes:
                serve(name)
        killed[what] = killed.get(what, 0) + 1


def check_all(gateway, folder, acknowledged, starts, killed):
    """What has run is what the nodes know, and each acknowledged process is among it."""
    twice = [path.name for path in folder.iterdir() if path.read_text() != "ran\n"]
    assert not twice, f"started twice: {twice}"
    listed, by_key = {}, {}
    for process in all_processes(gateway):
        listed[process["id"]] = process
        if (key := process.get("key", "")).startswith("key-"):
            by_key.setdefault(key, []).append(process["id"])
    several = {key: ids for key, ids in by_key.items() if len(ids) > 1}
    assert not several, f"keys with several processes: {several}"
    missing = [(key, process) for key, process in acknowledged.items() if process not in listed]
    assert not missing, f"acknowledged, and lost: {missing}"
    endings, traceless = {}, 0
    for key, process in acknowledged.items():
        shown = listed[process]
        status = shown["ending"]["status"]
        name = json.dumps(status)
        endings[name] = endings.get(name, 0) + 1
        is_exit = status == {"kind": "exited", "code": 0}
        assert is_exit or status["kind"] in ("lost", "signalled"), (key, shown)
        if not (folder / key).exists():
            traceless += 1
            assert not is_exit, (key, shown)
    print(f"      {len(acknowledged)} keys, starts {starts}, killed {killed}, endings {endings}, without a trace {traceless}")


def all_processes(gateway):
    before = ""
    while True:
        page = eventually("all nodes are listed", lambda: whole_page(gateway, before))
        yield from page["processes"]
        if "next" not in page:
            return
        before = f"&before={page['next']}"


def whole_page(gateway, before):
    status, page = ask(gateway, "GET", f"/v1/processes?limit=1000{before}")
    return page if status == 200 and "silent_nodes" not in page else None


def is_unlocked(path):
    """A server that was killed is gone once it has let go of its state: the signal is only the beginning."""
    with open(path) as file, contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def a_last_message_that_is_lost_breaks_the_stream(fleet, gateway):
    """The follower has the node's word every two seconds, so only that word can tell what is missing."""
    with Lossy(fleet.clients[0]) as lossy:
        fleet.serve("lossy", "--node", "lossy", nats=lossy.url)
        try:
            present(gateway, "lossy")
            launch = {"command": ["cat"], "stdin": "open", "on": {"node": "lossy"}}
            status, answer = ask(gateway, "POST", "/v1/processes", launch)
            assert status == 201, answer
            process = answer["process"]["id"]
            connection = Unix(gateway, timeout=20)
            connection.request("GET", f"/v1/processes/{process}/follow")
            follower = connection.getresponse()
            lossy.loses = lambda subject, payload: b"lose-me" in payload
            node = fleet.folder / "lossy.sock"
            status, answer = ask(node, "POST", f"/v1/processes/{process}/stdin", b"lose-me\n")
            assert status == 200, answer
            eventually("the message is lost", lambda: lossy.lost)
            began = time.monotonic()
            try:
                rest = follower.read()
                raise AssertionError(f"the answer ended as if it were whole: {rest}")
            except http.client.IncompleteRead:
                pass
            assert time.monotonic() - began < 8, "the beat did not tell"
            ask(node, "POST", f"/v1/processes/{process}/stop", {"grace_ms": 0})
        finally:
            forget(fleet, gateway, "lossy")


def a_node_that_does_not_come_back_is_forgotten(fleet, gateway):
    fleet.node("short")
    present(gateway, "short")
    status, answer = ask(gateway, "DELETE", "/v1/nodes/short")
    assert (status, answer["error"]["code"]) == (400, "invalid_request"), answer
    forget(fleet, gateway, "short")
    names = lambda: [node["name"] for node in ask(gateway, "GET", "/v1/nodes")[1]["nodes"]]
    assert "short" not in names(), names()
    assert "silent_nodes" not in ask(gateway, "GET", "/v1/processes")[1]
    status, answer = ask(gateway, "DELETE", "/v1/nodes/short")
    assert (status, answer["error"]["code"]) == (404, "node_not_found"), answer
    assert b"short" not in fleet.call("nodes").stdout
    fleet.node("short")
    present(gateway, "short")
    forget(fleet, gateway, "short")


def forget(fleet, gateway, name):
    """Ends a node that a check has started, so that the next one does not find it silent."""
    fleet.end(name, signal.SIGTERM)
    eventually(f"{name} is forgotten", lambda: fleet.call("nodes", "--forget", name, check=False).returncode == 0)
    gone = lambda: all(node["name"] != name for node in ask(gateway, "GET", "/v1/nodes")[1]["nodes"])
    eventually("the gateway has forgotten it", gone)


CHECKS = [
    nodes_are_listed_and_seen_by_the_tools_of_the_broker,
    a_start_goes_where_it_is_told_and_its_id_leads_there,
    a_plain_server_refuses_what_is_for_a_gateway,
    a_list_has_all_nodes_newest_first_and_pages,
    a_log_is_the_same_to_the_last_byte,
    the_command_line_talks_to_the_fleet,
    a_wait_for_processes_of_several_nodes_is_for_all_or_for_any,
    a_client_that_goes_away_ends_its_request_on_the_node,
    attaching_types_on_another_machine,
    events.the_events_of_all_nodes_are_one_feed_that_is_resumed_in_each,
    events.a_feed_goes_on_when_a_worker_is_killed_and_says_what_it_may_have_missed,
    events.a_link_of_a_gateway_opens_a_page_with_the_processes_of_all_nodes,
    a_last_message_that_is_lost_breaks_the_stream,
    a_node_that_drains_takes_nothing_and_goes_on,
    a_key_is_started_once_and_belongs_to_one_launch,
    a_claim_in_the_head_of_another_request_burns_no_key,
    a_node_takes_no_more_commands_than_it_has_slots,
    what_a_server_refuses_a_gateway_refuses_too,
    a_start_whose_caller_has_left_is_finished,
    one_server_has_a_name,
    a_revoked_token_ends_an_attachment_to_another_machine,
    a_node_that_does_not_come_back_is_forgotten,
    a_silent_node_is_named_and_its_processes_are_unknown,
    keyed_starts_happen_once_while_all_is_killed_and_cut,
    a_broker_that_has_lost_everything_is_joined_again,
]


def main(programs, nats_server, *wanted):
    failed = []
    with tempfile.TemporaryDirectory(prefix="lastbyte-fleet-") as folder:
        with Cluster(folder, pathlib.Path(programs).resolve(), pathlib.Path(nats_server).resolve()) as fleet:
            fleet.start_broker()
            for name in NODES:
                fleet.node(name, "--label", f"zone={name[0]}")
            gateway = fleet.gateway("gateway")
            for name in NODES:
                present(gateway, name)
            for check in CHECKS:
                if wanted and not any(part in check.__name__ for part in wanted):
                    continue
                began = time.monotonic()
                try:
                    check(fleet, gateway)
                    print(f"ok    {check.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
                except Exception as error:
                    failed.append(check.__name__)
                    print(f"FAILED {check.__name__}: {type(error).__name__}: {error}", flush=True)
            if failed and os.environ.get("LASTBYTE_TEST_FLEET_LOGS"):
                for log in sorted(fleet.folder.glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
