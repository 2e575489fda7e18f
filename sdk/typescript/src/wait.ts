/** Waiting for processes. */

import type { Met, Wait, WaitAnswer, WaitManyAnswer, WaitOutcome } from "./api.js";
import { throwIfAborted } from "./errors.js";
import { type Ask, json, type SendOptions, type Transport } from "./transport.js";

/** What to wait for: the exit, or the first of these. The exit always ends a wait. */
export type Until =
  | "exit"
  | {
      /** A line of output matches this regular expression of the server (the syntax is that of Rust's `regex`). */
      pattern?: string;
      /** The cursor to search from. */
      from?: number;
      /** Match the bytes, with escape sequences. */
      raw?: boolean;
      /** It or a descendant listens on this TCP port. */
      port?: number;
      /** It, or a descendant, waits for input: a prompt, a REPL, a pager. */
      needsInput?: boolean;
      /** It wrote nothing for this many milliseconds. */
      silence?: number;
      /** It has written more than this many bytes. */
      outputPast?: number;
    };

export interface WaitOptions {
  until?: Until;
  /** Give up after this many milliseconds, with `{met: "timeout"}`. The process is left as it is. */
  timeout?: number;
  /** Ends the wait when aborted. The process is left as it is. */
  signal?: AbortSignal;
}

/** Waits for one process. */
export function waitForOne(
  transport: Transport,
  id: string,
  options: WaitOptions,
  send: SendOptions = {},
): Promise<WaitAnswer> {
  const path = `/v1/processes/${encodeURIComponent(id)}/wait`;
  const ask = (wait: Wait): Ask => ({ method: "POST", path, body: wait });
  return inTurns(transport, options, ask, (answer: WaitAnswer) => isTimeout(answer.wait), send);
}

/** Waits for any or all of several. */
export async function waitForMany(
  transport: Transport,
  ids: string[],
  any: boolean,
  options: WaitOptions,
): Promise<WaitOutcome[]> {
  const ask = (wait: Wait): Ask => ({
    method: "POST",
    path: "/v1/wait",
    body: { select: { ids }, any, wait },
  });
  const isOver = ({ processes }: WaitManyAnswer) => {
    const met = processes.filter(({ wait }) => wait !== undefined && !isTimeout(wait)).length;
    return any ? met === 0 : met < processes.length;
  };
  const answer = await inTurns(transport, options, ask, isOver, {});
  return answer.processes;
}

function isTimeout(met: Met): boolean {
  return met.met === "timeout";
}

/** Repeats a wait whose turn was over, until the caller's own timeout. */
async function inTurns<T>(
  transport: Transport,
  { until = "exit", timeout, signal }: WaitOptions,
  ask: (wait: Wait) => Ask,
  timedOut: (answer: T) => boolean,
  send: SendOptions,
): Promise<T> {
  const deadline = timeout === undefined ? undefined : Date.now() + timeout;
  const wait = condition(until);
  // Silence is counted from the request, and waiting for input is seen twice, so a turn has to be longer.
  const silence = wait.silence_ms === undefined ? 0 : wait.silence_ms + 50;
  const least = wait.needs_input ? Math.max(silence, 1000) : silence;
  for (;;) {
    throwIfAborted(signal);
    const left = deadline === undefined ? undefined : Math.max(0, deadline - Date.now());
    const answer = await transport.poll(
      (turn) => {
        const limit =
          turn === undefined ? left : Math.min(Math.max(turn, least), left ?? Number.POSITIVE_INFINITY);
        return ask(limit === undefined ? wait : { ...wait, timeout_ms: limit });
      },
      { ...send, signal },
    );
    const found = json<T>(answer);
    if (!timedOut(found) || (deadline !== undefined && Date.now() >= deadline)) return found;
  }
}

function condition(until: Until): Wait {
  if (until === "exit") return { exit: true };
  const { pattern, from, raw, port, needsInput, silence, outputPast } = until;
  const given = {
    pattern,
    from,
    raw,
    port,
    needs_input: needsInput,
    silence_ms: silence,
    output_past: outputPast,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
