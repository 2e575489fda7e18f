/**
 * Requests to the server over a unix socket or TCP, repeated when the connection breaks.
 *
 * Every request can be repeated: starts have a key, writes have an offset, reads and waits change nothing. So a
 * worker that is killed while it answers is only a delay: its keeper starts another.
 */

import { existsSync } from "node:fs";
import { Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorBody } from "./api.js";
import { startServer } from "./autostart.js";
import { ApiError, ConnectionError, LastbyteError, throwIfAborted } from "./errors.js";
import { describePlace, type Place, readAddress } from "./place.js";
import { type Slot, Slots } from "./slots.js";

/** A request, without what is the same for all. */
export interface Ask {
  method: "GET" | "POST" | "DELETE";
  path: string;
  query?: object;
  /** Sent as JSON, or as it is if it is bytes. */
  body?: object | Uint8Array;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  chunks: Buffer[];
}

export interface SendOptions {
  signal?: AbortSignal | undefined;
  /** Called with the socket of each attempt. */
  onSocket?: ((socket: Socket) => void) | undefined;
}

export interface TransportOptions {
  /** The `lastbyte` program that starts the server. */
  program?: string | undefined;
  /** Whether to start a server if none is running. */
  autostart?: boolean | undefined;
  /** How long to try again after a connection was lost, in milliseconds. */
  patience?: number | undefined;
}

/** A time without a server. */
interface Outage {
  begun: number;
  attempts: number;
  /** Whether a server was started because of it. */
  started: boolean;
}

/** Thrown inside: somebody else needs the connection. */
const PREEMPTED = Symbol("preempted");

/** The server closes a connection that is idle for 20 seconds. */
const IDLE_MS = 15_000;
const LASTING_MS = 1000;
const LAST_PAUSE_MS = 64;
const SHORT_SOCKETS = 64;
const WAITING_SOCKETS = 128;

/** A failed connection that means that no server listens. */
const NOBODY = new Set(["ENOENT", "ECONNREFUSED"]);
/** A connection that was lost, or not accepted for the moment. */
const LOST = new Set(["ECONNRESET", "EPIPE", "EAGAIN", "ETIMEDOUT", "ECONNABORTED"]);
/** The server has too much to do for the moment. */
const BUSY = new Set(["too_many_connections", "too_many_waits", "too_many_bodies", "too_many_answers"]);

