"""Processes for requests: each placeholder stands for an existing process, started again if needed."""

# The members of each start, and whether the process must keep running.
KINDS = {
    "running": (["print", "ready", "then", "cat"], {"stdin": "open", "streams": "split"}, True),
    "terminal": (["print", "ready", "then", "cat"], {"stdin": "open", "tty": {"rows": 24, "cols": 80}}, True),
    "ended": (["print", r"one\ntwo\n"], {"wait": {"exit": True}}, False),
    "split": (["print", "out", "then", "eprint", "err"], {"streams": "split", "wait": {"exit": True}}, False),
}
WORDS = list(KINDS)
# A followed process must end.
ENDED = "ended"


class Processes:
    def __init__(self, daemon):
        self._daemon = daemon
        self._ids = {}

    def id_of(self, word: str) -> str:
        """The id of a process of this kind; starts one if there is none."""
        if not self._is_there(word):
            self._ids[word] = self._start(word)
        return self._ids[word]

    def _is_there(self, word: str) -> bool:
        if word not in self._ids:
            return False
        status, process = self._daemon.ask("GET", f"/v1/processes/{self._ids[word]}")
        runs_on = KINDS[word][2]
        return status == 200 and (process["phase"] == "running" or not runs_on)

    def _start(self, word: str) -> str:
        actions, more, _ = KINDS[word]
        request = {"command": [self._daemon.testchild, *actions], **more}
        status, answer = self._daemon.ask("POST", "/v1/processes", request)
        if status != 201:
            raise RuntimeError(f"cannot start a process that is {word}: {status} {answer}")
        return answer["process"]["id"]
