/** Several commands at once, an abort, and what is left to read afterwards. */

import { AbortError, CommandError, run, search, start, waitAny } from "lastbyte";

// A command that fails rejects, with its result.
try {
  await run("echo 'src/main.c:3: error: expected ;' >&2; exit 2");
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  console.log(error.result.exitCode, error.result.stderr.toString().trim());
}

// The first of several.
const tests = ["0.01", "1000"].map((seconds) => start(["sleep", seconds], { session: "build" }));
const first = await waitAny(tests);
console.log(first.process.command?.join(" "), first.met?.met);
for (const test of tests) await test.stop({ grace: 0 });

// An abort stops the command with everything it started.
try {
  await run("sleep 1000 & sleep 1000", { signal: AbortSignal.timeout(50) });
} catch (error) {
  if (!(error instanceof AbortError)) throw error;
  console.log("stopped, left running:", error.proof?.left.length);
}

// Output stays on the server: read it whole, search it, or look at its last lines.
const { id } = await run("seq 1 100000");
const { matches } = await search(id, "^4242.$", { max_matches: 2 });
console.log(matches.map(({ line }) => line.text).join(" "));
