// The list follows what happens, and a log of 1 GiB is read anywhere.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { has, openPage } from "./fixture.mjs";

export async function the_list_follows_the_processes({ daemon, browser }) {
  const page = await openPage(browser, await daemon.link());
  await has(page, ".empty", "Nothing has been started yet");
  assert.equal(new URL(page.url()).hash, "", "the link is gone from the address");
  const slow = await daemon.start({ shell: "sleep 300", name: "slow", session: "a" });
  await has(page, ".row", "slow");
  await has(page, ".row .facts", "running");
  await daemon.start({ shell: "exit 3", name: "broken", session: "b", labels: { job: "7" } });
  await has(page, ".row .facts", "failed with exit code 3");
  const asks = await daemon.start({ shell: "read -r word", name: "asks", stdin: "open" });
  await has(page, ".row .badge", "needs input");
  await daemon.ask("POST", `/v1/processes/${asks.id}/stdin?close=true`);
  await page.waitForFunction(() => ![...document.querySelectorAll(".badge")].some((badge) => badge.textContent === "needs input"));
  await daemon.start({ shell: "while sleep 0.2; do echo again; done", name: "writes" });
  await page.waitForSelector(".row .sparkline polyline");
  await daemon.start({ shell: "sleep 300 & echo started", name: "leaves-one" });
  await has(page, ".row .badge", "output held open");
  for (const { id } of (await daemon.ask("GET", "/v1/processes")).processes.filter((one) => ["asks", "writes", "leaves-one"].includes(one.name))) {
    await daemon.ask("POST", `/v1/processes/${id}/stop`, {});
    await daemon.ask("DELETE", `/v1/processes/${id}`);
  }
  await page.waitForFunction(() => document.querySelectorAll(".row").length === 2);
  await page.keyboard.press("/");
  await page.keyboard.type("label:job=7");
  await page.waitForFunction(() => document.querySelectorAll(".row").length === 1);
  await page.fill(".filters input", "");
  await page.selectOption(".filters select", "a");
  await page.waitForFunction(() => document.querySelectorAll(".row").length === 1);
  await page.selectOption(".filters select", "");
  await daemon.ask("POST", `/v1/processes/${slow.id}/stop`, {});
  await has(page, ".row .facts", "stopped (ended by SIGTERM)");
  await page.locator(".rows").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await has(page, ".title h1", "slow");
  await page.click("text=Forget");
  await page.click("dialog .danger");
  await page.waitForFunction(() => document.querySelectorAll(".row").length === 1);
  // The browser tells of an answer for a process that was forgotten while the page looked at it.
  page.problems = page.problems.filter((problem) => !problem.includes("404 (Not Found)"));
  return page;
}

/** Holds the first answer with the whole list back until `release` is called. */
async function holdTheList(page) {
  let taken, release;
  const [isTaken, isReleased] = [new Promise((done) => { taken = done; }), new Promise((done) => { release = done; })];
  let isFirst = true;
  await page.route("**/v1/processes?limit=*", async (route) => {
    if (!isFirst || route.request().url().includes("phase=")) return route.continue();
    isFirst = false;
    const response = await route.fetch();
    taken();
    await isReleased;
    await route.fulfill({ response });
  });
  return [isTaken, release];
}

export async function what_happens_while_the_list_is_read_is_not_undone_by_it({ daemon, browser }) {
  const ghost = await daemon.start({ shell: "true", name: "ghost", wait: { exit: true } });
  const ends = await daemon.start({ shell: "read -r _", name: "ends", stdin: "open" });
  const page = await openPage(browser, "about:blank");
  const [isTaken, release] = await holdTheList(page);
  await page.goto(await daemon.link());
  await isTaken;
  await daemon.start({ shell: "sleep 300", name: "late" });
  await daemon.ask("DELETE", `/v1/processes/${ghost.id}`);
  await daemon.ask("POST", `/v1/processes/${ends.id}/stdin?close=true`);
  await daemon.ask("POST", `/v1/processes/${ends.id}/wait`, { exit: true });
  // By the events alone.
  await has(page, ".row", "late");
  await has(page, ".row .facts", "failed with exit code 1");
  release();
  await has(page, ".bar", "processes in all");
  const seen = async () => page.$$eval(".row", (rows) => rows.map((row) => `${row.querySelector("b").textContent}: ${row.querySelector(".tone").textContent}`).sort());
  assert.deepEqual(await seen(), ["ends: failed with exit code 1", "late: running"]);
  return page;
}

