// A terminal on a process. It is read-only until typing is switched on.

import { Connection } from "./connection.js";
import { allowStyles } from "./csp_styles.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { isDark } from "./theme.js";
import { bytes } from "./words.js";

const LIGHT = {
  background: "#fbfaf7", foreground: "#24292b", cursor: "#2f6f5e", selectionBackground: "#cfe3dc",
  black: "#24292b", red: "#b3261e", green: "#27703a", yellow: "#8a5a00", blue: "#1f5fa8", magenta: "#8a3a8f", cyan: "#0f6e78", white: "#6b7276",
  brightBlack: "#5a6266", brightRed: "#c4372f", brightGreen: "#2f7f45", brightYellow: "#976300", brightBlue: "#2c6cb8", brightMagenta: "#99479e", brightCyan: "#1b7a84", brightWhite: "#3a4144",
};
const DARK = {
  background: "#161a1c", foreground: "#d7dcdb", cursor: "#7cc4ae", selectionBackground: "#31504a",
  black: "#2a3135", red: "#f08f86", green: "#7fc48f", yellow: "#e0b25c", blue: "#86b7ef", magenta: "#d9a0dd", cyan: "#74c7d1", white: "#c9d0d0",
  brightBlack: "#7f8a8e", brightRed: "#ff9d94", brightGreen: "#93d8a3", brightYellow: "#f0c470", brightBlue: "#9cc6f7", brightMagenta: "#e6b3e9", brightCyan: "#8ad7e0", brightWhite: "#ffffff",
};

/** xterm.js is loaded when the first terminal is shown. */
async function open(element, on) {
  allowStyles();
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("./vendor/xterm.js"), import("./vendor/addon-fit.js")]);
  const terminal = new Terminal({
    cols: 80, rows: 24, fontSize: 13, lineHeight: 1.15, scrollback: 5000, screenReaderMode: true, disableStdin: true,
    fontFamily: "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    theme: isDark() ? DARK : LIGHT,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  terminal.onData(on.data);
  terminal.onBinary((text) => on.binary(Uint8Array.from(text, (char) => char.charCodeAt(0))));
  terminal.onResize(on.resize);
  return { terminal, fit };
}

export function TerminalView({ process, readOnly, startTyping = false, onDone, name }) {
  const [, redraw] = useState(0);
  const draw = () => redraw((n) => n + 1);
  const element = useRef();
  const parts = useRef(null);
  const connection = useRef(null);
  const wanted = useRef(startTyping);
  const secret = useRef(false);
  const [problem, setProblem] = useState(null);
  const [leaving, setLeaving] = useState(false);

  useEffect(() => {
    let gone = false;
    // Only the person switches secret input off. Until the server has switched it on, also after a reconnect, nothing
    // is sent.
    const isOn = () => connection.current?.isMine && wanted.current && (!secret.current || connection.current.keyboard?.secret);
    // While old output is shown: the terminal answers what a program asked for then, and nobody wants to know any more.
    let old = 0;
    const resize = ({ rows, cols }) => isOn() && connection.current.send({ kind: "resize", rows, cols });
    const on = { data: (text) => isOn() && !old && connection.current.type(text), binary: (data) => isOn() && !old && connection.current.send(data), resize };
    const theme = () => { if (parts.current) parts.current.terminal.options.theme = isDark() ? DARK : LIGHT; };
    const dark = matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("theme", theme);
    dark.addEventListener("change", theme);
    const observer = new ResizeObserver(() => isOn() && parts.current?.fit.fit());
    open(element.current, on).then((made) => {
      if (gone) return made.terminal.dispose();
      parts.current = made;
      const was = { mine: false, taken: false };
      const take = () => wanted.current && connection.current?.send({ kind: "take_keyboard", ...(name ? { name } : {}) });
      connection.current = new Connection(process, {
        bytes: (data, isOld, shown) => {
          old += isOld;
          made.terminal.write(data, () => {
            old -= isOld;
            shown();
          });
        },
        // A viewer does not change the size of the process's terminal.
        size: ({ rows, cols }) => !isOn() && made.terminal.resize(cols, rows),
        connected: take,
        change: () => {
          const { isMine, keyboard } = connection.current;
          made.terminal.options.disableStdin = !isOn();
          if (isMine && !was.mine) {
            made.fit.fit();
            resize(made.terminal);
            made.terminal.focus();
          }
          if (isMine && !was.mine && secret.current) connection.current.send({ kind: "secret_input", on: true });
          // Who was asked to take over gets it when another has given it back; everybody else asks again.
          if (!isMine && keyboard && !startTyping) wanted.current = false;
          if (startTyping && was.taken && !keyboard) take();
          Object.assign(was, { mine: isMine, taken: keyboard && !isMine });
          draw();
        },
      });
      observer.observe(element.current);
      draw();
    }, setProblem);
    return () => {
      gone = true;
      observer.disconnect();
      window.removeEventListener("theme", theme);
      dark.removeEventListener("change", theme);
      connection.current?.close();
      parts.current?.terminal.dispose();
    };
  }, [process.id]);

  const link = connection.current;
  const isMine = Boolean(link?.isMine && wanted.current);
  const holder = link?.keyboard;
  const toggle = () => {
    wanted.current = !isMine;
    link.refused = null;
    link.send({ kind: wanted.current ? "take_keyboard" : "give_back_keyboard", ...(wanted.current && name ? { name } : {}) });
    draw();
  };
  const toggleSecret = () => {
    secret.current = !secret.current;
    link.refused = null;
    link.send({ kind: "secret_input", on: secret.current });
  };
  const done = async () => {
    setLeaving(true);
    setProblem(null);
    try {
      if (link.state === "connected") await link.giveBack();
      onDone(link.state === "over" ? "ended" : "done");
    } catch (error) {
      setProblem(error);
    }
    setLeaving(false);
  };
  const isWaiting = isMine && secret.current && !holder?.secret;
  const who = isMine
    ? (isWaiting ? "Switching secret input on; what you type now is not sent" : holder?.secret ? "You have the keyboard; what you type is secret" : "You have the keyboard")
    : holder ? `${holder.holder} has the keyboard` : readOnly ? "Read-only" : "Nobody has the keyboard";
  const state = { connecting: "connecting", connected: "connected", reconnecting: "reconnecting", over: link?.ending ? "ended" : "closed" }[link?.state ?? "connecting"];
  return html`<section class="terminal" aria-label="Terminal">
    <div class="tools">
      ${!readOnly && !onDone && html`<button role="switch" aria-checked=${isMine} disabled=${!link || link.state === "over"} onClick=${toggle} class="switch"><i></i>Type</button>`}
      ${!readOnly && html`<button role="switch" aria-checked=${secret.current} disabled=${!isMine} onClick=${toggleSecret} class="switch" title="What you type is not shown, and not kept"><i></i>Secret input</button>`}
      <span class="who" role="status">${who}</span>
      <span class="grow"></span>
      <span class=${`link ${state}`}>${state}</span>
      ${onDone && html`<button class="primary" onClick=${done} disabled=${leaving || !["connected", "over"].includes(link?.state)}>Done</button>`}
    </div>
    ${(problem ?? link?.refused) && html`<p class="problem strip" role="alert">${(problem ?? link.refused).message}</p>`}
    <div class="xterm-box" ref=${element}></div>
    ${(link?.began > 0 || link?.passed > 0) && html`<footer class="status">
      ${link.began > 0 && html`<span>Begins after ${bytes(link.began)} of output, which the log has</span>`}
      ${link.passed > 0 && html`<span>${bytes(link.passed)} passed too fast to show; they are in the log</span>`}</footer>`}
  </section>`;
}
