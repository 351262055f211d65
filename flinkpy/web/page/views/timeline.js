// When each vertex was in which state, and on request each of its subtasks with its earlier attempts; and when the job failed.

import { html, useState } from "../vendor/preact-htm.js";
import { clock, duration, shortName, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";

const ORDER = ["CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED"];
const TERMINAL = new Set(["FINISHED", "CANCELED", "FAILED"]);
const TICKS = 5;
const SHORT_MS = 10000;  // then the axis has milliseconds, too

export function Timeline({ job }) {
  const [open, setOpen] = useState(null);
  const failures = useLive(`jobs/${job.jid}/exceptions`).data?.exceptionHistory.entries ?? [];
  const from = job["start-time"], to = job["end-time"] > 0 ? job["end-time"] : job.now, span = Math.max(to - from, 1);
  const at = ms => `${Math.max(0, Math.min(100, 100 * (ms - from) / span))}%`;
  return html`<section class="timeline" aria-label="Timeline">
    <div class="axis" aria-hidden="true">${Array.from({ length: TICKS }, (_, tick) => html`<span style=${{ left: `${100 * tick / (TICKS - 1)}%` }}>${clock(from + span * tick / (TICKS - 1), span < SHORT_MS)}</span>`)}</div>
    <div class="lane"><span class="name">Failures</span><span class="track">${failures.map(each => html`
      <i key=${each.timestamp} class="mark" style=${{ left: at(each.timestamp) }} title="${time(each.timestamp)} ${each.exceptionName}"></i>`)}
      <span class="unseen">${failures.length ? failures.map(each => `${time(each.timestamp)} ${each.exceptionName}`).join(", ") : "none"}</span></span></div>
    ${job.vertices.map(vertex => html`<div key=${vertex.id}>
      <div class="lane"><button class="name" aria-expanded=${open === vertex.id} title=${vertex.name} onClick=${() => setOpen(open === vertex.id ? null : vertex.id)}>
          <i aria-hidden="true">${open === vertex.id ? "▾" : "▸"}</i> ${shortName(vertex.name)}</button>
        <span class="track"><${Bar} state=${vertex.status} begin=${vertex["start-time"]} end=${vertex["end-time"] > 0 ? vertex["end-time"] : to} at=${at} /></span></div>
      ${open === vertex.id && html`<${Subtasks} job=${job} vertex=${vertex} to=${to} at=${at} />`}
    </div>`)}
  </section>`;
}

const Subtasks = ({ job, vertex, to, at }) => html`<${Answer} from=${useLive(`jobs/${job.jid}/vertices/${vertex.id}/attempts`)}
  missing="The attempts of this vertex are not told here." show=${({ subtasks }) => subtasks.map(({ subtask, attempts }) => html`
    <div class="lane inner" key=${subtask}>
      <span class="name">subtask ${subtask}${attempts[0].attempt > 0 ? html` <small>attempt ${attempts[0].attempt + 1}</small>` : ""}</span>
      <span class="track">${[...attempts].reverse().map(each => html`<${Attempt} key=${each.attempt} of=${each} to=${to} at=${at} />`)}</span>
    </div>`)} />`;

const Attempt = ({ of, to, at }) => phases(of.timestamps, to).map(phase => html`
  <${Bar} key=${phase.state} ...${phase} at=${at} of="attempt ${of.attempt + 1} " because=${phase.state === "FAILED" ? of.failure : null} />`);

// The states that were entered, each until the next one. A terminal state is a moment.
function phases(timestamps, to) {
  const entered = ORDER.filter(state => timestamps[state] > 0).map(state => [state, timestamps[state]]).sort((a, b) => a[1] - b[1]);
  return entered.map(([state, begin], index) => ({ state, begin, end: entered[index + 1]?.[1] ?? (TERMINAL.has(state) ? begin : to) }));
}

function Bar({ state, begin, end, at, of = "", because }) {
  if (begin <= 0) return null;
  const says = `${of}${state} ${clock(begin)}${TERMINAL.has(state) ? "" : ` for ${duration(end - begin)}`}${because ? `: ${because}` : ""}`;
  return html`<i class="phase ${state.toLowerCase()}" style=${{ left: at(begin), width: `calc(${at(end)} - ${at(begin)})` }} title=${says}><span class="unseen">${says}</span></i>`;
}