export async function a_row_stays_picked_when_processes_are_started({ daemon, browser }) {
  for (const name of ["first", "second", "third"]) await daemon.start({ shell: "sleep 300", name });
  const page = await openPage(browser, await daemon.link());
  await has(page, ".row", "first");
  const isAt = (name) => page.waitForFunction((name) => document.activeElement.closest(".row")?.textContent.includes(name), name);
  await page.keyboard.press("g");
  await isAt("third");
  await page.keyboard.press("j");
  await isAt("second");
  await daemon.start({ shell: "sleep 300", name: "fourth" });
  await has(page, ".row", "fourth");
  await page.keyboard.press("j");
  await isAt("first");
  await page.keyboard.press("k");
  await isAt("second");
  return page;
}

export async function a_change_that_could_not_be_read_is_read_again({ daemon, browser }) {
  const page = await openPage(browser, await daemon.link());
  await has(page, ".empty", "Nothing has been started yet");
  let left = 2;
  await page.route("**/v1/processes/*", (route) => (left-- > 0 ? route.fulfill({ status: 503, json: {} }) : route.continue()));
  await daemon.start({ shell: "exit 3", name: "brief", wait: { exit: true } });
  await has(page, ".row .facts", "failed with exit code 3");
  page.problems = page.problems.filter((problem) => !/503/.test(problem));
  return page;
}

export async function ten_thousand_processes_stay_smooth({ daemon, browser }) {
  const page = await openPage(browser, await daemon.link());
  // The list is the same for the page, however the processes came to be.
  const one = await daemon.start({ shell: "true", wait: { exit: true } });
  await page.waitForSelector(".row");
  await page.route("**/v1/processes?*", (route) => {
    const before = Number(new URL(route.request().url()).searchParams.get("before") ?? 10000);
    const made = Array.from({ length: Math.min(1000, before) }, (_, at) => ({ ...one, phase: "ended", id: `id-${String(before - at).padStart(6, "0")}`, name: `job${before - at}` }));
    const next = before > 1000 ? { next: String(before - 1000) } : {};
    route.fulfill({ json: { processes: new URL(route.request().url()).searchParams.has("phase") ? [] : made, ...next } });
  });
  await page.reload();
  await has(page, ".bar", "10,000 processes");
  assert.ok(await page.locator(".row").count() < 60, "only rows in view exist");
  const longest = await page.evaluate(async () => {
    const box = document.querySelector(".rows");
    let longest = 0;
    for (let step = 0; step < 60; step += 1) {
      const then = performance.now();
      box.scrollTop += 8000;
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      longest = Math.max(longest, performance.now() - then);
    }
    return longest;
  });
  console.log(`  the slowest of 60 jumps took ${Math.round(longest)} ms`);
  assert.ok(longest < 1000, `a jump took ${longest} ms`);
  return page;
}

const LINE = "line %.0f of a log that is long enough to be read for a while, with text to make its lines as long as others are";

export async function a_log_of_a_gigabyte_is_read_anywhere({ daemon, browser }) {
  const big = await daemon.start({ shell: `seq -f '${LINE}' 9500000; echo needle in the last line`, quota_bytes: 2 ** 31, name: "big", wait: { exit: true }, view: "head_tail", max_bytes: 100 });
  assert.ok(big.total > 2 ** 30, `${big.total}`);
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  const opened = Date.now();
  await page.goto(`${daemon.url}/#/p/${big.id}`);
  await has(page, ".line .text", "needle in the last line");
  console.log(`  its end is shown after ${Date.now() - opened} ms`);
  await has(page, ".status", "of 9,500,001");
  console.log(`  its lines are counted after ${Date.now() - opened} ms`);
  const asked = Date.now();
  await page.keyboard.press(":");
  await page.keyboard.type("9000000");
  await page.keyboard.press("Enter");
  await has(page, ".line.marked .text", "line 9000000 of");
  console.log(`  line 9,000,000 is shown after ${Date.now() - asked} ms`);
  assert.match(page.url(), /line=9000000$/);
  await page.locator(".lines").focus();
  await page.keyboard.press("g");
  await has(page, ".line .text", "line 1 of");
  await page.locator(".lines").hover();
  await page.mouse.wheel(0, 400);
  await has(page, ".status", "Lines 21–");
  await page.evaluate(() => { const box = document.querySelector(".lines"); box.scrollTop = box.scrollHeight / 2; });
  await page.waitForFunction(() => /^line 47\d{5} of/.test(document.querySelector(".line .text")?.textContent ?? ""));
  await page.keyboard.press("/");
  await page.keyboard.type("12345 of");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".found")?.textContent.startsWith("1 of "));
  // Lines 12345, 112345, 212345 and so on: the first is at the very top.
  await page.waitForFunction(() => document.querySelectorAll(".marks i").length > 20);
  const marked = await page.evaluate(() => document.querySelector(".marks i").style.top);
  assert.ok(parseFloat(marked) < 1, `the first match is marked at ${marked}`);
  await page.locator(".lines").focus();
  await page.goto(`${daemon.url}/#/p/${big.id}/log?bytes=${big.total - 24}-${big.total - 18}`);
  await page.reload();
  await has(page, ".line .hit", "needle");
  return page;
}

