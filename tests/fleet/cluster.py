"""A NATS cluster with JetStream and the servers of a fleet, on loopback, in one temporary folder."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def eventually(what, look, seconds=60):
    """Waits for a condition. The time only ends a test that failed."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"did not happen in {seconds} s: {what}")
        time.sleep(0.05)


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Cluster:
    """Processes end with this object, whatever happens."""

    def __init__(self, folder, programs, nats_server, servers=3):
        self.folder, self.nats_server = pathlib.Path(folder), nats_server
        self.lastbyte, self.testchild = programs / "lastbyte", programs / "testchild"
        self.processes = {}
        ports = free_ports(3 * servers)
        self.clients, self.routes, self.monitors = ports[:servers], ports[servers : 2 * servers], ports[2 * servers :]
        self.url = ",".join(f"nats://127.0.0.1:{port}" for port in self.clients)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in list(self.processes):
            self.end(name, signal.SIGTERM)

    def start(self, name, *args):
        log = open(self.folder / f"{name}.log", "ab")
        parts = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        process = subprocess.Popen(list(map(str, args)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=parts)
        log.close()
        self.processes[name] = process
        return process

    def end(self, name, number=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_nats(self, nth):
        routes = ",".join(f"nats://127.0.0.1:{port}" for port in self.routes)
        self.start(
            f"nats{nth}", self.nats_server, "-a", "127.0.0.1", "-p", self.clients[nth], "-n", f"nats{nth}",
            "-js", "-sd", self.folder / f"nats{nth}", "--cluster_name", "fleet",
            "--cluster", f"nats://127.0.0.1:{self.routes[nth]}", "--routes", routes,
            "-m", self.monitors[nth],
            # Clients stay on the way that they were given, also when it is cut.
            "--no_advertise",
        )

    def start_broker(self):
        for nth in range(len(self.clients)):
            self.start_nats(nth)
        eventually("the cluster has a leader", self.leader)

    def monitor(self, nth, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.monitors[nth], timeout=5)
        try:
            connection.request("GET", path)
            return json.load(connection.getresponse())
        except OSError:
            return {}
        finally:
            connection.close()

    def leader(self):
        """The number of the server that leads JetStream."""
        for nth in range(len(self.clients)):
            leader = self.monitor(nth, "/jsz").get("meta_cluster", {}).get("leader")
            if leader:
                return int(leader.removeprefix("nats")) + 1
        return None

    def services(self):
        """The nodes that answer to the tools of the broker (ADR-32)."""
        found, rest = [], b""
        with socket.create_connection(("127.0.0.1", self.clients[0])) as broker:
            broker.settimeout(5)
            hello = b'CONNECT {"verbose":false,"headers":true}\r\nSUB mine 1\r\n'
            broker.sendall(hello + b"PUB $SRV.PING.lastbyte mine 0\r\n\r\n")
            while len(found) < 3:
                rest += broker.recv(65536)
                *lines, rest = rest.split(b"\r\n")
                found += [json.loads(line)["metadata"]["node"] for line in lines if line.startswith(b'{"') ]
        return sorted(found)

    def serve(self, name, *args, after_start=True, nats=None):
        socket_path = self.folder / f"{name}.sock"
        self.start(name, self.lastbyte, "serve", "--state", self.folder / name, "--socket", socket_path,
                   "--nats", nats or self.url, *args)
        if after_start:
            eventually(f"{name} listens", lambda: answers(socket_path) or self.again_if_it_left(name))
        return socket_path

    def again_if_it_left(self, name):
        """Processes that were killed may have the folder for a little longer."""
        process = self.processes[name]
        if process.poll() is not None:
            self.start(name, *process.args)

    def node(self, name, *args, nats=None):
        return self.serve(name, "--node", name, *args, nats=nats)

    def gateway(self, name, *args, nats=None):
        return self.serve(name, "--gateway", *args, nats=nats)

    def call(self, *args, check=True, **more):
        """Runs a command of lastbyte with `--fleet`."""
        command = [str(self.lastbyte), args[0], "--fleet", self.url, *map(str, args[1:])]
        done = subprocess.run(command, capture_output=True, timeout=120, **more)
        if check and done.returncode != 0:
            raise AssertionError(f"{args} failed with {done.returncode}: {done.stderr.decode()}")
        return done


def answers(path):
    try:
        return ask(path, "GET", "/healthz", timeout=5)[0] == 200
    except OSError:
        return False


def ask(path, method, target, body=None, timeout=60):
    """One request, with bytes or JSON: its status and its JSON, or its bytes."""
    connection = Unix(path, timeout)
    try:
        text = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, target, text)
        answer = connection.getresponse()
        content = answer.read()
        if answer.headers.get_content_type() == "application/json":
            content = json.loads(content)
        return answer.status, content
    finally:
        connection.close()
