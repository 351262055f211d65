// One checkpoint: what each vertex and each subtask took for it.

import { html, useState } from "../vendor/preact-htm.js";
import { bytes, count, duration, shortName, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Facts } from "../parts/facts.js";
import { State } from "../parts/state.js";
import { Table } from "../parts/table.js";

export function CheckpointDetails({ job, number }) {
  const path = `jobs/${job.jid}/checkpoints/details/${number}`;
  return html`<p><a href=${link("jobs", job.jid, "checkpoints")}>← All checkpoints</a></p>
    <h2>Checkpoint ${number}</h2>
    <${Answer} from=${useLive(path)} missing="This checkpoint is not kept any more." show=${of => html`
      <${Facts} of=${[
        ["State", html`<${State} of=${of.status} />`], ["Triggered", time(of.trigger_timestamp)], ["Duration", of.status === "IN_PROGRESS" ? `${duration(Math.max(job.now - of.trigger_timestamp, 0))} so far` : duration(of.end_to_end_duration)],
        ["Written", bytes(of.checkpointed_size)], ["State size", bytes(of.state_size)], ["Path", of.external_path ? html`<code>${of.external_path}</code>` : "–"],
        ...(of.failure_message ? [["Failed", of.failure_message]] : []),
      ]} />
      ${of.status === "IN_PROGRESS" && html`<${Missing} job=${job} of=${of} />`}
      ${job.vertices.filter(vertex => of.tasks?.[vertex.id]).map(vertex => html`<${OfVertex} key=${vertex.id} path=${path} vertex=${vertex} of=${of.tasks[vertex.id]} />`)}`} />`;
}

// Who is waited for
function Missing({ job, of }) {
  const waited = job.vertices.filter(vertex => of.tasks?.[vertex.id]?.missing?.length);
  return waited.length ? html`<div class="problem waits"><b>Not acknowledged yet</b><ul>${waited.map(vertex => html`<li key=${vertex.id}>
    <a href=${link("jobs", job.jid, "graph", vertex.id, "subtasks")}>${shortName(vertex.name)}</a>: ${subtasks(of.tasks[vertex.id])}</li>`)}</ul></div>`
    : html`<p class="quiet">All subtasks have acknowledged; the checkpoint is being stored.</p>`;
}

function subtasks({ missing, num_subtasks: all }) {
  if (missing.length === all) return all === 1 ? "its only subtask" : `all ${all} subtasks`;
  const told = missing.slice(0, 20).join(", ");
  return `subtask${missing.length > 1 ? "s" : ""} ${told}${missing.length > 20 ? ` and ${missing.length - 20} more` : ""}`;
}

function OfVertex({ path, vertex, of }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${event => setOpen(event.target.open)}>
    <summary><b>${shortName(vertex.name)}</b> <span class="quiet">${count(of.num_acknowledged_subtasks)} of ${count(of.num_subtasks)} · ${duration(of.end_to_end_duration)} · ${bytes(of.checkpointed_size)}</span></summary>
    ${isOpen && html`<${OfSubtasks} path=${`${path}/subtasks/${vertex.id}`} />`}
  </details>`;
}

const OfSubtasks = ({ path }) => html`<${Answer} from=${useLive(path)} missing="The subtasks' shares are not told here." show=${({ subtasks }) => html`
  <${Table} caption="Subtasks in this checkpoint" columns=${COLUMNS} rows=${subtasks} keyOf=${each => each.index} />`} />`;

const COLUMNS = [
  { title: "Subtask", cell: each => each.index, sort: each => each.index, number: true },
  { title: "State", cell: each => html`<${State} of=${each.status} />`, sort: each => each.status },
  { title: "Duration", cell: each => duration(each.end_to_end_duration), sort: each => each.end_to_end_duration, number: true },
  { title: "Start delay", cell: each => duration(each.start_delay), sort: each => each.start_delay, number: true },
  { title: "Alignment", cell: each => duration(each.alignment?.duration), sort: each => each.alignment?.duration, number: true },
  { title: "Sync", cell: each => duration(each.checkpoint?.sync), sort: each => each.checkpoint?.sync, number: true },
  { title: "Async", cell: each => duration(each.checkpoint?.async), sort: each => each.checkpoint?.async, number: true },
  { title: "Written", cell: each => bytes(each.checkpointed_size), sort: each => each.checkpointed_size, number: true },
  { title: "State size", cell: each => bytes(each.state_size), sort: each => each.state_size, number: true },
];
