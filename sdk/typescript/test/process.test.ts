import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { CommandError, type Process, SpawnError } from "lastbyte";
import { useDaemon } from "./daemon.js";

const server = useDaemon();

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("events come in the order of a child process", async () => {
  const child = server().client.start("echo hello; exit 5", { check: false });
  const seen: unknown[] = [];
  child.on("spawn", () => seen.push(["spawn", typeof child.pid, typeof child.id]));
  child.on("exit", (...args) => seen.push(["exit", ...args]));
  child.stdout.on("data", (data: Buffer) => seen.push(data.toString()));
  child.on("close", (...args) => seen.push(["close", ...args]));
  await once(child, "close");
  assert.deepEqual(seen[0], ["spawn", "number", "string"]);
  assert.deepEqual(seen.at(-1), ["close", 5, null]);
  assert.equal(seen.length, 4);
  assert(seen.includes("hello\n"));
  assert.equal(child.exitCode, 5);
});

test("close comes although nobody reads the output", async () => {
  const child = server().client.start("yes | head -c 1000000; kill -TERM $$");
  assert.deepEqual(await once(child, "close"), [null, "SIGTERM"]);
  assert.deepEqual([child.exitCode, child.signalCode], [null, "SIGTERM"]);
});

test("close comes after the last byte was read", async () => {
  const child = server().client.start("head -c 5000000 /dev/zero");
  const seen: (string | number)[] = [];
  child.on("exit", () => seen.push("exit"));
  child.on("close", () => seen.push("close"));
  const closed = once(child, "close");
  let length = 0;
  for await (const piece of child.stdout) {
    length += (piece as Buffer).length;
    if (!seen.includes("exit")) await once(child, "exit");
  }
  seen.push(length);
  await closed;
  assert.deepEqual(seen, ["exit", 5_000_000, "close"]);
});

test("stdout and stderr are streams of their own", async () => {
  const child = server().client.start("echo out; echo err >&2");
  assert.deepEqual(await Promise.all([text(child.stdout), text(child.stderr)]), ["out\n", "err\n"]);
});

test("merged output is all in stdout", async () => {
  const child = server().client.start("echo 1; echo 2 >&2", { streams: "merged" });
  assert.deepEqual(await Promise.all([text(child.stdout), text(child.stderr)]), ["1\n2\n", ""]);
});

test("a conversation over stdin and stdout", async () => {
  const child = server().client.start(["cat"]);
  const lines = child.stdout[Symbol.asyncIterator]();
  for (const line of ["one\n", "two\n"]) {
    child.stdin?.write(line);
    assert.equal(String((await lines.next()).value), line);
  }
  child.stdin?.end();
  assert.equal((await lines.next()).done, true);
  assert.equal((await child).exitCode, 0);
});

test("megabytes go through stdin and come back, byte by byte", async () => {
  const child = server().client.start(["cat"], { streams: "merged" });
  const sent = Buffer.alloc(100_000, "a binary \0\xff line\n", "latin1");
  const count = 60;
  const received = text(child.stdout as AsyncIterable<Buffer>);
  for (let i = 0; i < count; i += 1) {
    if (!child.stdin?.write(sent) && child.stdin) await once(child.stdin, "drain");
  }
  child.stdin?.end();
  const want = Buffer.concat(Array(count).fill(sent)).toString();
  assert((await received) === want);
});

test("input waits for a command that does not read it", async () => {
  const { client } = server();
  const child = client.start(["sh", "-c", "read go < /dev/null; exec wc -c"], { streams: "merged" });
  // More than the server keeps for a command that does not read.
  const stopped = client.start(["sh", "-c", "kill -STOP $$; exec wc -c"], { streams: "merged" });
  await stopped.started;
  const size = 20 << 20;
  child.stdin?.end(Buffer.alloc(size));
  stopped.stdin?.end(Buffer.alloc(size));
  assert.equal((await child).stdout.trim(), String(size));
  await stopped.signal("CONT");
  assert.equal((await stopped).stdout.trim(), String(size));
});

