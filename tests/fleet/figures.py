#!/usr/bin/env python3
"""Prints the figures of docs/fleet.md: `tests/fleet/figures.py FOLDER_OF_PROGRAMS NATS_SERVER`. It takes a minute.

What is compared is measured in turn: a node's own socket, then a gateway's. Node and gateway use different servers of
the broker, so that each message passes two. The floor of the broker is measured on the same way, without lastbyte.
"""

import json
import os
import pathlib
import socket
import statistics
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from cluster import Cluster, Unix, ask

NODES = [f"n{number}" for number in range(5)]
ROUNDS, RUNS, ENDED = 5, 200, 1000
BYTES, PIECE = 256 << 20, 32 << 20
TRUE = {"command": ["/bin/true"], "wait": {"exit": True}, "on": {"node": "n0"}}


# As in crates/fleet/src/carry: a message of a stream, with its header.
MESSAGE = (64 << 10) + 9


class Broker:
    """One connection of a client that speaks NATS by hand."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.say(b'CONNECT {"verbose":false,"headers":true}\r\n')
        self.flush()

    def say(self, text):
        self.socket.sendall(text)

    def flush(self):
        self.say(b"PING\r\n")
        self.until(b"PONG\r\n")

    def until(self, end):
        answer = b""
        while not answer.endswith(end):
            part = self.socket.recv(1 << 16)
            assert part, answer
            answer += part
        return answer

    def subscribe(self, subject):
        self.say(f"SUB {subject} 1\r\n".encode())
        self.flush()

    def ask(self, subject, inbox):
        """One request, and its answer."""
        self.say(f"PUB {subject} {inbox} 0\r\n\r\n".encode())
        self.until(b"}\r\n")


def carried(publisher, subscriber, subject):
    """Sends as many bytes as the output has, in messages of the same size, and waits for the last one."""
    message = f"PUB {subject} {MESSAGE}\r\n".encode() + bytes(MESSAGE) + b"\r\n"
    many = message * 16
    count = BYTES // (64 << 10)

    def publish():
        for _ in range(count // 16):
            publisher.say(many)

    sender = threading.Thread(target=publish)
    sender.start()
    head = f"MSG {subject} 1 {MESSAGE}\r\n"
    expected, got, buffer = count * (len(head) + MESSAGE + 2), 0, bytearray(1 << 20)
    while got < expected:
        read = subscriber.socket.recv_into(buffer)
        assert read, "the broker has closed the connection"
        got += read
    sender.join()


def post(connection, path, body):
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status in (200, 201), (answer.status, text[:300])
    return json.loads(text)


def get(connection, path):
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, (answer.status, text[:300])
    return text


def listed(connection, expected):
    """All pages."""
    count, before = 0, ""
    while count < expected:
        page = json.loads(get(connection, f"/v1/processes?session=many&limit=1000{before}"))
        assert page["processes"], f"{count} of {expected}"
        count, before = count + len(page["processes"]), f"&before={page.get('next')}"
    assert count == expected, count


def timed(work, count):
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(taken)


def in_turn(what, works, count):
    rounds = [[timed(work, count) for work in works.values()] for _ in range(ROUNDS)]
    for name, values in zip(works, zip(*rounds)):
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{what}, {name}: {middle:.2f} ms ({low:.2f} to {high:.2f})", flush=True)


def main(programs, nats_server):
    with tempfile.TemporaryDirectory(prefix="lastbyte-fleet-", dir="/var/tmp") as folder:
        with Cluster(folder, pathlib.Path(programs).resolve(), pathlib.Path(nats_server).resolve()) as fleet:
            fleet.start_broker()
            url = lambda nth: f"nats://127.0.0.1:{fleet.clients[nth]}"
            keep = ("--keep-processes", "20000")
            nodes = {name: Unix(fleet.node(name, *keep, nats=url(0))) for name in NODES}
            gateway_path = fleet.gateway("gateway", nats=url(1))
            while len(ask(gateway_path, "GET", "/v1/nodes")[1]["nodes"]) < len(NODES):
                time.sleep(0.1)
            gateway = Unix(gateway_path)
            print(f"load of the machine before: {os.getloadavg()[0]:.2f}", flush=True)
            measure(nodes, gateway, [Broker(port) for port in fleet.clients[:2]])


def measure(nodes, gateway, brokers):
    near, far = brokers
    far.subscribe("_INBOX.hand.>")
    own = {key: value for key, value in TRUE.items() if key != "on"}
    works = {
        "on the node": lambda: post(nodes["n0"], "/v1/processes", own),
        "one question over NATS, without a start": lambda: far.ask("lb.v1.bid.n0", "_INBOX.hand.answer"),
        "through a gateway": lambda: post(gateway, "/v1/processes", TRUE),
        "through a gateway, with a key": lambda: post(gateway, "/v1/processes", TRUE | {"key": str(time.monotonic_ns())}),
    }
    in_turn("start and wait for /bin/true", works, RUNS)

    for node in nodes.values():
        for _ in range(ENDED):
            post(node, "/v1/processes", own | {"session": "many"})
    works = {
        "1,000 of one node": lambda: listed(nodes["n0"], ENDED),
        "5 × 1,000 through a gateway": lambda: listed(gateway, ENDED * len(nodes)),
    }
    in_turn("a list", works, 5)

    output = {"command": ["head", "-c", str(BYTES), "/dev/zero"], "wait": {"exit": True}, "max_bytes": 1, "quota_bytes": 1 << 30}
    process = post(nodes["n0"], "/v1/processes", output)["process"]["id"]
    path = f"/v1/processes/{process}/output?max_bytes={PIECE}&from="

    def read(connection):
        """In pieces, because unread answers of a gateway have a limit."""
        for begin in range(0, BYTES, PIECE):
            assert len(get(connection, f"{path}{begin}")) == PIECE

    works = {
        "on the node": lambda: read(nodes["n0"]),
        "through a gateway": lambda: read(gateway),
        "through NATS alone": lambda: carried(near, far, "_INBOX.hand.bytes"),
    }
    in_turn(f"{BYTES >> 20} MiB of output", works, 1)


sys.exit(main(*sys.argv[1:]))
