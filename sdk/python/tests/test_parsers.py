"""The parsers, fed in every possible way."""

from __future__ import annotations

import unittest

from lastbyte._core.http import Answer, AnswerParser, Request
from lastbyte._core.sse import EventParser, Message
from lastbyte.errors import ProtocolError

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nlastbyte-next: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


def parsed(parser: AnswerParser, pieces: list[bytes]) -> list[Answer]:
    answers = []
    for piece in pieces:
        parser.feed(piece)
        while parser.done:
            answers.append(parser.answer())
            parser.reset()
    return answers


def filled(parser: AnswerParser, data: bytes, step: int) -> Answer:
    """The same through the buffer that a socket receives into."""
    while not parser.done:
        buffer = parser.buffer()
        count = min(len(buffer), step, len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        parser.received(count)
    return parser.answer()


class Answers(unittest.TestCase):
    def test_an_answer_is_the_same_in_any_pieces(self) -> None:
        whole = PLAIN + CHUNKED + EMPTY + PLAIN
        for size in range(1, len(whole) + 1):
            pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
            answers = parsed(AnswerParser(), pieces)
            self.assertEqual([bytes(answer.body) for answer in answers], [b"hello", b"hello", b"", b"hello"])
            self.assertEqual([answer.status for answer in answers], [200, 200, 204, 200])
            self.assertEqual(answers[0].headers["lastbyte-next"], "5")

    def test_a_body_is_received_in_place(self) -> None:
        for step in range(1, len(PLAIN) + 1):
            self.assertEqual(filled(AnswerParser(), PLAIN, step).body, b"hello")

    def test_an_interim_answer_is_skipped(self) -> None:
        (answer,) = parsed(AnswerParser(), [b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN])
        self.assertEqual(answer.status, 200)

    def test_a_connection_that_ends_inside_an_answer_is_an_error(self) -> None:
        for data in (PLAIN, CHUNKED):
            for length in range(len(data)):
                parser = AnswerParser()
                if length:
                    parser.feed(data[:length])
                with self.assertRaises(EOFError):
                    parser.feed(b"")

    def test_what_is_no_answer_is_refused(self) -> None:
        for data in (
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
            b"x" * (300 << 10),
        ):
            with self.assertRaises(ProtocolError):
                AnswerParser().feed(data)


class Requests(unittest.TestCase):
    def test_a_request_has_its_query_its_token_and_its_length(self) -> None:
        request = Request("POST", "/v1/x", {"a": 1, "b": None, "c": True, "d": "ä&"}, b"body")
        want = (
            b"POST /v1/x?a=1&c=true&d=%C3%A4%26 HTTP/1.1\r\nhost: localhost\r\n"
            b"authorization: Bearer secret\r\ncontent-length: 4\r\n\r\nbody"
        )
        self.assertEqual(request.encode("localhost", "secret"), want)


class Events(unittest.TestCase):
    def test_events_are_the_same_in_any_pieces(self) -> None:
        data = (
            b': hello\n\nid: 8\nevent: output\ndata: {"a":1}\ndata: "\xc3\xa4\xe2\x80\xa8"\n\n'
            b"event: ending\ndata: x\n\nid: 9\n\n"
        )
        want = [Message("output", '{"a":1}\n"ä\u2028"', "8"), Message("ending", "x", "8")]
        for size in range(1, len(data) + 1):
            parser, found = EventParser(), []
            for at in range(0, len(data), size):
                found += parser.feed(data[at : at + size])
            self.assertEqual(found, want)


if __name__ == "__main__":
    unittest.main()
