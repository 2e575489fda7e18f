/** A server, and everything that can be asked of it. */

import type {
  Event,
  EventsQuery,
  Health,
  ListAnswer,
  ListQuery,
  ManyAnswer,
  Met,
  Outcome,
  Output,
  OutputQuery,
  Process as ProcessInfo,
  Receipt,
  Screen,
  SearchAnswer,
  SearchQuery,
  Selection,
  StartAnswer,
  StartRequest,
  StopProof,
  Survivor,
  WaitOutcome,
} from "./api.js";
import { AbortError, ApiError, LastbyteError, SpawnError, startError, throwIfAborted } from "./errors.js";
import { type Command, laterInput, type StartOptions, startRequest, stopPolicy } from "./launch.js";
import { type FollowEvent, followEvents, type OutputOptions } from "./output.js";
import { findPlace, type PlaceOptions } from "./place.js";
import { Process } from "./process.js";
import { type Result, type ResultOptions, resultOf } from "./result.js";
import { subscribe } from "./subscription.js";
import { type Answer, type Ask, json, Transport } from "./transport.js";
import { type WaitOptions, waitForMany, waitForOne } from "./wait.js";

/** Options of a client. */
export interface ClientOptions extends PlaceOptions {
  /** The `lastbyte` program, which starts a server if none is running. */
  program?: string;
  /** Whether to start a server if none is running. The default is `true`. */
  autostart?: boolean;
  /** How long to try again after a connection was lost, in milliseconds. The default is 10 seconds. */
  patience?: number;
}

/** Options of `run`. */
export type RunOptions = StartOptions & ResultOptions;

/** Options of `attach`. A signal stops the process when aborted. */
export interface AttachOptions extends ResultOptions, Abortable {
  /** The cursor that `stdout` and `stderr` start at. */
  from?: number;
}

/** One of the processes that were waited for. */
export interface Waited {
  id: string;
  process: ProcessInfo;
  /** What it met; absent if it met nothing yet. */
  met: Met | undefined;
}

/** What happened to a process, or that events are missing before the next one. */
export type FeedEvent = Event | { event: { kind: "gap" } };

/** What names a process: an id, a name, a unique part of an id, or the process itself. */
export type ProcessRef = string | Process<string | Buffer>;

/** Ends the call when aborted. */
export interface Abortable {
  signal?: AbortSignal;
}

/** How much output the answer to a start may contain. */
const INLINE_OUTPUT = 64 << 10;

