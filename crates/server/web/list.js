// Every process in virtual rows, newest first.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { ThemeSwitch } from "./theme.js";
import { ago, badges, bytes, commandOf, count, duration, lineOf, plural, state } from "./words.js";

const ROW = 60;
const PHASES = { all: "All", running: "Running", failed: "Failed", ended: "Ended" };
// Kept while a process is shown.
const kept = { phase: "all", session: "", text: "", top: 0, picked: null };

const hasFailed = (process) => process.ending && state(process).tone === "bad";
const inPhase = {
  all: () => true,
  running: (process) => !process.ending,
  failed: hasFailed,
  ended: (process) => Boolean(process.ending),
};

/** `name:web label:job=7 text`: every word has to be found. */
function matcher(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (process) => words.every((word) => {
    const [, member, rest] = word.match(/^(name|label|session):(.*)$/) ?? [];
    if (member === "name") return process.name?.toLowerCase().includes(rest);
    if (member === "session") return process.session?.toLowerCase().includes(rest);
    const labels = Object.entries(process.labels).map((pair) => pair.join("=")).join(" ").toLowerCase();
    if (member === "label") return labels.includes(rest);
    return [process.name, process.id, process.session, commandOf(process), labels].some((one) => one?.toLowerCase().includes(word));
  });
}

export function List({ live, onHelp }) {
  const [, draw] = useState(0);
  const [phase, setPhase] = useState(kept.phase);
  const [session, setSession] = useState(kept.session);
  const [text, setText] = useState(kept.text);
  // Where a row is changes with every process that is started, so the process is picked.
  const [, pick] = useState(kept.picked);
  const [top, setTop] = useState(kept.top);
  const [height, setHeight] = useState(600);
  const box = useRef();
  const field = useRef();
  const picked = useRef(kept.picked);
  Object.assign(kept, { phase, session, text, top });
  useEffect(() => live.subscribe(() => draw((n) => n + 1)), [live]);
  useEffect(() => {
    document.title = "lastbyte";
  }, []);

  const all = live.all();
  const matches = useMemo(() => matcher(text), [text]);
  const shown = all.filter((process) => inPhase[phase](process) && (!session || process.session === session) && matches(process));
  const sessions = [...new Set(all.map((process) => process.session).filter(Boolean))].sort();
  const running = all.filter(inPhase.running).length;

  useLayoutEffect(() => {
    const measure = () => setHeight(box.current.clientHeight);
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    box.current.scrollTop = kept.top;
    return () => observer.disconnect();
  }, []);

  const setPicked = (id) => {
    picked.current = kept.picked = id;
    pick(id);
  };
  /** The row of the process that was picked, also before it is drawn; -1 if there is none. */
  const place = () => (picked.current === null ? -1 : shown.findIndex((process) => process.id === picked.current));
  const at = Math.max(0, place());
  const go = (to) => {
    const next = Math.max(0, Math.min(shown.length - 1, to));
    const id = shown[next]?.id ?? null;
    setPicked(id);
    const element = box.current;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    if ((next + 1) * ROW > element.scrollTop + element.clientHeight) element.scrollTop = (next + 1) * ROW - element.clientHeight;
    const focus = () => picked.current === id && element.querySelector(`[href="#/p/${id}"]`)?.focus({ preventScroll: true });
    focus();
    requestAnimationFrame(focus);
  };
  // With the layout: a key that comes before the next one would act on rows that are no longer drawn.
  useLayoutEffect(() => {
    const key = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.target.closest("input, select")) {
        if (event.key === "Escape") event.target.blur();
        if (event.key !== "Enter" || event.target !== field.current) return;
        go(0);
      } else if (event.key === "/") field.current.focus();
      else if (event.key === "j" || event.key === "ArrowDown") go(place() + 1);
      else if (event.key === "k" || event.key === "ArrowUp") go(place() - 1);
      else if (event.key === "Enter" && document.activeElement === document.body && shown[at]) location.hash = `#/p/${shown[at].id}`;
      else if (event.key === "g") go(0);
      else if (event.key === "G") go(shown.length - 1);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  });

  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const rows = shown.slice(first, Math.ceil((top + height) / ROW) + 4);
  live.watch(rows.map((process) => process.id));
  return html`<div class="screen">
    <header class="bar">
      <h1 class="brand">lastbyte</h1>
      <span class="quiet wide" aria-live="polite">${live.loaded ? `${count(running)} running, ${plural(all.length, "process", "processes")} in all` : "loading"}</span>
      <span class="grow"></span>
      <${ThemeSwitch} />
      <button class="plain" onClick=${onHelp} aria-label="Keys">?</button>
    </header>
    <div class="filters" role="search">
      <input ref=${field} type="search" placeholder="Filter by command, name or label   /" aria-label="Filter by command, name or label" value=${text} onInput=${(event) => { setText(event.target.value); setPicked(null); }} />
      <div class="segments" role="group" aria-label="Phase">
        ${Object.entries(PHASES).map(([name, label]) => html`<button aria-pressed=${phase === name} onClick=${() => { setPhase(name); setPicked(null); }}>${label}</button>`)}
      </div>
      ${sessions.length > 0 && html`<select aria-label="Session" value=${session} onChange=${(event) => setSession(event.target.value)}>
        <option value="">All sessions</option>${sessions.map((name) => html`<option value=${name}>${name}</option>`)}</select>`}
    </div>
    ${live.problem && html`<p class="problem strip" role="alert">Not connected: ${live.problem.message}. Trying again.</p>`}
    <main class="rows" ref=${box} tabindex="-1" onScroll=${(event) => setTop(event.target.scrollTop)} aria-label="Processes">
      ${live.loaded && shown.length === 0 && html`<div class="empty"><p>${all.length ? "No process matches." : "Nothing has been started yet."}</p>
        ${all.length === 0 && html`<p class="quiet"><code>lastbyte start 'make test'</code></p>`}</div>`}
      <div style=${{ height: `${shown.length * ROW}px`, position: "relative" }} role="list">
        ${rows.map((process, index) => html`<${Row} key=${process.id} process=${process} rates=${live.rates.get(process.id)} input=${live.inputs.get(process.id)} at=${first + index}
          size=${shown.length} isAt=${first + index === at} onAt=${setPicked} />`)}
      </div>
    </main>
  </div>`;
}

