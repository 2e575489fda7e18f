"""The guard by itself: what it lets out, and what it keeps back. Run before anything is sent."""

import unittest

from guard import Guard, KeptBack

ALLOWED = '{"command": ["/t/testchild", "sleep-ms", "300"], "cwd": "/w", "env": {"LASTBYTE_ONE": "1"}}'


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.guard = Guard("/t/testchild", "/w")

    def keeps_back(self, method, path, body=b""):
        with self.assertRaises(KeptBack, msg=f"{method} {path} {body!r}"):
            self.guard.check(method, f"http://127.0.0.1:1{path}", body)

    def lets_out(self, method, path, body=b""):
        self.guard.check(method, f"http://127.0.0.1:1{path}", body)

    def test_a_launch_is_one_of_the_calls_or_none(self):
        for body in (ALLOWED, ALLOWED.encode(), b"", b"7", b'"sh"', b"{}", b"\xc0", b'{"command": null, "env": 1}'):
            self.lets_out("POST", "/v1/processes", body)
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
            self.keeps_back("POST", "/v1/processes", body)

    def test_it_is_looked_at_whatever_the_method_and_the_spelling_of_the_path(self):
        for path in ("/v1/processes", "/v1/processes/", "/v1/process%65s", "/v1/processes?a=b", "/v1"):
            self.keeps_back("POST", path, '{"shell": "true"}')
            self.keeps_back("PUT", path, '{"shell": "true"}')

    def test_nothing_but_the_paths_of_the_document_is_asked_for(self):
        for path in (
            "/v1/shutdown",
            "/v1/processes/../shutdown",
            "/v1/processes/%2e%2e/shutdown",
            "/v1/processes/x%2F..%2Fy/wait",
            "/api/v0/processes",
            "/codex",
            "//v1/processes",
        ):
            self.keeps_back("POST", path)
            self.keeps_back("GET", path)
        for path in ("/", "/schemathesis-probe"):
            self.lets_out("GET", path)
            self.keeps_back("POST", path)

    def test_below_a_process_any_body_is_let_out(self):
        self.lets_out("POST", "/v1/processes/x/stdin", b"\xff")
        self.lets_out("POST", "/v1/processes/%C3%93/wait", b'{"shell": 1}')


if __name__ == "__main__":
    unittest.main()
