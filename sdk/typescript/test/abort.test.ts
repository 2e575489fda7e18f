import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AbortError, type Process } from "lastbyte";
import { useDaemon } from "./daemon.js";

const server = useDaemon();

/** A command with a descendant that leaves its group. */
const TREE = "setsid sleep 1000 & sleep 1000";

async function running(session: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of server().client.processes({ session, phase: "running" })) ids.push(id);
  return ids;
}

test("a signal that is aborted already starts nothing", async () => {
  const { client } = server();
  const signal = AbortSignal.abort(new Error("why"));
  await assert.rejects(client.run(TREE, { signal, session: "never" }), (error: unknown) => {
    assert(error instanceof AbortError);
    assert.equal((error.cause as Error).message, "why");
    return true;
  });
  await assert.rejects(async () => await client.start(TREE, { signal, session: "never" }), AbortError);
  for await (const process of client.processes({ session: "never" })) assert.fail(process.id);
});

test("an abort of run at any time leaves nothing running", async () => {
  const { client } = server();
  for (let step = 0; step < 40; step += 1) {
    const abort = new AbortController();
    const run = client.run(TREE, { signal: abort.signal, session: "run", stop: { grace: 0 } });
    const rejected = assert.rejects(run, { name: "AbortError", code: "ABORT_ERR" });
    // From the same instant to after the start.
    await sleep(step / 4);
    abort.abort();
    await rejected;
    assert.deepEqual(await running("run"), []);
  }
});

test("an abort of start at any time stops the tree, and is an error event", async () => {
  const { client } = server();
  for (let step = 0; step < 40; step += 1) {
    const abort = new AbortController();
    const child = client.start(TREE, { signal: abort.signal, session: "start", stop: { grace: 0 } });
    const failed = new Promise<Error>((resolve) => child.once("error", resolve));
    const reading = (async () => {
      for await (const _ of child.stdout);
    })();
    await sleep(step / 4);
    abort.abort();
    const error = await failed;
    assert(error instanceof AbortError);
    if (error.proof !== undefined) assert.deepEqual(error.proof.left, []);
    await reading;
    assert.deepEqual(await running("start"), []);
  }
});

test("an abort while the result is read still ends the call", async () => {
  const { client } = server();
  for (let step = 0; step < 20; step += 1) {
    const abort = new AbortController();
    const run = client.run("yes | head -c 20000000", { signal: abort.signal, session: "reading" });
    const settled = run.then(
      ({ output }) => assert.equal(output.length, 20_000_000),
      (error: unknown) => assert(error instanceof AbortError),
    );
    await sleep(step * 4);
    abort.abort();
    await settled;
  }
  assert.deepEqual(await running("reading"), []);
});

test("an abort of a wait, a read or a feed leaves the process running", async () => {
  const { client } = server();
  await using child: Process = client.start("echo hello; sleep 1000");
  for (let step = 0; step < 20; step += 1) {
    const abort = new AbortController();
    const { signal } = abort;
    const read = async () => {
      for await (const _ of child.output({ signal }));
    };
    const feed = async () => {
      for await (const _ of client.events({ signal }));
    };
    const calls = [child.wait({ signal }), client.waitAll([child], { signal }), read(), feed()];
    const rejected = calls.map((call) => assert.rejects(call, AbortError));
    await sleep(step / 4);
    abort.abort();
    await Promise.all(rejected);
  }
  assert.equal(child.exitCode, null);
  assert.deepEqual(await child.wait({ timeout: 0 }), { met: "timeout" });
});

test("a stream that is destroyed leaves the process running", async () => {
  const { client } = server();
  await using child: Process = client.start("yes", { quotaBytes: 1 << 20 });
  await once(child.stdout, "data");
  child.stdout.destroy();
  await once(child.stdout, "close");
  assert.deepEqual(await child.wait({ timeout: 20 }), { met: "timeout" });
});
