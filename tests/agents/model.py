#!/usr/bin/env python3
"""A scripted model for real agents: it answers each request with the next step of a scenario.

Speaks the four protocols that coding agents speak to their models: OpenAI's Responses and chat
completions, Anthropic's messages and Gemini's generateContent. A step is a tool call or the last
words of the model:

    {"steps": [{"tool": "exec_command", "arguments": {"command": "echo hello"}},
               {"text": "done"}]}

The tool is the one that the agent offers under this name, or under a name that ends with it (agents
put the name of the MCP server before it). `$process_id` in an argument is the last process id that a
tool has answered with; a step with `input` calls a tool that takes free text. The step is found by
counting the answers of tools in the request, so the server keeps no state and a repeated request gets
the same answer. Every request is appended to the transcript as a line of JSON, with those of the
scenario's `look_for` texts that are anywhere in it.

    model.py SCENARIO TRANSCRIPT    prints its URL, then serves until it is killed
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# How lastbyte, and Codex's own tools, name a process in an answer.
IDS = re.compile(r"process ([0-9a-f-]{36})|session ID (\d+)")


def texts_in(value):
    """Every string in a piece of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)


def filled(value, process_id):
    if isinstance(value, str):
        if value == "$process_id" and process_id.isdigit():
            return int(process_id)
        return value.replace("$process_id", process_id)
    if isinstance(value, list):
        return [filled(item, process_id) for item in value]
    if isinstance(value, dict):
        return {name: filled(item, process_id) for name, item in value.items()}
    return value


def next_step(scenario, offered, answers):
    """The step that comes after these answers of tools."""
    steps = scenario["steps"]
    step = steps[min(len(answers), len(steps) - 1)]
    if "tool" not in step or not offered:
        return {"text": step.get("text", "ok") if offered else "ok"}
    name = step["tool"]
    fits = [tool for tool in offered if tool == name or tool.endswith(("_" + name, "." + name, "/" + name))]
    if not fits:
        return {"text": f"no tool {name} among {', '.join(offered)}"}
    found = [one or other for answer in answers for text in texts_in(answer) for one, other in IDS.findall(text)]
    arguments = filled(step.get("arguments", {}), found[-1] if found else "")
    return {"tool": min(fits, key=len), "arguments": arguments, "input": step.get("input")}


class Responses:
    """OpenAI's Responses API."""

    def __init__(self, body):
        self.namespaces = {}
        self.offered = []
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    self.offered.append(inner["name"])
                    self.namespaces[inner["name"]] = tool["name"]
            elif "name" in tool:
                self.offered.append(tool["name"])
        kinds = ("function_call_output", "custom_tool_call_output")
        self.answers = [item for item in body.get("input", []) if isinstance(item, dict) and item.get("type") in kinds]

    def events(self, step, number):
        response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": []}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        if "tool" not in step:
            content = [{"type": "output_text", "text": step["text"], "annotations": []}]
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
        elif step["input"] is not None:
            item = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}"}
            item |= {"name": step["tool"], "input": step["input"]}
        else:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
            item |= {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
            if step["tool"] in self.namespaces:
                item["namespace"] = self.namespaces[step["tool"]]
        yield "response.created", {"response": response | {"status": "in_progress"}}
        yield "response.output_item.added", {"output_index": 0, "item": item}
        yield "response.output_item.done", {"output_index": 0, "item": item}
        yield "response.completed", {"response": response | {"output": [item], "usage": usage}}


class Messages:
    """Anthropic's messages API."""

    def __init__(self, body):
        self.model = body.get("model", "scripted")
        self.offered = [tool["name"] for tool in body.get("tools", [])]
        blocks = [block for message in body.get("messages", []) if isinstance(message.get("content"), list)
                  for block in message["content"]]
        self.answers = [block for block in blocks if block.get("type") == "tool_result"]

    def events(self, step, number):
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": self.model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        if "tool" in step:
            block = {"type": "tool_use", "id": f"toolu_{number:024}", "name": step["tool"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step["arguments"])}
            reason = "tool_use"
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": step["text"]}
            reason = "end_turn"
        yield "message_start", {"message": message}
        yield "content_block_start", {"index": 0, "content_block": block}
        yield "content_block_delta", {"index": 0, "delta": delta}
        yield "content_block_stop", {"index": 0}
        yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
        yield "message_stop", {}


class Chat:
    """OpenAI's chat completions."""

    def __init__(self, body):
        self.model = body.get("model", "scripted")
        self.offered = [tool["function"]["name"] for tool in body.get("tools", [])]
        self.answers = [message for message in body.get("messages", []) if message.get("role") == "tool"]

    def events(self, step, number):
        def chunk(delta, reason=None):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return None, {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 0,
                          "model": self.model, "choices": [choice]}

        if "tool" in step:
            function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
            call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            yield chunk({"role": "assistant", "content": None, "tool_calls": [call]})
            yield chunk({}, "tool_calls")
        else:
            yield chunk({"role": "assistant", "content": step["text"]})
            yield chunk({}, "stop")
        yield None, "[DONE]"


class Gemini:
    """Gemini's generateContent."""

    def __init__(self, body):
        declared = [function for tool in body.get("tools", []) for function in tool.get("functionDeclarations", [])]
        self.offered = [function["name"] for function in declared]
        parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
        self.answers = [part for part in parts if "functionResponse" in part]

    def events(self, step, number):
        if "tool" in step:
            part = {"functionCall": {"id": f"call_{number}", "name": step["tool"], "args": step["arguments"]}}
        else:
            part = {"text": step["text"]}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"index": 0, "content": content, "finishReason": "STOP"}
        yield None, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


def protocol(path):
    path = path.split("?")[0]
    if path.endswith("/responses"):
        return Responses
    if path.endswith("/messages"):
        return Messages
    if path.endswith("/chat/completions"):
        return Chat
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return Gemini
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer_json({"object": "list", "data": [], "models": []})

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}"
        body = json.loads(text)
        found = protocol(self.path)
        if found is None:
            return self.answer_json({"input_tokens": 1, "totalTokens": 1})
        asked = found(body)
        step = next_step(self.server.scenario, asked.offered, asked.answers)
        self.note(asked, step, text.decode())
        events = list(asked.events(step, len(asked.answers)))
        if found is Gemini and ":generateContent" in self.path:
            return self.answer_json(events[0][1])
        self.answer_events(events)

    def note(self, asked, step, text):
        line = {"path": self.path, "offered": asked.offered, "count": len(asked.answers),
                "answers": asked.answers[-1:], "step": step}
        line["saw"] = [words for words in self.server.scenario.get("look_for", []) if words in text]
        with open(self.server.transcript, "a", encoding="utf-8") as transcript:
            transcript.write(json.dumps(line) + "\n")

    def answer_json(self, value):
        self.answer("application/json", json.dumps(value).encode())

    def answer_events(self, events):
        text = ""
        for kind, data in events:
            if kind is not None:
                text += f"event: {kind}\n"
                data = {"type": kind} | data
            text += f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
        self.answer("text/event-stream", text.encode())

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    scenario, transcript = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(scenario, encoding="utf-8") as text:
        server.scenario = json.load(text)
    server.transcript = transcript
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
