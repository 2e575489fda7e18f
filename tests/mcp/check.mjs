// Uses every tool for agents by the official TypeScript SDK: over standard input and HTTP.

import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, command, ...args] = process.argv.slice(2);

async function useEveryTool(client) {
  const call = async (name, args, options) => {
    const result = await client.callTool({ name, arguments: args }, undefined, options);
    assert.equal(result.isError, false, JSON.stringify(result));
    return result.content.map((block) => block.text).join('\n');
  };
  const idIn = (text) => text.match(/process ([0-9a-f-]{36})/)[1];
  const { tools } = await client.listTools();
  assert.equal(tools.length, 7);
  assert.match(await call('exec_command', { command: 'echo out; exit 3' }), /exited with code 3[^]*\n\nout\n/);
  const typed = await call('exec_command', { command: 'read line; echo got $line', tty: true, yield_time_ms: 1 });
  const answer = await call('write_stdin', { session_id: idIn(typed), chars: 'x\n', yield_time_ms: 5000 });
  assert.match(answer, /got x/);
  const running = idIn(await call('exec_command', { command: 'echo ready; sleep 600', run_in_background: true }));
  assert.match(await call('wait', { process_ids: [running], pattern: 'ready' }), /a line matched at byte 0/);
  assert.match(await call('read_output', { process_id: running, tail: 1 }), /\n\nready\n/);
  assert.match(await call('search_output', { process_id: running, pattern: 'r.ady' }), /\n0:ready\n/);
  assert.match(await call('list_processes', {}), new RegExp(`process ${running}: running for`));
  // Nobody waits for this one any more, and it goes on.
  const aborted = new AbortController();
  const left = call('exec_command', { command: 'sleep 600' }, { signal: aborted.signal });
  setTimeout(() => aborted.abort('enough'), 300);
  await assert.rejects(left);
  assert.match(await call('list_processes', {}), /2 running/);
  for (const line of (await call('list_processes', {})).split('\n')) {
    const id = line.match(/^process ([0-9a-f-]{36}).*: running/)?.[1];
    if (id) assert.match(await call('stop_process', { process_id: id }), /gone: /);
  }
}

const transports = {
  HTTP: () => new StreamableHTTPClientTransport(new URL(url)),
  'standard input': () => new StdioClientTransport({ command, args }),
};
for (const [name, transport] of Object.entries(transports)) {
  const client = new Client({ name: 'check', version: '1' });
  await client.connect(transport());
  await useEveryTool(client);
  await client.close();
  console.log(`TypeScript SDK: every tool over ${name}`);
}
