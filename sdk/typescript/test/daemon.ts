/** A server for one test file, with a state directory of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { Client, type ClientOptions } from "lastbyte";

/** The root of the repository. */
export const tree = resolve(process.env["LASTBYTE_TREE"] ?? join(import.meta.dirname, "../../../.."));

export function program(): string {
  const built = join(tree, "target/debug/lastbyte");
  return process.env["LASTBYTE_PROGRAM"] ?? (existsSync(built) ? built : "lastbyte");
}

export class Daemon {
  readonly folder: string;
  readonly socket: string;
  readonly state: string;
  readonly #child: ChildProcess;
  readonly #clients: Client[] = [];
  url: string | undefined;

  private constructor(folder: string, args: string[]) {
    this.folder = folder;
    this.socket = join(folder, "socket");
    this.state = join(folder, "state");
    const place = ["--state", this.state, "--socket", this.socket, "--log", "error"];
    const env = { PATH: process.env["PATH"], HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: folder };
    this.#child = spawn(program(), ["serve", ...place, ...args], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
  }

  static async start(...args: string[]): Promise<Daemon> {
    const daemon = new Daemon(mkdtempSync(join(tmpdir(), "lastbyte-")), args);
    const wanted = args.includes("--listen") ? 2 : 1;
    let seen = 0;
    if (daemon.#child.stdout === null) throw new Error("no stdout");
    for await (const line of createInterface({ input: daemon.#child.stdout })) {
      daemon.url ??= /http:\/\/\S+/.exec(line)?.[0];
      seen += 1;
      if (seen === wanted) return daemon;
    }
    throw new Error(`${program()} serve did not start`);
  }

  client(options: ClientOptions = {}): Client {
    const client = new Client({ socket: this.socket, ...options });
    this.#clients.push(client);
    return client;
  }

  /** Kills the process that serves. Its keeper starts another. */
  async killWorker(): Promise<void> {
    const { keeper } = await this.client().health();
    if (keeper == null) throw new Error("there is no keeper");
    process.kill(keeper.worker_pid, "SIGKILL");
  }

  async stop(): Promise<void> {
    await this.stopServer();
    this.remove();
  }

  /** Stops the server and keeps its files. */
  async stopServer(): Promise<void> {
    for (const client of this.#clients) client.close();
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await gone;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A test with a server of its own. */
export function testWithDaemon(name: string, body: (daemon: Daemon, client: Client) => Promise<void>): void {
  test(name, async () => {
    const daemon = await Daemon.start();
    try {
      await body(daemon, daemon.client());
    } finally {
      await daemon.stop();
    }
  });
}

/** A server for the tests of a file. */
export function useDaemon(...args: string[]): () => { daemon: Daemon; client: Client } {
  let daemon: Daemon | undefined;
  let client: Client | undefined;
  before(async () => {
    daemon = await Daemon.start(...args);
    client = daemon.client();
  });
  after(() => daemon?.stop());
  return () => {
    if (daemon === undefined || client === undefined) throw new Error("the server has not started");
    return { daemon, client };
  };
}
