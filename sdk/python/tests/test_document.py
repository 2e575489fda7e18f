"""Every field and value of the OpenAPI document is known here, and nothing else is."""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import re
import types
import typing
import unittest
from typing import Any

from lastbyte import models
from lastbyte._core import calls, launch, verbs

from .daemon import TREE, openapi

# Of these the package has no value, because it has no method for them or takes them apart itself.
NOT_MODELLED = {
    "tokens and upgrades are for the command line": {
        "CreateTokenAnswer", "CreateTokenRequest", "TokenInfo", "TokenList", "TokenScope",
        "UpgradeAnswer", "UpgradeRequest",
    },
    "links are opened by the command line, and used by the page": {
        "CreateLinkAnswer", "CreateLinkRequest", "TicketAnswer", "TradeLinkAnswer", "TradeLinkRequest",
    },
    "nodes of a fleet are managed by the command line, which also places commands": {
        "DrainRequest", "Node", "NodeReport", "NodesAnswer", "NodeState", "Place",
    },
    "times of output come with follow(times=True)": {"Stamp", "TimesAnswer"},
    "where lines begin is for viewers of logs": {"LinesAnswer"},
    "requests that methods build from their arguments": {
        "ForgetManyRequest", "ResizeRequest", "Selection", "SignalManyRequest", "SignalRequest", "StartRequest",
        "Stdin", "StopManyRequest", "StopRequest", "Wait", "WaitManyRequest",
    },
    "answers that are taken apart": {
        "ErrorBody", "ListAnswer", "ManyAnswer", "SignalAnswer", "StartAnswer", "WaitManyAnswer", "WriteAnswer",
    },
    "a number, a list of codes, and the name of the server": {"Cpus", "ErrorCode", "Root"},
}  # fmt: skip
# Operations that the package does not offer.
NOT_OFFERED = {
    ("get", "/metrics"), ("get", "/openapi.json"), ("get", "/v1"), ("get", "/v1/processes/{id}/attach"),
    ("get", "/v1/processes/{id}/output/lines"), ("get", "/v1/processes/{id}/output/times"),
    ("post", "/v1/forget"), ("post", "/v1/shutdown"), ("post", "/v1/signal"), ("post", "/v1/stop"),
    ("get", "/v1/tokens"), ("post", "/v1/tokens"),
    ("delete", "/v1/tokens/{token}"), ("post", "/v1/links"), ("post", "/v1/links/trade"), ("post", "/v1/tickets"),
    ("post", "/v1/upgrade"), ("post", "/v1/processes/{id}/resize"), ("get", "/v1/nodes"),
    ("delete", "/v1/nodes/{node}"), ("post", "/v1/nodes/{node}/drain"),
}  # fmt: skip
OFFERED_WITHOUT_PARAMETERS = {
    ("get", "/healthz"), ("post", "/v1/processes"), ("get", "/v1/processes/{id}"), ("post", "/v1/wait"),
    ("post", "/v1/processes/{id}/wait"), ("post", "/v1/processes/{id}/signal"), ("post", "/v1/processes/{id}/stop"),
    ("get", "/v1/processes/{id}/receipt"), ("get", "/v1/processes/{id}/survivors"),
}  # fmt: skip
# In a fleet; here the gateway chooses the node.
PLACES = {"on", "replace"}
# A line of the view `lines` is one of the view `text` that is not repeated.
STAND_INS = {("Line", models.TextLine)}
# Part of a path, or of HTTP itself.
IGNORED_PARAMETERS = {"id", "node", "token", "range", "if-range", "if-none-match"}

DOCUMENT: Any = openapi()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
FEED: dict[str, Any] = json.loads((TREE / "crates/wire/schema.json").read_text())["$defs"]


def fields_of(schema: dict[str, Any]) -> set[str]:
    found = set(schema.get("properties", {}))
    for one in schema.get("oneOf", ()):
        found |= set(one.get("properties", {}))
    return found


def kinds_of(schema: dict[str, Any]) -> tuple[str, set[str]] | None:
    """The member that says which of several kinds it is, and the kinds."""
    tags = [
        (name, member["const"])
        for one in schema.get("oneOf", ())
        for name, member in one.get("properties", {}).items()
        if "const" in member
    ]
    return (tags[0][0], {const for _, const in tags}) if tags else None


