// The log of a process in rows of one height, of which only those in view exist.
//
// The box scrolls like any other. An element can be no higher than some million pixels, so with many lines its height
// stands for all of them in proportion: dragging the bar moves in proportion, the wheel and the keys by lines.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { LogModel, streamsOf } from "./log_model.js";
import { SearchModel } from "./search_model.js";
import { pieces, plain } from "./sgr.js";
import { bytes, clock, count, plural } from "./words.js";

const ROW = 20;
const MOST_HEIGHT = 8_000_000;

/** Where the box is, in lines. */
class Position {
  top = 0;
  follow = true;
  constructor(box, lines) {
    this.box = box;
    this.lines = lines;
  }
  get shown() { return this.box.clientHeight / ROW; }
  get most() { return Math.max(0, this.lines - this.shown); }
  get height() { return Math.min(this.lines * ROW, MOST_HEIGHT); }
  get isScaled() { return this.lines * ROW > MOST_HEIGHT; }
  get range() { return Math.max(1, this.height - this.box.clientHeight); }
  moveTo(line) {
    this.top = Math.max(0, Math.min(this.most, line));
    this.follow = this.top >= this.most - 0.5;
    this.sync();
  }
  /** Moves the bar to where the lines are. */
  sync() {
    this.box.scrollTop = this.most ? (this.top / this.most) * this.range : 0;
    this.expected = this.box.scrollTop;
  }
  /** The bar was moved by somebody. */
  scrolled() {
    if (Math.abs(this.box.scrollTop - (this.expected ?? -9)) < 1) return false;
    this.expected = this.box.scrollTop;
    this.top = this.isScaled ? (this.box.scrollTop / this.range) * this.most : this.box.scrollTop / ROW;
    this.follow = this.top >= this.most - 0.5;
    return true;
  }
}

