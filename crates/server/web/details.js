// What was run and how it ended, as a receipt.

import { get, processPath } from "./api.js";
import { html, useState } from "./html.js";
import { bytes, commandOf, count, date, duration, state } from "./words.js";

function output(process) {
  const { ending } = process;
  if (!ending) return `${bytes(process.total)} so far`;
  const kept = ending.kept?.kind;
  const whole = kept === "whole" ? "complete" : kept === "dropped" ? "parts of it were dropped" : kept === "failed" ? "writing to the disk failed" : "there may have been more";
  return `${bytes(ending.final_len)}, ${whole}`;
}

function closing(ending) {
  if (ending.closing?.kind === "eof") return "every writer has closed it";
  if (ending.closing?.kind !== "held") return null;
  const holders = ending.closing.holders?.map((holder) => `${holder.name} (${holder.pid})`).join(", ");
  return `still held open by ${holders || "other processes"}`;
}

const HASH = {
  not_ended: () => "The process has not ended.",
  dropped: () => "There is no hash: parts of the output were dropped.",
  incomplete: (hash) => `There is no hash: ${hash.why}.`,
  sha256: (hash) => hash.hex,
};

export function Details({ process }) {
  const [receipt, setReceipt] = useState(null);
  const [busy, setBusy] = useState(false);
  const { ending } = process;
  const compute = async () => {
    setBusy(true);
    setReceipt(await get(processPath(process.id, "/receipt")).catch((error) => ({ problem: error.message })));
    setBusy(false);
  };
  const late = ending ? process.total - ending.final_len : 0;
  const rows = [
    ["Command", html`<pre>${commandOf(process)}</pre>`],
    ["Directory", html`<code>${process.cwd}</code>`],
    ["Ending", ending && html`<span class=${`tone ${state(process).tone}`}>${state(process).text}</span>`],
    ["Ran for", ending?.times.ran_ns !== undefined && duration(ending.times.ran_ns)],
    ["Started", date(process.started_unix_ns)],
    ["Ended", ending?.times.ended_unix_ns && date(ending.times.ended_unix_ns)],
    ["Output", output(process)],
    ["Output closed", ending && closing(ending)],
    ["Late output", late > 0 && `${bytes(late)}, written by background processes after the ending`],
    ["Secrets masked", ending?.masked && `${count(ending.masked)} times`],
    ["Processor time", ending?.usage && `${duration(ending.usage.user_ns)} user, ${duration(ending.usage.system_ns)} system`],
    ["Peak memory", ending?.usage?.peak_memory && bytes(ending.usage.peak_memory)],
    ["Sandbox", process.sandbox.kind.replaceAll("_", " ")],
    ["Session", process.session],
    ["Labels", Object.entries(process.labels).map((pair) => pair.join("=")).join(", ")],
    ["Process", html`<code>${process.id}</code>, pid ${process.pid}`],
  ];
  return html`<section class="details" aria-label="Receipt"><dl>
    ${rows.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
    ${ending && html`<div><dt>SHA-256</dt><dd>${receipt ? html`<code>${receipt.problem ?? HASH[receipt.output_hash.kind](receipt.output_hash)}</code>` : html`<button onClick=${compute} disabled=${busy}>${busy ? "Reading all output…" : "Compute"}</button>`}</dd></div>`}
  </dl></section>`;
}
