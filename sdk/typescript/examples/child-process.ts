/** The shape of `child_process.spawn`: streams, events and signals. */

import { start } from "lastbyte";

const child = start(["sort", "-n"]);
child.on("spawn", () => console.log(typeof child.pid, typeof child.id));
child.stdout.on("data", (data: Buffer) => process.stdout.write(data));
child.on("close", (code, signal) => console.log("closed", code, signal));
child.stdin?.write("10\n9\n");
child.stdin?.end("8\n");
