// What can be done to a process, with a question where something is lost.

import { post, processPath, send } from "./api.js";
import { Dialog } from "./dialog.js";
import { html, useState } from "./html.js";
import { bytes, plural, titleOf } from "./words.js";

const SIGNALS = ["INT", "TERM", "HUP", "USR1", "USR2", "STOP", "CONT", "QUIT", "KILL"];

/** Runs something; the buttons wait for it, and its error is shown. */
function useRun() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const run = async (act) => {
    setBusy(true);
    setProblem(null);
    try {
      await act();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  return [run, busy, problem && html`<p class="problem" role="alert">${problem.message}</p>`];
}

export function Stop({ process, onClose, onChanged }) {
  const [run, busy, problem] = useRun();
  const [proof, setProof] = useState(null);
  const stop = () => run(async () => {
    setProof(await post(processPath(process.id, "/stop")));
    onChanged();
  });
  if (proof) return html`<${Dialog} title="Stopped" onClose=${onClose}><${Proof} proof=${proof} /><div class="buttons"><button class="primary" onClick=${onClose} autofocus>Close</button></div><//>`;
  return html`<${Dialog} title=${`Stop ${titleOf(process)}?`} onClose=${onClose}>
    <p>This stops the process and everything it started. Its output is kept.</p>${problem}
    <div class="buttons"><button onClick=${onClose} disabled=${busy}>Cancel</button><button class="danger" onClick=${stop} disabled=${busy} autofocus>${busy ? "Stopping…" : "Stop"}</button></div>
  <//>`;
}

function Proof({ proof }) {
  const named = (pids) => pids.map((pid) => `${pid}${proof.names?.[pid] ? ` (${proof.names[pid]})` : ""}`).join(", ");
  const left = proof.left ?? [];
  return html`<p><b>${left.length === 0 ? "Nothing is left." : `${plural(left.length, "process", "processes")} left: ${named(left)}`}</b></p>
    <p class="quiet">${proof.proved ? "Proved: the kernel says that no process of the tree is left." : "Checked by a search of all processes; without a cgroup it is not a proof."}</p>
    <dl class="facts-list"><dt>Signalled</dt><dd>${named(proof.signalled ?? []) || "none"}</dd><dt>Gone</dt><dd>${named(proof.gone ?? []) || "none"}</dd></dl>`;
}

export function Forget({ process, onClose, onForgotten }) {
  const [run, busy, problem] = useRun();
  const forget = () => run(async () => {
    await send("DELETE", processPath(process.id));
    onForgotten();
  });
  return html`<${Dialog} title=${`Forget ${titleOf(process)}?`} onClose=${onClose}>
    <p>This removes the record of the process and its output (${bytes(process.total)}). It cannot be undone.</p>${problem}
    <div class="buttons"><button onClick=${onClose} autofocus>Cancel</button><button class="danger" onClick=${forget} disabled=${busy}>Forget</button></div>
  <//>`;
}

export function Signal({ process, onClose }) {
  const [signal, setSignal] = useState("INT");
  const [run, busy, problem] = useRun();
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      await post(processPath(process.id, "/signal"), { signal });
      onClose();
    });
  };
  return html`<${Dialog} title="Send a signal" onClose=${onClose}><form onSubmit=${submit}>
    <label for="signal">Signal for the process group of ${titleOf(process)}</label>
    <select id="signal" value=${signal} onChange=${(event) => setSignal(event.target.value)}>${SIGNALS.map((name) => html`<option value=${name}>SIG${name}</option>`)}</select>
    ${signal === "KILL" && html`<p class="quiet">This kills the command at once; it cannot clean up.</p>`}${problem}
    <div class="buttons"><button type="button" onClick=${onClose}>Cancel</button><button class=${signal === "KILL" ? "danger" : "primary"} disabled=${busy}>Send</button></div>
  </form><//>`;
}

export function Write({ process, onClose }) {
  const [text, setText] = useState("");
  const [run, busy, problem] = useRun();
  const [said, setSaid] = useState("");
  const write = (close) => run(async () => {
    const query = close ? { close: "true" } : {};
    await post(processPath(process.id, "/stdin"), close ? "" : `${text}\n`, { query });
    setText("");
    setSaid(close ? "Its input is closed." : "Written.");
  });
  const submit = (event) => {
    event.preventDefault();
    write(false);
  };
  return html`<${Dialog} title="Write to standard input" onClose=${onClose}><form onSubmit=${submit}>
    <label for="write">One line. The command may print it</label>
    <input id="write" value=${text} autocomplete="off" onInput=${(event) => setText(event.target.value)} autofocus />
    <p class="quiet" role="status">${said}</p>${problem}
    <div class="buttons"><button type="button" onClick=${() => write(true)} disabled=${busy}>Close input</button><span class="grow"></span><button type="button" onClick=${onClose}>Close</button><button class="primary" disabled=${busy}>Write</button></div>
  </form><//>`;
}
