"""The configuration in docs/fleet.md, with a real server: what each key may do, and what it may not."""

import base64
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from cluster import Cluster, ask, eventually, free_ports
from nkey import User

DOCS = pathlib.Path(__file__).parent.parent.parent / "docs" / "fleet.md"


class Secure(Cluster):
    """One server, with the configuration of the documents."""

    def __init__(self, folder, programs, nats_server):
        super().__init__(folder, programs, nats_server, servers=1)
        self.url = f"tls://localhost:{self.clients[0]}"
        self.users = {name: User(os.urandom(32)) for name in ("NODE_A_KEY", "GATEWAY_KEY", "READER_KEY")}
        self.ca = self.folder / "cert.pem"

    def seed(self, name):
        path = self.folder / f"{name}.nk"
        path.write_text(self.users[name].seed + "\n")
        return path

    def start_broker(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-keyout", self.folder / "key.pem", "-out", self.ca, "-days", "2", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"],
            check=True, capture_output=True,
        )  # fmt: skip
        [text] = re.findall(r"```\n(listen: .*?)```", DOCS.read_text(), re.DOTALL)
        for name, user in self.users.items():
            text = text.replace(name, user.public)
        text = text.replace("127.0.0.1:4222", f"127.0.0.1:{self.clients[0]}")
        text = text.replace("/var/lib/nats", str(self.folder / "store")).replace("/etc/nats", str(self.folder))
        (self.folder / "nats.conf").write_text(text)
        self.start_broker_again()

    def start_broker_again(self):
        self.start("nats", self.nats_server, "-c", self.folder / "nats.conf")
        eventually("the broker listens", self.listens)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.clients[0])).close()
            return True
        except OSError:
            return False

    def login(self, name):
        return ["--nats-creds", self.seed(name), "--nats-ca", self.ca]

    def client(self, name):
        return Client(self.clients[0], self.ca, self.users[name])


class Client:
    """Speaks NATS by hand, as somebody would who has a key and not our program."""

    def __init__(self, port, ca, user):
        plain = socket.create_connection(("127.0.0.1", port), timeout=10)
        hello = json.loads(plain.recv(1 << 16).split(b" ", 1)[1].split(b"\r\n")[0])
        context = ssl.create_default_context(cafile=ca)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        signature = base64.urlsafe_b64encode(user.sign(hello["nonce"].encode())).decode().rstrip("=")
        connect = {"verbose": False, "headers": True, "nkey": user.public, "sig": signature, "protocol": 1}
        self.socket.sendall(b"CONNECT " + json.dumps(connect).encode() + b"\r\n")
        assert self.say("") == [], "it could not log in"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def say(self, line):
        """What the server answers until it has read this: refusals, and messages."""
        self.socket.sendall(line.encode() + b"PING\r\n")
        answer = b""
        while b"PONG\r\n" not in answer:
            part = self.socket.recv(1 << 16)
            assert part, answer
            answer += part
        return [one.decode() for one in answer.split(b"\r\n") if one.startswith((b"-ERR", b"MSG", b"HMSG"))]

    def refuses(self, line):
        # The server does not always say so the first time.
        answers = self.say(line) + self.say(line)
        return any("Permissions Violation" in one for one in answers)