export class Client {
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    const { program, autostart, patience } = options;
    this.#transport = new Transport(findPlace(options), { program, autostart, patience });
  }

  /**
   * Runs a command and resolves with its result when it has ended. Rejects with a `CommandError` if it fails, unless
   * `check` is `false`.
   */
  run(command: Command, options: RunOptions & { encoding: "buffer" }): Promise<Result<Buffer>>;
  run(command: Command, options?: RunOptions & { encoding?: BufferEncoding }): Promise<Result<string>>;
  async run(command: Command, options: RunOptions = {}): Promise<Result> {
    const { signal } = options;
    throwIfAborted(signal);
    if (options.stdin === "open" || laterInput(options) !== undefined)
      return await this.#startAny(command, options);
    const request = startRequest(command, options, this.#transport.place);
    try {
      const answer = await this.#startAndWait(request, signal);
      return await resultOf(this.#transport, answer.process, options, answer.output, signal);
    } catch (error) {
      if (!(error instanceof AbortError) || signal === undefined) throw error;
      throw new AbortError(signal, await this.#stopStarted(request).catch(unlessRefused));
    }
  }

  /** Starts a command. Returns at once, as `child_process.spawn` does. */
  start(command: Command, options: RunOptions & { encoding: "buffer" }): Process<Buffer>;
  start(command: Command, options?: RunOptions & { encoding?: BufferEncoding }): Process;
  start(command: Command, options: RunOptions = {}): Process<string | Buffer> {
    return this.#startAny(command, options);
  }

  #startAny(command: Command, options: RunOptions): Process<string | Buffer> {
    const stdin = options.stdin ?? (options.input === undefined ? "open" : "closed");
    const input = laterInput(options);
    const request = startRequest(
      command,
      options.input === undefined ? { ...options, stdin } : options,
      this.#transport.place,
    );
    return new Process({
      transport: this.#transport,
      begin: async () => (await this.#start(request)).process,
      input,
      hasStdin: stdin === "open",
      inputOffset: 0,
      signal: options.signal,
      result: options,
      from: 0,
    });
  }

  /** Returns a process that was started before, by this program or another. */
  attach(id: string, options: AttachOptions & { encoding: "buffer" }): Process<Buffer>;
  attach(id: string, options?: AttachOptions & { encoding?: BufferEncoding }): Process;
  attach(id: string, options: AttachOptions = {}): Process<string | Buffer> {
    return new Process({
      transport: this.#transport,
      begin: () => this.show(id),
      hasStdin: true,
      inputOffset: undefined,
      signal: options.signal,
      result: options,
      from: options.from ?? 0,
    });
  }

  /** Waits until one of several processes has met the condition; resolves with the first that has. */
  async waitAny(processes: Iterable<ProcessRef>, options: WaitOptions = {}): Promise<Waited> {
    const ids = await idsOf(processes);
    const outcomes = ids.length === 0 ? [] : await waitForMany(this.#transport, ids, true, options);
    const met = outcomes.find(({ wait }) => wait !== undefined && wait.met !== "timeout") ?? outcomes[0];
    if (met === undefined) throw new RangeError("there is no process to wait for");
    return waited(met);
  }

  /** Waits until each of several processes has met the condition. */
  async waitAll(processes: Iterable<ProcessRef>, options: WaitOptions = {}): Promise<Waited[]> {
    const ids = await idsOf(processes);
    return (await waitForMany(this.#transport, ids, false, options)).map(waited);
  }

  /** Lists processes, newest first, page by page. */
  async *processes(
    query: ListQuery = {},
    { signal }: Abortable = {},
  ): AsyncGenerator<ProcessInfo, void, void> {
    let before = query.before;
    for (let left = query.limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
      const page = { ...query, before, limit: Math.min(left, 1000) };
      const answer: ListAnswer = await this.#ask(
        { method: "GET", path: "/v1/processes", query: page },
        signal,
      );
      yield* answer.processes;
      left -= answer.processes.length;
      before = answer.next;
      if (before === undefined) return;
    }
  }

  /** Shows a process. */
  show(id: string, { signal }: Abortable = {}): Promise<ProcessInfo> {
    return this.#ask({ method: "GET", path: pathOf(id) }, signal);
  }

  /** Searches the output of a process. */
  async search(
    id: ProcessRef,
    pattern: string,
    options: Omit<SearchQuery, "pattern"> & Abortable = {},
  ): Promise<SearchAnswer> {
    const { signal, ...query } = options;
    const path = `${pathOf(await idOf(id))}/output/search`;
    return this.#ask({ method: "GET", path, query: { ...query, pattern } }, signal);
  }

  /** What a terminal shows that has read the output of a process, up to byte `at` or to its end. */
  async screen(
    id: ProcessRef,
    options: Pick<OutputQuery, "at" | "rows" | "cols" | "ansi" | "late"> & Abortable = {},
  ): Promise<Screen> {
    const { signal, ...query } = options;
    const path = `${pathOf(await idOf(id))}/output`;
    const ask: Ask = { method: "GET", path, query: { ...query, view: "screen" } };
    const { content }: Output = await this.#ask(ask, signal);
    if (content.view !== "screen") throw new LastbyteError("the answer has no screen");
    return content.screen;
  }

  /** Follows the output of a process: its bytes, gaps in them, and the ending. */
  async *follow(
    id: ProcessRef,
    options: OutputOptions & { times?: boolean } = {},
  ): AsyncGenerator<FollowEvent, void, void> {
    yield* followEvents(this.#transport, await idOf(id), options);
  }

  /** Yields what happens to all processes, from the first call of `next` on. */
  async *events(query: EventsQuery & Abortable = {}): AsyncGenerator<FeedEvent, void, void> {
    const { signal, ...filter } = query;
    const ask = (lastId: string | undefined): Ask => ({
      method: "GET",
      path: "/v1/events",
      query: { ...filter, last_event_id: lastId ?? filter.last_event_id },
    });
    const missing = { id: undefined, event: "gap", data: "{}" };
    for await (const { event, data } of subscribe(this.#transport, ask, () => false, signal, missing)) {
      yield event === "gap" ? { event: { kind: "gap" } } : (JSON.parse(data) as Event);
    }
  }

  /** Stops a process with its whole tree. */
  async stop(id: ProcessRef, policy: { signal?: string; grace?: number } = {}): Promise<StopProof> {
    const path = `${pathOf(await idOf(id))}/stop`;
    return this.#ask({ method: "POST", path, body: { stop: stopPolicy(policy) } });
  }

  /** Stops all selected processes with their trees. */
  async stopAll(select: Selection, policy: { signal?: string; grace?: number } = {}): Promise<Outcome[]> {
    const body = { select, stop: stopPolicy(policy) };
    const answer: ManyAnswer = await this.#ask({ method: "POST", path: "/v1/stop", body });
    return answer.processes;
  }

  /** Forgets an ended process and its output; with `stop`, one that runs is stopped first. */
  async forget(id: ProcessRef, { stop }: { stop?: boolean } = {}): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: pathOf(await idOf(id)), query: { stop } });
  }

  /** What was run, and the hash of its output. */
  async receipt(id: ProcessRef, { signal }: Abortable = {}): Promise<Receipt> {
    return this.#ask({ method: "GET", path: `${pathOf(await idOf(id))}/receipt` }, signal);
  }

  /** Lists the live processes of a tree. */
  async survivors(id: ProcessRef, { signal }: Abortable = {}): Promise<Survivor[]> {
    return this.#ask({ method: "GET", path: `${pathOf(await idOf(id))}/survivors` }, signal);
  }

  /** Health and version of the server. */
  health({ signal }: Abortable = {}): Promise<Health> {
    return this.#ask({ method: "GET", path: "/healthz" }, signal);
  }

  /** Closes idle connections. Processes keep running, and the client can still be used. */
  close(): void {
    this.#transport.close();
  }

  async #ask<T>(ask: Ask, signal?: AbortSignal): Promise<T> {
    return json(await this.#transport.send(ask, { signal }));
  }

  async #start(request: StartRequest): Promise<StartAnswer> {
    const asked = this.#ask<StartAnswer>({ method: "POST", path: "/v1/processes", body: request });
    return asked.catch((error: unknown) => {
      throw startError(error, request);
    });
  }

  /** Starts a command and waits in the same request, if a connection is free for that. */
  async #startAndWait(request: StartRequest, signal: AbortSignal | undefined): Promise<StartAnswer> {
    const slot = this.#transport.slots.tryTake();
    let answer: Answer | undefined;
    try {
      const body = { ...request, wait: { exit: true }, view: "raw", max_bytes: INLINE_OUTPUT };
      const ask: Ask = { method: "POST", path: "/v1/processes", body };
      answer = slot && (await this.#transport.sendIn(slot, ask, { signal }));
    } catch (error) {
      throw startError(error, request);
    } finally {
      slot?.release();
    }
    // The same key: it is the same process, whether or not the request above has started it.
    const started: StartAnswer = answer ? json(answer) : await this.#start(request);
    if (started.process.ending !== undefined) return started;
    return waitForOne(this.#transport, started.process.id, signal === undefined ? {} : { signal });
  }

  /** Stops what a start has started, or might still start. */
  async #stopStarted(request: StartRequest): Promise<StopProof> {
    const { process } = await this.#start(request);
    return this.stop(process.id);
  }
}

/** A start that is refused has started nothing. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ApiError || error instanceof SpawnError)) throw error;
}

function pathOf(id: string): string {
  return `/v1/processes/${encodeURIComponent(id)}`;
}

function idsOf(processes: Iterable<ProcessRef>): Promise<string[]> {
  return Promise.all([...processes].map(idOf));
}

async function idOf(process: ProcessRef): Promise<string> {
  return typeof process === "string" ? process : (await process.started).id;
}

function waited({ process, wait }: WaitOutcome): Waited {
  return { id: process.id, process, met: wait };
}
