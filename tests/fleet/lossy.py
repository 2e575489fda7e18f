"""A way to the broker that loses messages, or is cut."""

import random
import socket
import threading


class Lossy:
    """Listens on loopback, and passes on what a NATS client and its server say to each other, but not what the client
    publishes while `loses(subject, payload)` is true. While it is cut, connections end at once."""

    def __init__(self, *ports):
        self.ports_there = list(ports)
        self.is_cut = False
        self.loses = lambda subject, payload: False
        self.lost = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = [self.listener]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            end(one)
            one.close()

    def cut(self):
        self.is_cut = True
        for one in self.sockets[1:]:
            end(one)

    def mend(self):
        self.is_cut = False
        self.loses = lambda subject, payload: False

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = None if self.is_cut else self.connect()
            if server is None:
                client.close()
                continue
            self.sockets += [client, server]
            threading.Thread(target=self.copy, args=(server, client), daemon=True).start()
            threading.Thread(target=self.publish, args=(client, server), daemon=True).start()

    def connect(self):
        """To a server that listens, if there is one."""
        for port in random.sample(self.ports_there, len(self.ports_there)):
            try:
                return socket.create_connection(("127.0.0.1", port))
            except OSError:
                pass  # it was killed
        return None

    def copy(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        end(target)

    def publish(self, client, server):
        try:
            with client.makefile("rb") as lines:
                while line := lines.readline():
                    words = line.split()
                    if words and words[0].upper() in (b"PUB", b"HPUB"):
                        payload = lines.read(int(words[-1]) + 2)
                        if self.loses(words[1].decode(), payload):
                            self.lost += 1
                            continue
                        line += payload
                    server.sendall(line)
        except (OSError, ValueError):
            pass
        end(server)


def end(one):
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended by itself
