"""What a fleet promises, with a real cluster of three NATS servers and real nodes on loopback."""

import base64
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import uuid

sys.dont_write_bytecode = True

from cluster import Cluster, Unix, ask, eventually
from lossy import Lossy

NODES = ["one", "two", "three"]
STARTS = int(os.environ.get("LASTBYTE_TEST_FLEET_STARTS", "300"))
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


def keyed_starts_happen_once_while_servers_nodes_and_workers_are_killed(fleet, gateway):
    """Each command writes one line into a file of its key: two lines are a double start."""
    folder = fleet.folder / "ran"
    folder.mkdir()
    keys = [f"key-{nth}" for nth in range(STARTS)]
    lock, left, done, acknowledged = threading.Lock(), list(keys), threading.Event(), {}

    def client(_):
        while True:
            with lock:
                if not left:
                    return
                key = left.pop()
            launch = {"shell": f"echo ran >> {folder / key}", "key": key, "wait": {"exit": True}}
            while True:
                try:
                    status, answer = ask(gateway, "POST", "/v1/processes", launch)
                except OSError:
                    continue
                if status in (200, 201):
                    acknowledged[key] = answer["process"]["id"]
                    break
                assert status == 503, (key, status, answer)

    def kill():
        dice = random.Random(SEED)
        while not done.wait(dice.uniform(0.5, 2)):
            what = dice.choice(["worker", "worker", "node", "nats"])
            if what == "nats":
                leader = fleet.leader()
                if leader:
                    fleet.end(f"nats{leader - 1}")
                    done.wait(dice.uniform(0, 1))
                    fleet.start_nats(leader - 1)
                    eventually("the cluster has a leader again", fleet.leader)
            else:
                name = dice.choice(NODES)
                if what == "worker":
                    try:
                        health = ask(fleet.folder / f"{name}.sock", "GET", "/healthz")[1]
                        os.kill(health["keeper"]["worker_pid"], signal.SIGKILL)
                    except OSError:
                        pass  # the one before has just been killed
                else:
                    fleet.end(name, signal.SIGTERM)
                    fleet.node(name, "--label", f"zone={name[0]}")

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(client, range(CLIENTS)))
    finally:
        done.set()
        killer.join()
    for name in NODES:
        present(gateway, name)
    lost = [key for key in keys if not (folder / key).exists()]
    twice = [key for key in keys if (folder / key).exists() and (folder / key).read_text().count("ran") != 1]
    assert not twice, f"started twice: {twice}"
    endings = {}
    for key, process in acknowledged.items():
        shown = eventually(f"{process} is found again", lambda: found(gateway, process))
        status = shown["ending"]["status"]
        endings[json.dumps(status)] = endings.get(json.dumps(status), 0) + 1
        if key in lost:
            assert "exited" not in json.dumps(status), (key, shown)
    print(f"      {len(keys)} keys, endings {endings}, without a trace {len(lost)}")
    assert len(acknowledged) == len(keys)


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
            fleet.end("lossy", signal.SIGTERM)


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
    a_last_message_that_is_lost_breaks_the_stream,
    a_node_that_drains_takes_nothing_and_goes_on,
    a_key_is_started_once_and_belongs_to_one_launch,
    a_silent_node_is_named_and_its_processes_are_unknown,
    keyed_starts_happen_once_while_servers_nodes_and_workers_are_killed,
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
