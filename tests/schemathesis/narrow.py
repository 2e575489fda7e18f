"""The document, narrowed: only harmless calls of `testchild` can be made of it."""

import copy

# What commands get: names that no loader, shell or program minds.
VARIABLES = ("LASTBYTE_ONE", "LASTBYTE_TWO")

SIGNALS = (
    "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP"
    " TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
).split()

# What chance would rarely put together.
EXAMPLES = {
    "readOutput": {
        "id": ["ended"],
        "range": ["bytes=0-1", "bytes=2-", "bytes=-3", "bytes=9999999-"],
        "if-none-match": ["none", "*"],
    },
    "followOutput": {"id": ["ended"], "last-event-id": ["8-ended", "3"]},
    "resizeTerminal": {"id": ["terminal"]},
    "writeToProcess": {"id": ["running"]},
}

# Left out, and why.
EXCLUDED = {"shutDown": "it ends the server; asked once, after all others"}


def calls(testchild: str) -> list[list[str]]:
    """The only commands: each ends by itself, soon, whatever it is given."""
    return [
        [testchild, "print", r"one\ntwo\n"],
        [testchild, "print", "out", "then", "eprint", "err", "then", "exit", "3"],
        [testchild, "write-bytes", "300000"],
        [testchild, "sleep-ms", "300"],
        [testchild, "kill-self", "6"],
    ]


def narrowed(document: dict, testchild: str, workdir: str, ids: list[str]) -> dict:
    document = copy.deepcopy(document)
    # Our daemon is asked by TCP, where a token is needed.
    document["security"] = [{"token": []}]
    schemas = document["components"]["schemas"]
    narrow_start(schemas["StartRequest"], testchild, workdir)
    for schema in (schemas["SignalRequest"], schemas["StopPolicy"]):
        schema["properties"]["signal"]["pattern"] = any_signal()
    for operation in operations(document):
        for parameter in operation["parameters"]:
            lead(parameter, ids)
            show(parameter, EXAMPLES.get(operation["operationId"], {}))
    return document


def operations(document: dict) -> list[dict]:
    return [operation for methods in document["paths"].values() for operation in methods.values()]


def narrow_start(start: dict, testchild: str, workdir: str):
    del start["oneOf"]
    del start["properties"]["shell"]
    start["required"] = ["command"]
    start["properties"]["command"] = {"enum": calls(testchild)}
    start["properties"]["cwd"] = {"enum": [workdir, None]}
    start["properties"]["env"] = {
        "type": "object",
        "properties": {name: {"type": ["string", "null"]} for name in VARIABLES},
        "additionalProperties": False,
    }


def any_signal() -> str:
    """What the document says in words: a name in any case, or a number."""
    names = ("".join(f"[{letter}{letter.lower()}]" for letter in name) for name in SIGNALS)
    return rf"^([Ss][Ii][Gg])?({'|'.join(names)})$|^\+?0*([1-9]|[1-5][0-9]|6[0-4])$"


def show(parameter: dict, examples: dict):
    values = examples.get(parameter["name"], [])
    if values:
        parameter["examples"] = {value: {"value": value} for value in values}


def lead(parameter: dict, ids: list[str]):
    """Offers values that lead somewhere beside those that the schema has, which rarely do."""
    known = {
        # Words for processes that are there: see processes.py.
        "id": ids,
        "last_event_id": ["0-0"],
        "last-event-id": ["0-0", "0"],
        "range": ["bytes=0-1", "bytes=2-", "bytes=-3", "bytes=9999999-"],
        "if-none-match": ["*"],
    }
    if parameter["name"] in known:
        parameter["schema"] = {"anyOf": [{"enum": known[parameter["name"]]}, parameter["schema"]]}
