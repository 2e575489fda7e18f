import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { api } from "lastbyte";
import { useDaemon } from "./daemon.js";

const server = useDaemon();
const SIZE = 200 << 20;

test("a reader that pauses neither slows the command nor grows memory", async () => {
  const { client } = server();
  const child = client.start(`yes 123456789012345 | head -c ${SIZE}`, {
    quotaBytes: 2 * SIZE,
    streams: "merged",
  });
  const stream = child.stdout[Symbol.asyncIterator]();
  await stream.next();
  // The command ends although only the first piece was read.
  await child.wait();
  const { arrayBuffers } = process.memoryUsage();
  assert(arrayBuffers < 8 << 20, `${arrayBuffers} bytes are buffered`);
  assert(child.stdout.readableLength <= 2 << 20);
  let length = 0;
  let most = 0;
  for (let piece = await stream.next(); !piece.done; piece = await stream.next()) {
    length += (piece.value as Buffer).length;
    most = Math.max(most, child.stdout.readableLength);
  }
  assert(most <= 2 << 20, `${most} bytes are buffered`);
  assert(length > SIZE - (1 << 20) && length < SIZE);
});

test("what the quota drops before it is read is told, and the rest is whole", async () => {
  const { client } = server();
  const child = client.start("yes 123456789012345 | head -c 20000000", { quotaBytes: 1 << 20 });
  const dropped: api.Range[] = [];
  child.stdout.on("dropped", (range: api.Range) => dropped.push(range));
  await child.wait();
  let length = 0;
  for await (const piece of child.stdout) length += (piece as Buffer).length;
  const gone = dropped.reduce((sum, { start, end }) => sum + end - start, 0);
  assert(gone > 18_000_000);
  assert.equal(length + gone, 20_000_000);
});

test("a slow iteration over split output misses nothing", async () => {
  const { client } = server();
  const child = client.start("seq 1 100000; seq 1 1000 >&2");
  const text = { stdout: "", stderr: "" };
  for await (const { stream, data } of child.output()) {
    text[stream ?? "stdout"] += data.toString();
    await sleep(1);
  }
  assert.equal(text.stdout.split("\n").length, 100_001);
  assert.equal(text.stderr.split("\n").length, 1001);
});
