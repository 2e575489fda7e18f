// The lines of a log, in blocks that are read when they are looked at. It never has more than some blocks.

import { get, pause, post, processPath, send, untilVisible } from "./api.js";

export const BLOCK = 200;
const MOST_BLOCKS = 80;
/** What is shown of one line. */
const MOST_LINE = 8192;
const TAIL = 64 << 10;

export class LogModel {
  lines = 0;
  counted = 0;
  total = 0;
  dropped = [];
  logOpen = true;
  /** The last lines, until all are counted. */
  tail = [];
  problem = null;
  isFollowed = true;
  isLoaded = false;
  rate = 0;
  #blocks = new Map();
  #loading = new Map();
  #stop = new AbortController();
  #listener;

  constructor(process, listener) {
    this.id = process.id;
    this.isSplit = process.streams === "split";
    this.withTimes = this.isSplit;
    this.#listener = listener;
    this.#run(process);
  }

  close() {
    this.#stop.abort();
  }

  get isCounted() {
    return this.total > 0 && this.counted >= this.total;
  }

  async #run(process) {
    const { signal } = this.#stop;
    if (process.total > (4 << 20)) this.#readTail(process.total).catch(() => {});
    let then = performance.now();
    while (!signal.aborted) {
      await untilVisible();
      const before = this.total;
      try {
        await this.#count(signal);
        this.problem = null;
        const now = performance.now();
        this.rate = before ? ((this.total - before) * 1000) / (now - then) : 0;
        then = now;
        this.#listener();
        if (!this.logOpen) return;
        await pause(200, signal);
        await this.#untilMore(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.problem = error;
        this.#listener();
        await pause(1000, signal);
      }
    }
  }

  async #count(signal) {
    do {
      const answer = await get(processPath(this.id, "/output/lines"), { line: -1 }, signal);
      this.#forgetChanged(answer.dropped);
      const { lines, counted, total, dropped, log_open: logOpen } = answer;
      // What is followed is read before it is shown, so that rows do not flicker.
      if (this.isFollowed && lines > this.lines && counted >= total) await this.#readLast(lines, total);
      Object.assign(this, { lines, counted, total, dropped, logOpen, isLoaded: true });
      this.#listener();
    } while (!signal.aborted && this.counted < this.total && !this.logOpen);
    if (this.isCounted) this.tail = [];
  }

  /** Until there is more output; late output is looked for every second. */
  async #untilMore(signal) {
    const hidden = new AbortController();
    const hide = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", hide);
    try {
      const wait = { output_past: this.total, exit: true, timeout_ms: 20000 };
      const { process } = await post(processPath(this.id, "/wait"), wait, { signal: AbortSignal.any([signal, hidden.signal]) });
      if (process?.ending) await pause(1000, signal);
    } catch (error) {
      if (!hidden.signal.aborted) throw error;
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
  }

  /** Dropped ranges can grow; then what follows is another line. */
  #forgetChanged(dropped) {
    const at = dropped.findIndex((range, index) => range.start !== this.dropped[index]?.start || range.end !== this.dropped[index]?.end);
    if (at < 0) return;
    const from = Math.min(dropped[at].start, this.dropped[at]?.start ?? Infinity);
    for (const [key, block] of this.#blocks) if (block.end > from) this.#blocks.delete(key);
  }

  async #readTail(total) {
    const from = Math.max(0, total - TAIL);
    const bytes = await this.#read(from, total, MOST_LINE * 8);
    let start = bytes.indexOf(10) + 1;
    const rows = [];
    while (start < bytes.length) {
      const end = bytes.indexOf(10, start) + 1 || bytes.length;
      rows.push({ bytes: bytes.subarray(start, end), start: from + start, end: from + end });
      start = end;
    }
    if (!this.isCounted) this.tail = rows;
    this.#listener();
  }

  /** The row of this line; `null` while it is being read. */
  row(line) {
    const key = Math.floor(line / BLOCK);
    const block = this.#blocks.get(key);
    const isOld = block && block.rows.length < BLOCK && block.total < this.total;
    if (!block || isOld) this.#load(key);
    if (!block) return null;
    // The ones that are looked at are given up last.
    this.#blocks.delete(key);
    this.#blocks.set(key, block);
    return block.rows[line - key * BLOCK] ?? null;
  }

  showTimes() {
    if (this.withTimes) return;
    this.withTimes = true;
    this.#blocks.clear();
    this.#listener();
  }

  async #readLast(lines, total) {
    const last = Math.floor((lines - 1) / BLOCK);
    for (const key of lines % BLOCK < 80 && last > 0 ? [last - 1, last] : [last]) {
      const block = this.#blocks.get(key);
      if (!block || (block.rows.length < BLOCK && block.total < total)) this.#blocks.set(key, await this.#readBlock(key));
    }
  }

  #load(key) {
    if (this.#loading.has(key) || this.#loading.size > 4) return;
    const loading = this.#readBlock(key).then((block) => {
      this.#blocks.set(key, block);
      for (const old of this.#blocks.keys()) {
        if (this.#blocks.size <= MOST_BLOCKS) break;
        this.#blocks.delete(old);
      }
    }, (error) => {
      if (!this.#stop.signal.aborted) this.problem = error;
    }).finally(() => {
      this.#loading.delete(key);
      if (!this.#stop.signal.aborted) this.#listener();
    });
    this.#loading.set(key, loading);
  }

  async #readBlock(key) {
    const { signal } = this.#stop;
    const { offsets, end, dropped, total } = await this.#readStarts(key * BLOCK, BLOCK, signal);
    const rows = offsets.map((start, at) => ({ line: key * BLOCK + at, start, end: offsets[at + 1] ?? end, bytes: new Uint8Array() }));
    const stamps = this.withTimes && rows.length ? this.#readStamps(rows[0].start, end) : [];
    for (let first = 0; first < rows.length;) {
      const isGap = dropped.some((range) => range.start <= rows[first].start && rows[first].start < range.end);
      if (isGap) {
        rows[first].gap = rows[first].end - rows[first].start;
        first += 1;
        continue;
      }
      // As many lines as can be read at once: up to a gap, or with a long one at their end.
      let last = first;
      const isLong = (row) => row.end - row.start > MOST_LINE;
      while (!isLong(rows[last]) && last + 1 < rows.length && !dropped.some((range) => range.start === rows[last + 1].start)) last += 1;
      const until = Math.min(rows[last].end, rows[last].start + MOST_LINE);
      const bytes = await this.#read(rows[first].start, until, until - rows[first].start);
      const from = rows[first].start;
      for (const row of rows.slice(first, last + 1)) {
        row.bytes = bytes.subarray(row.start - from, Math.min(row.end, until) - from);
        row.cut = row.end - row.start - row.bytes.length;
      }
      first = last + 1;
    }
    return { rows, end, total, stamps: this.#stamp(rows, await stamps) };
  }

  /** Where lines begin. Of long ones, an answer has fewer than were asked for. */
  async #readStarts(line, count, signal) {
    const offsets = [];
    for (let end = 0; ;) {
      const query = { line: line + offsets.length, count: count - offsets.length };
      const answer = await get(processPath(this.id, "/output/lines"), query, signal);
      offsets.push(...answer.offsets);
      end = answer.end ?? end;
      if (answer.offsets.length === 0 || offsets.length >= count || end >= answer.counted) return { ...answer, offsets, end };
    }
  }

  async #read(from, until, most) {
    const found = new Uint8Array(Math.min(until - from, most));
    let at = 0;
    while (at < found.length) {
      const query = { from: from + at, max_bytes: found.length - at, late: "true" };
      const response = await send("GET", processPath(this.id, "/output"), { query, signal: this.#stop.signal });
      const bytes = new Uint8Array(await response.arrayBuffer());
      // What was dropped meanwhile is skipped.
      const skipped = Number(response.headers.get("lastbyte-from") ?? from + at) - (from + at);
      if (bytes.length === 0 || at + skipped >= found.length) break;
      found.set(bytes.subarray(0, found.length - at - skipped), at + skipped);
      at += skipped + bytes.length;
    }
    return found.subarray(0, Math.min(at, found.length));
  }

  async #readStamps(from, to) {
    const query = { from, to, late: "true", max_stamps: 10000 };
    return (await get(processPath(this.id, "/output/times"), query, this.#stop.signal)).stamps;
  }

  #stamp(rows, stamps) {
    let at = 0;
    for (const row of rows) {
      while (at + 1 < stamps.length && stamps[at + 1].offset <= row.start) at += 1;
      row.time = stamps[at]?.at_unix_ns;
      row.stamps = this.isSplit ? stamps.slice(at).filter((stamp, index) => index === 0 || stamp.offset < row.end).slice(0, 50) : [];
    }
    return stamps;
  }

  /** The number of the line with this byte. */
  async lineAt(offset) {
    const found = await get(processPath(this.id, "/output/lines"), { offset }, this.#stop.signal);
    return found.first ?? Math.max(0, found.lines - 1);
  }
}

/** The stream of a byte, by the stamps of its line. */
export function streamsOf(row) {
  const stamps = row.stamps ?? [];
  const streamAt = (offset) => stamps.findLast((stamp) => stamp.offset <= offset)?.stream;
  streamAt.changes = (from, to) => stamps.map((stamp) => stamp.offset).filter((offset) => offset > from && offset < to);
  return streamAt;
}
