// Failures of a job. A traceback ends with the user's line.

import { html } from "../vendor/preact-htm.js";
import { time } from "../lib/format.js";
import { Executor } from "./executor.js";

const SUBTASK = / ?\(\d+\/\d+\)(#\d+)?/g;  // which of them, and its attempt

// Equal ones become one, whichever subtask and attempt it was, with how often it was and since when: entries are the newest first
export function grouped(entries) {
  const groups = new Map();
  for (const entry of entries) {
    const key = entry.stacktrace.replaceAll(SUBTASK, ""), known = groups.get(key);
    if (known) {
      known.times += 1;
      known.since = entry.timestamp;
    } else groups.set(key, { ...entry, times: 1, since: entry.timestamp });
  }
  return [...groups.values()];
}

export function Failure({ of, open }) {
  const [first, ...rest] = of.stacktrace.split("\n");
  const often = of.times > 1 ? ` · ${of.times} times since ${time(of.since)}` : "";
  return html`<details open=${open}>
    <summary><b class="error">${first}</b>${of.times > 1 && html` <b class="times">× ${of.times}</b>`}
      <span class="quiet">${time(of.timestamp)}${often}${of.taskName ? ` · in ${of.taskName}` : ""}${of.taskManagerId && html` · on <${Executor} id=${of.taskManagerId} host=${of.endpoint} />`}</span></summary>
    <pre class="text">${rest.length ? rest.map(line => html`<${Line} text=${line} />`) : first}</pre>
  </details>`;
}

// A place in a file stands out: there the user looks
const Line = ({ text }) => html`<span class=${/^\s*File "/.test(text) ? "place" : ""}>${text}</span>${"\n"}`;
