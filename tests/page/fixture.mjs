// A daemon and a browser, both ended with the test.

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export class Daemon {
  static async start(program) {
    const daemon = new Daemon();
    daemon.program = program;
    daemon.state = mkdtempSync(join(tmpdir(), "state-"));
    const args = ["serve", "--listen", "127.0.0.1:0", "--state", daemon.state, "--log", "warn"];
    daemon.child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    daemon.ended = new Promise((done) => daemon.child.on("exit", done));
    let said = "";
    daemon.url = await new Promise((done, failed) => {
      daemon.child.stdout.on("data", (data) => {
        said += data;
        const url = said.match(/http:\/\/127[^\s]*/)?.[0];
        if (url) done(url.replace(/\/$/, ""));
      });
      daemon.ended.then(() => failed(new Error(`the daemon ended: ${said}`)));
    });
    daemon.token = readFileSync(join(daemon.state, "token"), "utf8").trim();
    return daemon;
  }

  async ask(method, path, body) {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}` },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async start(body) {
    return (await this.ask("POST", "/v1/processes", body)).process;
  }

  link(body = {}) {
    return this.ask("POST", "/v1/links", body).then(({ url }) => url);
  }

  /** What the program prints. */
  async lastbyte(...args) {
    return (await promisify(execFile)(this.program, [args[0], "--state", this.state, ...args.slice(1)])).stdout;
  }

  /** What a tool for agents answers. */
  async tool(name, given) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } });
    const text = await (await fetch(`${this.url}/mcp`, { method: "POST", headers, body })).text();
    const { result } = JSON.parse(text.startsWith("{") ? text : text.split("\n").findLast((line) => line.startsWith("data: {")).slice(6));
    return result.content.map((block) => block.text).join("\n");
  }

  async stop() {
    await this.ask("POST", "/v1/shutdown").catch(() => this.child.kill("SIGKILL"));
    await this.ended;
    rmSync(this.state, { recursive: true, force: true });
  }
}

/** With its own sandbox, unless the container refuses that. */
export async function launch() {
  const options = { executablePath: "/usr/bin/chromium", headless: true, args: FLAGS };
  try {
    return { browser: await chromium.launch({ ...options, chromiumSandbox: true }), sandboxed: true };
  } catch {
    return { browser: await chromium.launch({ ...options, chromiumSandbox: false }), sandboxed: false };
  }
}

/** A page in a new context; `problems` has everything the browser complains of. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 760 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.problems.push(message.text());
  });
  page.on("pageerror", (error) => page.problems.push(String(error)));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });
  await page.goto(url);
  return page;
}

export const has = (page, selector, text) =>
  page.waitForFunction(([selector, text]) => [...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text)), [selector, text]);

/** What the terminal shows, with rows as lines. */
export const screen = (page) => page.evaluate(() => [...document.querySelectorAll(".xterm-rows > div")].map((row) => row.textContent).join("\n"));
export const shows = (page, text) =>
  page.waitForFunction((text) => [...document.querySelectorAll(".xterm-rows > div")].some((row) => row.textContent.replaceAll(" ", " ").includes(text)), text);
