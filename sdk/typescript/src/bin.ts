#!/usr/bin/env node
/** `npx lastbyte`: becomes the program, or runs it where Node cannot. */

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { ProgramError } from "./errors.js";
import { findProgram } from "./program.js";

/** Signals that are meant for the program. Those of a terminal reach it by themselves, and must not end this one. */
const PASSED_ON = ["SIGHUP", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGCONT"] as const;
const BOTH_GET = ["SIGINT", "SIGQUIT"] as const;
/** The exit code of the program for failures of its own. */
const OWN_FAILURE = 125;

/** Of Node 22.15 and later. */
type Execve = (path: string, args: readonly string[], env: NodeJS.ProcessEnv) => never;

function main(): void {
  // Not LASTBYTE_PROGRAM or PATH, which would find this file again.
  const program = findProgram({});
  const args = process.argv.slice(2);
  const { execve } = process as { execve?: Execve };
  if (execve !== undefined) execve.call(process, program, [program, ...args], process.env);
  runAsChild(program, args);
}

function runAsChild(program: string, args: readonly string[]): void {
  const child = spawn(program, args, { stdio: "inherit" });
  for (const signal of PASSED_ON) process.on(signal, () => child.kill(signal));
  for (const signal of BOTH_GET) process.on(signal, () => {});
  child.on("error", (error) => fail(`cannot run ${program}: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
  });
}

function fail(message: string): void {
  process.stderr.write(`lastbyte: ${message}\n`);
  process.exitCode = OWN_FAILURE;
}

try {
  main();
} catch (error) {
  if (!(error instanceof ProgramError)) throw error;
  fail(error.message);
}
