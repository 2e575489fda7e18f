// A connection to the terminal of a process that reconnects where it was.

import { attach, pause } from "./api.js";

/** What is replayed of a long log: enough for a program to have drawn its screen. */
export const REPLAY = 1 << 20;

export class Connection {
  cursor = 0;
  state = "connecting";
  keyboard = null;
  isMine = false;
  ending = null;
  refused = null;
  #socket = null;
  #closed = false;

  /** `on.bytes(bytes)` has the output, `on.change()` tells of everything else. */
  constructor(process, on) {
    this.id = process.id;
    this.cursor = Math.max(0, process.total - REPLAY);
    this.skipped = this.cursor;
    this.on = on;
    this.#run();
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

  type(text) {
    return this.send(new TextEncoder().encode(text));
  }

  async #run() {
    for (let wait = 200; !this.#closed && this.state !== "over"; wait = Math.min(wait * 2, 4000)) {
      try {
        this.#socket = await attach(this.id, this.cursor);
        await this.#listen(() => { wait = 200; });
      } catch (error) {
        this.refused = error;
        if ([401, 403, 404].includes(error.status)) this.state = "over";
      }
      this.isMine = false;
      if (this.state !== "over") this.state = "reconnecting";
      if (this.#closed) return;
      this.on.change();
      if (this.state !== "over") await pause(wait);
    }
  }

  #listen(onOpen) {
    const socket = this.#socket;
    return new Promise((closed) => {
      socket.onclose = closed;
      socket.onmessage = ({ data }) => {
        if (typeof data === "string") return this.#notice(JSON.parse(data), onOpen);
        this.cursor += data.byteLength;
        this.on.bytes(new Uint8Array(data));
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
    } else if (notice.kind === "dropped") this.cursor = notice.range.end;
    else if (notice.kind === "ending") {
      this.ending = notice.ending;
      this.state = "over";
    } else if (notice.kind === "keyboard") {
      this.keyboard = notice.keyboard ?? null;
      this.isMine = notice.yours;
    } else if (notice.kind === "refused") this.refused = notice.error;
    this.on.change();
  }
}
