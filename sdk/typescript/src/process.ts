/** A process in the shape of Node's `ChildProcess`. */

import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { Delivered, Ending, Met, Process as ProcessInfo, StopProof, Stream } from "./api.js";
import { AbortError } from "./errors.js";
import { stopPolicy } from "./launch.js";
import { type OutputOptions, OutputStream, type Piece, rawPieces, splitPieces } from "./output.js";
import { exitOf, type Result, type ResultOptions, resultOf } from "./result.js";
import { InputStream } from "./stdin.js";
import { json, type Transport } from "./transport.js";
import { type WaitOptions, waitForOne } from "./wait.js";

/** The events of a process, as those of a `ChildProcess`. */
export interface ProcessEvents {
  /** It runs: `id` and `pid` are known. */
  spawn: [];
  /** It has ended, and all its output is stored. */
  exit: [exitCode: number | null, signal: NodeJS.Signals | null];
  /** It has ended, and the streams that are being read have ended, too. */
  close: [exitCode: number | null, signal: NodeJS.Signals | null];
  /** It could not be started, or was aborted, or the server is gone. */
  error: [error: Error];
}

/** How a process comes to be. */
export interface Origin {
  transport: Transport;
  /** Starts it, or looks for it. */
  begin: () => Promise<ProcessInfo>;
  /** Input to write at once. */
  input?: Uint8Array | undefined;
  hasStdin: boolean;
  /** How much input was accepted before; `undefined` if that has to be asked. */
  inputOffset: number | undefined;
  /** Stops it when aborted. */
  signal?: AbortSignal | undefined;
  result: ResultOptions;
  /** The cursor that stdout and stderr start at. */
  from: number;
}

/**
 * A running command. It can be awaited for its result, but keeps running when nobody waits for it, and when this
 * program ends.
 */
