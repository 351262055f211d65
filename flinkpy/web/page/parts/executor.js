// A TaskExecutor by its one name, which leads to it.

import { html } from "../vendor/preact-htm.js";
import { link } from "../lib/route.js";

// `id` begins with a bracket where a subtask has no place yet
export const Executor = ({ id, host }) => !id || id.startsWith("(") ? "–"
  : html`<a href=${link("taskmanagers", id)} title=${host || id}>${id}</a>`;