def a_fleet_works_with_the_keys_of_the_documents(fleet):
    node = fleet.serve("a", "--node", "a", *fleet.login("NODE_A_KEY"))
    gateway = fleet.serve("gateway", "--gateway", *fleet.login("GATEWAY_KEY"))
    listed = lambda: [(one["name"], one["state"]) for one in ask(gateway, "GET", "/v1/nodes")[1]["nodes"]]
    eventually("the node is present", lambda: listed() == [("a", "present")])
    launch = {"command": [str(fleet.testchild), "print", "x"], "wait": {"exit": True}}
    for more in ({}, {"key": "k"}, {"key": "k"}):
        status, answer = ask(gateway, "POST", "/v1/processes", {**launch, **more})
        assert status in (200, 201) and answer["output"]["content"]["head"] == "x", answer
    assert len(ask(node, "GET", "/v1/processes")[1]["processes"]) == 2
    done = subprocess.run(
        [fleet.lastbyte, "ps", "--fleet", fleet.url, *map(str, fleet.login("GATEWAY_KEY"))],
        capture_output=True, timeout=60, env={"PATH": os.environ["PATH"], "HOME": str(fleet.folder)},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.count(b"print x") == 2, done


def the_key_of_a_reader_reads_and_changes_nothing(fleet):
    gateway, [port] = fleet.folder / "gateway.sock", free_ports(1)
    reader = fleet.serve("reader", "--gateway", "--listen", f"127.0.0.1:{port}", *fleet.login("READER_KEY"))
    status, token = ask(reader, "POST", "/v1/tokens", {"read_only": True})
    assert status in (200, 201), token
    header = f"Authorization: Bearer {token['token']}\r\n"
    listed = eventually("it lists", lambda: by_port(port, "GET /v1/processes", header))
    assert len(listed["processes"]) == 2 and "silent_nodes" not in listed, listed
    # What asks for everything is not carried: the node does not answer.
    page = ask(reader, "GET", "/v1/processes")[1]
    assert page["silent_nodes"] == ["a"] and page["processes"] == [], page
    # It knows the nodes again after the broker was away.
    fleet.end("nats", signal.SIGTERM)
    fleet.start_broker_again()
    states = lambda: [one["state"] for one in ask(reader, "GET", "/v1/nodes")[1].get("nodes", [])]
    eventually("the reader is connected again", lambda: states() == ["present"])
    eventually("the node answers", lambda: ask(gateway, "GET", "/v1/processes")[1].get("processes"))


def by_port(port, request, header):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Connection: close\r\n\r\n".encode())
        answer = b""
        while part := client.recv(1 << 16):
            answer += part
    head, body = answer.split(b"\r\n\r\n", 1)
    return json.loads(body) if b" 200 " in head.splitlines()[0] else None


def no_key_reads_the_answers_of_another(fleet):
    gateway = fleet.users["GATEWAY_KEY"].public
    for name in fleet.users:
        with fleet.client(name) as client:
            assert not client.refuses(f"SUB _INBOX.{fleet.users[name].public}.x 1\r\n"), name
            for inbox in ("_INBOX.>", "_INBOX.*.x", ">", *([] if name == "GATEWAY_KEY" else [f"_INBOX.{gateway}.>"])):
                assert client.refuses(f"SUB {inbox} 2\r\n"), (name, inbox)
    # The answers really go there.
    with fleet.client("GATEWAY_KEY") as client:
        client.say(f"SUB _INBOX.{gateway}.> 1\r\n")
        sock = fleet.folder / "gateway.sock"
        assert ask(sock, "GET", "/v1/processes")[0] == 200
        assert any(line.startswith("MSG _INBOX") for line in client.say("")), "answers go somewhere else"


def a_key_does_nothing_else(fleet):
    with fleet.client("READER_KEY") as client:
        for subject in (
            "lb.v1.node.a.all.-.x", "lb.v1.node.a.session.s.x", "lb.v1.bid.a", "$KV.lb_claims.x", "$KV.lb_presence.a",
            "$JS.API.STREAM.DELETE.KV_lb_claims", "$JS.API.STREAM.MSG.GET.KV_lb_secret", "$SRV.PING",
            "$JS.API.CONSUMER.CREATE.KV_lb_secret.x",
        ):  # fmt: skip
            assert client.refuses(f"PUB {subject} 0\r\n\r\n"), subject
        for subject in ("lb.v1.node.a.>", "$KV.lb_claims.>"):
            assert client.refuses(f"SUB {subject} 9\r\n"), subject
    with fleet.client("NODE_A_KEY") as client:
        for subject in ("lb.v1.node.b.all.-.x", "$KV.lb_presence.b", "$KV.lb_claims.x", "$JS.API.STREAM.DELETE.KV_lb_nodes"):
            assert client.refuses(f"PUB {subject} 0\r\n\r\n"), subject
        assert client.refuses("SUB lb.v1.node.b.> 9\r\n")


CHECKS = [
    a_fleet_works_with_the_keys_of_the_documents,
    no_key_reads_the_answers_of_another,
    a_key_does_nothing_else,
    the_key_of_a_reader_reads_and_changes_nothing,
]


def main(programs, nats_server):
    failed = []
    with tempfile.TemporaryDirectory(prefix="lastbyte-fleet-") as folder:
        with Secure(folder, pathlib.Path(programs).resolve(), pathlib.Path(nats_server).resolve()) as fleet:
            fleet.start_broker()
            for check in CHECKS:
                try:
                    check(fleet)
                    print(f"ok    {check.__name__}", flush=True)
                except Exception as error:
                    failed.append(check.__name__)
                    print(f"FAILED {check.__name__}: {type(error).__name__}: {error}", flush=True)
            if failed and os.environ.get("LASTBYTE_TEST_FLEET_LOGS"):
                for log in sorted(fleet.folder.glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text(errors='replace')[-6000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
