// Pages of others can start, read and follow nothing.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { openPage } from "./fixture.mjs";

export async function pages_of_other_origins_get_nothing({ daemon, browser }) {
  const shell = await daemon.start({ shell: "echo private; sleep 300", name: "private" });
  const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<h1>other</h1>"));
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  try {
    const page = await openPage(browser, `http://localhost:${other.address().port}/`);
    const tries = await page.evaluate(async ([url, id, token]) => {
      const attempt = (path, options) => fetch(url + path, options).then((answer) => answer.text().then((text) => `${answer.type} ${answer.status} ${text}`), () => "refused");
      const socket = (path) => new Promise((done) => {
        const socket = new WebSocket(url.replace("http", "ws") + path);
        socket.onopen = () => done("open");
        socket.onerror = () => done("refused");
      });
      const authorization = { authorization: `Bearer ${token}` };
      const framed = new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.onload = () => { try { done(frame.contentDocument ? "blank" : "refused"); } catch { done("refused"); } };
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
        ticketed: await socket(`/v1/processes/${id}/attach?ticket=x`),
        framed: await framed,
      };
    }, [daemon.url, shell.id, daemon.token]);
    for (const [name, got] of Object.entries(tries)) {
      assert.ok(/^(refused|opaque 0 )/.test(got), `${name}: ${got}`);
    }
    const { processes } = await daemon.ask("GET", "/v1/processes");
    assert.ok(!processes.some((process) => process.name === "blind"), "nothing was started");
    await page.context().close();
  } finally {
    other.close();
  }
  assert.equal(await asHost(daemon, "/", "evil.example"), 421, "under a foreign name there is not even the page");
  assert.equal(await asHost(daemon, "/v1/processes", "evil.example"), 421);
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
