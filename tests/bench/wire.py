"""Small clients: HTTP over a kept connection, and JSON-RPC by lines. They parse only what they need."""

import json
import os
import socket
import subprocess


class Http:
    """One connection, to `(host, port)` or to a unix socket."""

    def __init__(self, address, headers=None):
        self.address = address
        lines = {"host": "localhost", "content-type": "application/json", **(headers or {})}
        self.head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.connect()

    def connect(self):
        address = self.address
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, method, path, body=None):
        """The parsed answer; an error status is an exception."""
        status = self._status(self._request(method, path, body))
        length, chunked = 0, False
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, value = line.decode().lower().split(":", 1)
            length = int(value) if name == "content-length" else length
            chunked = chunked or name == "transfer-encoding"
        content = self._chunks() if chunked else self.file.read(length)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]!r}")
        return json.loads(content) if content else None

    def send(self, method, path, body):
        self.socket.sendall(self._request(method, path, body))

    def _request(self, method, path, body):
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self.head}content-length: {len(content)}\r\n\r\n"
        return head.encode() + content

    def _status(self, request):
        """Sends it once more if the server has closed the idle connection."""
        for last in (False, True):
            try:
                self.socket.sendall(request)
                if line := self.file.readline():
                    return int(line.split()[1])
            except OSError:
                if last:
                    raise
            self.close()
            self.connect()
        raise RuntimeError("the server closes each connection")

    def _chunks(self):
        content = b""
        while size := int(self.file.readline(), 16):
            content += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return content

    def close(self):
        self.file.close()
        self.socket.close()


class Rpc:
    """JSON-RPC over the standard input and output of a program, one line a message."""

    def __init__(self, command, env=None):
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})}, bufsize=1 << 20,
        )
        self.number = 0

    def call(self, method, params):
        self.number += 1
        self.tell(method, params, id=self.number)
        while line := self.child.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
        raise RuntimeError(f"{method}: the server ended")

    def tell(self, method, params, **more):
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()

    def close(self):
        self.child.stdin.close()
        self.child.wait(20)
