/**
 * Runs commands on a lastbyte server. The functions use the server that the environment names, and start it on
 * first use; a `Client` is for another one.
 */

import { Client } from "./client.js";

export type * as api from "./api.js";
export {
  type Abortable,
  type AttachOptions,
  Client,
  type ClientOptions,
  type FeedEvent,
  type ProcessRef,
  type RunOptions,
  type Waited,
} from "./client.js";
export {
  AbortError,
  ApiError,
  CommandError,
  ConnectionError,
  LastbyteError,
  ProgramError,
  SpawnError,
} from "./errors.js";
export type { Command, StartOptions } from "./launch.js";
export type { FollowEvent, OutputOptions, Piece } from "./output.js";
export { findPlace, type Place, type PlaceOptions } from "./place.js";
export { Process, type ProcessEvents } from "./process.js";
export { findProgram } from "./program.js";
export type { Result, ResultOptions } from "./result.js";
export type { Until, WaitOptions } from "./wait.js";

let shared: Client | undefined;

/** The client that the functions of this module use. */
export function defaultClient(): Client {
  shared ??= new Client();
  return shared;
}

/** The method of that name, of the default client. */
function method<Name extends keyof Client>(name: Name): Client[Name] {
  const call = (...args: unknown[]) => {
    const client = defaultClient();
    return (client[name] as (...args: unknown[]) => unknown).apply(client, args);
  };
  return call as unknown as Client[Name];
}

/** The same for a method that returns a promise, which rejects if there can be no client. */
function promise<Name extends keyof Client>(name: Name): Client[Name] {
  const call = method(name) as unknown as (...args: unknown[]) => Promise<unknown>;
  return (async (...args: unknown[]) => call(...args)) as unknown as Client[Name];
}

export const run = promise("run");
export const start = method("start");
export const attach = method("attach");
export const waitAny = promise("waitAny");
export const waitAll = promise("waitAll");
export const processes = method("processes");
export const search = promise("search");
export const screen = promise("screen");
export const follow = method("follow");
export const events = method("events");
export const stop = promise("stop");
export const stopAll = promise("stopAll");
export const forget = promise("forget");
