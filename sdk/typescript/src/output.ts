/** The output of a process, read at the pace of its reader. */

import { Readable } from "node:stream";
import type { Bytes, Ending, ErrorBody, FollowDropped, FollowOutput, Phase, Range, Stream } from "./api.js";
import { ApiError, throwIfAborted } from "./errors.js";
import { subscribe } from "./subscription.js";
import type { Answer, Transport } from "./transport.js";

/** A part of the log. */
export interface RawRead {
  chunks: Buffer[];
  next: number;
  total: number;
  /** What was skipped because the quota has dropped it. */
  dropped: Range[];
  phase: Phase;
  ending: Ending | undefined;
  /** Whether nothing follows. */
  atEnd: boolean;
}

export interface RawQuery {
  from: number;
  stream?: Stream | undefined;
  late?: boolean | undefined;
  maxBytes?: number | undefined;
  /** Wait for output or the end if there is none yet. */
  wait?: boolean;
}

/** Where to start, and how far to go. */
export interface OutputOptions {
  /** The cursor to start at. */
  from?: number;
  /** Continue after the ending, with what surviving processes write. */
  late?: boolean;
  signal?: AbortSignal;
}

/** A piece of output, or a gap in it. */
export interface Piece {
  /** Where it lies in the log. */
  range: Range;
  /** Which stream it is of, if the streams are split. */
  stream: Stream | undefined;
  data: Buffer;
  /** The quota dropped these bytes before they were read; `data` is empty. */
  dropped: boolean;
}

/** What `follow` yields. */
export type FollowEvent =
  | {
      kind: "output" | "late";
      range: Range;
      stream: Stream | undefined;
      data: Buffer;
      at_unix_ns: number | undefined;
    }
  | { kind: "dropped"; range: Range }
  | { kind: "ending"; ending: Ending };

/** A piece that is read while a process runs has at most this many bytes: the server answers with no more. */
const PIECE = 256 << 10;
/** Once it has ended, larger ones are faster. */
const LARGE_PIECE = 1 << 20;
const WAIT_MS = 60_000;

/** Reads one piece of the log. */
export async function readRaw(
  transport: Transport,
  id: string,
  query: RawQuery,
  signal?: AbortSignal,
): Promise<RawRead> {
  const { from, stream, late, maxBytes } = query;
  const path = `/v1/processes/${encodeURIComponent(id)}/output`;
  const ask = (wait_ms: number | undefined) => ({
    method: "GET" as const,
    path,
    query: { from, stream, late, max_bytes: maxBytes, wait_ms },
  });
  const answer = query.wait
    ? await transport.poll((turn) => ask(turn ?? WAIT_MS), { signal })
    : await transport.send(ask(undefined), { signal });
  return rawRead(answer, query);
}

function rawRead({ headers, chunks }: Answer, { from, late }: RawQuery): RawRead {
  const text = (name: string) => headers[`lastbyte-${name}`] as string | undefined;
  const next = Number(text("next"));
  const finalLen = text("final-len");
  const isOver = late ? text("log-open") === "false" : finalLen !== undefined;
  const end = late ? Number(text("total")) : Number(finalLen);
  const ending = text("ending");
  return {
    chunks,
    next,
    total: Number(text("total")),
    dropped: within(parseRanges(text("dropped")), { start: from, end: next }),
    phase: text("phase") as Phase,
    ending: ending === undefined ? undefined : (JSON.parse(ending) as Ending),
    atEnd: isOver && next >= end,
  };
}

function parseRanges(text: string | undefined): Range[] {
  if (text === undefined) return [];
  return [...text.matchAll(/(\d+)-(\d+)/g)].map(([, start, end]) => ({
    start: Number(start),
    end: Number(end),
  }));
}

function within(ranges: Range[], { start, end }: Range): Range[] {
  const cut = ranges.map((range) => ({ start: Math.max(range.start, start), end: Math.min(range.end, end) }));
  return cut.filter((range) => range.start < range.end);
}

/** What a stream has to know of its process. */
export interface Source {
  transport: Transport;
  /** The id, once the process has started; `undefined` if it never does. */
  id: Promise<string | undefined>;
  /** Which stream to read. */
  stream: () => Stream | undefined;
  from: number;
}

/**
 * stdout or stderr as a stream. It asks for output when its reader wants some, so a slow reader costs no memory
 * here, and the command is not slowed by it. What the quota drops meanwhile is told by the event `dropped`.
 */
