// Light, dark, or as the reader's system has it.

import { store } from "./store.js";

const KEY = "flinkpy.theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };

export const theme = store(localStorage.getItem(KEY) || "auto");

export function showTheme() {
  document.documentElement.dataset.theme = theme.get();
}

export function nextTheme() {
  theme.set(NEXT[theme.get()] || "auto");
  localStorage.setItem(KEY, theme.get());
  showTheme();
}

// A colour of the style sheet as a canvas needs it
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
