// A terminal that an agent handed over: nothing else is shown.

import { get, processPath, token } from "./api.js";
import { html, useEffect, useState } from "./html.js";
import { TerminalView } from "./terminal.js";
import { ThemeSwitch } from "./theme.js";
import { lineOf, titleOf } from "./words.js";

export function HandOver({ id }) {
  const [process, setProcess] = useState(null);
  const [problem, setProblem] = useState(null);
  const [done, setDone] = useState(null);
  useEffect(() => {
    get(processPath(id)).then(setProcess, setProblem);
  }, []);
  useEffect(() => {
    if (process) document.title = `${titleOf(process)} needs you`;
  }, [process]);
  const finish = (how) => {
    setDone(how);
    token.clear();
    sessionStorage.removeItem("lastbyte-bound");
  };
  if (done) return html`<main class="centre card"><h1>Done</h1><p>${done === "ended" ? "The command has ended." : "The agent has the terminal back."} You can close this page.</p></main>`;
  if (problem) return html`<main class="centre card"><h1>lastbyte</h1><p class="problem" role="alert">${problem.message}</p></main>`;
  if (!process) return html`<main class="centre" aria-busy="true"><h1 class="quiet">lastbyte</h1></main>`;
  return html`<main class="screen hand-over">
    <header class="bar"><div class="title"><h1>An agent asks you to take over this terminal</h1>
      <code class="quiet">${lineOf(process)}</code></div><span class="grow"></span><${ThemeSwitch} /></header>
    <p class="note strip">Switch on <b>Secret input</b> before you type a password: it is then neither shown nor kept. Press <b>Done</b> when the agent can go on.</p>
    <${TerminalView} process=${process} startTyping=${true} onDone=${finish} />
  </main>`;
}
