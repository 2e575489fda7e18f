/** Every request can be repeated: here the server does what it is asked, and its answer is lost. */

import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Client } from "lastbyte";
import { testWithDaemon } from "./daemon.js";

/** A proxy that passes requests on, and breaks the connection instead of every third answer. */
class LossyProxy {
  answers = 0;
  readonly #target: string;
  readonly #open = new Set<Socket>();
  readonly #server = createServer((near) => this.#passOn(near));

  constructor(target: string) {
    this.#target = target;
  }

  listen(path: string): Promise<void> {
    return new Promise((done) => this.#server.listen(path, done));
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
  }

  #passOn(near: Socket): void {
    const far = connect(this.#target);
    const broken = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      this.#open.add(socket);
      socket.on("error", broken).on("close", () => this.#open.delete(socket));
    }
    near.pipe(far);
    far.on("end", () => near.end());
    far.on("data", (data: Buffer) => {
      const isHead = data.subarray(0, 5).toString() === "HTTP/";
      if (isHead) this.answers += 1;
      if (isHead && this.answers % 3 === 0) broken();
      else near.write(data);
    });
  }
}

function test(name: string, body: (client: Client) => Promise<void>): void {
  testWithDaemon(name, async (daemon) => {
    const proxy = new LossyProxy(daemon.socket);
    const path = join(daemon.folder, "proxy");
    await proxy.listen(path);
    const client = new Client({ socket: path });
    try {
      await body(client);
      assert(proxy.answers > 10);
    } finally {
      client.close();
      proxy.close();
    }
  });
}

test("commands run once", async (client) => {
  const results = [];
  for (let i = 0; i < 30; i += 1) results.push(await client.run(`echo ${i}`, { session: "lost" }));
  assert.deepEqual(
    results.map(({ stdout }) => stdout),
    results.map((_, i) => `${i}\n`),
  );
  const ids: string[] = [];
  for await (const { id } of client.processes({ session: "lost" })) ids.push(id);
  assert.deepEqual(
    ids.reverse(),
    results.map(({ id }) => id),
  );
});

test("input is written once, and its end arrives", async (client) => {
  const child = client.start(["cat"], { streams: "merged" });
  for (let i = 0; i < 60; i += 1) await new Promise((done) => child.stdin?.write(`line ${i}\n`, done));
  child.stdin?.end();
  assert.equal((await child).stdout, Array.from({ length: 60 }, (_, i) => `line ${i}\n`).join(""));
});

test("output is read once", async (client) => {
  const want = Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join("");
  const child = client.start("seq 300000");
  let stdout = "";
  for await (const piece of child.stdout) stdout += String(piece);
  let output = "";
  for await (const { data } of child.output()) output += data.toString();
  assert(stdout === want && output === want && (await child).stdout === want);
});
