// What a person does to a process: write, signal and stop it, with the proof; and the looks of its log.

import assert from "node:assert/strict";
import { has, openPage } from "./fixture.mjs";

export async function a_process_is_written_to_signalled_and_stopped_with_proof({ daemon, browser }) {
  const shell = "trap 'echo hung up' HUP; read -r line; echo got $line; read -r line || echo closed; while :; do sleep 0.1; done";
  const process = await daemon.start({ shell, stdin: "open", name: "acts" });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  await page.goto(`${daemon.url}/#/p/${process.id}/log`);
  await page.click("button:has-text('Write')");
  await page.fill("#write", "a line");
  await page.click("dialog button.primary");
  await has(page, "dialog [role=status]", "Written");
  await has(page, ".line .text", "got a line");
  await page.click("dialog button:has-text('Close input')");
  await has(page, "dialog [role=status]", "Its input is closed");
  await has(page, ".line .text", "closed");
  await page.click("dialog button.primary");
  await page.waitForSelector("dialog .problem");
  await page.keyboard.press("Escape");
  await page.click("button:has-text('Signal')");
  await page.selectOption("#signal", "HUP");
  await page.click("dialog button.primary");
  await has(page, ".line .text", "hung up");
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await page.click(".summary button:has-text('Stop')");
  await page.click("dialog button.danger");
  await has(page, "dialog h2", "Stopped");
  await has(page, "dialog b", "Nothing is left.");
  const proof = await page.innerText("dialog");
  assert.match(proof, /Proved|without a cgroup it is not a proof/);
  assert.ok(proof.includes(String(process.pid)), `${process.pid} was signalled: ${proof}`);
  await page.click("dialog button.primary");
  await has(page, ".summary .tone", "stopped");
  // A write to a closed input is refused.
  page.problems = page.problems.filter((problem) => !/409/.test(problem));
  return page;
}

export async function the_time_of_every_line_is_shown({ daemon, browser }) {
  const process = await daemon.start({ shell: "echo early; sleep 1; echo late", wait: { exit: true } });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  await page.goto(`${daemon.url}/#/p/${process.id}/log`);
  await has(page, ".line .text", "late");
  assert.equal(await page.locator(".time").count(), 0);
  await page.locator(".lines").focus();
  await page.keyboard.press("t");
  await page.waitForFunction(() => [...document.querySelectorAll(".time")].filter((time) => /^\d\d:\d\d:\d\d\.\d$/.test(time.textContent)).length === 2);
  const seconds = (await page.locator(".time").allTextContents()).map((time) => time.split(":").reduce((sum, part) => sum * 60 + Number(part), 0));
  const apart = (seconds[1] - seconds[0] + 86400) % 86400;
  assert.ok(apart >= 0.9, `${seconds}`);
  await page.keyboard.press("t");
  await page.waitForFunction(() => document.querySelectorAll(".time").length === 0);
  return page;
}

/** The words `bN` and `eN` at both ends of the lines that are in view. */
const ends = (page) => page.evaluate(() => {
  const box = document.querySelector(".view").getBoundingClientRect();
  const seen = [];
  for (const text of document.querySelectorAll(".line .text")) {
    const { top, bottom } = text.getBoundingClientRect();
    const words = text.textContent.trim().split(" ");
    if (top >= box.top - 1 && top + 20 <= box.bottom + 1) seen.push(words[0]);
    if (bottom <= box.bottom + 1 && bottom - 20 >= box.top - 1) seen.push(words.at(-1));
  }
  return seen;
});

const painted = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

export async function wrapped_lines_are_all_within_reach({ daemon, browser }) {
  // Each line has many rows, and one has more than the view.
  const line = "print('b%d ' % n + 'word ' * (1500 if n == 20 else 60) + 'e%d' % n)";
  const process = await daemon.start({ command: ["python3", "-c", `for n in range(1, 41): ${line}`], wait: { exit: true } });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  await page.goto(`${daemon.url}/#/p/${process.id}/log`);
  await has(page, ".line .text", "e40");
  await page.locator(".lines").focus();
  await page.keyboard.press("w");
  await page.waitForSelector(".lines.wrap");
  await painted(page);
  assert.ok((await ends(page)).includes("e40"), "the end is followed");
  const all = Array.from({ length: 40 }, (_, at) => [`b${at + 1}`, `e${at + 1}`]).flat().sort();
  for (const [first, key, last] of [["g", "j", "e40"], ["G", "k", "b1"]]) {
    await page.keyboard.press(first);
    await painted(page);
    const seen = new Set(await ends(page));
    for (let press = 0; press < 900 && !seen.has(last); press += 1) {
      await page.keyboard.press(key);
      await painted(page);
      for (const word of await ends(page)) seen.add(word);
    }
    assert.deepEqual([...seen].sort(), all, `by ${key}`);
  }
  return page;
}
