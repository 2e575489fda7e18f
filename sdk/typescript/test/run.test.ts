import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { ApiError, CommandError, SpawnError } from "lastbyte";
import { useDaemon } from "./daemon.js";

const server = useDaemon();

test("the result has the exit code and both streams apart", async () => {
  const result = await server().client.run("echo out; echo err >&2; exit 3", { check: false });
  assert.equal(result.exitCode, 3);
  assert.equal(result.signal, null);
  assert.equal(result.stdout, "out\n");
  assert.equal(result.stderr, "err\n");
  assert.deepEqual([...result.output].sort(), [..."out\nerr\n"].sort());
  assert.deepEqual(result.ending.status, { kind: "exited", code: 3 });
  assert.equal(result.ok, false);
});

test("a command that fails rejects with its result", async () => {
  const failed = server().client.run(["sh", "-c", "echo no such luck >&2; exit 4"]);
  await assert.rejects(failed, (error: unknown) => {
    assert(error instanceof CommandError);
    assert.equal(error.result.exitCode, 4);
    assert.match(error.message, /ended with exit code 4: no such luck$/);
    return true;
  });
});

test("a signal is told by its name", async () => {
  const result = await server().client.run("kill -9 $$", { check: false });
  assert.deepEqual([result.exitCode, result.signal], [null, "SIGKILL"]);
});

test("a command that cannot be started has the error of child_process", async () => {
  const commands: [string[], string][] = [
    [["/nowhere/at/all", "an argument"], "program_not_found"],
    [["no-such-program"], "program_not_found"],
    [[import.meta.filename], "program_not_runnable"],
    [["true", "x".repeat(200_000)], "program_not_runnable"],
  ];
  for (const [[program = "", ...args], code] of commands) {
    // Node throws some, and tells others by an event.
    const want = await new Promise<NodeJS.ErrnoException>((resolve) => {
      try {
        spawn(program, args).once("error", resolve);
      } catch (error) {
        resolve(error as NodeJS.ErrnoException);
      }
    });
    await assert.rejects(server().client.run([program, ...args]), (error: unknown) => {
      assert(error instanceof SpawnError);
      assert.deepEqual([error.code, error.errno], [want.code, want.errno]);
      if (want.path !== undefined) {
        const { syscall, path, spawnargs } = error;
        assert.deepEqual([syscall, path, spawnargs], [want.syscall, want.path, args]);
      }
      assert(error.cause instanceof ApiError);
      assert.equal(error.cause.code, code);
      return true;
    });
  }
  await assert.rejects(server().client.run(["true"], { cwd: "/nowhere" }), { code: "ENOENT" });
});

test("bytes arrive as they are", async () => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const result = await server().client.run(["cat"], { input: all, encoding: "buffer" });
  assert.deepEqual(result.stdout, all);
});

test("several megabytes of input and output are whole", async () => {
  const input = Buffer.alloc(9 << 20, "0123456789abcdef\n");
  const result = await server().client.run(["cat"], { input, encoding: "buffer" });
  assert(result.stdout.equals(input));
  assert.equal(result.truncated, false);
});

test("a command that does not read its input still has a result", async () => {
  const result = await server().client.run("exit 0", { input: Buffer.alloc(20 << 20) });
  assert.equal(result.exitCode, 0);
});

test("interleaved streams are taken apart byte by byte", async () => {
  const script = "for i in $(seq 400); do echo out $i; echo err $i >&2; done";
  const { stdout, stderr, output } = await server().client.run(script);
  const lines = (word: string) => Array.from({ length: 400 }, (_, i) => `${word} ${i + 1}\n`).join("");
  assert.equal(stdout, lines("out"));
  assert.equal(stderr, lines("err"));
  assert.equal(output.length, stdout.length + stderr.length);
});

test("merged streams keep their order", async () => {
  const { stdout, stderr } = await server().client.run("echo 1; echo 2 >&2; echo 3", { streams: "merged" });
  assert.deepEqual([stdout, stderr], ["1\n2\n3\n", ""]);
});

test("a background child that holds the pipe does not hold up the result", async () => {
  const { client } = server();
  const result = await client.run("sleep 1000 & echo done");
  assert.equal(result.stdout, "done\n");
  assert.equal(result.ending.closing?.kind, "held");
  const { left } = await client.stop(result.id);
  assert.deepEqual(left, []);
});

test("a timeout stops the command and is a failure", async () => {
  const failed = server().client.run(["sleep", "1000"], { timeout: 50 });
  await assert.rejects(failed, (error: unknown) => {
    assert(error instanceof CommandError);
    assert.match(error.message, /timed out/);
    assert.deepEqual(error.result.ending.cause, { kind: "timed_out", which: "wall", escalated: false });
    return true;
  });
});

test("a command has this program's directory and environment unless it is given others", async () => {
  const { client } = server();
  process.env["LASTBYTE_TEST_WORD"] = "inherited";
  const script = 'pwd; echo "$LASTBYTE_TEST_WORD"';
  assert.equal((await client.run(script)).stdout, `${process.cwd()}\ninherited\n`);
  const given = { cwd: "/", env: { PATH: process.env["PATH"], LASTBYTE_TEST_WORD: "given" } };
  assert.equal((await client.run(script, given)).stdout, "/\ngiven\n");
  assert.equal((await client.run(script, { ...given, env: {} })).stdout, "/\n\n");
  delete process.env["LASTBYTE_TEST_WORD"];
});

test("secrets are masked, limits and sandboxes applied, names and labels told", async () => {
  const { client } = server();
  const result = await client.run('echo "$WORD"; ulimit -n', {
    secrets: { WORD: "hidden-treasure" },
    limits: { open_files: 100 },
    session: "s",
    name: "named",
    labels: { a: "b" },
    quotaBytes: 1 << 20,
  });
  assert.equal(result.stdout, "***WORD***\n100\n");
  const info = await client.show("named");
  assert.deepEqual([info.session, info.labels, info.limits], ["s", { a: "b" }, { open_files: 100 }]);
});

test("the same key is the same process", async () => {
  const { client } = server();
  const [first, second] = [
    await client.run("date +%N", { key: "once" }),
    await client.run("date +%N", { key: "once" }),
  ];
  assert.equal(second.id, first.id);
  assert.equal(second.stdout, first.stdout);
});

test("output past maxBytes is cut and said to be", async () => {
  const result = await server().client.run("yes | head -c 300000", { maxBytes: 100_001 });
  assert.deepEqual([result.output.length, result.truncated], [100_001, true]);
});

test("what the quota dropped is named", async () => {
  const { output, dropped } = await server().client.run("yes | head -c 3000000", { quotaBytes: 1 << 20 });
  const gone = dropped.reduce((sum, { start, end }) => sum + end - start, 0);
  assert(gone > 0);
  assert.equal(output.length + gone, 3_000_000);
});
