"""Tests of the guard: what it allows and what it blocks. Run before anything is sent."""

import unittest

from guard import Guard, Blocked

ALLOWED = '{"command": ["/t/testchild", "sleep-ms", "300"], "cwd": "/w", "env": {"LASTBYTE_ONE": "1"}}'


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.guard = Guard("/t/testchild", "/w")

    def blocks(self, method, path, body=b""):
        with self.assertRaises(Blocked, msg=f"{method} {path} {body!r}"):
            self.guard.check(method, f"http://127.0.0.1:1{path}", body)

    def allows(self, method, path, body=b""):
        self.guard.check(method, f"http://127.0.0.1:1{path}", body)

    def test_a_launch_must_be_one_of_the_calls(self):
        for body in (ALLOWED, ALLOWED.encode(), b"", b"7", b'"sh"', b"{}", b"\xc0", b'{"command": null, "env": 1}'):
            self.allows("POST", "/v1/processes", body)
        for body in (
            '{"shell": "true"}',
            '{"shell": 1}',
            '{"command": ["true"]}',
            '{"command": "true"}',
            '{"command": ["/t/testchild", "flood"]}',
            '{"command": ["true"], "command": ["/t/testchild", "sleep-ms", "300"]}',
            '[["true"]]',
            '{"cwd": "/"}',
            '{"env": {"LD_PRELOAD": "/x"}}',
            '{"env": [["PATH", "/x"]]}',
            "command=true",
            b"\xff{}",
            b'\xff["true"]',
            iter([b"{}"]),
        ):
            self.blocks("POST", "/v1/processes", body)

    def test_every_method_and_spelling_of_the_path_is_checked(self):
        for path in ("/v1/processes", "/v1/processes/", "/v1/process%65s", "/v1/processes?a=b", "/v1"):
            self.blocks("POST", path, '{"shell": "true"}')
            self.blocks("PUT", path, '{"shell": "true"}')

    def test_only_paths_of_the_document_are_allowed(self):
        for path in (
            "/v1/shutdown",
            "/v1/upgrade",
            "/v1/processes/../shutdown",
            "/v1/processes/%2e%2e/shutdown",
            "/v1/processes/x%2F..%2Fy/wait",
            "/api/v0/processes",
            "/codex",
            "//v1/processes",
        ):
            self.blocks("POST", path)
            self.blocks("GET", path)
        for path in ("/v1/links", "/v1/links/trade", "/v1/tickets", "/v1/processes/x/output/lines"):
            self.allows("POST", path)
        for path in ("/", "/schemathesis-probe"):
            self.allows("GET", path)
            self.blocks("POST", path)

    def test_below_a_process_any_body_is_allowed(self):
        self.allows("POST", "/v1/processes/x/stdin", b"\xff")
        self.allows("POST", "/v1/processes/%C3%93/wait", b'{"shell": 1}')


if __name__ == "__main__":
    unittest.main()
