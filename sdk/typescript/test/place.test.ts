import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client, ConnectionError, findPlace, findProgram, ProgramError, run, stop, waitAny } from "lastbyte";
import { Daemon, program } from "./daemon.js";

const folder = mkdtempSync(join(tmpdir(), "lastbyte-place-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function check(env: Record<string, string>, want: object): void {
  assert.deepEqual(findPlace({}, { LASTBYTE_PROGRAM: program(), ...env }), want);
}

test("the socket is where the command line looks for it", () => {
  const own = (socket: string, state: string, startWith: string[] = []) => ({
    kind: "unix",
    socket,
    state,
    startWith,
  });
  const usual = own("/h/.local/state/lastbyte/socket", "/h/.local/state/lastbyte");
  check({ HOME: "/h" }, usual);
  check({ HOME: "/h", XDG_STATE_HOME: "/s" }, own("/s/lastbyte/socket", "/s/lastbyte"));
  check({ HOME: "/h", XDG_STATE_HOME: "relative" }, usual);
  check({ HOME: "/h", XDG_RUNTIME_DIR: folder }, { ...usual, socket: join(folder, "lastbyte/socket") });
  check({ HOME: "/h", XDG_RUNTIME_DIR: "/nowhere/at/all" }, usual);
  check(
    { HOME: "/h", LASTBYTE_STATE: "/x", XDG_RUNTIME_DIR: folder },
    own("/x/socket", "/x", ["--state", "/x"]),
  );
  check(
    { HOME: "/h", LASTBYTE_SOCKET: "/x/sock", LASTBYTE_STATE: "/y" },
    { kind: "unix", socket: "/x/sock" },
  );
  check({ HOME: "/h", LASTBYTE_SOCKET: "" }, usual);
  assert.throws(() => findPlace({}, {}), /set LASTBYTE_STATE/);
});

test("a server on a port is named by its URL, and has a token", () => {
  const file = join(folder, "token");
  writeFileSync(file, "secret\n");
  const url = new URL("http://127.0.0.1:8722");
  const env = { LASTBYTE_SERVER: url.href, LASTBYTE_SOCKET: "/x" };
  check({ ...env, LASTBYTE_TOKEN_FILE: file }, { kind: "tcp", url, token: "secret" });
  check({ ...env, LASTBYTE_TOKEN: "word", LASTBYTE_TOKEN_FILE: file }, { kind: "tcp", url, token: "word" });
  for (const server of ["127.0.0.1:80", "https://127.0.0.1:80", "http://1.2.3.4"]) {
    assert.throws(() => findPlace({ server }), /expected a URL/, server);
  }
});

test("the config file is read by the program", () => {
  const config = join(folder, "config");
  mkdirSync(join(config, "lastbyte"), { recursive: true, mode: 0o700 });
  writeFileSync(join(config, "lastbyte/config.toml"), 'state = "/from/file"\n', { mode: 0o600 });
  const env = { HOME: folder, XDG_CONFIG_HOME: config };
  check(env, {
    kind: "unix",
    socket: "/from/file/socket",
    state: "/from/file",
    startWith: ["--state", "/from/file"],
  });
  check({ ...env, LASTBYTE_SOCKET: "/s" }, { kind: "unix", socket: "/s" });
});

test("the program is found in the environment, in the package or on the path", () => {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "lastbyte"), "", { mode: 0o755 });
  assert.equal(findProgram({ LASTBYTE_PROGRAM: "/x/lastbyte", PATH: bin }), "/x/lastbyte");
  assert.equal(findProgram({ PATH: `/nowhere:${bin}` }, "linux", "riscv64"), join(bin, "lastbyte"));
  assert.throws(() => findProgram({ PATH: "/nowhere" }, "linux", "x64"), {
    name: "ProgramError",
    message: /install @lastbyte\/linux-x64, put lastbyte on PATH, or set LASTBYTE_PROGRAM$/,
  });
  assert.throws(
    () => findProgram({}, "darwin", "arm64"),
    /no program for darwin arm64: it runs on Linux \(x64 and arm64\); connect/,
  );
});

test("without a server, a named one is an error that says where", async () => {
  const client = new Client({ socket: join(folder, "none") });
  await assert.rejects(client.health(), (error: unknown) => {
    assert(error instanceof ConnectionError);
    assert.match(error.message, /cannot reach the lastbyte server at socket .*none/);
    return true;
  });
  const program = "/nowhere/at/all";
  const state = join(folder, "unused");
  await assert.rejects(new Client({ state, program }).health(), ProgramError);
});

test("a server is found where it says that it listens", async () => {
  // Its socket is not the one of its state directory.
  const daemon = await Daemon.start();
  const client = new Client({ state: daemon.state, autostart: false });
  assert.equal((await client.run("echo found")).stdout, "found\n");
  client.close();
  await daemon.stop();
});

test("a server that listens where nobody looks is started once, and then an error", async () => {
  const calls = join(folder, "calls");
  const nothing = join(folder, "nothing");
  writeFileSync(nothing, `#!/bin/sh\necho call >>'${calls}'\n`, { mode: 0o755 });
  const client = new Client({ state: join(folder, "none"), program: nothing });
  await assert.rejects(client.health(), ConnectionError);
  assert.equal(readFileSync(calls, "utf8"), "call\n");
});

test("the first use starts the server, once for all calls", async () => {
  // A state directory that a server has used.
  const daemon = await Daemon.start();
  const first = daemon.client();
  await first.run("echo kept", { name: "kept" });
  await daemon.stopServer();
  const client = new Client({ state: daemon.state, program: program() });
  const results = await Promise.all([client.show("kept"), client.run("echo a"), client.run("echo b")]);
  assert.equal(results[0].phase, "ended");
  assert.deepEqual([results[1].stdout, results[2].stdout], ["a\n", "b\n"]);
  client.close();
  // Returns when the server is gone.
  execFileSync(program(), ["shutdown", "--state", daemon.state], { stdio: "ignore" });
  daemon.remove();
});

test("everything works over TCP, with a token", async () => {
  const daemon = await Daemon.start("--listen", "127.0.0.1:0");
  try {
    const token = readFileSync(join(daemon.state, "token"), "utf8").trim();
    const client = new Client({ server: daemon.url ?? "", token });
    const child = client.start(["cat"], { cwd: "/" });
    child.stdin?.end("over tcp\n");
    assert.equal((await child).stdout, "over tcp\n");
    await assert.rejects(new Client({ server: daemon.url ?? "", token: "wrong" }).run("true"), {
      code: "unauthorized",
    });
    client.close();
  } finally {
    await daemon.stop();
  }
});

test("a variable that names no server makes a call reject", async () => {
  process.env["LASTBYTE_SERVER"] = "nonsense";
  try {
    // Not thrown before there is a promise to catch it.
    const calls = [run("true"), stop("last"), waitAny(["last"])];
    for (const call of calls) await assert.rejects(call, /invalid server "nonsense"/);
  } finally {
    delete process.env["LASTBYTE_SERVER"];
  }
});
