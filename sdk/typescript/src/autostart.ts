/** Starts the server on first use, by the program itself: `ps` starts one if none is running. */

import { execFile } from "node:child_process";
import { ProgramError } from "./errors.js";
import { findProgram } from "./program.js";

/** Returns when a server listens. `place` are the arguments that name it. */
export function startServer(place: readonly string[], program?: string): Promise<void> {
  const path = program ?? findProgram();
  return new Promise((resolve, reject) => {
    execFile(path, ["ps", "--limit", "1", "--json", ...place], (error, _stdout, stderr) => {
      if (error === null) resolve();
      else
        reject(
          new ProgramError(`cannot start the server with ${path}: ${said(stderr, error)}`, { cause: error }),
        );
    });
  });
}

function said(stderr: string, error: Error): string {
  return stderr.trim().replace(/^lastbyte: /, "") || error.message;
}
