// Runs every check of the page, each with a browser context of its own.
//
// node check.mjs PROGRAM WEB-FOLDER [NAME-PART]

import assert from "node:assert/strict";
import * as actions from "./actions.mjs";
import { Daemon, launch } from "./fixture.mjs";
import * as listAndLog from "./list_and_log.mjs";
import * as looks from "./looks.mjs";
import * as strangers from "./strangers.mjs";
import * as terminal from "./terminal.mjs";
import * as texts from "./texts.mjs";

const [program, web, part = ""] = process.argv.slice(2);
const checks = Object.values({ ...actions, ...listAndLog, ...terminal, ...strangers, ...texts, ...looks }).filter((one) => /_.*_/.test(one.name) && one.name.includes(part));
// They are measured, or use all processors: nothing else runs beside them.
const ALONE = ["ten_thousand_processes_stay_smooth", "a_log_of_a_gigabyte_is_read_anywhere", "output_that_is_too_fast_is_passed_over_and_that_is_said", "a_terminal_that_is_flooded_shows_the_screen_of_now_and_says_so"];
// The others mostly wait for a browser and a daemon that wait for each other.
const AT_ONCE = 3;

const { browser, sandboxed } = await launch();
console.log(`chromium ${browser.version()}, ${sandboxed ? "in its sandbox" : "without its sandbox"}, uid ${process.getuid()}`);
let failed = 0;

/** With a daemon of its own, and contexts of the browser that are closed with it. */
async function run(check) {
  const begun = Date.now();
  const contexts = [];
  const own = {
    newContext: async (options) => {
      contexts.push(await browser.newContext(options));
      return contexts.at(-1);
    },
  };
  const daemon = await Daemon.start(program);
  try {
    const page = await check({ daemon, browser: own, web });
    if (page) assert.deepEqual(page.problems, [], "the browser complains of nothing");
    console.log(`ok ${check.name.replaceAll("_", " ")} (${Date.now() - begun} ms)`);
  } catch (error) {
    failed += 1;
    console.error(`FAILED ${check.name.replaceAll("_", " ")}: ${error.stack ?? error}`);
    for (const page of contexts.flatMap((context) => context.pages())) {
      console.error(`  at ${page.url()}: ${page.problems?.join(" | ")}\n  ${(await page.innerText("body").catch(() => "")).slice(0, 600)}`);
    }
  }
  for (const context of contexts) await context.close();
  await daemon.stop();
}

const left = checks.filter((check) => !ALONE.includes(check.name));
const runSome = async () => {
  for (let check = left.shift(); check; check = left.shift()) await run(check);
};
await Promise.all(Array.from({ length: AT_ONCE }, runSome));
for (const check of checks.filter(({ name }) => ALONE.includes(name))) await run(check);
await browser.close();
process.exitCode = failed ? 1 : 0;
