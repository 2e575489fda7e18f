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
const { browser, sandboxed } = await launch();
console.log(`chromium ${browser.version()}, ${sandboxed ? "in its sandbox" : "without its sandbox"}, uid ${process.getuid()}`);
let failed = 0;
for (const check of checks) {
  const begun = Date.now();
  const daemon = await Daemon.start(program);
  try {
    const page = await check({ daemon, browser, web });
    if (page) assert.deepEqual(page.problems, [], "the browser complains of nothing");
    console.log(`ok ${check.name.replaceAll("_", " ")} (${Date.now() - begun} ms)`);
  } catch (error) {
    failed += 1;
    console.error(`FAILED ${check.name.replaceAll("_", " ")}: ${error.stack ?? error}`);
    for (const page of browser.contexts().flatMap((context) => context.pages())) {
      console.error(`  at ${page.url()}: ${page.problems?.join(" | ")}\n  ${(await page.innerText("body").catch(() => "")).slice(0, 600)}`);
    }
  }
  for (const context of browser.contexts()) await context.close();
  await daemon.stop();
}
await browser.close();
process.exitCode = failed ? 1 : 0;
