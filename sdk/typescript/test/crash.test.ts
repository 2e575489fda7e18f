/**
 * The worker is killed while something is under way. Each test has a server of its own, because a keeper waits
 * longer and longer before it replaces workers that die one after the other.
 */

import assert from "node:assert/strict";
import { testWithDaemon } from "./daemon.js";

/** Prints the numbers up to a million, in steps that a test can interrupt. */
const COUNT = "seq 1 200000; read line; seq 200001 400000; read line; seq 400001 600000";

function numbers(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join("");
}

for (const streams of ["merged", "split"] as const) {
  testWithDaemon(`a ${streams} stream goes on at its cursor`, async (daemon, client) => {
    const child = client.start(COUNT, { streams });
    let text = "";
    let killed = 0;
    for await (const piece of child.stdout) {
      text += String(piece);
      if (text.length > (killed + 1) * 1_000_000 && killed < 2) {
        killed += 1;
        await daemon.killWorker();
        child.stdin?.write("\n");
      }
    }
    assert.equal(killed, 2);
    assert(text === numbers(1, 600_000));
    assert.equal((await child).exitCode, 0);
  });

  testWithDaemon(`an iteration over ${streams} output goes on at its cursor`, async (daemon, client) => {
    const child = client.start(COUNT, { streams });
    let text = "";
    let killed = 0;
    for await (const { data, range } of child.output()) {
      assert.equal(range.start, text.length);
      text += data.toString();
      if (text.length > (killed + 1) * 1_000_000 && killed < 2) {
        killed += 1;
        await daemon.killWorker();
        child.stdin?.write("\n");
      }
    }
    assert.equal(killed, 2);
    assert(text === numbers(1, 600_000));
  });
}

testWithDaemon("waits of every kind go on", async (daemon, client) => {
  const child = client.start("read line; echo found; read line");
  await child.started;
  const result = Promise.resolve(child);
  const waits = [
    child.wait(),
    child.wait({ until: { pattern: "found" } }),
    client.waitAny([child]).then(({ met }) => met),
    client.waitAll([child]).then(([first]) => first?.met),
  ];
  await daemon.killWorker();
  child.stdin?.write("\n");
  assert.equal((await waits[1])?.met, "pattern");
  await daemon.killWorker();
  child.stdin?.end("\n");
  const met = (await Promise.all(waits)).map((found) => found?.met);
  assert.deepEqual(met, ["exit", "pattern", "exit", "exit"]);
  assert.equal((await result).stdout, "found\n");
});

testWithDaemon("commands that are being run have their results, and run once", async (daemon, client) => {
  const runs = Array.from({ length: 40 }, (_, i) =>
    client.run(`echo ${i}; sleep 0.${i % 10}`, { session: "crash", env: { PATH: process.env["PATH"] } }),
  );
  for (let kills = 0; kills < 3; kills += 1) await daemon.killWorker();
  const results = await Promise.all(runs);
  assert.deepEqual(
    results.map(({ stdout }) => stdout),
    results.map((_, i) => `${i}\n`),
  );
  const ids = new Set<string>();
  for await (const process of client.processes({ session: "crash" })) ids.add(process.id);
  assert.deepEqual(ids, new Set(results.map(({ id }) => id)));
});

testWithDaemon("input is written once", async (daemon, client) => {
  const child = client.start(["cat"], { streams: "merged" });
  const writes = 300;
  let kills = 0;
  for (let i = 0; i < writes; i += 1) {
    await new Promise((done) => child.stdin?.write(`line ${i}\n`, done));
    if (i % 100 === 50) {
      kills += 1;
      await daemon.killWorker();
    }
  }
  child.stdin?.end();
  assert.equal(kills, 3);
  assert.equal((await child).stdout, Array.from({ length: writes }, (_, i) => `line ${i}\n`).join(""));
});

testWithDaemon("the feed goes on", async (daemon, client) => {
  const feed = client.events({ session: "feed", last_event_id: "0-0" });
  const untilEnded = async (id: string) => {
    for (let event = await feed.next(); !event.done; event = await feed.next()) {
      if ("process" in event.value && event.value.process === id && event.value.event.kind === "ended")
        return;
    }
  };
  await untilEnded((await client.run("true", { session: "feed" })).id);
  await daemon.killWorker();
  await untilEnded((await client.run("true", { session: "feed" })).id);
  await feed.return();
});
