// One process: what it is, how it ended, its log and its terminal.

import { get, pause, post, processPath, send, untilVisible } from "./api.js";
import { Forget, Signal, Stop, Write } from "./actions.js";
import { Details } from "./details.js";
import { html, useEffect, useState } from "./html.js";
import { Log } from "./log.js";
import { TerminalView } from "./terminal.js";
import { ThemeSwitch } from "./theme.js";
import { badges, bytes, date, duration, lineOf, state, titleOf } from "./words.js";

/** The process, kept up to date until it has ended and its log is closed. */
function useProcess(id) {
  const [process, setProcess] = useState(null);
  const [needsInput, setNeedsInput] = useState(null);
  const [problem, setProblem] = useState(null);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    (async () => {
      let now;
      do {
        await untilVisible();
        try {
          now = await get(processPath(id), {}, signal);
          setProcess(now);
          setProblem(null);
          if (now.ending) await pause(1000, signal);
          else {
            const wait = { exit: true, needs_input: true, timeout_ms: 5000 };
            const answer = await post(processPath(id, "/wait"), wait, { signal });
            setNeedsInput(answer.wait?.met === "needs_input" ? answer.wait : null);
            if (answer.wait?.met === "needs_input") await pause(1000, signal);
          }
        } catch (error) {
          if (signal.aborted) return;
          setProblem(error);
          if (error.status === 404) return;
          await pause(1000, signal);
        }
      } while (!signal.aborted && (!now || !now.ending || now.log_open));
      setNeedsInput(null);
    })();
    return () => stop.abort();
  }, [id, again]);
  return { process, needsInput: process?.ending ? null : needsInput, problem, refresh: () => setAgain((n) => n + 1) };
}

async function download(process) {
  const response = await send("GET", processPath(process.id, "/output"), { query: { late: "true", max_bytes: Math.max(1, process.total) } });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `${process.name ?? process.id}.log`;
  link.click();
  URL.revokeObjectURL(link.href);
}

export function ProcessScreen({ id, tab, at, live, readOnly, onHelp }) {
  const { process, needsInput, problem, refresh } = useProcess(id);
  const [dialog, setDialog] = useState(null);
  const [failed, setFailed] = useState(null);
  useEffect(() => {
    if (process) document.title = `${titleOf(process)} – lastbyte`;
  }, [process]);
  useEffect(() => {
    const key = (event) => {
      if (event.key !== "Escape" || dialog || event.target.closest("input, dialog, .xterm")) return;
      if (live) location.hash = "#/";
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  });
  if (!process) {
    return html`<main class="centre card">${problem ? html`<h1>Not found</h1><p role="alert">${problem.message}</p><p><a href="#/">All processes</a></p>` : html`<h1 class="quiet">…</h1>`}</main>`;
  }
  const isTty = process.streams === "tty";
  const shown = tab ?? (isTty && !process.ending ? "terminal" : "log");
  const tabs = [["log", "Log"], ["terminal", "Terminal"], ["details", process.ending ? "Receipt" : "Details"]].filter(([name]) => name !== "terminal" || isTty);
  const { text, tone } = state(process);
  const ran = process.ending?.times.ran_ns ?? Date.now() * 1e6 - process.started_unix_ns;
  const close = () => setDialog(null);
  return html`<div class="screen">
    <header class="bar">
      ${live && html`<a class="plain back" href="#/" aria-label="All processes">←</a>`}
      <div class="title"><h1>${titleOf(process)}</h1>${process.name && html`<code class="quiet">${lineOf(process)}</code>`}</div>
      <span class="grow"></span>
      <${ThemeSwitch} /><button class="plain" onClick=${onHelp} aria-label="Keys">?</button>
    </header>
    <div class="summary">
      <span class=${`dot ${tone}`} aria-hidden="true"></span>
      <span role="status"><span class=${`tone ${tone}`}>${text}</span> ${process.ending ? "after" : "for"} ${duration(ran)}</span>
      ${badges(process, needsInput).map((badge) => html`<span class=${`badge ${badge.tone}`}>${badge.text}</span>`)}
      <span class="quiet wide">started ${date(process.started_unix_ns)}</span>
      <span class="quiet">${bytes(process.total)}</span>
      ${(problem ?? failed) && html`<span class="problem" role="alert">${(problem ?? failed).message}</span>`}
      <span class="grow"></span>
      <span class="buttons">
        <button onClick=${() => download(process).then(() => setFailed(null), setFailed)}>Download</button>
        ${!readOnly && live && !process.ending && html`<button onClick=${() => setDialog("write")}>Write</button><button onClick=${() => setDialog("signal")}>Signal</button><button class="danger" onClick=${() => setDialog("stop")}>Stop</button>`}
        ${!readOnly && live && process.ending && html`<button class="danger" onClick=${() => setDialog("forget")}>Forget</button>`}
      </span>
    </div>
    <nav class="tabs" aria-label="Views">${tabs.map(([name, label]) => html`<a href=${`#/p/${id}/${name}`} aria-current=${shown === name ? "page" : undefined}>${label}</a>`)}</nav>
    <main class="content">
      ${shown === "log" && html`<${Log} process=${process} at=${at} />`}
      ${shown === "terminal" && isTty && html`<${TerminalView} process=${process} readOnly=${readOnly} />`}
      ${shown === "details" && html`<${Details} process=${process} />`}
    </main>
    ${dialog === "stop" && html`<${Stop} process=${process} onClose=${close} onChanged=${refresh} />`}
    ${dialog === "signal" && html`<${Signal} process=${process} onClose=${close} />`}
    ${dialog === "write" && html`<${Write} process=${process} onClose=${close} />`}
    ${dialog === "forget" && html`<${Forget} process=${process} onClose=${close} onForgotten=${() => { location.hash = "#/"; }} />`}
  </div>`;
}
