/** Where the `lastbyte` program is. */

import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { ProgramError } from "./errors.js";

/** The packages that contain the program, by `process.platform` and `process.arch`. */
const PACKAGES: Readonly<Record<string, string>> = {
  "linux x64": "@lastbyte/linux-x64",
  "linux arm64": "@lastbyte/linux-arm64",
};

/**
 * Returns the path of the program: `LASTBYTE_PROGRAM` if it is set, else the one in the optional package of this
 * platform, else the first one on `PATH`.
 */
export function findProgram(
  env: NodeJS.ProcessEnv = process.env,
  platform: string = process.platform,
  arch: string = process.arch,
): string {
  const given = env["LASTBYTE_PROGRAM"];
  if (given) return given;
  const found = packaged(PACKAGES[`${platform} ${arch}`]) ?? onPath(env["PATH"] ?? "");
  if (found !== undefined) return found;
  throw new ProgramError(missing(platform, arch));
}

function missing(platform: string, arch: string): string {
  const name = PACKAGES[`${platform} ${arch}`];
  return name === undefined
    ? `lastbyte has no program for ${platform} ${arch}: it runs on Linux (x64 and arm64); connect to a server there with LASTBYTE_SERVER`
    : `cannot find the lastbyte program: install ${name}, put lastbyte on PATH, or set LASTBYTE_PROGRAM`;
}

function packaged(name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
    return executable(join(dirname(manifest), "bin", "lastbyte"));
  } catch {
    // Optional packages may be left out.
    return undefined;
  }
}

function onPath(path: string): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => executable(join(folder, "lastbyte"))).find((found) => found !== undefined);
}

function executable(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}
