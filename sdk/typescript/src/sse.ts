/** Server-sent events, as far as this server sends them. */

export interface ServerSentEvent {
  id: string | undefined;
  event: string;
  data: string;
}

/** Turns pieces of a stream into whole events. */
export class EventParser {
  /** The id of the last event, or before there is one, of the place at which the server began. */
  lastId: string | undefined;
  /** Whether the server has said anything. */
  begun = false;
  #rest: Buffer = Buffer.alloc(0);

  /** Returns the events that this piece completes. */
  feed(piece: Buffer): ServerSentEvent[] {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    this.begun = true;
    const events: ServerSentEvent[] = [];
    let start = 0;
    for (let end = bytes.indexOf("\n\n"); end !== -1; end = bytes.indexOf("\n\n", start)) {
      const event = parse(bytes.toString("utf8", start, end));
      this.lastId = event?.id ?? this.lastId;
      if (event !== undefined && event.data !== "") events.push(event);
      start = end + 2;
    }
    this.#rest = bytes.subarray(start);
    return events;
  }
}

/** `undefined` for a comment, which keeps the connection open. */
function parse(text: string): ServerSentEvent | undefined {
  const event: ServerSentEvent = { id: undefined, event: "message", data: "" };
  let isComment = true;
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    const name = line.slice(0, colon);
    if (name === "id") event.id = value;
    else if (name === "event") event.event = value;
    else if (name === "data") event.data += event.data === "" ? value : `\n${value}`;
    isComment = false;
  }
  return isComment ? undefined : event;
}
