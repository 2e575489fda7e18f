import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { useDaemon } from "./daemon.js";

const server = useDaemon();

/** This many, or as many as a server can have with the descriptors that a user may have here. */
function upTo(count: number): number {
  const limit = execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim();
  return limit === "unlimited" ? count : Math.min(count, Math.floor(Number(limit) / 16));
}

test("a thousand processes run at once, and each has its own input, output and ending", async () => {
  const { client } = server();
  const count = upTo(1000);
  const children = Array.from({ length: count }, (_, i) =>
    client.start(["sh", "-c", "read line; echo got $line; exit $1", "-", String(i % 7)], {
      session: "many",
      streams: "merged",
      check: false,
      env: {},
    }),
  );
  await Promise.all(children.map(({ started }) => started));
  assert.equal((await client.health()).running, count);
  for (const [i, child] of children.entries()) child.stdin?.end(`${i}\n`);
  const results = await Promise.all(children);
  const found = results.map(({ exitCode, stdout }) => [exitCode, stdout]);
  assert.deepEqual(
    found,
    children.map((_, i) => [i % 7, `got ${i}\n`]),
  );
});

test("more commands than connections are run at once", async () => {
  const { client } = server();
  const runs = Array.from({ length: upTo(300) }, (_, i) => client.run(`echo ${i}`, { env: {} }));
  const results = await Promise.all(runs);
  assert.deepEqual(
    results.map(({ stdout }) => stdout),
    results.map((_, i) => `${i}\n`),
  );
});

test("more readers than connections get everything", async () => {
  const { client } = server();
  const child = client.start("for i in $(seq 30); do echo $i; sleep 0.02; done");
  const read = async () => {
    let text = "";
    for await (const { data } of child.output()) text += data.toString();
    return text;
  };
  const texts = await Promise.all(Array.from({ length: 200 }, read));
  const want = Array.from({ length: 30 }, (_, i) => `${i + 1}\n`).join("");
  assert(texts.every((text) => text === want));
});

test("a wait is told its end while more than all connections wait for something else", async () => {
  const { client } = server();
  await using slow = client.start(["sleep", "1000"]);
  const abort = new AbortController();
  const waits = Array.from({ length: 200 }, () => slow.wait({ signal: abort.signal }));
  const rejected = waits.map((wait) => assert.rejects(wait, { name: "AbortError" }));
  assert.equal((await client.run("echo told")).stdout, "told\n");
  assert.deepEqual(await client.start(["true"]).wait({ timeout: 20_000 }), { met: "exit" });
  assert.deepEqual(await slow.wait({ until: { silence: 300 }, timeout: 20_000 }), { met: "silence" });
  abort.abort();
  await Promise.all(rejected);
});

test("the first of several, and all of them", async () => {
  const { client } = server();
  const slow = client.start(["sleep", "1000"]);
  const quick = client.start("exit 3", { check: false });
  const first = await client.waitAny([slow, quick]);
  assert.deepEqual([first.id, first.met], [quick.id, { met: "exit" }]);
  const both = await client.waitAll([slow, quick], { timeout: 20 });
  assert.deepEqual(
    both.map(({ met }) => met?.met),
    ["timeout", "exit"],
  );
  await slow.stop({ grace: 0 });
  const ended = await client.waitAll([slow, quick]);
  assert(ended.every(({ process }) => process.phase === "ended"));
  assert.deepEqual(await client.waitAll([]), []);
  await assert.rejects(client.waitAny([]), RangeError);
});

test("processes are listed page by page, searched and stopped", async () => {
  const { client } = server();
  const ids: string[] = [];
  for await (const process of client.processes({ session: "many" })) ids.push(process.id);
  assert.equal(ids.length, upTo(1000));
  const { id } = await client.run("echo apple; echo pear", { session: "fruit" });
  const { matches } = await client.search(id, "^p");
  assert.deepEqual(
    matches.map(({ line }) => line.text),
    ["pear"],
  );
  const screen = await client.screen(id, { rows: 2, cols: 10, at: 6 });
  assert.deepEqual([screen.lines, screen.cursor], [["apple", ""], { row: 1, col: 0 }]);
  const left = client.start(["sleep", "1000"], { session: "fruit" });
  await left.started;
  const outcomes = await client.stopAll({ session: "fruit", phase: "running" });
  assert.deepEqual(
    outcomes.map((outcome) => [outcome.id, outcome.proof?.left]),
    [[left.id, []]],
  );
  await client.forget(id);
  await assert.rejects(client.show(id), { code: "process_not_found" });
});

test("the feed tells what happens to every process", async () => {
  const { client } = server();
  const stop = new AbortController();
  const feed = client.events({ session: "fed", last_event_id: "0-0", signal: stop.signal });
  const { id } = await client.run("echo hello", { session: "fed" });
  const kinds: string[] = [];
  for await (const event of feed) {
    if ("process" in event) assert.equal(event.process, id);
    kinds.push(event.event.kind);
    if (event.event.kind === "ended") break;
  }
  assert.deepEqual(kinds, ["gap", "started", "first_output", "ended"]);
});
