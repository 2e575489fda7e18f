// Every process, kept up to date by the feed of events.

import { get, pause, post, processPath, readEvents, untilVisible } from "./api.js";

const PAGE = 1000;
const RATE_EVERY = 2000;
const SAMPLES = 24;
/** In the place of an id: every process may have changed. */
const ALL = "";

export class Live {
  processes = new Map();
  /** Bytes per second of the running ones, oldest first. */
  rates = new Map();
  /** What the ones in view wait for, as an answer of `wait` says it. */
  inputs = new Map();
  loaded = false;
  problem = null;
  #listeners = new Set();
  #stop = new AbortController();
  #changed = new Set();
  #drawing = false;
  #inView = [];
  /** Requests are numbered. An answer says nothing about a process of which a later one has spoken. */
  #requests = 0;
  #known = new Map();

  constructor() {
    this.#run();
    this.#measure();
    this.#lookForInput();
  }

  /** Only these are asked whether they need input, for that takes the server a look at each. */
  watch(ids) {
    this.#inView = ids;
  }

  close() {
    this.#stop.abort();
  }

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    setTimeout(() => {
      this.#drawing = false;
      for (const listener of this.#listeners) listener();
    }, 50);
  }

  async #run() {
    const { signal } = this.#stop;
    let lastId;
    for (let wait = 250; !signal.aborted; wait = Math.min(wait * 2, 5000)) {
      await untilVisible();
      const hidden = new AbortController();
      const hide = () => document.hidden && hidden.abort();
      document.addEventListener("visibilitychange", hide);
      try {
        let opened;
        const isOpen = new Promise((done) => { opened = done; });
        const isNew = !lastId;
        const feed = readEvents("/v1/events", { lastId, signal: AbortSignal.any([signal, hidden.signal]), opened }, (name, event, id) => {
          lastId = id ?? lastId;
          wait = 250;
          this.#take(name, event);
        });
        // It is awaited below; until then it may fail.
        feed.catch(() => {});
        // After the feed is open, so that nothing falls in between.
        await Promise.race([isOpen, feed]);
        if (isNew || this.problem) await this.#load(signal);
        this.problem = null;
        this.#draw();
        await feed;
      } catch (error) {
        if (!signal.aborted && !hidden.signal.aborted) this.problem = error;
        this.#draw();
      }
      document.removeEventListener("visibilitychange", hide);
      if (!document.hidden) await pause(wait, signal);
    }
  }

  async #load(signal) {
    const seen = new Set();
    const first = this.#requests + 1;
    let before;
    do {
      const request = ++this.#requests;
      const page = await get("/v1/processes", { limit: PAGE, before }, signal);
      for (const process of page.processes) {
        seen.add(process.id);
        this.#put(process, request);
      }
      before = page.next;
      this.loaded = true;
      this.#draw();
    } while (before);
    for (const id of this.processes.keys()) if (!seen.has(id)) this.#remove(id, first);
    for (const [id, request] of this.#known) if (request < first && !this.processes.has(id)) this.#known.delete(id);
  }

  /** Takes over what the answer to this request says of a process, unless a later one has spoken of it. */
  #put(process, request) {
    const before = this.processes.get(process.id);
    // An ending is the last word, whichever answer has it.
    const isNews = before && !before.ending && process.ending;
    if (before?.ending && !process.ending) return false;
    if (this.#known.get(process.id) > request && !isNews) return false;
    this.#known.set(process.id, request);
    this.processes.set(process.id, process);
    return true;
  }

  #remove(id, request) {
    if (this.#known.get(id) > request) return;
    this.#known.set(id, request);
    this.processes.delete(id);
    this.rates.delete(id);
  }

  #take(name, event) {
    if (name === "forgotten") {
      this.#remove(event.process, ++this.#requests);
      return this.#draw();
    }
    this.#lookAgain(name === "gap" ? ALL : event.process, 60);
  }

  #lookAgain(id, after) {
    this.#changed.add(id);
    if (this.#changed.size === 1) setTimeout(() => this.#refresh(), after);
  }

  /** Looks at what changed: one by one, or in pages if it is much. */
  async #refresh() {
    const { signal } = this.#stop;
    const ids = [...this.#changed];
    this.#changed.clear();
    if (signal.aborted) return;
    try {
      if (ids.includes(ALL) || ids.length > 20) await this.#load(signal);
      else await Promise.all(ids.map((id) => this.#look(id)));
    } catch {
      // The feed has the same problem, and says so.
      for (const id of ids) this.#lookAgain(id, 1000);
    }
  }

  async #look(id) {
    const request = ++this.#requests;
    try {
      this.#put(await get(processPath(id), {}, this.#stop.signal), request);
    } catch (error) {
      if (error.status !== 404) throw error;
      this.#remove(id, request);
    }
    this.#draw();
  }

  async #measure() {
    const { signal } = this.#stop;
    let then = 0;
    while (!signal.aborted) {
      await untilVisible();
      const request = ++this.#requests;
      try {
        const { processes } = await get("/v1/processes", { phase: "running", limit: PAGE }, signal);
        const seconds = (performance.now() - then) / 1000;
        for (const process of processes) this.#sample(process, request, then ? seconds : 0);
        then = performance.now();
        if (processes.length) this.#draw();
      } catch {
        // As above.
      }
      await pause(RATE_EVERY, signal);
    }
  }

  /** Looks at the ones in view that run and are silent, one after the other. */
  async #lookForInput() {
    const { signal } = this.#stop;
    const isSilent = (id) => {
      const process = this.processes.get(id);
      return process && !process.ending && !this.rates.get(id)?.at(-1);
    };
    while (!signal.aborted) {
      await untilVisible();
      for (const id of this.inputs.keys()) if (!isSilent(id)) this.inputs.delete(id);
      for (const id of this.#inView.filter(isSilent)) await this.#askForInput(id);
      await pause(RATE_EVERY, signal);
    }
  }

  async #askForInput(id) {
    const { signal } = this.#stop;
    try {
      const { wait } = await post(processPath(id, "/wait"), { needs_input: true, timeout_ms: 400 }, { signal });
      if (wait?.met === "needs_input") this.inputs.set(id, wait);
      else this.inputs.delete(id);
      this.#draw();
    } catch {
      this.inputs.delete(id);
    }
  }

  #sample(process, request, seconds) {
    const before = this.processes.get(process.id);
    if (!this.#put(process, request)) return;
    const rate = before && seconds ? Math.max(0, process.total - before.total) / seconds : 0;
    const rates = this.rates.get(process.id) ?? [];
    this.rates.set(process.id, [...rates, rate].slice(-SAMPLES));
  }

  /** Newest first. */
  all() {
    return [...this.processes.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
  }
}
