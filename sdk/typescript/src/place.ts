/** Which server to talk to: the same rules as those of the command line. */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { LastbyteError } from "./errors.js";
import { findProgram } from "./program.js";

/** How a client is told where its server is. Without any, the environment and the config file decide. */
export interface PlaceOptions {
  /** The socket file of the server. */
  socket?: string;
  /** The state directory of the server. */
  state?: string;
  /** The URL of a server on a port, like `http://127.0.0.1:8722`. */
  server?: string;
  /** The token for a server on a port. The default is `LASTBYTE_TOKEN`, or the file `LASTBYTE_TOKEN_FILE`. */
  token?: string;
}

/** Where a server is. */
export type Place =
  | {
      kind: "unix";
      socket: string;
      /** The state directory, if it is known. */
      state?: string;
      /** How to name the server to the command line, which starts it; absent if it is not ours to start. */
      startWith?: string[];
    }
  | { kind: "tcp"; url: URL; token: string | undefined };

type Env = NodeJS.ProcessEnv;

/** Finds the server: the first of options, environment and config file that names one decides. */
export function findPlace(options: PlaceOptions = {}, env: Env = process.env): Place {
  return (
    named(options, env) ??
    named(fromEnv(env), env) ??
    (hasConfig(env) ? named(fromConfig(env), env) : undefined) ??
    ownPlace(undefined, env)
  );
}

/** A description for messages. */
export function describePlace(place: Place): string {
  return place.kind === "unix" ? `socket ${place.socket}` : place.url.origin;
}

function named(options: PlaceOptions, env: Env): Place | undefined {
  const { server, socket, state } = options;
  if (server !== undefined) return { kind: "tcp", url: parseUrl(server), token: options.token ?? token(env) };
  if (socket !== undefined) return { kind: "unix", socket: resolve(socket) };
  if (state !== undefined) return ownPlace(resolve(state), env);
  return undefined;
}

function fromEnv(env: Env): PlaceOptions {
  return given({
    server: env["LASTBYTE_SERVER"],
    socket: env["LASTBYTE_SOCKET"],
    state: env["LASTBYTE_STATE"],
  });
}

/** Empty values count as not set. */
function given(values: { [name in keyof PlaceOptions]: string | undefined | null }): PlaceOptions {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value));
}

function hasConfig(env: Env): boolean {
  const home = absolute(env["XDG_CONFIG_HOME"]) ?? below(env["HOME"], ".config");
  const file = env["LASTBYTE_CONFIG"] || (home && join(home, "lastbyte/config.toml"));
  return file !== undefined && existsSync(file);
}

/** The program reads the file, with all its rules. Only what the file sets counts: the rest is the same here. */
function fromConfig(env: Env): PlaceOptions {
  const text = execFileSync(findProgram(env), ["config", "show", "--json"], { env, encoding: "utf8" });
  const { settings } = JSON.parse(text) as {
    settings: { name: string; value: unknown; from: { source: string } }[];
  };
  const value = (name: string) => {
    const found = settings.find((setting) => setting.name === name && setting.from.source === "file");
    return typeof found?.value === "string" ? found.value : undefined;
  };
  const tokenFile = value("token-file");
  return given({
    server: value("server"),
    socket: value("socket"),
    state: value("state"),
    token: tokenFile && !env["LASTBYTE_TOKEN"] ? readToken(tokenFile) : undefined,
  });
}

function ownPlace(state: string | undefined, env: Env): Place {
  const folder = state ?? defaultState(env);
  const runtime = absolute(env["XDG_RUNTIME_DIR"]);
  const usual =
    state === undefined && runtime !== undefined && isOurs(runtime)
      ? join(runtime, "lastbyte/socket")
      : join(folder, "socket");
  const startWith = state === undefined ? [] : ["--state", state];
  return { kind: "unix", socket: usual, state: folder, startWith };
}

function defaultState(env: Env): string {
  const home = absolute(env["XDG_STATE_HOME"]) ?? below(env["HOME"], ".local/state");
  if (home !== undefined) return join(home, "lastbyte");
  throw new LastbyteError(
    "no state directory: neither HOME nor XDG_STATE_HOME is an absolute path; set LASTBYTE_STATE",
  );
}

/** Where the server of this state directory listens or listened: its variables may differ from ours. */
export function readAddress(state: string): string | undefined {
  try {
    const file = join(state, "address");
    const found = statSync(file);
    const ours = found.isFile() && found.uid === process.geteuid?.() && (found.mode & 0o022) === 0;
    return ours ? absolute(readFileSync(file, "utf8")) : undefined;
  } catch {
    return undefined;
  }
}

/** `su` and containers leave the variable of another user, or one of a folder that does not exist. */
function isOurs(folder: string): boolean {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.geteuid?.();
}

/** The specification says to ignore what is not absolute. */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

function below(folder: string | undefined, rest: string): string | undefined {
  const whole = absolute(folder);
  return whole && join(whole, rest);
}

function token(env: Env): string | undefined {
  const file = env["LASTBYTE_TOKEN_FILE"];
  return env["LASTBYTE_TOKEN"] || (file ? readToken(file) : undefined);
}

function readToken(file: string): string {
  const text = readFileSync(file, "utf8").trim();
  if (text === "") throw new LastbyteError(`token file ${file} is empty`);
  return text;
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" && url.port !== "") return url;
  throw new LastbyteError(
    `invalid server ${JSON.stringify(text)}: expected a URL like http://127.0.0.1:8722`,
  );
}