export async function streams_colours_gaps_and_late_output_are_told_apart({ daemon, browser }) {
  const page = await openPage(browser, await daemon.link());
  const split = await daemon.start({ shell: "printf 'out \\033[31mred\\033[0m\\n'; sleep 0.3; echo err >&2", streams: "split", wait: { exit: true } });
  await page.goto(`${daemon.url}/#/p/${split.id}`);
  await has(page, ".text .f1", "red");
  await has(page, ".text .stderr", "err");
  const gap = await daemon.start({ shell: "seq 1000000", quota_bytes: 4 << 20, wait: { exit: true }, max_bytes: 100 });
  await page.goto(`${daemon.url}/#/p/${gap.id}/log?bytes=${gap.dropped[0].start}-${gap.dropped[0].end}`);
  await has(page, ".line.gap", "were dropped");
  const late = await daemon.start({ shell: "(sleep 0.5; echo behind) & echo before", wait: { exit: true } });
  await page.goto(`${daemon.url}/#/p/${late.id}`);
  await has(page, ".line.late .text", "behind");
  return page;
}

export async function output_that_is_too_fast_is_passed_over_and_that_is_said({ daemon, browser }) {
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".bar");
  const text = "a line of a command that writes as fast as it can";
  const fast = await daemon.start({ shell: `yes '${text}' | head -c 600000000; echo; echo the last line`, quota_bytes: 2 ** 30 });
  const begun = Date.now();
  await page.goto(`${daemon.url}/#/p/${fast.id}/log`);
  await has(page, ".status", "passed too fast to show");
  const { process } = await daemon.ask("POST", `/v1/processes/${fast.id}/wait`, { exit: true, timeout_ms: 60000 });
  console.log(`  it wrote ${Math.round(process.total / 1e6 / (process.ending.times.ran_ns / 1e9))} MB/s`);
  await has(page, ".line .text", "the last line");
  console.log(`  all ${Math.round(process.total / 1e6)} MB were there after ${Date.now() - begun} ms`);
  const lines = Number((await page.innerText(".status")).match(/of ([\d,]+)/)[1].replaceAll(",", ""));
  assert.ok(lines > 10_000_000, `${lines} lines`);
  return page;
}

export async function a_log_is_downloaded_whole({ daemon, browser }) {
  const process = await daemon.start({ shell: "seq 300000", name: "numbers", wait: { exit: true } });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  await page.goto(`${daemon.url}/#/p/${process.id}/log`);
  await page.waitForSelector(".line");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Download")]);
  assert.equal(download.suggestedFilename(), "numbers.log");
  const text = readFileSync(await download.path(), "utf8");
  assert.equal(text, Array.from({ length: 300000 }, (_, at) => `${at + 1}\n`).join(""));
  return page;
}

export async function a_log_of_nothing_but_newlines_or_of_one_line_is_shown({ daemon, browser }) {
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".bar");
  const empty = await daemon.start({ shell: "yes '' | head -n 1000000; printf end", wait: { exit: true } });
  await page.goto(`${daemon.url}/#/p/${empty.id}/log`);
  await has(page, ".status", "of 1,000,001");
  await has(page, ".line .text", "end");
  const line = await daemon.start({ shell: "head -c 50000000 /dev/zero; printf x", wait: { exit: true } });
  await page.goto(`${daemon.url}/#/p/${line.id}/log`);
  await has(page, ".line .more", "48 MiB more in this line");
  return page;
}