test("writing to an ended process is a broken pipe", async () => {
  const child = server().client.start("exit 0");
  await child;
  const failed = child.stdin && once(child.stdin, "error");
  child.stdin?.write("too late");
  const [error] = (await failed) ?? [];
  assert.equal((error as NodeJS.ErrnoException).code, "EPIPE");
});

test("kill sends a signal, and says when there is nobody to send it to", async () => {
  const child = server().client.start(["sleep", "1000"]);
  assert.equal(child.kill("SIGINT"), true);
  assert.deepEqual(await once(child, "exit"), [null, "SIGINT"]);
  assert.equal(child.kill(), false);
  const other = server().client.start(["sleep", "1000"]);
  assert.equal(other.kill(9), true);
  assert.deepEqual(await once(other, "exit"), [null, "SIGKILL"]);
});

test("stop ends the whole tree and proves it", async () => {
  const child = server().client.start("setsid sleep 1000 & echo $!; sleep 1000");
  await child.wait({ until: { pattern: "." } });
  const proof = await child.stop({ grace: 0 });
  assert.deepEqual(proof.left, []);
  assert(proof.gone.length >= 2);
  await assert.rejects(async () => await child, CommandError);
});

test("a wait ends with what happened first, and leaves the process alone", async () => {
  const child = server().client.start("echo ready 42; sleep 1000");
  const met = await child.wait({ until: { pattern: "ready \\d+" } });
  assert.deepEqual(met, { met: "pattern", range: { start: 0, end: 8 }, text: "ready 42" });
  assert.deepEqual(await child.wait({ timeout: 20 }), { met: "timeout" });
  assert.deepEqual(await child.wait({ until: { silence: 20 } }), { met: "silence" });
  assert.equal(child.exitCode, null);
  await child.stop({ grace: 0 });
  assert.deepEqual(await child.wait(), { met: "exit" });
});

test("a wait ends when the command asks for input", async () => {
  const child = server().client.start("stty -echo; read -r word", { tty: { rows: 24, cols: 80 } });
  const met = await child.wait({ until: { needsInput: true }, timeout: 20_000 });
  const want = { met: "needs_input", pid: 0, name: "sh", on: "terminal", secret: true };
  assert.deepEqual({ ...met, pid: 0 }, want);
  await child.stop();
});

test("output can be iterated with streams and ranges, from any cursor", async () => {
  const child = server().client.start("echo out; sleep 0.1; echo err >&2");
  const pieces: unknown[] = [];
  for await (const { stream, data, range } of child.output())
    pieces.push([stream, data.toString(), range.start]);
  assert.deepEqual(pieces, [
    ["stdout", "out\n", 0],
    ["stderr", "err\n", 4],
  ]);
  const tail: string[] = [];
  for await (const { data } of child.output({ from: 6 })) tail.push(data.toString());
  assert.equal(tail.join(""), "r\n");
});

test("a terminal has a size that can be changed", async () => {
  const child = server().client.start("stty size; read line; stty size", { tty: { rows: 10, cols: 40 } });
  await child.wait({ until: { pattern: "10 40" } });
  await child.resize({ rows: 20, cols: 50 });
  child.stdin?.write("\n");
  const { stdout } = await child;
  assert.match(stdout, /^10 40\r\n\r\n20 50\r\n$/);
});

test("a start that fails is an error event, and rejects who awaits", async () => {
  const { client } = server();
  const child = client.start(["/nowhere/at/all"]);
  const [error] = await once(child, "error").catch((error: unknown) => [error]);
  assert(error instanceof SpawnError);
  assert.equal(error.code, "ENOENT");
  await assert.rejects(async () => await client.start(["/nowhere/at/all"]), SpawnError);
  assert.equal(await text(child.stdout as AsyncIterable<Buffer>), "");
});

