// A search of the whole log on the server, piece by piece.

import { get, processPath } from "./api.js";

const MOST = 10000;

export class SearchModel {
  /** Where each match is: `start`, `hits` in bytes, and `line` if it is known. */
  matches = [];
  searched = 0;
  done = false;
  problem = null;
  #stop = new AbortController();

  constructor(id, pattern, listener) {
    this.pattern = pattern;
    this.#run(id, pattern, listener);
  }

  close() {
    this.#stop.abort();
  }

  async #run(id, pattern, listener) {
    const { signal } = this.#stop;
    let lines = 0;
    try {
      for (let from = 0; !this.done && !signal.aborted;) {
        const query = { pattern, from, late: "true", max_matches: 1000 };
        const found = await get(processPath(id, "/output/search"), query, signal);
        for (const { number, line, hits } of found.matches) {
          const at = number === undefined || lines === null ? null : lines + number;
          this.matches.push({ start: line.range.start, end: line.range.end, hits, line: at });
        }
        lines = found.next_number === undefined || lines === null ? null : lines + found.next_number;
        this.total = found.total;
        this.done = found.stopped === "end" || found.next <= from || this.matches.length >= MOST;
        from = this.searched = found.next;
        listener();
      }
    } catch (error) {
      if (signal.aborted) return;
      this.problem = error;
      this.done = true;
      listener();
    }
  }

  /** The hits in these bytes of the log. */
  hitsIn(start, end) {
    let low = 0;
    for (let high = this.matches.length; low < high;) {
      const middle = (low + high) >> 1;
      if (this.matches[middle].end <= start) low = middle + 1;
      else high = middle;
    }
    const match = this.matches[low];
    return match && match.start < end ? match.hits : [];
  }

  /** The match after (or before) this line or byte. */
  next(from, step) {
    const { matches } = this;
    if (!matches.length) return null;
    const at = step > 0 ? matches.findIndex((match) => match.start > from) : matches.findLastIndex((match) => match.start < from);
    return at < 0 ? (step > 0 ? 0 : matches.length - 1) : at;
  }
}