export function Log({ process, at }) {
  const [, redraw] = useState(0);
  const draw = () => redraw((n) => n + 1);
  const box = useRef();
  const field = useRef();
  const place = useRef();
  const model = useRef();
  const search = useRef(null);
  const skipped = useRef({ lines: 0, seen: 0 });
  const [wrap, setWrap] = useState(false);
  const [times, setTimes] = useState(false);
  const [text, setText] = useState("");
  const [match, setMatch] = useState(-1);
  const [marked, setMarked] = useState(null);
  // Wrapped lines can be higher than the view, which then scrolls by itself: where it goes when it is drawn.
  const within = useRef({ to: null, marked: null });

  useLayoutEffect(() => {
    const position = new Position(box.current, 0);
    place.current = position;
    const log = new LogModel(process, () => {
      const grown = log.lines - position.lines;
      position.lines = log.lines;
      box.current.firstElementChild.style.height = `${position.height}px`;
      if (position.follow) {
        if (grown > position.shown && skipped.current.seen) skipped.current.lines += Math.floor(grown - position.shown);
        skipped.current.seen = log.lines;
        position.moveTo(Infinity);
        position.follow = true;
      }
      draw();
    });
    Object.defineProperty(log, "isFollowed", { get: () => position.follow });
    model.current = log;
    const observer = new ResizeObserver(() => {
      if (position.follow) position.moveTo(Infinity);
      draw();
    });
    observer.observe(box.current);
    const wheel = (event) => {
      if (!position.isScaled || event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      const unit = [1 / ROW, 1, position.shown][event.deltaMode];
      position.moveTo(position.top + event.deltaY * unit);
      draw();
    };
    let finger = null;
    const touch = (event) => {
      const { clientY } = event.touches[0];
      if (event.type === "touchmove" && position.isScaled && finger !== null) {
        event.preventDefault();
        position.moveTo(position.top + (finger - clientY) / ROW);
        draw();
      }
      finger = clientY;
    };
    const element = box.current;
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("touchstart", touch, { passive: true });
    element.addEventListener("touchmove", touch, { passive: false });
    return () => {
      log.close();
      search.current?.close();
      observer.disconnect();
    };
  }, [process.id]);

  useLayoutEffect(() => {
    const view = box.current.querySelector(".view");
    if (!view || !wrap) return view?.scrollTo(0, 0);
    const mark = marked !== within.current.marked && view.querySelector(".line.marked");
    if (place.current.follow || within.current.to === "end") view.scrollTop = view.scrollHeight;
    else if (mark) view.scrollTop += mark.getBoundingClientRect().top - view.getBoundingClientRect().top - view.clientHeight / 3;
    else if (within.current.to === "start") view.scrollTop = 0;
    if (mark || !marked) within.current.marked = marked;
    within.current.to = null;
  });
  /** Scrolls by rows within wrapped lines; says whether there was more of them. */
  const scrollWithin = (rows) => {
    const view = box.current.querySelector(".view");
    if (!wrap || !view) return false;
    const before = view.scrollTop;
    view.scrollTop += rows * ROW;
    return Math.abs(view.scrollTop - before) >= 1;
  };
  const scrolledWithin = (view) => {
    const isAtEnd = view.scrollTop + view.clientHeight >= view.scrollHeight - 2;
    const position = place.current;
    const follow = isAtEnd && position.top >= position.most - 0.5;
    if (!wrap || position.follow === follow) return;
    position.follow = follow;
    draw();
  };

  const goToLine = (line, mark) => {
    const position = place.current;
    position.follow = false;
    position.moveTo(line - position.shown / 3);
    setMarked(mark ?? { line });
    draw();
  };
  const fails = (problem) => {
    model.current.problem = problem;
    draw();
  };
  const goToBytes = async (start, end) => goToLine(await model.current.lineAt(start), { start, end: Math.max(end, start + 1) });

  // A link to a line or to bytes, once the line is counted.
  const target = at?.toString();
  const isReady = model.current?.isCounted;
  useEffect(() => {
    if (!isReady || !target) return;
    const line = Number(at.get("line"));
    const range = at.get("bytes")?.match(/^(\d{1,15})(?:-(\d{1,15}))?$/);
    if (line > 0) goToLine(line - 1);
    else if (range) goToBytes(Number(range[1]), Number(range[2] ?? 0)).catch(fails);
  }, [isReady, target]);

  const start = (pattern) => {
    search.current?.close();
    search.current = null;
    setMatch(-1);
    if (pattern) {
      const found = new SearchModel(process.id, pattern, () => {
        if (search.current === found && found.matches.length && !found.isShown) {
          found.isShown = true;
          step(1);
        }
        draw();
      });
      search.current = found;
    }
    draw();
  };
  const step = (by) => stepTo(by).catch(fails);
  const stepTo = async (by) => {
    const found = search.current;
    const log = model.current;
    if (!found?.matches.length) return;
    const from = marked?.start ?? log.row(Math.round(place.current.top))?.start ?? 0;
    const next = match < 0 ? found.next(by > 0 ? from - 1 : from, by) : (match + by + found.matches.length) % found.matches.length;
    setMatch(next);
    const { start: first, hits, line } = found.matches[next];
    const hit = hits[0] ?? { start: first, end: first + 1 };
    goToLine(line ?? (await log.lineAt(first)), hit);
    history.replaceState(null, "", `#/p/${process.id}/log?bytes=${hit.start}-${hit.end}`);
  };
  const askLine = () => {
    field.current.value = ":";
    setText(":");
    field.current.focus();
  };
  const submit = (event) => {
    event.preventDefault();
    const line = text.match(/^:\s*([\d,. ]+)$/)?.[1].replace(/\D/g, "");
    if (line) {
      goToLine(Number(line) - 1);
      history.replaceState(null, "", `#/p/${process.id}/log?line=${line}`);
      setText("");
      field.current.value = "";
      box.current.focus();
    } else if (search.current?.pattern === text) step(1);
    else start(text);
  };
  const showTimes = () => {
    model.current.showTimes();
    setTimes(!times);
  };
  const follow = () => {
    skipped.current = { lines: 0, seen: model.current.lines };
    place.current.moveTo(Infinity);
    place.current.follow = true;
    draw();
  };
  const key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const position = place.current;
    const move = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: position.shown - 2, " ": position.shown - 2, PageUp: 2 - position.shown }[event.key];
    if (move) {
      if (scrollWithin(move)) position.follow &&= move > 0;
      else {
        position.moveTo(position.top + move);
        within.current.to = move > 0 ? "end" : "start";
      }
    } else if (event.key === "g" || event.key === "Home") {
      position.moveTo(0);
      within.current.to = "start";
    } else if (event.key === "G" || event.key === "End" || event.key === "f") follow();
    else if (event.key === "n") step(1);
    else if (event.key === "N") step(-1);
    else return;
    event.preventDefault();
    draw();
  };
  useEffect(() => {
    const shortcut = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog, .xterm")) return;
      if (event.key === "/") field.current.select();
      else if (event.key === ":") askLine();
      else if (event.key === "w") setWrap(!wrap);
      else if (event.key === "t") showTimes();
      else if (event.target !== box.current) return key(event);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", shortcut);
    return () => window.removeEventListener("keydown", shortcut);
  });

  const log = model.current;
  const position = place.current;
  const found = search.current;
  return html`<section class="log" aria-label="Log">
    <form class="tools" role="search" onSubmit=${submit}>
      <input ref=${field} type="search" placeholder="Search the log   /   or  :line" aria-label="Search the log, or a line number after a colon" value=${text}
        onInput=${(event) => { setText(event.target.value); if (!event.target.value) start(""); }} onKeyDown=${(event) => event.key === "Escape" && box.current.focus()} />
      ${found && html`<span class="found" role="status">${found.problem ? html`<span class="problem">${found.problem.message}</span>` : `${match >= 0 ? `${count(match + 1)} of ` : ""}${plural(found.matches.length, "match", "matches")}${found.done ? "" : `, ${Math.round((found.searched / (found.total || 1)) * 100)} % searched`}`}</span>
        <button type="button" class="plain" onClick=${() => step(-1)} aria-label="Previous match">↑</button>
        <button type="button" class="plain" onClick=${() => step(1)} aria-label="Next match">↓</button>`}
      <span class="grow"></span>
      <span class="buttons"><button type="button" aria-pressed=${wrap} onClick=${() => setWrap(!wrap)}>Wrap</button>
      <button type="button" aria-pressed=${times} onClick=${showTimes}>Times</button>
      <button type="button" aria-pressed=${Boolean(position?.follow)} onClick=${follow}>${process.ending ? "End" : "Follow"}</button></span>
    </form>
    <div class="paper">
      <div class=${`lines${wrap ? " wrap" : ""}`} ref=${box} tabindex="0" role="region" aria-label="Output" onKeyDown=${key}
        onScroll=${() => {
          const before = place.current.top;
          if (!place.current.scrolled()) return;
          within.current.to = place.current.top > before ? "end" : "start";
          draw();
        }}>
        <div class="height"></div>
        ${log && html`<${Rows} log=${log} position=${position} wrap=${wrap} times=${times} search=${found} marked=${marked} ending=${process.ending} id=${process.id} onMark=${setMarked} onScroll=${scrolledWithin} />`}
      </div>
      ${found && log?.lines > 0 && html`<${Marks} found=${found} log=${log} />`}
    </div>
    ${log && html`<${Status} log=${log} position=${position} skipped=${skipped.current.lines} isLive=${!process.ending} />`}
  </section>`;
}

