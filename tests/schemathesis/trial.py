"""What Schemathesis does, watched: what it sends, what it is kept from, what it got."""

from collections import Counter, defaultdict

import requests
import schemathesis

import mend
import processes
import sense
from guard import Guard, KeptBack


def operation_id(case) -> str:
    return case.operation.definition.raw["operationId"]


class Trial:
    def __init__(self, daemon):
        self._url = daemon.url
        self._guard = Guard(daemon.testchild, str(daemon.workdir))
        self._processes = processes.Processes(daemon)
        # How often which operation was answered with which status.
        self.answers = defaultdict(Counter)
        # Why how many were not made into requests.
        self.kept_back = Counter()
        # What came as far as the guard, which is a mistake here.
        self.breaches = []

    def watch(self):
        """From here on every request of this program passes the guard."""
        trial, send = self, requests.adapters.HTTPAdapter.send

        def guarded(adapter, request, *args, **options):
            trial._stand_guard(request)
            return send(adapter, request, *args, **options)

        requests.adapters.HTTPAdapter.send = guarded

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
        except KeptBack as why:
            self.breaches.append(f"{request.method} {request.url}: {why}")
            raise

    def _may_be_sent(self, case) -> bool:
        """Whether the guard would let it out."""
        parts = case.as_transport_kwargs(base_url=self._url)
        wanted = ("method", "url", "headers", "data", "json", "params", "files", "cookies")
        request = requests.Request(**{name: parts[name] for name in wanted if name in parts}).prepare()
        try:
            self._guard.check(request.method, request.url, request.body)
        except KeptBack as why:
            self.kept_back[str(why)] += 1
            return False
        return True

    def _prepare(self, case):
        mend.shorten(operation_id(case), case.query, case.body)
        if case.meta is not None and case.meta.generation.mode.is_positive:
            mend.agree(case, operation_id(case))
        word = (case.path_parameters or {}).get("id")
        if word in processes.WORDS:
            if operation_id(case) == "followOutput":
                word = processes.ENDED
            case.path_parameters["id"] = self._processes.id_of(word)
