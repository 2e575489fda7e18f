/** A feed that breaks before its first event. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, type FeedEvent } from "lastbyte";

const EVENT =
  'id: 5-4\nevent: forgotten\ndata: {"process":"p","at_unix_ns":1,"event":{"kind":"forgotten"}}\n\n';

/** The first events from a server that answers each connection with the next text and closes it. */
async function first(count: number, answers: string[]): Promise<{ kinds: string[]; heard: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "lastbyte-"));
  const socket = join(folder, "socket");
  const heard: string[] = [];
  const server = createServer((connection) =>
    connection.once("data", (data) => {
      heard.push(data.toString());
      connection.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${answers[heard.length - 1] ?? ""}`);
    }),
  ).listen(socket);
  const client = new Client({ socket });
  try {
    await once(server, "listening");
    const events: FeedEvent[] = [];
    for await (const event of client.events()) {
      events.push(event);
      if (events.length === count) break;
    }
    return { kinds: events.map(({ event }) => event.kind), heard };
  } finally {
    client.close();
    server.close();
    rmSync(folder, { recursive: true });
  }
}

test("it goes on where it began", async () => {
  const { kinds, heard } = await first(1, ["id: 5-3\n\n", EVENT]);
  assert.deepEqual(kinds, ["forgotten"]);
  assert.doesNotMatch(heard[0] ?? "", /last_event_id/);
  assert.match(heard[1] ?? "", /last_event_id=5-3 /);
});

test("if that is not known there is a gap", async () => {
  const { kinds } = await first(2, [":\n\n", EVENT]);
  assert.deepEqual(kinds, ["gap", "forgotten"]);
});