def types_of(schema: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """What a field is, in each of the kinds that have it."""
    places = [schema, *schema.get("oneOf", ())]
    return [one["properties"][name] for one in places if name in one.get("properties", {})]


def fits(hint: Any, schema: Any, schemas: dict[str, Any]) -> bool:
    """Whether every value that the schema allows is one of this type."""
    if schema is True or hint is Any:
        return hint is Any
    one_of = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    hints = [one for one in one_of if one is not types.NoneType]
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        named = getattr(models, name, None)
        return (
            named in hints
            or any((name, one) in STAND_INS for one in hints)
            or (not dataclasses.is_dataclass(named) and fits(hint, schemas[name], schemas))
        )
    if "anyOf" in schema:
        return all(fits(hint, one, schemas) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        values = {schema["const"]} if "const" in schema else set(schema["enum"])
        return str in hints or any(values <= set(typing.get_args(one)) for one in hints)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return all(kind == "null" or any(_fits_kind(one, kind, schema, schemas) for one in hints) for kind in kinds)


def _fits_kind(hint: Any, kind: str, schema: dict[str, Any], schemas: dict[str, Any]) -> bool:
    parts = typing.get_args(hint)
    if kind == "array":
        return typing.get_origin(hint) is list and fits(parts[0], schema["items"], schemas)
    if kind == "object":
        is_mapping = typing.get_origin(hint) in (dict, collections.abc.Mapping)
        found = [*schema.get("patternProperties", {}).values(), schema["additionalProperties"]]
        return is_mapping and parts[0] is str and all(one is False or fits(parts[1], one, schemas) for one in found)
    return hint is {"string": str, "integer": int, "number": float, "boolean": bool}[kind]


class Document(unittest.TestCase):
    def check_class(self, name: str, schema: dict[str, Any]) -> None:
        model = getattr(models, name)
        names = {field.metadata.get("name", field.name): field for field in dataclasses.fields(model)}
        self.assertEqual(set(names), fields_of(schema), name)
        hints = typing.get_type_hints(model)
        for field_name, field in names.items():
            for one in types_of(schema, field_name):
                self.assertTrue(
                    fits(hints[field.name], one, SCHEMAS), f"{name}.{field_name}: {hints[field.name]}, {one}"
                )
        for required in schema.get("required", ()):
            if name != "Output" or required != "from":
                field = names[required]
                has_default = field.default is not dataclasses.MISSING
                self.assertFalse(has_default, f"{name}.{required} is always there")
        kinds = kinds_of(schema)
        if kinds is not None:
            hint = typing.get_type_hints(model)[kinds[0]]
            values = typing.get_args(models.View) if hint is models.View else typing.get_args(hint)
            self.assertEqual(set(values), kinds[1], name)

    def test_every_schema_is_known(self) -> None:
        left_out = set().union(*NOT_MODELLED.values())
        for name, schema in SCHEMAS.items():
            if name in left_out:
                continue
            with self.subTest(schema=name):
                if "enum" in schema:
                    self.assertEqual(set(typing.get_args(getattr(models, name))), set(schema["enum"]))
                else:
                    self.check_class(name, schema)
        self.assertEqual(left_out - set(SCHEMAS), set(), "left out, but not in the document")

    def test_the_events_of_the_feed_are_known(self) -> None:
        for name in ("Event", "EventKind"):
            self.check_class(name, FEED[name])

    def test_the_pieces_of_a_follower_are_known(self) -> None:
        known = {field.name for field in dataclasses.fields(models.Piece)} - {"data", "late"} | {"content"}
        self.assertEqual(known, fields_of(FEED["FollowOutput"]))

    def test_every_member_of_a_request_is_known(self) -> None:
        self.assertEqual(set(launch.START_FIELDS) | PLACES, fields_of(SCHEMAS["StartRequest"]))
        self.assertEqual(set(calls.WAIT_FIELDS), fields_of(SCHEMAS["Wait"]))
        self.assertEqual({"signal", "grace_ms"}, fields_of(SCHEMAS["StopPolicy"]))

    def test_what_a_start_can_send_is_what_is_listed(self) -> None:
        options = launch.Options(
            "s", "n", "k", {"a": "b"}, models.Limits(pids=1), {"S": "word"}, "read_only", 1 << 20, (2, 3),
            models.StopPolicy("INT", 1), 1, 1, "stop", "keep", 1,
        )  # fmt: skip
        with_terminal = launch.Launch(["a"], {"command": ["a"]}, "/", {}, options)
        without = launch.Launch("a", {"shell": "a"}, None, {})
        sent = set(with_terminal.body()) | set(without.body()) | {"env", "wait", "view", "max_bytes"}
        self.assertEqual(sent, set(launch.START_FIELDS))

    def test_every_parameter_of_an_operation_is_known(self) -> None:
        for path, methods in DOCUMENT["paths"].items():
            for method, operation in methods.items():
                key = (method, path)
                if key in NOT_OFFERED:
                    continue
                given = {one["name"] for one in operation.get("parameters", ())} - IGNORED_PARAMETERS
                with self.subTest(operation=key):
                    if key in OFFERED_WITHOUT_PARAMETERS:
                        self.assertEqual(given, set())
                    else:
                        self.assertEqual(set(verbs.PARAMETERS[key]), given)

    def test_the_version_is_that_of_the_workspace(self) -> None:
        project = (TREE / "sdk/python/pyproject.toml").read_text()
        (pattern,) = re.findall(r"^pattern = '(.*)'$", project, re.MULTILINE)
        found = re.search(pattern, (TREE / "Cargo.toml").read_text())
        assert found is not None
        self.assertRegex(found["version"], r"^\d+\.\d+\.\d+")

    def test_an_added_field_or_value_is_noticed(self) -> None:
        """The checks above fail when the document grows."""
        grown = {**SCHEMAS["Ending"], "properties": {**SCHEMAS["Ending"]["properties"], "weather": {}}}
        with self.assertRaises(AssertionError):
            self.check_class("Ending", grown)
        for changed in ({"type": "string"}, {"type": "array", "items": {"type": "integer"}}):
            other = {**SCHEMAS["Ending"], "properties": {**SCHEMAS["Ending"]["properties"], "final_len": changed}}
            with self.assertRaises(AssertionError):
                self.check_class("Ending", other)
        kind = {"properties": {"kind": {"const": "vanished"}}, "required": ["kind"]}
        with self.assertRaises(AssertionError):
            self.check_class("Status", {"oneOf": [*SCHEMAS["Status"]["oneOf"], kind]})


if __name__ == "__main__":
    unittest.main()
