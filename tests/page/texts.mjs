// What the page makes of bytes and names, whatever they are.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { has, openPage } from "./fixture.mjs";

/** A module of the page that needs no browser. */
const load = (web, name) => import(`data:text/javascript;base64,${readFileSync(join(web, name)).toString("base64")}`);

const noStreams = () => undefined;
noStreams.changes = () => [];

export async function escapes_are_never_shown_as_text({ web }) {
  const { pieces, plain } = await load(web, "sgr.js");
  const shown = (bytes, hits = []) => pieces({ bytes: Buffer.from(bytes), start: 0 }, plain(), noStreams, hits);
  const cases = [
    ["\x1b[?25lhidden\x1b[?25h", [["hidden", ""]]],
    ["\x1b[>4;2mplain\x1b[<u", [["plain", ""]]],
    ["\x1b[4:3mcurly\x1b[4:0mnot", [["curly", "underline"], ["not", ""]]],
    ["\x1b[38:2::255:0:0mred", [["red", "f9"]]],
    ["\x1b[38;2;255;0;0;1mred", [["red", "f9 bold"]]],
    ["\x1b[58;5;1mplain", [["plain", ""]]],
    ["\x1bP1$r0m\x1b\\after\x1b_kitty\x1b\\", [["after", ""]]],
    ["\x1b(B\x1b[m\x0freset\x07", [["reset", ""]]],
    ["n\x08nab\x08\x08c", [["nc", ""]]],
    ["cut off \x1b[3", [["cut off ", ""]]],
    ["50 %\r100 %\r\n", [["100 %", ""]]],
    ["\x1b[999999999999999999999;38;5;9999;48;2mx", [["x", "f15 b0"]]],
  ];
  for (const [bytes, want] of cases) {
    assert.deepEqual(shown(bytes).map(({ text, names }) => [text, names]), want, JSON.stringify(bytes));
  }
  // No bytes are too strange.
  const alphabet = ["\x1b", "[", "]", "?", "m", ";", ":", "3", "8", "58", "\x08", "\r", "\n", "\x07", "\\", "P", "a", "漢"].map((text) => Buffer.from(text));
  let seed = 7;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  for (let round = 0; round < 20000; round += 1) {
    const bytes = Buffer.concat(Array.from({ length: random(24) }, () => (random(5) ? alphabet[random(alphabet.length)] : Buffer.from([random(256)]))));
    const hits = [{ start: random(12), end: random(24) }];
    for (const { text } of shown(bytes, hits)) assert.doesNotMatch(text, /[\0-\x08\x0b-\x1f\x7f]/, bytes.toString("hex"));
  }
}

export async function a_command_of_a_hundred_kilobytes_has_a_short_title({ daemon, browser }) {
  const long = await daemon.start({ command: ["sh", "-c", `sleep 300; : ${"x".repeat(100000)}`], name: undefined });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  const shown = await page.textContent(".row .command");
  assert.ok(shown.length < 1000 && shown.includes("sleep 300"), `${shown.length} characters`);
  await page.goto(`${daemon.url}/#/p/${long.id}/details`);
  await page.waitForFunction(() => document.title.includes("sleep 300"));
  const lengths = await page.evaluate(() => [document.title.length, document.querySelector("h1").textContent.length]);
  assert.ok(lengths.every((length) => length < 200), `${lengths}`);
  assert.ok((await page.textContent(".details pre")).length > 100000, "all of it is among the details");
  return page;
}

export async function addresses_that_name_no_line_are_passed_over({ daemon, browser }) {
  const short = await daemon.start({ shell: "seq 3", wait: { exit: true } });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  for (const at of ["bytes=x", "bytes=-", "bytes=1e3-", "bytes=99999999999999999999-1", "line=x", "bytes=0-1-2"]) {
    await page.goto(`${daemon.url}/#/p/${short.id}/log?${at}`);
    await page.waitForFunction(() => document.querySelectorAll(".line .text").length === 3);
  }
  return page;
}

/** The first requests to these paths find no server. */
async function isAway(page, paths, times) {
  const left = new Map();
  await page.route((url) => paths.includes(url.pathname), (route) => {
    const path = new URL(route.request().url()).pathname;
    left.set(path, (left.get(path) ?? times) - 1);
    return left.get(path) < 0 ? route.continue() : route.abort();
  });
}

export async function a_server_that_is_away_for_a_moment_takes_neither_link_nor_token_away({ daemon, browser }) {
  await daemon.start({ shell: "sleep 300", name: "there" });
  const page = await openPage(browser, "about:blank");
  await isAway(page, ["/v1/links/trade", "/v1"], 1);
  await page.goto(await daemon.link());
  await has(page, "[role=status]", "The server does not answer. Trying again.");
  await has(page, ".row", "there");
  await page.unrouteAll();
  await isAway(page, ["/v1"], 1);
  await page.reload();
  await has(page, "[role=status]", "The server does not answer. Trying again.");
  await has(page, ".row", "there");
  await page.unrouteAll();
  page.problems = page.problems.filter((problem) => !/ERR_FAILED/.test(problem));
  return page;
}
