"""The feed of a gateway, and the page that needs it."""

import http.client
import json
import os
import signal
import urllib.parse

from cluster import Unix, ask, eventually


class Feed:
    """`GET /v1/events`, from the event after `last` if there is one."""

    def __init__(self, gateway, last=None, query=""):
        self.connection, self.last = Unix(gateway, timeout=60), last
        self.connection.request("GET", f"/v1/events?{query}", headers={"last-event-id": last} if last else {})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, (self.answer.status, self.answer.read())
        if last is None:
            self.message()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def message(self):
        """The next one: an event and what it says, or None for a place alone or a comment."""
        event, data = None, None
        while line := self.answer.readline().decode().rstrip("\n"):
            field, _, value = line.partition(": ")
            if field == "id":
                self.last = value
            event = value if field == "event" else event
            data = json.loads(value) if field == "data" else data
        return event and (event, data)

    def until_ended(self, wanted):
        """The events of these processes until each has ended, and whether there was a gap."""
        found, has_gap = [], False
        while {process for event, process in found if event == "ended"} != set(wanted):
            message = self.message()
            if message and message[0] == "gap":
                has_gap = True
            elif message and message[1]["process"] in wanted:
                found.append((message[0], message[1]["process"]))
        return found, has_gap


def run_on(gateway, node):
    launch = {"command": ["true"], "on": {"node": node}, "session": "feed", "wait": {"exit": True}}
    status, answer = ask(gateway, "POST", "/v1/processes", launch)
    assert status == 201, answer
    return answer["process"]["id"]


def both(processes):
    """What is told of processes that print nothing, whatever their order."""
    return sorted((event, process) for process in processes for event in ("started", "ended"))


def the_events_of_all_nodes_are_one_feed_that_is_resumed_in_each(fleet, gateway):
    nodes = ["one", "two", "three"]
    with Feed(gateway, query="session=feed") as feed:
        first = [run_on(gateway, node) for node in nodes]
        found, has_gap = feed.until_ended(first)
        assert (sorted(found), has_gap) == (both(first), False), found
    missed = [run_on(gateway, node) for node in nodes]
    with Feed(gateway, feed.last, "session=feed") as feed:
        later = run_on(gateway, "two")
        found, has_gap = feed.until_ended([*missed, later])
        assert (sorted(found), has_gap) == (both([*missed, later]), False), found
    with Feed(gateway, "0-0", "session=feed") as feed:
        kept, _ = feed.until_ended([*first, *missed, later])
        assert sorted(kept) == both([*first, *missed, later]), kept
    status, refused = ask(gateway, "GET", "/v1/events?last_event_id=7-1")
    assert (status, refused["error"]["code"]) == (400, "invalid_request"), refused


def a_feed_goes_on_when_a_worker_is_killed_and_says_what_it_may_have_missed(fleet, gateway):
    with Feed(gateway, query="session=feed") as feed:
        worker = ask(fleet.folder / "one.sock", "GET", "/healthz")[1]["keeper"]["worker_pid"]
        os.kill(worker, signal.SIGKILL)
        eventually("it is there again", lambda: ask(gateway, "GET", "/v1/processes")[1].get("silent_nodes") is None)
        other, same = run_on(gateway, "two"), run_on(gateway, "one")
        found, has_gap = feed.until_ended([other, same])
        assert sorted(found) == both([other, same]) or has_gap, found


def a_link_of_a_gateway_opens_a_page_with_the_processes_of_all_nodes(fleet, gateway):
    processes = [run_on(gateway, node) for node in ("one", "two")]
    status, link = ask(gateway, "POST", "/v1/links", {})
    assert status == 201, link
    url = urllib.parse.urlsplit(link["url"])

    def call(method, path, body=None, token=None):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, page = call("GET", "/")
    assert status == 200 and b"<html" in page, (status, page[:200])
    status, traded = call("POST", "/v1/links/trade", {"link": url.fragment.partition("=")[2]})
    assert status == 200, traded
    token = json.loads(traded)["token"]
    status, listed = call("GET", "/v1/processes?session=feed", token=token)
    shown = {process["id"]: process["node"] for process in json.loads(listed)["processes"]}
    assert status == 200 and [shown.get(process) for process in processes] == ["one", "two"], listed
