/** How a command ended, with its output. */

import type { Ending, Output, Process, Range, Stamp, Stream, TimesAnswer } from "./api.js";
import { CommandError } from "./errors.js";
import { readRaw } from "./output.js";
import { json, type Transport } from "./transport.js";

/** What becomes of a command's output and of its failure. */
export interface ResultOptions {
  /** Whether to reject with a `CommandError` if the command fails. The default is `true`. */
  check?: boolean;
  /** How output is decoded. The default is `"utf8"`; `"buffer"` gives the bytes. */
  encoding?: BufferEncoding | "buffer";
  /** How much output the result has at most, in bytes from the start. The default is 64 MiB. */
  maxBytes?: number;
}

/** The result of a command. `Text` is `Buffer` with the encoding `"buffer"`, else `string`. */
export interface Result<Text extends string | Buffer = string | Buffer> {
  id: string;
  pid: number;
  /** `null` if it did not exit by itself. */
  exitCode: number | null;
  /** The signal that killed it, like `SIGTERM`. */
  signal: NodeJS.Signals | null;
  /** Everything, if the streams are merged or a terminal. */
  stdout: Text;
  /** Empty if the streams are merged or a terminal. */
  stderr: Text;
  /** Both, in the order they arrived. */
  output: Text;
  /** Everything that is known about how it ended. */
  ending: Ending;
  /** Ranges of the output that the quota dropped. */
  dropped: Range[];
  /** Whether there was more output than `maxBytes`. */
  truncated: boolean;
  /** Whether it exited with 0 before any timeout. */
  ok: boolean;
  /** The command in one line, for messages. */
  description: string;
}

type Decode = (bytes: Buffer) => string | Buffer;

const MAX_BYTES = 64 << 20;
/** The largest answer for one stream or view, and a good size of any. */
const PART = 4 << 20;
const MAX_STAMPS = 10_000;

/** Makes the result of an ended process, or rejects if it failed. */
export async function resultOf(
  transport: Transport,
  process: Process,
  options: ResultOptions,
  known?: Output,
  signal?: AbortSignal,
): Promise<Result> {
  const { ending } = process;
  if (ending === undefined) throw new Error("the process has not ended");
  const end = Math.min(ending.final_len, options.maxBytes ?? MAX_BYTES);
  const log = new LogReader(transport, process, end, signal);
  const { bytes, dropped } = knownWhole(known, end) ?? (await log.bytes());
  const { stdout, stderr } = await log.split(bytes);
  const { encoding = "utf8" } = options;
  const decode: Decode = encoding === "buffer" ? (found) => found : (found) => found.toString(encoding);
  const result: Result = {
    id: process.id,
    pid: process.pid,
    ...exitOf(ending),
    stdout: decode(Buffer.concat(stdout)),
    stderr: decode(Buffer.concat(stderr)),
    output: decode(Buffer.concat(bytes.map(({ data }) => data))),
    ending,
    dropped,
    truncated: end < ending.final_len,
    ok: ending.status.kind === "exited" && ending.status.code === 0 && ending.cause?.kind === "own",
    description: process.shell ?? (process.command ?? []).join(" "),
  };
  if (options.check !== false && !result.ok) throw new CommandError(result);
  return result;
}

/** The exit code or the signal, as Node has them. */
export function exitOf({ status }: Ending): { exitCode: number | null; signal: NodeJS.Signals | null } {
  return {
    exitCode: status.kind === "exited" ? status.code : null,
    signal: status.kind === "signalled" ? (status.name as NodeJS.Signals) : null,
  };
}

interface Located {
  start: number;
  data: Buffer;
}

/** The output that came with the answer, if it is all there is. */
function knownWhole(
  known: Output | undefined,
  end: number,
): { bytes: Located[]; dropped: Range[] } | undefined {
  if (end === 0) return { bytes: [], dropped: [] };
  if (known?.content.view !== "raw" || known.next < end || known.dropped.length > 0) return undefined;
  const data = Buffer.from(known.content.base64, "base64").subarray(0, end);
  return { bytes: [{ start: 0, data }], dropped: [] };
}

class LogReader {
  readonly #transport: Transport;
  readonly #process: Process;
  readonly #end: number;
  readonly #signal: AbortSignal | undefined;

  constructor(transport: Transport, process: Process, end: number, signal: AbortSignal | undefined) {
    this.#transport = transport;
    this.#process = process;
    this.#end = end;
    this.#signal = signal;
  }

  async bytes(): Promise<{ bytes: Located[]; dropped: Range[] }> {
    const bytes: Located[] = [];
    const dropped: Range[] = [];
    for (let cursor = 0; cursor < this.#end; ) {
      const query = { from: cursor, maxBytes: Math.min(PART, this.#end - cursor) };
      const read = await readRaw(this.#transport, this.#process.id, query, this.#signal);
      const data = Buffer.concat(read.chunks);
      const start = read.next - data.length;
      // Past a gap, an answer may reach further than was asked for.
      bytes.push({ start, data: data.subarray(0, Math.max(0, this.#end - start)) });
      dropped.push(...read.dropped);
      if (read.next <= cursor) break;
      cursor = read.next;
    }
    return { bytes, dropped };
  }

  /** Sorts bytes by the stream that wrote them. */
  async split(bytes: Located[]): Promise<{ stdout: Buffer[]; stderr: Buffer[] }> {
    const parts: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
    const isSplit = this.#process.streams === "split" && bytes.length > 0;
    const stamps = isSplit ? await this.#stamps() : [];
    for (const located of bytes) {
      for (const { stream, data } of cutAt(stamps, located)) parts[stream].push(data);
    }
    return parts;
  }

  /** Where the stream changes. */
  async #stamps(): Promise<Stamp[]> {
    const path = `/v1/processes/${encodeURIComponent(this.#process.id)}/output/times`;
    const stamps: Stamp[] = [];
    for (let from = 0; from < this.#end; ) {
      const query = { from, max_stamps: MAX_STAMPS };
      const answer = await this.#transport.send({ method: "GET", path, query }, { signal: this.#signal });
      const page: TimesAnswer = json(answer);
      stamps.push(...page.stamps);
      if (page.next <= from) break;
      from = page.next;
    }
    return stamps;
  }
}

/** Cuts bytes where the stream changes. `stamps` are in order. */
function cutAt(stamps: Stamp[], { start, data }: Located): { stream: Stream; data: Buffer }[] {
  const end = start + data.length;
  const pieces: { stream: Stream; data: Buffer }[] = [];
  let stream: Stream = "stdout";
  let cursor = start;
  for (const stamp of stamps) {
    if (stamp.offset >= end) break;
    if (stamp.offset > cursor) {
      pieces.push({ stream, data: data.subarray(cursor - start, stamp.offset - start) });
      cursor = stamp.offset;
    }
    stream = stamp.stream ?? stream;
  }
  if (end > cursor) pieces.push({ stream, data: data.subarray(cursor - start) });
  return pieces;
}