export class OutputStream extends Readable {
  /** The offset in the log after the last byte that was read. */
  cursor: number;
  /** Whether anybody has asked for output. */
  wasRead = false;
  readonly #source: Source;
  readonly #abort = new AbortController();
  #maxBytes = PIECE;

  constructor(source: Source) {
    super({ highWaterMark: 2 * PIECE });
    this.#source = source;
    this.cursor = source.from;
  }

  override _read(): void {
    this.wasRead = true;
    this.#next().catch((error: Error) => {
      if (!this.#abort.signal.aborted) this.destroy(error);
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#abort.abort();
    done(error);
  }

  async #next(): Promise<void> {
    const { transport, stream } = this.#source;
    const id = await this.#source.id;
    for (;;) {
      if (id === undefined) break;
      const query = { from: this.cursor, stream: stream(), maxBytes: this.#maxBytes, wait: true };
      const read = await readRaw(transport, id, query, this.#abort.signal);
      this.cursor = read.next;
      if (read.ending !== undefined) this.#maxBytes = LARGE_PIECE;
      for (const range of read.dropped) this.emit("dropped", range);
      for (const chunk of read.chunks) this.push(chunk);
      if (read.atEnd) break;
      if (read.chunks.length > 0) return;
    }
    this.push(null);
  }
}

/** Yields the output of a process whose streams are not split. */
export async function* rawPieces(
  transport: Transport,
  id: string,
  { from = 0, late, signal }: OutputOptions,
): AsyncGenerator<Piece, void, void> {
  let cursor = from;
  let maxBytes = PIECE;
  for (;;) {
    throwIfAborted(signal);
    const read = await readRaw(transport, id, { from: cursor, late, maxBytes, wait: true }, signal);
    if (read.ending !== undefined) maxBytes = LARGE_PIECE;
    for (const range of read.dropped)
      yield { range, stream: undefined, data: Buffer.alloc(0), dropped: true };
    let start = read.next - read.chunks.reduce((length, chunk) => length + chunk.length, 0);
    for (const data of read.chunks) {
      const range = { start, end: start + data.length };
      start = range.end;
      yield { range, stream: undefined, data, dropped: false };
    }
    cursor = read.next;
    if (read.atEnd) return;
  }
}

/** Yields what `follow` tells, over any number of connections. */
export async function* followEvents(
  transport: Transport,
  id: string,
  { from, late, times, signal }: OutputOptions & { times?: boolean },
): AsyncGenerator<FollowEvent, void, void> {
  const ask = (lastId: string | undefined) => ({
    method: "GET" as const,
    path: `/v1/processes/${encodeURIComponent(id)}/follow`,
    query: { from: lastId === undefined ? from : undefined, late, times },
    ...(lastId !== undefined && { headers: { "last-event-id": lastId } }),
  });
  const isLast = ({ event }: { event: string }) => event === "ending" && late !== true;
  for await (const { event, data } of subscribe(transport, ask, isLast, signal)) {
    const found = followEvent(event, JSON.parse(data));
    if (found !== undefined) yield found;
  }
}

/** `undefined` for an event that this version does not know. */
function followEvent(event: string, data: unknown): FollowEvent | undefined {
  switch (event) {
    case "output":
    case "late": {
      const { range, stream, content, at_unix_ns } = data as FollowOutput;
      return { kind: event, range, stream, data: decoded(content), at_unix_ns };
    }
    case "dropped":
      return { kind: "dropped", range: (data as FollowDropped).range };
    case "ending":
      return { kind: "ending", ending: data as Ending };
    case "failed":
      throw new ApiError(200, (data as ErrorBody).error);
    default:
      return undefined;
  }
}

function decoded(content: Bytes): Buffer {
  return "text" in content ? Buffer.from(content.text) : Buffer.from(content.base64, "base64");
}

/** Yields the output of a process whose streams are split, each piece with its stream. */
export async function* splitPieces(
  transport: Transport,
  id: string,
  options: OutputOptions,
): AsyncGenerator<Piece, void, void> {
  for await (const event of followEvents(transport, id, options)) {
    if (event.kind === "ending") continue;
    const dropped = event.kind === "dropped";
    const { stream, data } = dropped ? { stream: undefined, data: Buffer.alloc(0) } : event;
    yield { range: event.range, stream, data, dropped };
  }
}
