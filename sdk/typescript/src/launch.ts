/** What to run, as callers say it and as the API takes it. */

import { randomUUID } from "node:crypto";
import type {
  Limits,
  Place as NodePlace,
  OnDisconnect,
  OnTimeout,
  Sandbox,
  StartRequest,
  StreamsAsked,
} from "./api.js";
import type { Place } from "./place.js";

/** A program and its arguments, or a command for `sh -c`. */
export type Command = readonly string[] | string;

/** Options of a command. Times are in milliseconds. */
export interface StartOptions {
  /** The directory. The default is this program's own, or the server's if the server is on a port. */
  cwd?: string;
  /**
   * Variables over the server's own; `undefined` unsets one. The default is this program's environment, or nothing
   * if the server is on a port.
   */
  env?: Readonly<Record<string, string | undefined>>;
  /** Variables whose values are masked in the output. */
  secrets?: Readonly<Record<string, string>>;
  /** Whether standard input can be written. `start` leaves it open, `run` closes it. */
  stdin?: "open" | "closed";
  /** The whole of standard input. */
  input?: string | Uint8Array;
  /** Run it on a terminal. `true` is one of 24 rows and 80 columns. */
  tty?: boolean | { rows: number; cols: number };
  /** `"split"` (the default) keeps stdout and stderr apart; `"merged"` keeps their exact order instead. */
  streams?: StreamsAsked;
  /** Stop it this long after its start. */
  timeout?: number;
  /** Stop it this long after its last byte of output. */
  idleTimeout?: number;
  /** What a timeout does: `"stop"` (the default), or `"background"` to let it run on. */
  onTimeout?: OnTimeout;
  /** What happens when its clients are gone: `"keep"` (the default) or `"stop"`. */
  onDisconnect?: OnDisconnect;
  /** How long its clients may be gone. */
  disconnectTimeout?: number;
  /** How it is stopped: the first signal, and the time until SIGKILL. */
  stop?: { signal?: string; grace?: number };
  /** How much of its output is kept, in bytes. The server's default is 64 MiB. */
  quotaBytes?: number;
  /** What it may do, or just the kind. */
  sandbox?: Sandbox | Sandbox["kind"];
  /** How much it may use. */
  limits?: Limits;
  /** The group that it belongs to. */
  session?: string;
  /** A name that stands for its id. */
  name?: string;
  /** Makes a repeated start return the same process. The default is a random key for each call. */
  key?: string;
  labels?: Readonly<Record<string, string>>;
  /** In a fleet: which node it runs on, by name or by labels. */
  on?: NodePlace;
  /** In a fleet: start it on another node if the one that has the key is gone; it may then run twice. */
  replace?: boolean;
  /** Stops the process with its tree when aborted. */
  signal?: AbortSignal;
}

/** Larger input is written after the start. */
export const MAX_INLINE_INPUT = 1 << 20;

/** The request that starts a command. */
export function startRequest(command: Command, options: StartOptions, place: Place): StartRequest {
  const local = place.kind === "unix";
  // Names every member of the API, so that one that is added cannot be forgotten here.
  const request: { [name in keyof Required<StartRequest>]: StartRequest[name] | undefined } = {
    command: typeof command === "string" ? undefined : [...command],
    shell: typeof command === "string" ? command : undefined,
    cwd: options.cwd ?? (local ? process.cwd() : undefined),
    env: environment(options, local),
    secrets: options.secrets,
    stdin: stdin(options),
    tty: options.tty === true ? { rows: 24, cols: 80 } : options.tty || undefined,
    streams: options.tty ? undefined : (options.streams ?? "split"),
    timeout_ms: options.timeout,
    idle_timeout_ms: options.idleTimeout,
    on_timeout: options.onTimeout,
    on_disconnect: options.onDisconnect,
    disconnect_timeout_ms: options.disconnectTimeout,
    stop: options.stop && stopPolicy(options.stop),
    quota_bytes: options.quotaBytes,
    sandbox: sandbox(options.sandbox),
    limits: options.limits,
    session: options.session,
    name: options.name,
    key: options.key ?? randomUUID(),
    labels: options.labels,
    on: options.on,
    replace: options.replace,
    wait: undefined,
    view: undefined,
    max_bytes: undefined,
  };
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
}

/** A stop as the API takes it. */
export function stopPolicy({ signal, grace }: { signal?: string; grace?: number }): {
  signal?: string;
  grace_ms?: number;
} {
  return { ...(signal !== undefined && { signal }), ...(grace !== undefined && { grace_ms: grace }) };
}

/** The input that has to be written after the start. */
export function laterInput({ input }: StartOptions): Uint8Array | undefined {
  if (input === undefined || Buffer.byteLength(input) <= MAX_INLINE_INPUT) return undefined;
  return typeof input === "string" ? Buffer.from(input) : input;
}

function environment(options: StartOptions, local: boolean): Record<string, string | null> | undefined {
  const variables = options.env ?? (local ? process.env : undefined);
  if (variables === undefined) return undefined;
  const secrets = options.secrets ?? {};
  const entries = Object.entries(variables)
    // A variable is either secret or not; those that come with this program's environment give way.
    .filter(([name]) => options.env !== undefined || !(name in secrets))
    .map(([name, value]) => [name, value ?? null] as const);
  return Object.fromEntries(entries);
}

function stdin(options: StartOptions): StartRequest["stdin"] {
  const { input } = options;
  if (input === undefined) return options.stdin;
  if (laterInput(options) !== undefined) return "open";
  if (typeof input === "string") return { text: input };
  return { base64: Buffer.from(input.buffer, input.byteOffset, input.byteLength).toString("base64") };
}

function sandbox(policy: StartOptions["sandbox"]): Sandbox | undefined {
  return typeof policy === "string" ? { kind: policy } : policy;
}