test("a start that fails tells those who wait for it, and does not end the program", async () => {
  const { client } = server();
  const calls: ((child: Process) => PromiseLike<unknown>)[] = [
    (child) => child.started,
    (child) => child.stop(),
    (child) => child.signal("TERM"),
    (child) => child.wait(),
    (child) => client.waitAny([child]),
    (child) => client.search(child, "x"),
  ];
  for (const call of calls) {
    // An error that nobody listens to would end this program.
    await assert.rejects(async () => await call(client.start(["/nowhere/at/all"])), { code: "ENOENT" });
    await sleep(1);
  }
});

test("another program can attach by id or name, read everything and write", async () => {
  const { daemon, client } = server();
  const child = client.start(["cat"], { name: "attached" });
  child.stdin?.write("first\n");
  await child.wait({ until: { pattern: "first" } });
  const other = daemon.client().attach("attached");
  other.stdin?.end("second\n");
  assert.equal(await text(other.stdout as AsyncIterable<Buffer>), "first\nsecond\n");
  assert.equal((await other).exitCode, 0);
  assert.equal(other.id, child.id);
});

test("what leaves its scope is stopped", async () => {
  const { client } = server();
  let inner: Process;
  {
    await using child = client.start(["sleep", "1000"]);
    inner = child;
    await child.started;
  }
  assert.deepEqual([inner.ending?.cause?.kind, inner.signalCode], ["stopped", "SIGTERM"]);
});

test("a program can end while its process runs", async () => {
  const { daemon, client } = server();
  const script = `
    import { Client } from "lastbyte";
    const child = new Client({ socket: process.argv[1] }).start(["sleep", "1000"], { name: "left" });
    child.on("spawn", () => child.unref());
  `;
  const args = ["--input-type=module", "--eval", script, daemon.socket];
  await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, timeout: 20_000 });
  assert.equal((await client.show("left")).phase, "running");
  await client.stop("left");
});

test("a program that has nothing left to do ends, whatever connections it had", async () => {
  const { daemon } = server();
  const script = `
    import { Client } from "lastbyte";
    const client = new Client({ socket: process.argv[1] });
    await client.run("true");
    client.start("exit 3");
    const child = client.start("echo x; sleep 1000");
    for await (const _ of child.output()) break;
    for await (const _ of client.follow(child)) break;
    for await (const _ of child.stdout) break;
    for await (const _ of client.events({ last_event_id: "0-0" })) break;
    for await (const _ of client.processes()) break;
    await child.stop();
  `;
  const args = ["--input-type=module", "--eval", script, daemon.socket];
  // Less than the 15 seconds for which an idle connection is kept.
  const ended = await promisify(execFile)(process.execPath, args, {
    cwd: import.meta.dirname,
    timeout: 10_000,
  });
  assert.deepEqual(ended, { stdout: "", stderr: "" });
});

test("a character whose bytes come apart is one character", async () => {
  const child = server().client.start("printf 'a\\303'; read go; printf '\\251b'");
  child.stdout.setEncoding("utf8");
  await child.wait({ until: { outputPast: 1 } });
  const first = await once(child.stdout, "data");
  child.stdin?.end("\n");
  let rest = "";
  for await (const piece of child.stdout) rest += piece;
  assert.deepEqual([first, rest], [["a"], "éb"]);
});

test("late output of a background child can be read", async () => {
  const { daemon, client } = server();
  const flag = join(daemon.folder, "go");
  const child = client.start('(until [ -e "$FLAG" ]; do sleep 0.01; done; echo late) & echo early', {
    env: { ...process.env, FLAG: flag },
    streams: "merged",
  });
  assert.equal((await child).stdout, "early\n");
  const pieces: string[] = [];
  for await (const { data } of child.output({ late: true })) {
    pieces.push(data.toString());
    writeFileSync(flag, "");
  }
  assert.deepEqual(pieces, ["early\n", "late\n"]);
});
