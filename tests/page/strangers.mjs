// Pages of others can start, read and follow nothing.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { has, openPage, shows } from "./fixture.mjs";

export async function pages_of_other_origins_get_nothing({ daemon, browser }) {
  const shell = await daemon.start({ shell: "echo private; sleep 300", name: "private" });
  const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<h1>other</h1>"));
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  try {
    const page = await openPage(browser, `http://localhost:${other.address().port}/`);
    const tries = await page.evaluate(async ([url, id, token, ticket]) => {
      const attempt = (path, options) => fetch(url + path, options).then((answer) => answer.text().then((text) => `${answer.type} ${answer.status} ${text}`), () => "refused");
      const socket = (path) => new Promise((done) => {
        const socket = new WebSocket(url.replace("http", "ws") + path);
        socket.onopen = () => done("open");
        socket.onerror = () => done("refused");
      });
      const authorization = { authorization: `Bearer ${token}` };
      await new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.onload = done;
        frame.src = `${url}/`;
        document.body.append(frame);
      });
      return {
        start: await attempt("/v1/processes", { method: "POST", body: '{"shell":"touch /tmp/never"}', headers: { "content-type": "text/plain" } }),
        blind: await attempt("/v1/processes", { method: "POST", mode: "no-cors", body: '{"shell":"true","name":"blind"}' }),
        read: await attempt("/v1/processes", { headers: authorization }),
        blindRead: await attempt("/v1/processes", { mode: "no-cors" }),
        follow: await attempt(`/v1/processes/${id}/follow`, { headers: authorization }),
        events: await attempt("/v1/events", { headers: authorization }),
        trade: await attempt("/v1/links/trade", { method: "POST", body: '{"link":"x"}' }),
        ticket: await attempt("/v1/tickets", { method: "POST", headers: authorization }),
        attach: await socket(`/v1/processes/${id}/attach`),
        ticketed: await socket(`/v1/processes/${id}/attach?ticket=${ticket}`),
      };
    }, [daemon.url, shell.id, daemon.token, (await daemon.ask("POST", "/v1/tickets")).ticket]);
    for (const [name, got] of Object.entries(tries)) {
      assert.ok(/^(refused|opaque 0 )/.test(got), `${name}: ${got}`);
    }
    const { processes } = await daemon.ask("GET", "/v1/processes");
    assert.deepEqual(processes.map((process) => process.id), [shell.id], "nothing was started");
    // No page can be asked what a frame in it shows.
    const [frame] = page.frames().slice(1);
    assert.ok(!(await frame.content()).includes('id="app"'), "the page is shown in nobody's frame");
    await page.context().close();
  } finally {
    other.close();
  }
  assert.equal(await asHost(daemon, "/", "evil.example"), 421, "under a foreign name there is not even the page");
  assert.equal(await asHost(daemon, "/v1/processes", "evil.example"), 421);
}

export async function a_link_in_the_page_of_another_site_opens_the_page({ daemon, browser }) {
  const shell = await daemon.start({ shell: "sleep 300", name: "linked" });
  const link = await daemon.link();
  const mail = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(`<a href="${link}">open</a>`));
  await new Promise((done) => mail.listen(0, "127.0.0.1", done));
  try {
    const page = await openPage(browser, `http://localhost:${mail.address().port}/`);
    await page.click("a");
    await has(page, ".row", "linked");
    // Nothing but the page itself is opened so.
    await page.goto(`http://localhost:${mail.address().port}/`);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().startsWith(daemon.url)),
      page.evaluate((url) => { location.href = url; }, `${daemon.url}/v1/processes/${shell.id}`),
    ]);
    assert.equal(answer.status(), 403);
    page.problems = page.problems.filter((problem) => !/403|favicon|404/.test(problem));
    return page;
  } finally {
    mail.closeAllConnections();
    mail.close();
  }
}

/** The status of a request under another name, as DNS rebinding makes it. */
function asHost(daemon, path, host) {
  return new Promise((done, failed) => {
    request(daemon.url + path, { headers: { host, authorization: `Bearer ${daemon.token}` } }, (answer) => {
      answer.resume();
      done(answer.statusCode);
    }).on("error", failed).end();
  });
}

const HOSTILE = "<img src=/page/none onerror=window.taken=1><script>window.taken=1</script>";

/** Everything that a command can print or be called, which the page shows as text. */
export async function a_hostile_command_is_only_text({ daemon, browser }) {
  const osc = (text) => `printf '\\033]${text}\\007'`;
  const prints = [
    `printf '%s\\n' '${HOSTILE}'`, osc(`0;${HOSTILE}`), osc("52;c;aGFja2Vk"), osc("8;;javascript:window.taken=1"), "printf link", osc("8;;"),
    "printf '\\033[3J\\033c\\033[8;500;500t\\033[?1049h\\033[?1049l'", "printf '\\377\\376\\300\\000\\000\\342\\202'", "echo", "printf '\\342\\200\\256desrever\\n'", "echo all of it",
  ].join("; ");
  const made = { name: HOSTILE, session: HOSTILE, labels: { [HOSTILE.slice(0, 30)]: HOSTILE }, shell: `${prints}; exec cat`, tty: { rows: 24, cols: 80 }, stdin: "open" };
  const process = await daemon.start(made).catch(() => daemon.start({ ...made, name: undefined, session: undefined, labels: { hostile: HOSTILE } }));
  const page = await openPage(browser, await daemon.link(), { permissions: ["clipboard-read"] });
  page.on("dialog", (dialog) => page.problems.push(`dialog: ${dialog.message()}`));
  page.context().on("page", (other) => page.problems.push(`another page: ${other.url()}`));
  await has(page, ".row", "onerror");
  await page.goto(`${daemon.url}/#/p/${process.id}/log`);
  await has(page, ".line .text", "all of it");
  await has(page, ".line .text", "<script>");
  await page.goto(`${daemon.url}/#/p/${process.id}/details`);
  await has(page, ".details", "onerror");
  await page.goto(`${daemon.url}/#/p/${process.id}/terminal`);
  await shows(page, "all of it");
  await page.locator(".xterm-screen").click();
  assert.equal(await page.evaluate(() => window.taken), undefined, "nothing of it ran");
  assert.equal(await page.evaluate(() => document.querySelectorAll("#app img, #app script").length), 0);
  assert.notEqual(await page.evaluate(() => navigator.clipboard.readText().catch(() => "")), "hacked");
  for (const address of ["#/p/%", "#/p/%E0%A4%A/log", "#/p/..%2F..%2Fhealthz", `#/p/${process.id}/log?line=-1`, `#/p/${process.id}/log?bytes=9-1`, `#/p/${process.id}/log?line=1e99`, `#/p/${process.id}/__proto__`]) {
    await page.goto(`${daemon.url}/${address}`);
    await page.waitForSelector("h1");
  }
  page.problems = page.problems.filter((problem) => !/Failed to load resource.*40[04]/.test(problem));
  return page;
}
