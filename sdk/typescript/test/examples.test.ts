/** The examples, and those in the documents, run as written. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { program, tree, useDaemon } from "./daemon.js";

const execute = promisify(execFile);
const server = useDaemon();
const root = join(import.meta.dirname, "../..");

async function output(file: string): Promise<string> {
  const env = { ...process.env, LASTBYTE_SOCKET: server().daemon.socket, LASTBYTE_PROGRAM: program() };
  const { stdout } = await execute(process.execPath, [file], { env, timeout: 60_000 });
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

const compiler = createRequire(import.meta.url).resolve("typescript/lib/tsc.js");

for (const [name, path] of [
  ["README.md", join(root, "README.md")],
  ["docs/sdk-typescript.md", join(tree, "docs/sdk-typescript.md")],
] as const) {
  test(`the examples of ${name} have the right types, and print what it says`, async () => {
    const found = [...readFileSync(path, "utf8").matchAll(/```ts\n(.*?)```\n(?:\n```text\n(.*?)```\n)?/gs)];
    assert(found.length > 0);
    const folder = mkdtempSync(join(root, "out/documents-"));
    try {
      const options = {
        noUnusedLocals: false,
        rootDir: "../..",
        paths: { lastbyte: ["../../src/index.ts"] },
      };
      const settings = {
        extends: "../../tsconfig.json",
        compilerOptions: { ...options, outDir: "js" },
        include: ["*.ts"],
      };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
      for (const [i, [, code = ""]] of found.entries()) writeFileSync(join(folder, `${i}.ts`), code);
      await execute(process.execPath, [compiler, "--project", folder]).catch(({ stdout }) =>
        assert.fail(stdout),
      );
      for (const [i, [, code, want]] of found.entries()) {
        const said = await output(join(folder, "js/out", basename(folder), `${i}.js`));
        if (want !== undefined) assert.equal(said, want, code);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
