"""Uses every tool for agents by the official Python SDK: over standard input and HTTP, with the handshake and without."""

import asyncio
import base64
import json
import re
import sys

from mcp import Client, StdioServerParameters

PATIENCE = 30


class Agent:
    def __init__(self, client: Client):
        self.client = client

    async def call(self, tool: str, **arguments):
        result = await self.client.call_tool(tool, arguments)
        blocks = [block.text for block in result.content]
        return bool(result.is_error), blocks

    async def told(self, tool: str, **arguments) -> str:
        failed, blocks = await self.call(tool, **arguments)
        assert not failed, blocks
        return "\n".join(blocks)


def id_in(text: str) -> str:
    return re.search(r"process ([0-9a-f-]{36})", text)[1]


def says(text: str, *parts: str):
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


async def use_every_tool(agent: Agent):
    listed = (await agent.client.list_tools()).tools
    names = ["exec_command", "write_stdin", "wait", "read_output", "search_output", "list_processes", "stop_process"]
    assert [tool.name for tool in listed] == names, listed

    says(await agent.told("exec_command", command="echo out; exit 3"), "exited with code 3", "\n\nout\n")

    terminal = await agent.told("exec_command", command="read line; echo got $line", tty=True, yield_time_ms=1)
    answer = await agent.told("write_stdin", process_id=id_in(terminal), chars="héllo\n", yield_time_ms=5000)
    says(answer, "got héllo", "exited with code 0")

    waiting = await agent.told("exec_command", cmd="sleep 0.2; echo ready; sleep 600", is_background=True)
    says(await agent.told("wait", process_ids=[id_in(waiting)], pattern="ready"), "a line matched at byte 0")
    says(await agent.told("list_processes"), f"process {id_in(waiting)}: running for")
    says(await agent.told("stop_process", process_id=id_in(waiting)), "gone: ", "stopped on request")

    long = await agent.told("exec_command", command="seq 1 50000; echo error: it broke; seq 1 50000")
    says(long, "look like errors", "error: it broke")
    fold = json.loads(re.search(r"read_output (\{.*?\})", long)[1])
    whole = "".join(f"{number}\n" for number in range(1, 50001))
    whole += "error: it broke\n" + whole
    end, fetched = fold["offset"] + fold["length"], b""
    while fold["offset"] < end:
        fold["length"] = end - fold["offset"]
        failed, (facts, block) = await agent.call("read_output", view="raw", **fold)
        assert not failed
        page = base64.b64decode(block) if " in base64, " in facts else block.encode()
        fetched += page
        fold["offset"] += len(page)
    assert fetched == whole.encode()[end - len(fetched):end], "a fold is fetched byte by byte"
    says(await agent.told("search_output", process_id=id_in(long), pattern="^error"), ":error: it broke")

    failed, blocks = await agent.call("read_output", process_id="nobody")
    assert failed and "next: list_processes" in blocks[0], blocks


async def main(url: str, shim: list[str]):
    stdio = StdioServerParameters(command=shim[0], args=shim[1:])
    for name, server in (("HTTP", url), ("standard input", stdio)):
        for mode in ("legacy", "2026-07-28", "auto"):
            async with asyncio.timeout(PATIENCE), Client(server, mode=mode) as client:
                await use_every_tool(Agent(client))
            print(f"Python SDK: every tool over {name}, {mode}")


asyncio.run(main(sys.argv[1], sys.argv[2:]))
