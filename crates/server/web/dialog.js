// A dialog over the page. Esc closes it.

import { html, useEffect, useRef } from "./html.js";

export function Dialog({ title, onClose, children }) {
  const element = useRef();
  useEffect(() => {
    element.current.showModal();
  }, []);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onClose=${onClose} onKeyDown=${(event) => event.stopPropagation()}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`;
}
