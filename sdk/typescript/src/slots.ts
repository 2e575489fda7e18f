/**
 * Shares a bounded number of connections among any number of requests that wait.
 *
 * A request that waits keeps a connection for as long as a process runs, and a server has a limited number of
 * them. While there are more such requests than slots, they take turns: each waits for a short time only and
 * queues again, and those that began before give up their slot. Every request here can be repeated.
 */

import { AbortError } from "./errors.js";

/** The right to use a connection, until it is released. */
export interface Slot {
  /** How long to wait at most, in milliseconds; absent if nobody is queueing. */
  readonly turn: number | undefined;
  /** Aborted when somebody else needs the slot. */
  readonly preempted: AbortSignal;
  release(): void;
}

/** How long a turn is, in milliseconds. */
const TURN = 100;

export class Slots {
  readonly #limit: number;
  #taken = 0;
  /** Those without a turn, oldest first. */
  readonly #patient = new Set<AbortController>();
  readonly #queue = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns a slot if one is free and nobody queues. */
  tryTake(): Slot | undefined {
    if (this.#taken >= this.#limit || this.#queue.size > 0) return undefined;
    this.#taken += 1;
    return this.#slot();
  }

  /** Waits for a slot. */
  async take(signal?: AbortSignal): Promise<Slot> {
    const free = this.tryTake();
    if (free !== undefined) return free;
    const [oldest] = this.#patient;
    if (oldest !== undefined) {
      this.#patient.delete(oldest);
      oldest.abort();
    }
    await this.#turnCame(signal);
    return this.#slot();
  }

  #turnCame(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      const stop = () => {
        this.#queue.delete(go);
        if (signal !== undefined) reject(new AbortError(signal));
      };
      this.#queue.add(go);
      signal?.addEventListener("abort", stop, { once: true });
    });
  }

  #slot(): Slot {
    const preempt = new AbortController();
    const turn = this.#queue.size > 0 ? TURN : undefined;
    if (turn === undefined) this.#patient.add(preempt);
    let held = true;
    const release = () => {
      this.#patient.delete(preempt);
      if (held) this.#pass();
      held = false;
    };
    return { turn, preempted: preempt.signal, release };
  }

  /** Gives the slot to the one that queues longest. */
  #pass(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    this.#queue.delete(next);
    next();
  }
}
