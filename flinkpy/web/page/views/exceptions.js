// Why a job failed, and each of its failures. A traceback ends with the user's line.

import { html } from "../vendor/preact-htm.js";
import { time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";

export function Exceptions({ id }) {
  return html`<${Answer} from=${useLive(`jobs/${id}/exceptions`)} show=${({ exceptionHistory: { entries, truncated } }) => entries.length === 0
    ? html`<p class="empty">No failures.</p>`
    : html`<ol class="failures">${entries.map((entry, index) => html`<li key=${`${entry.timestamp} ${entry.taskName}`}><${FailureEntry} of=${entry} open=${index === 0} /></li>`)}</ol>
      ${truncated && html`<p class="quiet">There were more; these are the latest.</p>`}`} />`;
}

function FailureEntry({ of, open }) {
  const [first, ...rest] = of.stacktrace.split("\n");
  return html`<details open=${open}>
    <summary><b class="error">${first}</b><span class="quiet">${time(of.timestamp)}${of.taskName ? ` · in ${of.taskName}` : ""}${place(of)}</span></summary>
    <pre class="text">${rest.length ? rest.map(line => html`<${Line} text=${line} />`) : first}</pre>
  </details>`;
}

const place = of => of.endpoint ? ` · on ${of.endpoint}` : of.location ? ` · on ${of.location}` : "";

// A place in a file stands out: there the user looks
const Line = ({ text }) => html`<span class=${/^\s*File "/.test(text) ? "place" : ""}>${text}</span>${"\n"}`;