function Rows({ log, position, wrap, times, search, marked, ending, id, onMark, onScroll }) {
  const digits = String(log.lines).length;
  const isPreview = !log.isCounted && position.follow && log.tail.length > 0;
  const isAtEnd = !wrap && (isPreview || (position.follow && position.most > 0));
  const first = Math.max(0, Math.floor(position.top));
  const rows = [];
  if (isPreview) rows.push(...log.tail.slice(-Math.ceil(position.shown) - 1));
  else for (let line = first; line < Math.min(log.lines, first + position.shown + 1); line += 1) rows.push(log.row(line) ?? { line });
  const style = plain();
  const hitsOf = (row) => [...(search?.hitsIn(row.start, row.end) ?? []), ...(marked?.start !== undefined && marked.start < row.end && marked.end > row.start ? [marked] : [])];
  const offset = isAtEnd || wrap ? "0" : `${-(position.top - first) * ROW}px`;
  return html`<div class=${`view${isAtEnd ? " end" : ""}`} tabindex=${wrap ? 0 : undefined} onScroll=${(event) => onScroll(event.currentTarget)} style=${{ height: `${position.box.clientHeight}px`, "--digits": digits }}>
    <div class="slide" style=${{ transform: `translateY(${offset})` }}>
    ${rows.map((row, index) => {
      if (row.gap) return html`<div class="line gap" key=${`g${row.start}`}><span class="number">…</span><span class="text">${bytes(row.gap)} were dropped here</span></div>`;
      const isLate = ending && row.start >= ending.final_len;
      const isFirstLate = isLate && (index === 0 || rows[index - 1].start < ending.final_len);
      const isMarked = marked && (marked.line === row.line || (marked.start !== undefined && marked.start < row.end && marked.end > row.start));
      const parts = row.bytes ? pieces(row, style, streamsOf(row), hitsOf(row)) : [];
      return html`<div class=${`line${isLate ? " late" : ""}${isMarked ? " marked" : ""}${isFirstLate ? " first-late" : ""}`} key=${row.line ?? `o${row.start}`}>
        <a class="number" tabindex="-1" href=${`#/p/${id}/log?line=${row.line + 1}`} aria-label=${`Line ${row.line + 1}`} onClick=${() => onMark({ line: row.line })}>${row.line === undefined ? "" : row.line + 1}</a>
        ${times && html`<span class="time">${row.time ? clock(row.time) : ""}</span>`}
        <span class="text">${parts.map((part) => html`<span class=${part.names}>${part.text}</span>`)}${row.cut > 0 && html`<span class="more"> … ${bytes(row.cut)} more in this line</span>`}</span></div>`;
    })}</div></div>`;
}

