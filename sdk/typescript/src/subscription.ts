/** Endless answers: they are opened again, after the last event that was read, when the connection breaks. */

import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { AbortError } from "./errors.js";
import { EventParser, type ServerSentEvent } from "./sse.js";
import type { Ask, Transport } from "./transport.js";

/**
 * Yields events until the server has no more. `ask` is given the id of the last event. Nothing is read ahead of
 * the caller but what the socket has in its buffers. `missing` is yielded where events may be missing, because the
 * connection broke before there was an id to go on at.
 */
export async function* subscribe(
  transport: Transport,
  ask: (lastId: string | undefined) => Ask,
  isLast: (event: ServerSentEvent) => boolean,
  signal?: AbortSignal,
  missing?: ServerSentEvent,
): AsyncGenerator<ServerSentEvent, void, void> {
  let lastId: string | undefined;
  for (;;) {
    if (signal?.aborted) throw new AbortError(signal);
    const slot = await transport.slots.take(signal);
    let response: IncomingMessage | undefined;
    const close = () => response?.destroy();
    const timer = slot.turn === undefined ? undefined : setTimeout(close, slot.turn);
    slot.preempted.addEventListener("abort", close, { once: true });
    signal?.addEventListener("abort", close, { once: true });
    try {
      response = await transport.open(slot, ask(lastId), signal);
      if (response?.statusCode === 204) return;
      const parser = new EventParser();
      for await (const event of eventsOf(response, parser)) {
        lastId = event.id ?? lastId;
        yield event;
        if (isLast(event)) return;
      }
      lastId = parser.lastId ?? lastId;
      if (missing !== undefined && parser.begun && lastId === undefined) yield missing;
    } finally {
      close();
      clearTimeout(timer);
      signal?.removeEventListener("abort", close);
      slot.release();
    }
    // A server that closes every connection at once must not make this a busy loop.
    if (slot.turn === undefined && !slot.preempted.aborted) await sleep(5);
  }
}

/** Ends where the connection ends, however it does. */
async function* eventsOf(
  response: IncomingMessage | undefined,
  parser: EventParser,
): AsyncGenerator<ServerSentEvent, void, void> {
  if (response === undefined) return;
  const pieces = response[Symbol.asyncIterator]();
  for (;;) {
    // A broken connection is opened again by the caller.
    const piece = await pieces.next().catch(() => ({ done: true as const, value: undefined }));
    if (piece.done) return;
    yield* parser.feed(piece.value as Buffer);
  }
}
