// The terminal: programs that draw, a resize, a reconnect, and a password that a person types.

import assert from "node:assert/strict";
import { has, openPage, screen, shows } from "./fixture.mjs";

const SHELL = { command: ["bash", "--norc", "--noprofile", "-i"], env: { PS1: "ready> ", TERM: "xterm-256color", LESS: null, VIMINIT: "set nocompatible" }, tty: { rows: 24, cols: 80 }, stdin: "open" };

async function typing(page) {
  await page.click("button.switch:has-text('Type')");
  await has(page, ".who", "You have the keyboard");
}

const run = async (page, command) => {
  await page.keyboard.type(command);
  await page.keyboard.press("Enter");
};

export async function vim_htop_and_less_run_and_the_size_is_the_pages({ daemon, browser }) {
  const shell = await daemon.start(SHELL);
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".bar");
  await page.goto(`${daemon.url}/#/p/${shell.id}/terminal`);
  await shows(page, "ready>");
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("nothing");
  await has(page, ".who", "Nobody has the keyboard");
  await typing(page);
  await run(page, "clear; echo si''ze $(stty size)");
  await shows(page, "size ");
  assert.ok(!(await screen(page)).includes("nothing"), "it is read-only until it is switched on");
  const rows = async () => Number((await screen(page)).match(/size (\d+) /)[1]);
  const before = await rows();
  await page.setViewportSize({ width: 900, height: 500 });
  await run(page, "clear; while [ $(stty size | cut -d' ' -f1) = " + before + " ]; do sleep 0.1; done; echo small''er $(stty size)");
  await shows(page, "smaller ");
  await run(page, "vim -u NONE -c 'set nomodeline' note.txt");
  await page.waitForFunction(() => [...document.querySelectorAll(".xterm-rows > div")].filter((row) => row.textContent.startsWith("~")).length > 5);
  await page.keyboard.type("ihello from vim");
  await page.keyboard.press("Escape");
  await shows(page, "hello from vim");
  await run(page, ":q!");
  await run(page, "clear; htop");
  await shows(page, "Load average");
  await page.keyboard.press("q");
  await run(page, "clear; seq 500 | less");
  await shows(page, "1");
  await page.keyboard.press("G");
  await shows(page, "500");
  await page.keyboard.press("q");
  await run(page, "clear; echo fin''ished");
  await shows(page, "finished");
  return page;
}

export async function the_terminal_reconnects_when_the_worker_is_killed({ daemon, browser }) {
  const shell = await daemon.start(SHELL);
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".bar");
  await page.goto(`${daemon.url}/#/p/${shell.id}/terminal`);
  await shows(page, "ready>");
  await typing(page);
  await run(page, "echo before-$((1+1))");
  await shows(page, "before-2");
  const { keeper } = await daemon.ask("GET", "/healthz");
  assert.ok(keeper.worker_pid, "a keeper starts another worker");
  process.kill(keeper.worker_pid, "SIGKILL");
  await has(page, ".link", "reconnecting");
  await has(page, ".link", "connected");
  await has(page, ".who", "You have the keyboard");
  await run(page, "echo after-$((1+2))");
  await shows(page, "after-3");
  assert.equal((await screen(page)).split("before-2").length, 2, "nothing is drawn twice");
  // The browser tells of the broken connections.
  page.problems = page.problems.filter((problem) => !/ERR_|WebSocket|Failed to load/.test(problem));
  return page;
}

export async function a_person_answers_a_password_prompt_through_a_link_that_works_once({ daemon, browser }) {
  const asks = await daemon.start({ shell: "printf 'password: '; stty -echo; read -r word; stty echo; echo; [ \"$word\" = s3cret-w0rd ] && echo welcome; sleep 300", tty: { rows: 24, cols: 80 }, stdin: "open" });
  const link = await daemon.link({ process: asks.id, once: true });
  const waits = daemon.ask("POST", `/v1/processes/${asks.id}/wait`, { hand_over: true, timeout_ms: 60000 });
  const page = await openPage(browser, link);
  await has(page, "h1", "An agent asks you to take over this terminal");
  await has(page, ".who", "You have the keyboard");
  await shows(page, "password:");
  await page.click("button.switch:has-text('Secret input')");
  await has(page, ".who", "what you type is secret");
  await page.locator(".xterm-helper-textarea").focus();
  await run(page, "s3cret-w0rd");
  await shows(page, "welcome");
  await page.click("button.primary:has-text('Done')");
  await has(page, "h1", "Done");
  const { wait } = await waits;
  assert.equal(wait.met, "hand_over");
  const kept = await daemon.ask("GET", `/v1/processes/${asks.id}/output?view=text`);
  assert.ok(!JSON.stringify(kept).includes("s3cret-w0rd"));
  const again = await openPage(browser, link);
  await has(again, ".problem", "This link has been used or has expired");
  await again.context().close();
  return page;
}