/** Where the matches are, beside the scrollbar. */
function Marks({ found, log }) {
  const places = new Set(found.matches.map((match) => Math.round((match.line === null ? match.start / log.total : match.line / log.lines) * 400) / 4));
  return html`<div class="marks" aria-hidden="true">${[...places].map((place) => html`<i style=${{ top: `${place}%` }}></i>`)}</div>`;
}

function Status({ log, position, skipped, isLive }) {
  const first = Math.floor(position.top) + 1;
  const last = Math.min(log.lines, Math.ceil(position.top + position.shown));
  const counting = log.total > 0 && log.counted < log.total && !log.logOpen;
  return html`<footer class="status">
    <span>${log.lines ? `Lines ${count(first)}–${count(last)} of ${count(log.lines)}` : log.isLoaded && log.total === 0 ? "No output" : ""}${counting ? `, counting ${Math.round((log.counted / log.total) * 100)} %` : ""}</span>
    <span>${log.isLoaded ? bytes(log.total) : "reading"}</span>
    ${isLive && position.follow && html`<span>following${log.rate > 1024 ? ` ${bytes(log.rate)}/s` : ""}</span>`}
    ${skipped > 0 && position.follow && html`<span>${plural(skipped, "line")} passed too fast to show; they are in the log</span>`}
    ${log.problem && html`<span class="problem" role="alert">${log.problem.message}</span>`}
  </footer>`;
}
