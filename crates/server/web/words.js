// Numbers, times and endings in plain words.

const number = new Intl.NumberFormat("en");
export const count = (value) => number.format(value);
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

export function bytes(value) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) return plural(value, "byte");
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function duration(ns) {
  const seconds = ns / 1e9;
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function ago(unixNs) {
  const seconds = Math.max(0, Date.now() / 1000 - unixNs / 1e9);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

export const clock = (unixNs) => new Date(unixNs / 1e6).toLocaleTimeString("en-GB", {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 1,
});
export const date = (unixNs) => new Date(unixNs / 1e6).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
export const commandOf = (process) => process.shell ?? (process.command ?? []).map(quoted).join(" ");
/** One line that is not too long to be shown: a command can have megabytes. */
const brief = (text, most) => {
  const line = text.split("\n", 1)[0];
  return line.length > most ? `${line.slice(0, most)}…` : line;
};
export const lineOf = (process) => brief(commandOf(process), 500);
export const titleOf = (process) => brief(process.name ?? commandOf(process), 120);

function why(cause) {
  switch (cause?.kind) {
    case "timed_out": return `timed out${cause.which === "idle" ? " without output" : ""}`;
    case "stopped": return { stop: "stopped", close: "stopped with the server", disconnect: "stopped: its clients were gone" }[cause.verb];
    case "limit": return `went past its ${cause.which.replaceAll("_", " ")} limit`;
    default: return null;
  }
}

/** How a process ended, or that it has not, and whether that is good: `good`, `bad`, `calm` or `live`. */
export function state(process) {
  const { ending, phase } = process;
  if (!ending) return phase === "draining" ? { text: "finishing", tone: "live" } : { text: "running", tone: "live" };
  const { status, cause } = ending;
  if (status.kind === "lost") return { text: `lost: ${status.why}`, tone: "bad" };
  const how = status.kind === "exited"
    ? (status.code === 0 ? "succeeded" : `failed with exit code ${status.code}`)
    : `ended by ${status.name.startsWith("SIG") ? status.name : `SIG${status.name}`}${status.core_dumped ? ", core dumped" : ""}`;
  const reason = why(cause);
  if (reason) return { text: `${reason} (${status.kind === "exited" ? `exit code ${status.code}` : how})`, tone: cause.kind === "stopped" ? "calm" : "bad" };
  return { text: how, tone: status.kind === "exited" && status.code === 0 ? "good" : "bad" };
}

/** Short facts that need attention. */
export function badges(process, needsInput) {
  const found = [];
  if (process.keyboard) found.push({ text: `keyboard: ${process.keyboard.holder}`, tone: "live" });
  if (needsInput) found.push({ text: needsInput.secret ? "needs a secret" : "needs input", tone: "warn" });
  if (process.ending && process.log_open) found.push({ text: "output held open", tone: "warn" });
  if (process.dropped?.length) found.push({ text: "output dropped", tone: "warn" });
  if (process.timed_out_at_unix_ns && !process.ending) found.push({ text: "past its timeout", tone: "warn" });
  return found;
}
