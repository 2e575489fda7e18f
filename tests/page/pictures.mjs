// Writes a picture of every screen, in light, dark and narrow.
//
// node pictures.mjs PROGRAM FOLDER

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Daemon, has, launch, openPage, shows } from "./fixture.mjs";

const SOURCE = `/// Reads until every writer has closed the pipe, or the grace is over.
fn drain(pipe: &mut Pipe, log: &mut Writer) -> io::Result<Drained> {
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        match pipe.splice_into(log)? {
            0 => return Ok(Drained::Eof { len: log.len() }),
            count => log.publish(count),
        }
    }
    Ok(Drained::Held { len: log.len() })
}
`;
const [program, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "drain.rs"), SOURCE);
const LOOKS = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  narrow: { colorScheme: "light", viewport: { width: 390, height: 780 }, hasTouch: true },
};
const TESTS = "for i in $(seq 1 400); do printf '\\033[32mok\\033[0m   drain::case_%03d \\033[2m(3 ms)\\033[0m\\n' $i; done; printf '\\033[1;31mFAIL\\033[0m drain::keeps_the_last_byte: left 41, right 42\\n'; printf '\\n400 passed, \\033[31m1 failed\\033[0m\\n'; exit 101";
const SERVER = "i=0; while true; do i=$((i+1)); echo \"GET /items/$i 200\"; [ $((i%7)) = 0 ] && echo \"slow request: /items/$i took 1.4 s\" >&2; sleep 0.2; done";

const daemon = await Daemon.start(program);
const { browser } = await launch();
try {
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await openPage(browser, `${daemon.url}/`, { viewport: { width: 1120, height: 700 }, ...options });
    await page.waitForSelector("#token");
    await page.screenshot({ path: `${folder}/sign-in-${look}.png` });
    await page.goto(`${await daemon.link()}`);
    await has(page, ".empty", "Nothing");
    await page.screenshot({ path: `${folder}/empty-${look}.png` });
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.screenshot({ path: `${folder}/keys-${look}.png` });
    await page.context().close();
  }
  await daemon.start({ shell: "git fetch --all --prune || true", session: "build" });
  await daemon.start({ command: ["sh", "-c", "sleep 300 & echo started a worker"], session: "build", name: "worker" });
  const tests = await daemon.start({ shell: TESTS, name: "tests", session: "build", labels: { job: "7" } });
  await daemon.start({ shell: SERVER, name: "web", session: "dev", streams: "split", labels: { port: "8080" } });
  await daemon.start({ shell: "printf 'password: '; stty -echo; read -r word", name: "deploy", session: "dev", tty: { rows: 24, cols: 80 }, stdin: "open" });
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await openPage(browser, await daemon.link(), { viewport: { width: 1120, height: 700 }, ...options });
    const picture = (name) => page.screenshot({ path: `${folder}/${name}-${look}.png` });
    await has(page, ".row", "deploy");
    await has(page, ".badge", "needs a secret");
    // The rate of output has a history then.
    if (look !== "narrow") await page.waitForFunction(() => document.querySelector(".sparkline polyline")?.getAttribute("points").split(" ").length > 5);
    await picture("list");
    await page.goto(`${daemon.url}/#/p/${tests.id}/log`);
    await has(page, ".line .text", "400 passed");
    await page.fill(".log input", "FAIL|case_39");
    await page.keyboard.press("Enter");
    await has(page, ".found", " of 11 matches");
    await picture("log");
    await page.goto(`${daemon.url}/#/p/${tests.id}/details`);
    await page.waitForSelector(".details");
    await picture("receipt");
    const editor = await daemon.start({ cwd: folder, command: ["vim", "-n", "-u", "NONE", "-c", "syntax on", "-c", "set number laststatus=2", "drain.rs"], env: { TERM: "xterm-256color" }, name: `vim-${look}`, session: "dev", tty: { rows: 24, cols: 80 }, stdin: "open" });
    await page.goto(`${daemon.url}/#/p/${editor.id}/terminal`);
    await shows(page, "fn drain");
    await page.click("button.switch:has-text('Type')");
    await has(page, ".who", "You have the keyboard");
    await page.waitForTimeout(1200);
    await picture("terminal");
    await page.click("text=Stop");
    await page.waitForSelector("dialog[open]");
    await picture("stop");
    await page.click("dialog .danger");
    await has(page, "dialog", "Nothing is left");
    await picture("proof");
    await page.context().close();
    const asks = await daemon.start({ shell: "printf '[sudo] password for ada: '; stty -echo; read -r word", tty: { rows: 24, cols: 80 }, stdin: "open", name: `sudo-${look}` });
    const handed = await openPage(browser, await daemon.link({ process: asks.id, once: true }), { viewport: { width: 1120, height: 700 }, ...options });
    await shows(handed, "password for ada");
    await has(handed, ".who", "You have the keyboard");
    await handed.screenshot({ path: `${folder}/hand-over-${look}.png` });
    const watching = await openPage(browser, await daemon.link({ process: asks.id }), { viewport: { width: 1120, height: 700 }, ...options });
    await has(watching, ".who", "a person has the keyboard");
    await watching.screenshot({ path: `${folder}/watching-${look}.png` });
    await watching.context().close();
    await handed.click("button.primary");
    await has(handed, "h1", "Done");
    await handed.screenshot({ path: `${folder}/done-${look}.png` });
    await handed.context().close();
  }
} catch (error) {
  for (const page of browser.contexts().flatMap((context) => context.pages())) console.error(page.url(), await page.innerText("body").catch(String));
  throw error;
} finally {
  await browser.close();
  await daemon.stop();
  rmSync(join(folder, "drain.rs"));
}