export class Transport {
  readonly place: Place;
  readonly slots = new Slots(WAITING_SOCKETS);
  readonly #options: TransportOptions;
  readonly #short = new Agent({
    keepAlive: true,
    timeout: IDLE_MS,
    maxSockets: SHORT_SOCKETS,
    scheduling: "lifo",
  });
  readonly #waiting = new Agent({ keepAlive: true, timeout: IDLE_MS, scheduling: "lifo" });
  /** Whether the server has ever answered. */
  #wasThere = false;
  #starting: Promise<void> | undefined;
  /** Where the server was last looked for. */
  #socket: string | undefined;

  constructor(place: Place, options: TransportOptions) {
    this.place = place;
    this.#socket = place.kind === "unix" ? place.socket : undefined;
    this.#options = options;
  }

  /** Sends a request that is answered at once. */
  send(ask: Ask, options: SendOptions = {}): Promise<Answer> {
    return this.#repeat(
      (abort) => this.#attempt(ask, this.#short, { ...options, signal: abort }),
      options.signal,
    );
  }

  /** Sends a request whose answer takes as long as the slot allows; `undefined` if it was preempted. */
  async sendIn(slot: Slot, ask: Ask, options: SendOptions = {}): Promise<Answer | undefined> {
    const attempt = (abort: AbortSignal) => this.#attempt(ask, this.#waiting, { ...options, signal: abort });
    try {
      return await this.#repeat(attempt, options.signal, slot.preempted);
    } catch (error) {
      if (error === PREEMPTED) return undefined;
      throw error;
    }
  }

  /** Sends a request that waits, in turns: `ask` is given how long it may wait. */
  async poll(ask: (turn: number | undefined) => Ask, options: SendOptions = {}): Promise<Answer> {
    for (;;) {
      throwIfAborted(options.signal);
      const slot = await this.slots.take(options.signal);
      try {
        const answer = await this.sendIn(slot, ask(slot.turn), options);
        if (answer !== undefined) return answer;
      } finally {
        slot.release();
      }
    }
  }

  /** Opens an endless answer; `undefined` if it was preempted. */
  async open(slot: Slot, ask: Ask, signal?: AbortSignal): Promise<IncomingMessage | undefined> {
    try {
      return await this.#repeat(
        (abort) => this.#head(ask, this.#waiting, { signal: abort }),
        signal,
        slot.preempted,
      );
    } catch (error) {
      if (error === PREEMPTED) return undefined;
      throw error;
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#short.destroy();
    this.#waiting.destroy();
  }

  async #repeat<T>(
    attempt: (abort: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
    preempted?: AbortSignal,
  ): Promise<T> {
    const { abort, unlink } = linked(signal, preempted);
    let outage: Outage | undefined;
    try {
      for (;;) {
        throwIfAborted(signal);
        if (preempted?.aborted) throw PREEMPTED;
        const begun = Date.now();
        try {
          const answer = await attempt(abort);
          this.#wasThere = true;
          return answer;
        } catch (error) {
          throwIfAborted(signal);
          if (preempted?.aborted) throw PREEMPTED;
          // A connection that lasted was no part of an outage.
          if (outage === undefined || Date.now() - begun > LASTING_MS)
            outage = { begun: Date.now(), attempts: 0, started: false };
          await this.#beforeNext(error, outage, abort);
        }
      }
    } finally {
      unlink();
    }
  }

  /** Waits before another attempt, or throws the error if there is to be none. */
  async #beforeNext(error: unknown, outage: Outage, abort: AbortSignal): Promise<void> {
    const lasted = Date.now() - outage.begun;
    if (error instanceof ApiError) {
      if (!BUSY.has(error.code) || lasted > this.#patience) throw error;
    } else {
      const code = codeOf(error);
      if (!NOBODY.has(code) && !LOST.has(code)) throw error;
      if (NOBODY.has(code) && (this.#moved() || (await this.#start(outage)))) return;
      if ((NOBODY.has(code) && !this.#wasThere) || lasted > this.#patience) throw this.#unreachable(error);
    }
    // An abort is noticed by the caller.
    await sleep(Math.min(2 ** outage.attempts, LAST_PAUSE_MS), undefined, { signal: abort }).catch(() => {});
    outage.attempts += 1;
  }

  get #patience(): number {
    return this.#options.patience ?? 10_000;
  }

  #unreachable(cause: unknown): ConnectionError {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new ConnectionError(`cannot reach the lastbyte server at ${describePlace(this.place)}: ${why}`, {
      cause,
    });
  }

  /** Returns whether the server listens elsewhere. */
  #moved(): boolean {
    const { place } = this;
    if (place.kind === "tcp" || place.state === undefined) return false;
    const found = readAddress(place.state);
    if (found === undefined || found === this.#socket || !existsSync(found)) return false;
    this.#socket = found;
    return true;
  }

  /** Returns whether a server was started: one call for all requests that find none. */
  async #start(outage: Outage): Promise<boolean> {
    const { place } = this;
    if (place.kind === "tcp" || place.startWith === undefined || outage.started) return false;
    if (this.#options.autostart === false) return false;
    outage.started = true;
    this.#starting ??= startServer(place.startWith, this.#options.program);
    try {
      await this.#starting;
    } finally {
      this.#starting = undefined;
    }
    this.#socket = place.socket;
    return true;
  }

  async #attempt(ask: Ask, agent: Agent, options: SendOptions): Promise<Answer> {
    const response = await this.#head(ask, agent, options);
    return { status: response.statusCode ?? 0, headers: response.headers, chunks: await chunksOf(response) };
  }

  /** Returns the answer as soon as its head is there, if it is not an error. */
  #head(ask: Ask, agent: Agent, { signal, onSocket }: SendOptions): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const body = encoded(ask);
      const request = httpRequest({
        ...address(this.place, this.#socket),
        agent,
        method: ask.method,
        path: ask.path + queryString(ask.query),
        headers: { ...headers(this.place, body), ...ask.headers },
        ...(signal && { signal }),
      });
      request.once("error", reject);
      if (onSocket !== undefined) request.once("socket", onSocket);
      request.once("response", (response) => {
        const status = response.statusCode ?? 0;
        if (status < 400) resolve(response);
        else refusal(status, response).then(reject, reject);
      });
      request.end(body);
    });
  }
}

/** A signal that is aborted when any of these is, until it is unlinked. */
function linked(...signals: (AbortSignal | undefined)[]): { abort: AbortSignal; unlink: () => void } {
  const controller = new AbortController();
  const stop = () => controller.abort();
  for (const signal of signals) {
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  }
  const unlink = () => {
    for (const signal of signals) signal?.removeEventListener("abort", stop);
  };
  return { abort: controller.signal, unlink };
}

async function chunksOf(response: IncomingMessage): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.once("end", () => resolve(chunks));
    response.once("error", reject);
  });
}

async function refusal(status: number, response: IncomingMessage): Promise<Error> {
  const text = Buffer.concat(await chunksOf(response)).toString();
  try {
    return new ApiError(status, (JSON.parse(text) as ErrorBody).error);
  } catch {
    return new LastbyteError(`the server answered with status ${status}: ${text.slice(0, 200)}`);
  }
}

/** The JSON of an answer. */
export function json<T>({ chunks }: Answer): T {
  const text = Buffer.concat(chunks).toString();
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new LastbyteError(`the server's answer is not JSON: ${text.slice(0, 200)}`, { cause });
  }
}

function address(
  place: Place,
  socket: string | undefined,
): { socketPath: string } | { host: string; port: string } {
  if (place.kind === "unix") return { socketPath: socket ?? place.socket };
  return { host: place.url.hostname.replace(/^\[|\]$/g, ""), port: place.url.port };
}

function headers(place: Place, body: Uint8Array | string): Record<string, string | number> {
  return {
    host: place.kind === "unix" ? "localhost" : place.url.host,
    "content-length": Buffer.byteLength(body),
    ...(place.kind === "tcp" && place.token !== undefined && { authorization: `Bearer ${place.token}` }),
  };
}

function encoded({ body }: Ask): Uint8Array | string {
  if (body === undefined) return "";
  return body instanceof Uint8Array ? body : JSON.stringify(body);
}

function queryString(query: object = {}): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined);
  const pairs = entries.map(([name, value]): [string, string] => [name, String(value)]);
  const text = new URLSearchParams(pairs).toString();
  return text === "" ? "" : `?${text}`;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
