/** What can go wrong: one base class, and one class for each thing that a caller can tell apart. */

import { constants } from "node:os";
import type { ErrorAnswer, ErrorCode, StartRequest, StopProof } from "./api.js";
import type { Result } from "./result.js";

/** The base of every error of this package. */
export class LastbyteError extends Error {
  override name = "LastbyteError";
}

/** The server refused a request. */
export class ApiError extends LastbyteError {
  override name = "ApiError";
  /** The server's code, which never changes its meaning. */
  readonly code: ErrorCode;
  /** What to do next, if the server knows. */
  readonly hint: string | undefined;
  /** The status of the HTTP answer. */
  readonly status: number;

  constructor(status: number, answer: ErrorAnswer) {
    super(answer.hint === undefined ? answer.message : `${answer.message}; ${answer.hint}`);
    this.code = answer.code;
    this.hint = answer.hint;
    this.status = status;
  }
}

/** What the system says if nothing more is known. */
const SPAWN_CODES: { readonly [code in ErrorCode]?: keyof typeof constants.errno } = {
  program_not_found: "ENOENT",
  program_not_runnable: "EACCES",
  bad_cwd: "ENOENT",
};

/**
 * The program or the directory of a command cannot be used. It has the members of the error that `child_process`
 * gives; the `cause` is the answer of the server.
 */
export class SpawnError extends LastbyteError {
  override name = "SpawnError";
  /** Such as `ENOENT`. */
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;
  /** The program. */
  readonly path: string;
  readonly spawnargs: string[];
  declare readonly cause: ApiError;

  constructor(code: keyof typeof constants.errno, { command, shell }: StartRequest, cause: ApiError) {
    const [path = "", ...spawnargs] = command ?? ["/bin/sh", "-c", shell ?? ""];
    super(`spawn ${path} ${code}: ${cause.message}`, { cause });
    this.code = code;
    this.errno = -constants.errno[code];
    this.syscall = `spawn ${path}`;
    this.path = path;
    this.spawnargs = spawnargs;
  }
}

/** The error of a start, as `child_process` has it if it is one that it has. */
export function startError(error: unknown, request: StartRequest): unknown {
  const usual = error instanceof ApiError ? SPAWN_CODES[error.code] : undefined;
  if (!(error instanceof ApiError) || usual === undefined) return error;
  const number = Number(/\(os error (\d+)\)/.exec(error.message)?.[1]);
  const names = Object.keys(constants.errno) as (keyof typeof constants.errno)[];
  return new SpawnError(names.find((name) => constants.errno[name] === number) ?? usual, request, error);
}

/** The server cannot be reached, or the connection to it was lost and did not come back. */
export class ConnectionError extends LastbyteError {
  override name = "ConnectionError";
}

/** There is no `lastbyte` program to start a server with, or it could not start one. */
export class ProgramError extends LastbyteError {
  override name = "ProgramError";
}

/** A command ended with another exit code than 0, by a signal, a timeout or a limit, or was lost. */
export class CommandError extends LastbyteError {
  override name = "CommandError";
  readonly result: Result;

  constructor(result: Result) {
    super(`${result.description} ${reason(result)}${lastLine(result)}`);
    this.result = result;
  }
}

/** An `AbortSignal` ended the call. Named as Node names its own. */
export class AbortError extends LastbyteError {
  override name = "AbortError";
  readonly code = "ABORT_ERR";
  /** What became of the process, if the signal was to stop it. */
  readonly proof: StopProof | undefined;

  constructor(signal: AbortSignal, proof?: StopProof) {
    super("the operation was aborted", { cause: signal.reason });
    this.proof = proof;
  }
}

/** Throws if the signal has been aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AbortError(signal);
}

function reason({ ending }: Result): string {
  const { status, cause } = ending;
  if (cause?.kind === "timed_out") return `timed out (${cause.which})`;
  if (cause?.kind === "stopped") return "was stopped";
  if (cause?.kind === "limit") return `exceeded its limit of ${cause.which}`;
  switch (status.kind) {
    case "exited":
      return `ended with exit code ${status.code}`;
    case "signalled":
      return `was killed by ${status.name}`;
    case "lost":
      return `was lost: ${status.why}`;
  }
}

/** The last line of its complaint, which is usually the reason. */
function lastLine({ stderr, output }: Result): string {
  const text = (stderr.length > 0 ? stderr : output).toString().trimEnd();
  const line = text.slice(text.lastIndexOf("\n") + 1, text.length).slice(0, 200);
  return line === "" ? "" : `: ${line}`;
}
