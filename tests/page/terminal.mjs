// The terminal: programs that draw, a resize, a reconnect, and a password that a person types.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
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

const ASKS = "printf 'password: '; stty -echo; read -r word; stty echo; echo; echo got ${#word}; sleep 300";

/** What an agent does: it starts a command that asks, gets a link for a person, and waits for what it is told then. */
const AGENTS = {
  async http(daemon) {
    const { id } = await daemon.start({ shell: ASKS, tty: { rows: 24, cols: 80 }, stdin: "open" });
    const link = await daemon.link({ process: id, once: true });
    const wait = daemon.ask("POST", `/v1/processes/${id}/wait`, { hand_over: true, timeout_ms: 60000 });
    return { id, link, told: wait.then(({ wait }) => `${wait.met} ${wait.how}`), want: /^hand_over done$/ };
  },
  async cli(daemon) {
    const id = (await daemon.lastbyte("start", "--tty", "24x80", "--stdin-open", ASKS)).trim();
    const link = (await daemon.lastbyte("open", id, "--once")).trim();
    return { id, link, told: daemon.lastbyte("wait", id, "--hand-over", "--timeout", "60s"), want: /the person is done/ };
  },
  async mcp(daemon) {
    const id = (await daemon.tool("exec_command", { command: ASKS, tty: true, run_in_background: true })).match(/process (0[0-9a-f-]{35})/)[1];
    const link = (await daemon.tool("write_stdin", { process_id: id, hand_over: true })).match(/http:\S+#link=[\w-]+/)[0];
    return { id, link, told: daemon.tool("wait", { process_ids: [id], until: "hand_over", timeout: 60_000 }), want: /the person is done/ };
  },
};

export async function a_person_answers_a_password_prompt_through_a_link_that_works_once({ daemon, browser }) {
  for (const [name, ask] of Object.entries(AGENTS)) {
    const { id, link, told, want } = await ask(daemon);
    const page = await openPage(browser, link);
    await has(page, "h1", "An agent asks you to take over this terminal");
    await has(page, ".who", "You have the keyboard");
    await shows(page, "password:");
    await page.click("button.switch:has-text('Secret input')");
    await has(page, ".who", "what you type is secret");
    await page.locator(".xterm-helper-textarea").focus();
    await run(page, "s3cret-w0rd");
    await shows(page, "got 11");
    await page.click("button.primary:has-text('Done')");
    await has(page, "h1", "Done");
    const said = await told;
    assert.match(said, want, `${name}: ${said}`);
    for (const kept of ["", "/receipt", "/output?view=text", "/output?view=screen&ansi=true", "/output/search?pattern=s.cret"]) {
      const answer = JSON.stringify(await daemon.ask("GET", `/v1/processes/${id}${kept}`));
      assert.ok(!answer.includes("s3cret"), `${name}, ${kept}: ${answer}`);
    }
    // The browser tells of the answers: the token has ended, and so has the link.
    assert.deepEqual(page.problems.filter((problem) => !/401/.test(problem)), []);
    await page.context().close();
    const again = await openPage(browser, link);
    await has(again, ".problem", "This link has been used or has expired");
    await again.context().close();
  }
  for (const file of readdirSync(daemon.state, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())) {
    assert.ok(!readFileSync(join(file.parentPath, file.name)).includes("s3cret"), `${file.name} has the secret`);
  }
}

export async function one_viewer_types_and_others_watch({ daemon, browser }) {
  const shell = await daemon.start(SHELL);
  const [first, second] = [await openPage(browser, await daemon.link({ process: shell.id })), await openPage(browser, await daemon.link({ process: shell.id }))];
  for (const page of [first, second]) await shows(page, "ready>");
  await typing(first);
  await has(second, ".who", "a person has the keyboard");
  await second.click("button.switch:has-text('Type')");
  await has(second, ".problem", "keyboard");
  await second.locator(".xterm-helper-textarea").focus();
  await second.keyboard.type("echo from-the-second");
  await run(first, "echo from-the-$((0+1))st");
  await shows(second, "from-the-1st");
  assert.ok(!(await screen(second)).includes("from-the-second"), "only one types");
  await first.close();
  await has(second, ".who", "Nobody has the keyboard");
  await typing(second);
  await run(second, "echo now-the-$((1+1))nd");
  await shows(second, "now-the-2nd");
  return second;
}

export async function what_old_output_asks_of_the_terminal_is_not_answered({ daemon, browser }) {
  const asks = "printf 'ask \\033[6n\\033[c\\033[>c\\033[5n\\033P$qm\\033\\\\\\033]10;?\\007'; sleep 0.2; echo asked; exec cat";
  const process = await daemon.start({ shell: `stty -echo; ${asks}`, tty: { rows: 24, cols: 80 }, stdin: "open" });
  const handed = await openPage(browser, await daemon.link({ process: process.id, once: true }));
  await shows(handed, "asked");
  await has(handed, ".who", "You have the keyboard");
  await handed.locator(".xterm-helper-textarea").focus();
  await run(handed, "typed");
  await shows(handed, "typed");
  assert.equal((await daemon.ask("POST", `/v1/processes/${process.id}/stdin`, undefined)).accepted, "typed\r".length);
  return handed;
}

export async function a_long_session_begins_with_the_screen_of_then({ daemon, browser }) {
  // It turned on a mode and drew a line before more than is replayed.
  const long = "printf '\\033[1;1Hheader\\033[2;24r\\033[?1h\\033[24;1H'; seq -f 'line %.0f of a long session' 100000; printf 'prompt> '; exec cat -v";
  const process = await daemon.start({ shell: `stty -echo; ${long}`, tty: { rows: 24, cols: 80 }, stdin: "open", wait: { pattern: "prompt>", timeout_ms: 60000 } });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  await page.goto(`${daemon.url}/#/p/${process.id}/terminal`);
  await shows(page, "prompt>");
  await has(page, ".status", "Begins after");
  await typing(page);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  // As a terminal sends it in the mode that was set in the beginning.
  await shows(page, "^[OA");
  return page;
}

export async function a_terminal_that_is_flooded_shows_the_screen_of_now_and_says_so({ daemon, browser }) {
  // It goes on until the page has said so, however fast this browser draws.
  const flood = `read -r _; yes ${"x".repeat(79)} & read -r _; kill $!; wait; echo fin''ished; exec cat`;
  const process = await daemon.start({ shell: flood, tty: { rows: 24, cols: 80 }, stdin: "open", quota_bytes: 2 ** 28 });
  const page = await openPage(browser, await daemon.link());
  await page.waitForSelector(".row");
  await page.goto(`${daemon.url}/#/p/${process.id}/terminal`);
  page.setDefaultTimeout(60000);
  await typing(page);
  const developer = await page.context().newCDPSession(page);
  await developer.send("Emulation.setCPUThrottlingRate", { rate: 3 });
  await run(page, "");
  await has(page, ".status", "passed too fast to show");
  await developer.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await run(page, "");
  await shows(page, "finished");
  await run(page, "and it goes on");
  await shows(page, "and it goes on");
  return page;
}

export async function secret_input_is_on_again_after_the_worker_is_killed({ daemon, browser }) {
  // Its terminal shows what is typed, unless the server hides it.
  const asks = await daemon.start({ shell: "printf 'password: '; read -r word; echo got ${#word}; exec cat", tty: { rows: 24, cols: 80 }, stdin: "open" });
  const page = await openPage(browser, await daemon.link({ process: asks.id, once: true }));
  await has(page, ".who", "You have the keyboard");
  await page.click("button.switch:has-text('Secret input')");
  await has(page, ".who", "what you type is secret");
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("correct-");
  const { keeper } = await daemon.ask("GET", "/healthz");
  process.kill(keeper.worker_pid, "SIGKILL");
  await has(page, ".link", "reconnecting");
  // Nothing of it is sent before the terminal hides it again.
  await page.keyboard.type("lost");
  await has(page, ".link", "connected");
  await has(page, ".who", "what you type is secret");
  await page.locator(".xterm-helper-textarea").focus();
  await run(page, "horse");
  await shows(page, "got 13");
  await page.click("button.switch:has-text('Secret input')");
  await page.waitForFunction(() => !document.querySelector(".who").textContent.includes("secret"));
  const { content } = await daemon.ask("GET", `/v1/processes/${asks.id}/output?view=text`);
  assert.ok(!/correct|horse|lost/.test(JSON.stringify(content)), JSON.stringify(content));
  page.problems = page.problems.filter((problem) => !/ERR_|WebSocket|Failed to load/.test(problem));
  return page;
}

/** The next requests for a ticket fail, so the page cannot reconnect until it has tried so many times. */
async function failsToReconnect(page, times) {
  let left = times;
  await page.route("**/v1/tickets", (route) => (left-- > 0 ? route.abort() : route.continue()));
  return page.waitForFunction(() => document.querySelector(".problem")?.textContent.includes("does not answer"));
}

export async function secret_input_stays_on_when_the_page_cannot_reconnect_at_once({ daemon, browser }) {
  const asks = await daemon.start({ shell: "printf 'password: '; read -r word; echo got ${#word}; exec cat", tty: { rows: 24, cols: 80 }, stdin: "open" });
  const page = await openPage(browser, await daemon.link({ process: asks.id, once: true }));
  await has(page, ".who", "You have the keyboard");
  await page.click("button.switch:has-text('Secret input')");
  await has(page, ".who", "what you type is secret");
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("correct-");
  const failed = failsToReconnect(page, 2);
  const { keeper } = await daemon.ask("GET", "/healthz");
  process.kill(keeper.worker_pid, "SIGKILL");
  await failed;
  assert.equal(await page.getAttribute("button.switch:has-text('Secret input')", "aria-checked"), "true");
  await has(page, ".link", "connected");
  await has(page, ".who", "what you type is secret");
  await page.locator(".xterm-helper-textarea").focus();
  await run(page, "horse");
  await shows(page, "got 13");
  const { content } = await daemon.ask("GET", `/v1/processes/${asks.id}/output?view=text`);
  assert.ok(!/correct|horse/.test(JSON.stringify(content)), JSON.stringify(content));
  page.problems = page.problems.filter((problem) => !/ERR_|WebSocket|Failed to load/.test(problem));
  return page;
}

export async function done_is_said_only_of_a_hand_over_that_has_ended({ daemon, browser }) {
  const cat = await daemon.start({ command: ["cat"], tty: { rows: 24, cols: 80 }, stdin: "open" });
  const page = await openPage(browser, "about:blank");
  let isLost = true;
  await page.routeWebSocket(/attach/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      if (!isLost || !String(message).includes("give_back_keyboard")) return server.send(message);
      isLost = false;
      server.close();
      socket.close();
    });
  });
  await page.goto(await daemon.link({ process: cat.id, once: true }));
  await has(page, ".who", "You have the keyboard");
  await page.click("button.primary:has-text('Done')");
  await has(page, ".problem", "The keyboard was not given back");
  const open = await daemon.ask("POST", `/v1/processes/${cat.id}/wait`, { hand_over: true, timeout_ms: 1 });
  assert.equal(open.wait.met, "timeout", "the hand-over goes on");
  await has(page, ".who", "You have the keyboard");
  await page.click("button.primary:has-text('Done')");
  await has(page, "h1", "Done");
  await has(page, "p", "The agent has the terminal back");
  const { wait } = await daemon.ask("POST", `/v1/processes/${cat.id}/wait`, { hand_over: true, timeout_ms: 1 });
  assert.equal(wait.how, "done");
  page.problems = page.problems.filter((problem) => !/WebSocket|401/.test(problem));
  return page;
}

export async function a_link_that_is_opened_in_a_tab_with_an_old_token_is_used({ daemon, browser }) {
  const tty = { tty: { rows: 24, cols: 80 }, stdin: "open" };
  const [first, second] = [await daemon.start({ shell: "echo first; exec cat", ...tty }), await daemon.start({ shell: "echo second; exec cat", ...tty })];
  const page = await openPage(browser, await daemon.link({ process: first.id, once: true }));
  await shows(page, "first");
  // While the tab shows another hand-over, whose token is still good.
  await page.goto(await daemon.link({ process: second.id, once: true }));
  await shows(page, "second");
  await has(page, ".who", "You have the keyboard");
  // With a token that has ended.
  await page.evaluate(() => sessionStorage.setItem("lastbyte-token", "lbp_ended"));
  await page.goto(await daemon.link());
  await page.waitForSelector(".row");
  page.problems = page.problems.filter((problem) => !/401/.test(problem));
  return page;
}
