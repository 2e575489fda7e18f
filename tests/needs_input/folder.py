"""What the commands work on: files, a repository, and servers on loopback."""

import http.server
import os
import pathlib
import socket
import subprocess
import threading

FILES = {
    "file": "one\ntwo\n",
    "other": "three\n",
    "long": "".join(f"line {number}\n" for number in range(5000)),
    "numbers.json": "[1, 2, 3]\n",
    "main.c": "int main(void) { return 0; }\n",
    "big.c": "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    + "".join(f"int f{n}(int x) {{ return x * {n} + printf(\"%d\", x); }}\n" for n in range(3000)),
    "main.rs": "fn main() { println!(\"{}\", (0..9).sum::<i32>()); }\n",
    "crate/Cargo.toml": "[package]\nname = \"crate-of-a-test\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    "crate/src/lib.rs": "#[test]\nfn waits() { std::thread::sleep(std::time::Duration::from_millis(700)); }\n",
    "Build": "all: ; sleep 0.5; echo built\nclean: ; sleep 0.2\ntest: ; sleep 1; echo passed\n"
    "many: a b c d\na b c d: ; sleep 0.4; gcc -O2 -S -o /dev/null big.c\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(p main.c)\n",
    "Reader.java": "class Reader { public static void main(String[] a) throws Exception { System.in.read(); } }\n",
    "Sleeper.java": "class Sleeper { public static void main(String[] a) throws Exception { Thread.sleep(60000); } }\n",
    "test_sums.py": "import time, unittest\nclass T(unittest.TestCase):\n def test_sum(self):\n"
    "  time.sleep(0.7); self.assertEqual(1 + 1, 2)\n",
    "sums.test.js": "require('node:test')('waits', () => new Promise((done) => setTimeout(done, 700)));\n",
}


def fill(folder):
    """Writes the files, and returns the variables that commands need."""
    for name, text in FILES.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    os.mkfifo(pathlib.Path(folder, "fifo"))
    make_repository(pathlib.Path(folder, "repository"))
    return {"WEB": web(folder), "REFUSING": refusing(), "SILENT": silent(), "SSHD": sshd(folder)}


def make_repository(path):
    path.mkdir()

    def git(*arguments):
        named = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", path, *named, *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("config", "user.name", "n")
    git("config", "user.email", "e")
    for number in range(30):
        (path / "lines").write_text(f"line {number}\n" * 50)
        git("add", "lines")
        git("commit", "-q", "-m", f"commit {number}")
    (path / "lines").write_text("another line\n")


def served_by(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def web(folder):
    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *_):
            pass

    return served_by(Files)


def refusing():
    """Asks everybody for a password."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(401)
            self.send_header("www-authenticate", 'Basic realm="r"')
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    return served_by(Refusing)


LISTENERS = []


def silent():
    """Accepts, and never answers."""
    LISTENERS.append(socket.create_server(("127.0.0.1", 0), backlog=200))
    return LISTENERS[-1].getsockname()[1]


def sshd(folder):
    """A host that is not known, for one connection after the other; 0 if there is no sshd."""
    program = "/usr/sbin/sshd"
    if not os.access(program, os.X_OK):
        return 0
    key = pathlib.Path(folder, "host_key")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    listener = socket.create_server(("127.0.0.1", 0))
    options = ["-i", "-f", "/dev/null", "-h", str(key), "-o", "UsePAM=no"]

    def serve():
        while True:
            client, _ = listener.accept()
            with client:
                null = subprocess.DEVNULL
                subprocess.Popen([program, *options], stdin=client, stdout=client, stderr=null)

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]
