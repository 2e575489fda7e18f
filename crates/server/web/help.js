// The keys.

import { html } from "./html.js";
import { Dialog } from "./dialog.js";

const KEYS = [
  ["/", "filter the list, or search the log"],
  ["j  k", "next and previous process, or line"],
  ["Enter", "open the process"],
  ["g  G", "to the beginning, to the end"],
  ["n  N", "next and previous match"],
  [":", "go to a line"],
  ["f", "follow the log"],
  ["w", "wrap long lines"],
  ["t", "show times"],
  ["Esc", "back, or close"],
];

export function Help({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="keys">${KEYS.map(([key, what]) => html`<div><dt>${key.split("  ").map((one) => html`<kbd>${one}</kbd>`)}</dt><dd>${what}</dd></div>`)}</dl>
    <p class="quiet">While you type into a terminal, all keys go to the program.</p>
    <div class="buttons"><button onClick=${onClose} autofocus>Close</button></div>
  <//>`;
}
