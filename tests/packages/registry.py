"""A registry of npm packages that are files in a folder: registry.py FOLDER prints its URL and serves until its
standard input ends."""

import base64
import hashlib
import http.server
import json
import sys
import tarfile
import threading
from pathlib import Path
from urllib.parse import unquote

folder = Path(sys.argv[1])


def packages(url: str) -> dict[str, dict]:
    found = {}
    for file in folder.glob("*.tgz"):
        with tarfile.open(file) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        manifest["dist"] = {"tarball": f"{url}/{file.name}", "integrity": f"sha512-{digest}"}
        name, version = manifest["name"], manifest["version"]
        found[name] = {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest}}
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = unquote(self.path).lstrip("/")
        if name.endswith(".tgz"):
            body = (folder / Path(name).name).read_bytes()
        elif name in known:
            body = json.dumps(known[name]).encode()
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
url = f"http://127.0.0.1:{server.server_port}"
known = packages(url)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(url, flush=True)
sys.stdin.read()
