/** Standard input of a process as a stream. */

import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { WriteAnswer } from "./api.js";
import { ApiError } from "./errors.js";
import { json, type Transport } from "./transport.js";

/** How much one request writes: the server refuses what does not fit in its queue of 16 MiB. */
const MAX_WRITE = 1 << 20;
const FIRST_PAUSE_MS = 2;
const LAST_PAUSE_MS = 100;

/**
 * Writes to a process. Each write has its offset in the input, so one that is repeated after a lost connection is
 * not written twice. It is the only writer: bytes of others in between would be taken for its own.
 */
export class InputStream extends Writable {
  readonly #transport: Transport;
  readonly #id: Promise<string | undefined>;
  readonly #abort = new AbortController();
  /** How much has been accepted; unknown until it is asked for. */
  #offset: number | undefined;

  constructor(transport: Transport, id: Promise<string | undefined>, offset: number | undefined) {
    super({ highWaterMark: 64 << 10 });
    this.#transport = transport;
    this.#id = id;
    this.#offset = offset;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk]).then(() => done(), done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#send(chunks.map(({ chunk }) => chunk)).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    // The end of the input of an ended process is no news.
    const isOver = (error: Error) => done("code" in error && error.code === "EPIPE" ? null : error);
    this.#post(Buffer.alloc(0), true).then(() => done(), isOver);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#abort.abort();
    done(error);
  }

  async #send(chunks: Buffer[]): Promise<void> {
    const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
    for (let start = 0; start < bytes.length; start += MAX_WRITE) {
      await this.#post(bytes.subarray(start, start + MAX_WRITE), false);
    }
  }

  /** Waits while the command does not read. */
  async #post(body: Buffer, close: boolean): Promise<void> {
    this.#offset ??= await this.#accepted();
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LAST_PAUSE_MS)) {
      try {
        await this.#request(body, { offset: this.#offset, close: close || undefined });
        this.#offset += body.length;
        return;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "stdin_full") throw asPipeError(error);
      }
      await sleep(pause, undefined, { signal: this.#abort.signal });
    }
  }

  async #accepted(): Promise<number> {
    return (await this.#request(Buffer.alloc(0), {})).accepted;
  }

  async #request(body: Buffer, query: object): Promise<WriteAnswer> {
    const id = await this.#id;
    if (id === undefined) throw brokenPipe("the command did not start");
    const path = `/v1/processes/${encodeURIComponent(id)}/stdin`;
    const headers = { "content-type": "application/octet-stream" };
    const ask = { method: "POST" as const, path, query, body, headers };
    return json(await this.#transport.send(ask, { signal: this.#abort.signal }));
  }
}

/** The error that a closed pipe gives in Node. */
function asPipeError(error: unknown): unknown {
  const isClosed =
    error instanceof ApiError && (error.code === "process_exited" || error.code === "stdin_not_open");
  return isClosed ? brokenPipe(error.message, error) : error;
}

function brokenPipe(message: string, cause?: unknown): Error {
  return Object.assign(new Error(`write EPIPE: ${message}`, { cause }), { code: "EPIPE", syscall: "write" });
}