export class Process<Text extends string | Buffer = string>
  extends EventEmitter<ProcessEvents>
  implements PromiseLike<Result<Text>>, AsyncDisposable
{
  /** `null` until it has ended, and if it did not exit by itself. */
  exitCode: number | null = null;
  /** The signal that killed it. */
  signalCode: NodeJS.Signals | null = null;
  /** Whether `kill` has sent a signal. */
  killed = false;
  /** Standard input; `null` if it is closed. */
  readonly stdin: Writable | null;
  /** All output, if the streams are merged or a terminal. */
  readonly stdout: Readable;
  /** Empty if the streams are merged or a terminal. */
  readonly stderr: Readable;
  readonly #origin: Origin;
  readonly #ended: Promise<ProcessInfo>;
  #info: ProcessInfo | undefined;
  readonly #watch = new AbortController();
  readonly #started: Promise<{ id: string; pid: number }>;
  /** Whether somebody is told of an error by a promise: of any, or of one of the start. */
  #awaited = false;
  #startAwaited = false;
  #unrefed = false;
  #socket: Socket | undefined;

  constructor(origin: Origin) {
    super();
    this.#origin = origin;
    const begun = this.#begin();
    this.#started = begun.then(({ id, pid }) => ({ id, pid }));
    this.#ended = begun.then(({ id }) => this.#untilEnded(id));
    // The event `error` tells it, and so does an `await`.
    for (const promise of [this.#started, this.#ended]) promise.catch(() => {});
    const id = begun.then(
      (info) => info.id,
      () => undefined,
    );
    const { transport, from } = origin;
    const output = (stream: Stream) =>
      new OutputStream({
        transport,
        id,
        from,
        stream: () => (this.#info?.streams === "split" ? stream : undefined),
      });
    this.stdout = output("stdout");
    this.stderr = new OutputStream({
      transport,
      id: begun.then(
        (info) => (info.streams === "split" ? info.id : undefined),
        () => undefined,
      ),
      from,
      stream: () => "stderr",
    });
    const input = new InputStream(transport, id, origin.inputOffset);
    this.stdin = origin.hasStdin ? input : null;
    if (origin.input !== undefined) {
      // A command may end without reading its input.
      input.on("error", () => {});
      input.end(origin.input);
    }
    this.#tell().catch((error: Error) => this.#fail(error));
  }

  /** Resolves when it runs; rejects if it cannot be started. */
  get started(): Promise<{ id: string; pid: number }> {
    this.#startAwaited = true;
    return this.#started;
  }

  /** The id, once it runs. */
  get id(): string | undefined {
    return this.#info?.id;
  }

  /** The process id, once it runs. */
  get pid(): number | undefined {
    return this.#info?.pid;
  }

  /** What the server last told about it. */
  get info(): ProcessInfo | undefined {
    return this.#info;
  }

  /** How it ended, once it has. */
  get ending(): Ending | undefined {
    return this.#info?.ending;
  }

  /** Resolves with the result when it has ended, with all its output; rejects as `run` does. */
  // biome-ignore lint/suspicious/noThenProperty: it is meant to be awaited.
  then<A = Result<Text>, B = never>(
    onResult?: ((result: Result<Text>) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#awaited = true;
    return this.#result().then(onResult, onError);
  }

  /** Waits for the exit, or for something else to happen. Neither a timeout nor a signal stops the process. */
  async wait(options: WaitOptions = {}): Promise<Met> {
    this.#awaited = true;
    const { id } = await abortable(this.started, options.signal);
    const { process, wait } = await waitForOne(this.#origin.transport, id, options);
    // Answers may overtake each other, and the ending is the last word.
    if (this.ending === undefined) this.#info = process;
    return wait;
  }

  /**
   * Yields its output from the start, while it runs and afterwards. Any number of readers can do so, each at its
   * own pace.
   */
  async *output(options: OutputOptions = {}): AsyncGenerator<Piece, void, void> {
    this.#awaited = true;
    const { id } = await abortable(this.started, options.signal);
    const pieces = this.#info?.streams === "split" ? splitPieces : rawPieces;
    yield* pieces(this.#origin.transport, id, options);
  }

  /** Sends a signal to its process group in the background. Returns `false` if it has ended. */
  kill(signal: NodeJS.Signals | number = "SIGTERM"): boolean {
    if (this.exitCode !== null || this.signalCode !== null) return false;
    // It may end before the signal arrives, and then nobody is signalled.
    if (signal !== 0) this.#post("signal", { signal: signalName(signal) }).catch(() => {});
    this.killed = signal !== 0;
    return true;
  }

  /** Sends a signal to its process group. */
  async signal(signal: string): Promise<Delivered> {
    this.#startAwaited = true;
    const answer = await this.#post("signal", { signal });
    return (answer as { delivered: Delivered }).delivered;
  }

  /** Stops it with its whole tree. The answer says what is gone, what is left, and whether that is proved. */
  async stop(policy: { signal?: string; grace?: number } = {}): Promise<StopProof> {
    this.#startAwaited = true;
    return (await this.#post("stop", { stop: stopPolicy(policy) })) as StopProof;
  }

  /** Changes the size of its terminal. */
  async resize(size: { rows: number; cols: number }): Promise<void> {
    this.#startAwaited = true;
    await this.#post("resize", size);
  }

  /** Lets this program end while the process runs. */
  unref(): void {
    this.#unrefed = true;
    this.#socket?.unref();
  }

  /** Keeps this program running until the process has ended. */
  ref(): void {
    this.#unrefed = false;
    this.#socket?.ref();
  }

  /** Stops it with its whole tree, unless it has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#awaited = true;
    const isStarted = await this.started.then(
      () => true,
      () => false,
    );
    if (!isStarted) return;
    await this.stop();
    await this.#ended.catch(() => {});
  }

  async #post(verb: string, body: object): Promise<unknown> {
    const { id } = await this.#started;
    const path = `/v1/processes/${encodeURIComponent(id)}/${verb}`;
    const answer = await this.#origin.transport.send({ method: "POST", path, body });
    return answer.chunks.length === 0 ? undefined : json(answer);
  }

  async #begin(): Promise<ProcessInfo> {
    const { signal, begin } = this.#origin;
    if (signal?.aborted) throw new AbortError(signal);
    this.#info = await begin();
    return this.#info;
  }

  async #untilEnded(id: string): Promise<ProcessInfo> {
    const { transport, signal } = this.#origin;
    const onSocket = (socket: Socket) => {
      this.#socket = socket;
      if (this.#unrefed) socket.unref();
    };
    const stop = () => this.#watch.abort();
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const { process } = await waitForOne(transport, id, { signal: this.#watch.signal }, { onSocket });
      return process;
    } catch (error) {
      if (signal?.aborted) throw new AbortError(signal, await this.stop());
      throw error;
    } finally {
      this.#socket = undefined;
      signal?.removeEventListener("abort", stop);
    }
  }

  async #result(): Promise<Result<Text>> {
    const { transport, result } = this.#origin;
    // The encoding of the result is that of the type.
    return (await resultOf(transport, await this.#ended, result)) as Result<Text>;
  }

  /** Emits the events. */
  async #tell(): Promise<void> {
    await this.#started;
    this.emit("spawn");
    const info = await this.#ended;
    this.#info = info;
    if (info.ending === undefined) return;
    const { exitCode, signal } = exitOf(info.ending);
    this.exitCode = exitCode;
    this.signalCode = signal;
    this.emit("exit", exitCode, signal);
    await Promise.all([this.stdout, this.stderr].map(untilRead));
    this.emit("close", exitCode, signal);
  }

  /** As in Node, an error that nobody asks for is thrown. */
  #fail(error: Error): void {
    const isTold = this.#awaited || (this.#startAwaited && this.#info === undefined);
    if (this.listenerCount("error") > 0 || !isTold) process.nextTick(() => this.emit("error", error));
  }
}

/** The name of a signal that may be a number. */
function signalName(signal: NodeJS.Signals | number): string {
  if (typeof signal === "string") return signal;
  const found = Object.entries(constants.signals).find(([, number]) => number === signal);
  if (found === undefined) throw new RangeError(`unknown signal ${signal}`);
  return found[0];
}

/** Resolves when a stream that somebody reads has ended. */
async function untilRead(stream: Readable): Promise<void> {
  if (!(stream as OutputStream).wasRead || stream.closed) return;
  await new Promise<void>((resolve) => {
    stream.once("close", resolve);
  });
}

/** The same promise, given up when the signal is aborted. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  if (signal.aborted) throw new AbortError(signal);
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new AbortError(signal));
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
