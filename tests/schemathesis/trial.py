"""Watches Schemathesis: the requests sent, the ones blocked, and the answers."""

from collections import Counter, defaultdict

import requests
import schemathesis
import schemathesis.specs.openapi.checks as checks

import mend
import narrow
import processes
import sense
from guard import Guard, Blocked


def operation_id(case) -> str:
    return case.operation.definition.raw["operationId"]


class Trial:
    def __init__(self, daemon):
        self._url = daemon.url
        self._daemon = daemon
        self._guard = Guard(daemon.testchild, str(daemon.workdir))
        self._processes = processes.Processes(daemon)
        # The number of answers for each operation and status.
        self.answers = defaultdict(Counter)
        # The number of cases that were not sent, by reason.
        self.blocked = Counter()
        # Requests that the guard had to block, which is a bug in these tests.
        self.breaches = []

    def watch(self):
        """From now on every request of this program goes through the guard."""
        trial, send = self, requests.adapters.HTTPAdapter.send

        def guarded(adapter, request, *args, **options):
            trial._stand_guard(request)
            return send(adapter, request, *args, **options)

        requests.adapters.HTTPAdapter.send = guarded

        # After too many wrong tokens the server says so.
        checks.AUTH_REJECTION_STATUSES = {401, 403, 429}

        @schemathesis.hook
        def filter_case(context, case):
            return trial._may_be_sent(case)

        @schemathesis.hook
        def before_call(context, case, kwargs):
            trial._prepare(case)

        @schemathesis.hook
        def after_call(context, case, response):
            trial.answers[operation_id(case)][response.status_code] += 1

        @schemathesis.check
        def sensible_refusal(context, response, case):
            return sense.check(context, response, case)

    def _stand_guard(self, request):
        try:
            self._guard.check(request.method, request.url, request.body)
        except Blocked as why:
            self.breaches.append(f"{request.method} {request.url}: {why}")
            raise

    def _may_be_sent(self, case) -> bool:
        """Whether the guard would allow it."""
        parts = case.as_transport_kwargs(base_url=self._url)
        wanted = ("method", "url", "headers", "data", "json", "params", "files", "cookies")
        request = requests.Request(**{name: parts[name] for name in wanted if name in parts}).prepare()
        try:
            self._guard.check(request.method, request.url, request.body)
        except Blocked as why:
            self.blocked[str(why)] += 1
            return False
        return True

    def _prepare(self, case):
        mend.shorten(operation_id(case), case.query, case.body)
        if case.meta is not None and case.meta.generation.mode.is_positive:
            mend.agree(case, operation_id(case))
        if isinstance(case.body, dict):
            mend.each_id(case.body.get("select"), processes.WORDS, self._processes.id_of)
            if case.body.get("link") == narrow.FRESH_LINK:
                case.body["link"] = self._fresh_link()
        word = (case.path_parameters or {}).get("id")
        if word in processes.WORDS:
            if operation_id(case) == "followOutput":
                word = processes.ENDED
            case.path_parameters["id"] = self._processes.id_of(word)

    def _fresh_link(self) -> str:
        _, answer = self._daemon.ask("POST", "/v1/links", {})
        return answer["url"].split("#link=")[1]
