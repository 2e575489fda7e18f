/** The examples, and those in the documents, run as written. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import ts from "typescript";
import { program, tree, useDaemon } from "./daemon.js";

const server = useDaemon();
const root = join(import.meta.dirname, "../..");

async function output(file: string): Promise<string> {
  const env = { ...process.env, LASTBYTE_SOCKET: server().daemon.socket, LASTBYTE_PROGRAM: program() };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env, timeout: 60_000 });
  return stdout;
}

const example = (name: string) => output(join(root, "out/examples", `${name}.js`));

test("an agent loop", async () => {
  const lines = readFileSync(join(root, "examples/agent-loop.ts"), "utf8").split("\n").length;
  assert(lines < 80, `${lines} lines`);
  assert.equal(
    await example("agent-loop"),
    `run: exit code 0
2
run: exit code 1
no such test
start: started dev: pattern
read: listening
stop: stopped dev
say: done
`,
  );
});

test("the shape of a child process", async () => {
  assert.equal(await example("child-process"), "number string\n8\n9\n10\nclosed 0 null\n");
});

test("several at once, aborts and searches", async () => {
  assert.equal(
    await example("build"),
    `2 src/main.c:3: error: expected ;
sleep 0.01 exit
stopped, left running: 0
42420 42421
`,
  );
});

for (const [name, path] of [
  ["README.md", join(root, "README.md")],
  ["docs/sdk-typescript.md", join(tree, "docs/sdk-typescript.md")],
] as const) {
  test(`the examples of ${name}`, async () => {
    const text = readFileSync(path, "utf8");
    const found = [...text.matchAll(/```ts\n(.*?)```\n(?:\n```text\n(.*?)```\n)?/gs)];
    assert(found.length > 0);
    const folder = join(root, "out/documents");
    mkdirSync(folder, { recursive: true });
    for (const [i, [, code = "", want]] of found.entries()) {
      const file = join(folder, `${i}.mjs`);
      const target = ts.ScriptTarget.ES2022;
      writeFileSync(
        file,
        ts.transpileModule(code, { compilerOptions: { target, module: ts.ModuleKind.ESNext } }).outputText,
      );
      const said = await output(file);
      if (want !== undefined) assert.equal(said, want, code);
    }
    rmSync(folder, { recursive: true });
  });
}