function Row({ process, rates, input, at, size, isAt, onAt }) {
  const { text, tone } = state(process);
  const ran = process.ending?.times.ran_ns;
  return html`<div class="row" role="listitem" aria-setsize=${size} aria-posinset=${at + 1} style=${{ transform: `translateY(${at * ROW}px)` }}>
    <a href=${`#/p/${process.id}`} tabindex=${isAt ? 0 : -1} onFocus=${() => onAt(process.id)}>
      <span class=${`dot ${tone}`} aria-hidden="true"></span>
      <span class="what">
        <span class="command">${process.name && html`<b>${process.name}</b> `}<code>${lineOf(process)}</code></span>
        <span class="facts"><span class=${`tone ${tone}`}>${text}</span>
          ${badges(process, process.ending ? null : input).map((badge) => html`<span class=${`badge ${badge.tone}`}>${badge.text}</span>`)}
          ${ran !== undefined ? html`<span class="ran">after ${duration(ran)}</span>` : html`<span class="ran">for ${duration((Date.now() * 1e6) - process.started_unix_ns)}</span>`}
          ${process.session && html`<span class="wide">${process.session}</span>`}
          ${Object.entries(process.labels).slice(0, 3).map(([name, value]) => html`<span class="label wide">${name}=${value}</span>`)}</span>
      </span>
      ${!process.ending && html`<${Sparkline} rates=${rates} />`}
      <span class="side"><span>${bytes(process.total)}</span><span class="quiet">${ago(process.started_unix_ns)}</span></span>
    </a>
  </div>`;
}

/** The rate of output of the last 48 seconds, the newest at the right. */
function Sparkline({ rates = [] }) {
  const most = Math.max(...rates, 1);
  if (rates.length < 2 || most === 1) return html`<span class="sparkline wide" aria-hidden="true"></span>`;
  const points = rates.map((rate, at) => `${((24 - rates.length + at) / 23) * 72},${19 - (rate / most) * 17}`).join(" ");
  const now = `${bytes(rates.at(-1))} per second`;
  return html`<span class="sparkline wide"><svg viewBox="0 0 72 20" role="img" aria-label=${now}><title>${now}</title><polyline points=${points} /></svg></span>`;
}
