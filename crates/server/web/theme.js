// Light, dark, or as the system has it.

import { html, useState } from "./html.js";

const KEY = "lastbyte-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const stored = () => localStorage.getItem(KEY) ?? "system";

export function applyTheme() {
  document.documentElement.dataset.theme = stored();
}

/** Whether it is dark now. */
export const isDark = () => stored() === "dark" || (stored() === "system" && matchMedia("(prefers-color-scheme: dark)").matches);

export function ThemeSwitch() {
  const [theme, setTheme] = useState(stored);
  const change = () => {
    localStorage.setItem(KEY, NEXT[theme]);
    applyTheme();
    setTheme(NEXT[theme]);
    window.dispatchEvent(new Event("theme"));
  };
  const name = { system: "System", light: "Light", dark: "Dark" }[theme];
  return html`<button class="plain" onClick=${change} title="Colours: light, dark or as the system has it">
    <span aria-hidden="true">◐</span> <span class="wide">${name}</span><span class="hidden"> colours</span></button>`;
}
