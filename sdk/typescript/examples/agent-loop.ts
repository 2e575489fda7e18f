/**
 * A coding agent in one loop: a model asks for tools, and this program runs them. The model is a script, so that the
 * example runs without a network; put the call of yours in its place.
 */

import { attach, type CommandError, run, start } from "lastbyte";

type Call =
  | { tool: "run"; command: string }
  | { tool: "start"; command: string; name: string; ready: string }
  | { tool: "read"; name: string; lines: number }
  | { tool: "stop"; name: string }
  | { tool: "say"; text: string };

/** Answers with the next call, given the results of all calls before it. */
type Model = (results: string[]) => Call;

const SCRIPT: Call[] = [
  { tool: "run", command: "printf 'a\\nb\\n' | grep -c ." },
  { tool: "run", command: "echo 'no such test' >&2; exit 1" },
  {
    tool: "start",
    command: "echo listening; while :; do echo tick; sleep 0.05; done",
    name: "dev",
    ready: "listening",
  },
  { tool: "read", name: "dev", lines: 1 },
  { tool: "stop", name: "dev" },
  { tool: "say", text: "done" },
];

const scripted: Model = (results) => SCRIPT[results.length] ?? { tool: "say", text: "done" };

async function perform(call: Call): Promise<string> {
  switch (call.tool) {
    case "run": {
      // A failure is an answer for the model. A command that hangs is stopped with everything it started.
      const result = await run(call.command, { check: false, timeout: 60_000, session: "agent" });
      return `exit code ${result.exitCode}\n${result.output}`;
    }
    case "start": {
      const server = start(call.command, { name: call.name, session: "agent", stdin: "closed" });
      const met = await server.wait({ until: { pattern: call.ready }, timeout: 10_000 });
      return `started ${call.name}: ${met.met}`;
    }
    case "read": {
      // Any program can attach by name, and reads from the first byte.
      const lines: string[] = [];
      for await (const { data } of attach(call.name).output()) {
        lines.push(...data.toString().trimEnd().split("\n"));
        if (lines.length >= call.lines) break;
      }
      return lines.slice(0, call.lines).join("\n");
    }
    case "stop": {
      const { left } = await attach(call.name).stop({ grace: 1000 });
      return left.length === 0 ? `stopped ${call.name}` : `left running: ${left.join(" ")}`;
    }
    case "say":
      return call.text;
  }
}

async function agent(model: Model): Promise<void> {
  const results: string[] = [];
  for (;;) {
    const call = model(results);
    const result = await perform(call).catch((error: CommandError) => error.message);
    console.log(`${call.tool}: ${result.trimEnd()}`);
    if (call.tool === "say") return;
    results.push(result);
  }
}

await agent(scripted);
