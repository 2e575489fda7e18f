/**
 * Compares with `node:child_process`, in turns so that both meet the same machine. Run by hand:
 *
 *     LASTBYTE_PROGRAM=target/release/lastbyte node out/bench/compare.js [ROUNDS]
 *
 * It uses a server of its own, in a temporary directory.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { Client, findProgram } from "lastbyte";

const GIB = 2 ** 30;
const FLOOD = ["head", "-c", String(GIB), "/dev/zero"] as const;
const RUNS = 200;

type Contest = Record<string, () => Promise<number>>;

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Runs each in turn, and prints the medians. */
async function compare(title: string, unit: string, rounds: number, contest: Contest): Promise<void> {
  const found = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, once] of Object.entries(contest))
      found.set(name, [...(found.get(name) ?? []), await once()]);
  }
  for (const [name, values] of found) {
    const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(2));
    console.log(
      `${title}\t${name}\t${median(values).toFixed(2)} ${unit} (${least} to ${most}, ${rounds} rounds)`,
    );
  }
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const begun = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - begun) / 1e9;
}

async function drain(stream: Readable): Promise<void> {
  let length = 0;
  for await (const piece of stream) length += (piece as Buffer).length;
  if (length !== GIB) throw new Error(`${length} bytes`);
}

function spawned(): ChildProcess & { stdout: Readable } {
  return spawn(FLOOD[0], FLOOD.slice(1), { stdio: ["ignore", "pipe", "inherit"] }) as ChildProcess & {
    stdout: Readable;
  };
}

async function runTrue(): Promise<void> {
  const child = spawn("true");
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
}

/** GiB in a second. */
const rate = async (work: () => Promise<void>) => 1 / (await seconds(work));
/** Milliseconds for one of many, one after the other. */
const each = (work: () => Promise<unknown>) => async () =>
  ((await seconds(async () => {
    for (let i = 0; i < RUNS; i += 1) await work();
  })) *
    1000) /
  RUNS;

async function main(client: Client, rounds: number): Promise<void> {
  const flood = (streams: "merged" | "split") => () =>
    rate(async () => {
      const child = client.start(FLOOD, { streams, quotaBytes: 2 * GIB, stdin: "closed" });
      await drain(child.stdout);
      await child.wait();
      await client.forget(child);
    });
  await compare("1 GiB streamed", "GiB/s", rounds, {
    child_process: () => rate(() => drain(spawned().stdout)),
    "lastbyte, merged": flood("merged"),
    "lastbyte, split": flood("split"),
  });
  await compare("true", "ms", rounds, {
    child_process: each(runTrue),
    lastbyte: each(() => client.run(["true"])),
    "lastbyte, env: {}": each(() => client.run(["true"], { env: {} })),
  });
}

const folder = mkdtempSync(join(tmpdir(), "lastbyte-bench-"));
const socket = join(folder, "socket");
const args = ["serve", "--state", join(folder, "state"), "--socket", socket, "--log", "error"];
const server = spawn(findProgram(), args, { stdio: ["ignore", "pipe", "inherit"] });
try {
  await once(server.stdout, "data");
  const client = new Client({ socket });
  await main(client, Number(process.argv[2] ?? 5));
  client.close();
} finally {
  const gone = once(server, "exit");
  server.kill();
  await gone;
  rmSync(folder, { recursive: true, force: true });
}
