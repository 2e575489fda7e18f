// A connection to the terminal of a process that reconnects where it was.
//
// A long log is not replayed: the server makes the screen that a terminal has then, and the bytes go on from there. The
// same is done if output comes faster than a terminal can show it.

import { attach, get, pause, processPath, token } from "./api.js";

/** What is replayed of a long log, for scrolling back. */
export const REPLAY = 1 << 20;
/** What a terminal may have before it and has not shown yet. */
const MOST_WAITING = 2 << 20;
/** In milliseconds, while output comes faster. */
const SCREEN_EVERY = 300;
/** How long an answer to `giveBack` is waited for, in milliseconds. */
const MOST_LEAVING = 10000;

/** Ends an open sequence, leaves the other screen and resets what a program has set, but not what can be scrolled to. */
const RESET = "\x18\x1b\\\x1b[?1049l\x1b[!p";

export class Connection {
  cursor = 0;
  state = "connecting";
  keyboard = null;
  isMine = false;
  ending = null;
  refused = null;
  /** Where the replay begins, and how many bytes were passed over since then. */
  began = 0;
  passed = 0;
  /** Bytes before this one are old: what they ask for was answered then. */
  #oldUntil = 0;
  #waiting = 0;
  /** While bytes are passed over: those that came last, and up to where a screen was drawn. */
  #held = null;
  #drawnUntil = 0;
  #socket = null;
  #closed = false;
  /** While the keyboard is given back for good: what is told how that went. */
  #leaving = null;

  /**
   * `on.bytes(bytes, isOld, shown)` has the output and calls `shown`, `on.size(screen)` has the size of the terminal and
   * `on.change()` tells of everything else.
   */
  constructor(process, on) {
    this.id = process.id;
    this.on = on;
    this.#run(process);
  }

  close() {
    this.#closed = true;
    this.#socket?.close();
  }

  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(typeof message === "string" || message instanceof Uint8Array ? message : JSON.stringify(message));
    return true;
  }

  /**
   * Gives the keyboard of a hand-over back. Resolves when the server has ended the hand-over, and rejects if nothing
   * proves that it has.
   */
  giveBack() {
    const broken = () => new Error("The keyboard was not given back: the connection broke. Press Done again once it is connected.");
    if (!this.send({ kind: "give_back_keyboard" })) return Promise.reject(broken());
    const answer = new Promise((done, failed) => {
      this.#leaving = { done, failed, broken };
      setTimeout(() => failed(new Error("The server has not answered. Press Done again.")), MOST_LEAVING);
    });
    return answer.finally(() => { this.#leaving = null; });
  }

  /** The connection is over while the keyboard is given back: with the hand-over, its token has ended. */
  async #left({ done, failed, broken }) {
    const headers = { authorization: `Bearer ${token.get()}` };
    const answer = await fetch(processPath(this.id), { headers, cache: "no-store" }).catch(() => null);
    if (answer?.status !== 401) return failed(broken());
    this.#closed = true;
    done();
  }

  type(text) {
    return this.send(new TextEncoder().encode(text));
  }

  async #run(process) {
    await this.#begin(process).catch(() => {});
    for (let wait = 200; !this.#closed && this.state !== "over"; wait = Math.min(wait * 2, 4000)) {
      try {
        this.#socket = await attach(this.id, this.cursor);
        await this.#listen(() => { wait = 200; });
        if (this.#leaving) await this.#left(this.#leaving);
      } catch (error) {
        this.refused = error;
        if ([401, 403, 404].includes(error.status)) this.state = "over";
      }
      this.isMine = false;
      this.keyboard = null;
      if (this.state !== "over") this.state = "reconnecting";
      if (this.#closed) return;
      this.on.change();
      if (this.state !== "over") await pause(wait);
    }
  }

  #screen(at) {
    return get(processPath(this.id, "/output"), { view: "screen", ansi: "true", late: "true", at });
  }

  async #begin(process) {
    const at = Math.max(0, process.total - REPLAY);
    this.cursor = this.began = at;
    const { content, total } = await this.#screen(at);
    this.#oldUntil = total;
    this.on.size(content.screen);
    if (at === 0) return;
    this.cursor = this.began = content.screen.ansi_at;
    this.#draw(content.screen);
  }

  /** Brings the terminal to this screen. */
  #draw({ ansi_state: state }) {
    this.#show(new TextEncoder().encode(RESET + state), true);
  }

  #show(bytes, isOld) {
    this.#waiting += bytes.length;
    this.on.bytes(bytes, isOld, () => {
      this.#waiting -= bytes.length;
      if (this.#held && this.#waiting === 0) this.#catchUp();
    });
  }

  #take(bytes) {
    const start = this.cursor;
    this.cursor += bytes.length;
    // The screen that was drawn has them.
    const rest = bytes.subarray(Math.max(0, Math.min(bytes.length, this.#drawnUntil - start)));
    if (rest.length === 0) return;
    if (!this.#held && this.#waiting > MOST_WAITING) this.#held = { start, chunks: [], shown: start };
    if (!this.#held) return this.#show(rest, start < this.#oldUntil);
    const held = this.#held;
    held.chunks.push(bytes);
    while (this.cursor - held.start > MOST_WAITING) held.start += held.chunks.shift().length;
  }

  /** Draws the screen of now, and goes on after it if all that has come since is held. */
  async #catchUp() {
    await pause(SCREEN_EVERY);
    if (this.#closed || !this.#held) return;
    let screen;
    try {
      ({ content: { screen } } = await this.#screen());
    } catch (error) {
      this.refused = error;
      return this.#catchUp();
    }
    const held = this.#held;
    if (this.#closed || !held) return;
    const at = screen.ansi_at;
    this.passed += Math.max(0, at - held.shown);
    held.shown = at;
    if (at >= held.start) {
      this.#held = null;
      this.#drawnUntil = at;
    }
    this.#draw(screen);
    if (!this.#held) {
      const after = held.chunks;
      this.cursor = held.start;
      after.forEach((chunk) => this.#take(chunk));
    }
    this.on.change();
  }

  #listen(onOpen) {
    const socket = this.#socket;
    return new Promise((closed) => {
      socket.onclose = closed;
      socket.onmessage = ({ data }) => {
        if (typeof data === "string") return this.#notice(JSON.parse(data), onOpen);
        this.#take(new Uint8Array(data));
      };
      if (this.#closed) socket.close();
    });
  }

  #notice(notice, onOpen) {
    if (notice.kind === "attached") {
      onOpen();
      this.cursor = notice.cursor;
      this.state = "connected";
      this.refused = null;
      this.on.connected?.();
    } else if (notice.kind === "dropped") this.#missed(notice.range.end);
    else if (notice.kind === "ending") {
      this.ending = notice.ending;
      this.state = "over";
    } else if (notice.kind === "keyboard") {
      this.keyboard = notice.keyboard ?? null;
      this.isMine = notice.yours;
    } else if (notice.kind === "refused") {
      this.refused = notice.error;
      this.#leaving?.failed(notice.error);
    }
    this.on.change();
  }

  #missed(end) {
    this.cursor = end;
    if (this.#held) Object.assign(this.#held, { start: end, chunks: [] });
  }
}
