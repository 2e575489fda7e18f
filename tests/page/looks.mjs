// What holds of every screen: nothing serious for axe-core, nothing against the policy, and few bytes.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { has, openPage } from "./fixture.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function isAccessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`);
  assert.deepEqual(told, [], `${name} has serious problems`);
}

export async function axe_finds_nothing_serious_on_any_screen({ daemon, browser }) {
  const ended = await daemon.start({ shell: "for i in $(seq 31 37) $(seq 90 97); do printf \"\\033[${i}mcolour $i\\033[0m\\n\"; done; echo err >&2; exit 3", streams: "split", wait: { exit: true }, name: "ended", labels: { job: "7" }, session: "s" });
  const shell = await daemon.start({ command: ["cat"], tty: { rows: 24, cols: 80 }, stdin: "open", name: "terminal" });
  for (const colorScheme of ["light", "dark"]) {
    const out = await openPage(browser, `${daemon.url}/`, { colorScheme });
    await has(out, "h1", "lastbyte");
    await out.waitForSelector("#token");
    await isAccessible(out, `signing in, ${colorScheme}`);
    await out.context().close();
    const page = await openPage(browser, await daemon.link(), { colorScheme });
    await page.waitForSelector(".row");
    await isAccessible(page, `the list, ${colorScheme}`);
    for (const [path, selector] of [[`${ended.id}/log`, ".line .f1"], [`${ended.id}/details`, ".details"], [`${shell.id}/terminal`, ".xterm-rows"]]) {
      await page.goto(`${daemon.url}/#/p/${path}`);
      await page.waitForSelector(selector);
      await isAccessible(page, `${path}, ${colorScheme}`);
    }
    await page.click("text=Stop");
    await page.waitForSelector("dialog[open]");
    await isAccessible(page, `a question, ${colorScheme}`);
    await page.keyboard.press("Escape");
    await page.goto(`${daemon.url}/#/p/${ended.id}/log`);
    await page.click("button:has-text('Wrap')");
    await page.click("button:has-text('Times')");
    await page.waitForSelector(".wrap .time");
    await isAccessible(page, `wrapped lines and times, ${colorScheme}`);
    await page.setViewportSize({ width: 360, height: 640 });
    for (const [path, selector] of [["", ".row"], [`p/${ended.id}/log`, ".line .text"], [`p/${ended.id}/details`, ".details"], [`p/${shell.id}/terminal`, ".xterm-rows"]]) {
      await page.goto(`${daemon.url}/#/${path}`);
      await page.waitForSelector(selector);
      await isAccessible(page, `narrow /${path}, ${colorScheme}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 360, `narrow /${path} is ${wide} pixels wide`);
    }
    assert.deepEqual(page.problems, []);
    await page.context().close();
    const handed = await openPage(browser, await daemon.link({ process: shell.id, once: true }), { colorScheme });
    await has(handed, ".who", "You have the keyboard");
    await isAccessible(handed, `a hand-over, ${colorScheme}`);
    await handed.setViewportSize({ width: 360, height: 640 });
    await isAccessible(handed, `a narrow hand-over, ${colorScheme}`);
    await handed.click("button.primary:has-text('Done')");
    await has(handed, "h1", "Done");
    await isAccessible(handed, `the end of a hand-over, ${colorScheme}`);
    assert.deepEqual(handed.problems.filter((problem) => !/401/.test(problem)), []);
    await handed.context().close();
  }
}

export async function the_page_is_small({ web }) {
  const names = readdirSync(web, { recursive: true }).filter((name) => /\.(js|css|html|svg)$/.test(name));
  const bytes = names.reduce((sum, name) => sum + gzipSync(readFileSync(join(web, name))).length, 0);
  console.log(`  ${names.length} files, ${Math.round(bytes / 1024)} KB gzipped`);
  assert.ok(bytes <= 250 * 1024, `${bytes}`);
}
