// Which screen is shown: signing in, the list, one process, or a terminal that was handed over.

import { get, pause, post, token } from "./api.js";
import { HandOver } from "./hand_over.js";
import { html, render, useEffect, useRef, useState } from "./html.js";
import { List } from "./list.js";
import { Live } from "./live.js";
import { ProcessScreen } from "./process.js";
import { Help } from "./help.js";
import { applyTheme } from "./theme.js";

applyTheme();

/** Takes the secret of a one-time link out of the address at once; nothing else of it is kept. */
function takeLink() {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (link) history.replaceState(null, "", "/");
  return link;
}

/** What the link is for: `hand_over` shows one terminal and nothing else. */
async function trade(link) {
  // A token that this tab had before would be refused together with the link if it has ended.
  token.clear();
  sessionStorage.removeItem("lastbyte-bound");
  const traded = await post("/v1/links/trade", { link });
  token.set(traded.token);
  sessionStorage.setItem("lastbyte-bound", JSON.stringify({ process: traded.process, handOver: traded.hand_over, readOnly: traded.read_only }));
  if (traded.process && !traded.hand_over) location.hash = `#/p/${traded.process}`;
}

const bound = () => JSON.parse(sessionStorage.getItem("lastbyte-bound") ?? "{}");

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/** `#/p/ID/TAB?line=7` in parts. */
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [kind, id, tab] = path.split("/").map(decoded);
  return kind === "p" && id ? { id, tab, at: new URLSearchParams(query) } : {};
}

function SignIn({ problem, onDone }) {
  const [text, setText] = useState("");
  const submit = (event) => {
    event.preventDefault();
    token.set(text.trim());
    sessionStorage.removeItem("lastbyte-bound");
    onDone();
  };
  return html`<main class="centre card">
    <h1>lastbyte</h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <p>Run <code>lastbyte open</code> in a terminal on this machine. It opens this page with a link that works once.</p>
    <form onSubmit=${submit}>
      <label for="token">Or paste a token</label>
      <div class="field"><input id="token" type="password" autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} />
      <button class="primary" disabled=${!text.trim()}>Sign in</button></div>
    </form>
  </main>`;
}

function Signed() {
  const { process: only, handOver, readOnly } = bound();
  const [live] = useState(() => (only ? null : new Live()));
  const [at, setAt] = useState(route);
  const [help, setHelp] = useState(false);
  useEffect(() => {
    const move = () => setAt(route());
    const key = (event) => {
      if (event.key === "?" && !event.target.closest("input, textarea, .xterm")) setHelp(true);
    };
    window.addEventListener("hashchange", move);
    window.addEventListener("keydown", key);
    return () => {
      window.removeEventListener("hashchange", move);
      window.removeEventListener("keydown", key);
      live?.close();
    };
  }, []);
  if (handOver) return html`<${HandOver} id=${only} />`;
  const id = only ?? at.id;
  return html`
    ${id
      ? html`<${ProcessScreen} key=${id} id=${id} tab=${at.tab} at=${at.at} live=${live} readOnly=${readOnly} onHelp=${() => setHelp(true)} />`
      : html`<${List} live=${live} onHelp=${() => setHelp(true)} />`}
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

function App() {
  const [state, setState] = useState("waiting");
  const [problem, setProblem] = useState(null);
  // Another number for every token, so that nothing of the screen before is left.
  const [session, setSession] = useState(0);
  const turn = useRef(0);
  const check = async () => {
    turn.current += 1;
    const mine = turn.current;
    const link = { left: takeLink() };
    if (link.left) setState("waiting");
    while (!(await enter(link)) && mine === turn.current) await pause(1000);
  };
  /** Whether the server has answered. One that does not, for example while it is upgraded, takes neither link nor token away. */
  const enter = async (link) => {
    try {
      if (link.left) await trade(link.left);
      link.left = null;
      // One that is bound to a process may not ask for anything else.
      const { process: only } = bound();
      await get(only ? `/v1/processes/${only}` : "/v1");
      setSession((before) => before + 1);
      setState("signed");
      setProblem(null);
    } catch (error) {
      const isOld = error.code === "link_gone";
      const hasAnswered = error.status < 500;
      setProblem(isOld ? "This link has been used or has expired. Ask for another one." : error.code === "unauthorized" && !token.get() ? null : error.message);
      if (!hasAnswered) return false;
      token.clear();
      setState("out");
    }
    return true;
  };
  useEffect(() => {
    check();
    const out = () => {
      token.clear();
      setState((was) => (was === "signed" ? "out" : was));
    };
    const link = () => location.hash.startsWith("#link=") && check();
    window.addEventListener("signed-out", out);
    window.addEventListener("hashchange", link);
  }, []);
  if (state === "waiting") return html`<main class="centre" aria-busy="true"><h1 class="quiet">lastbyte</h1>
    ${problem && html`<p role="status">${problem}. Trying again.</p>`}</main>`;
  if (state === "out") return html`<${SignIn} problem=${problem} onDone=${check} />`;
  return html`<${Signed} key=${session} />`;
}

const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
