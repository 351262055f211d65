// Checkpoints of a job: how many, how long they took and how large they are, and each of them.

import { html } from "../vendor/preact-htm.js";
import { bytes, count, duration, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Facts } from "../parts/facts.js";
import { State } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { CheckpointDetails } from "./checkpoint.js";

export function Checkpoints({ job, words: [number] }) {
  const path = `jobs/${job.jid}/checkpoints`, answer = useLive(path), config = useLive(`${path}/config`, { once: true });
  if (number !== undefined) return html`<${CheckpointDetails} job=${job} number=${number} />`;
  return html`<${Answer} from=${answer} missing="This job takes no checkpoints." show=${of => html`
    <${Counts} of=${of.counts} />
    <div class="columns">
      <section><h2>Latest</h2><${Latest} of=${of.latest} /></section>
      ${config.data && html`<section><h2>How they are taken</h2><${Config} of=${config.data} /></section>`}
    </div>
    ${of.counts.completed > 0 && of.summary?.end_to_end_duration && html`<section><h2>In sum</h2><${Summary} of=${of.summary} /></section>`}
    <section><h2>History</h2><${Table} caption="Checkpoints, the newest first" columns=${columns(job.jid, job.now)} rows=${of.history} keyOf=${each => each.id}
      empty=${of.counts.total ? "The single checkpoints are not kept here." : "No checkpoint yet."} /></section>`} />`;
}

const Counts = ({ of }) => html`<dl class="tiles">${[["Completed", of.completed, "finished"], ["In progress", of.in_progress, "running"],
    ["Failed", of.failed, of.failed ? "failed" : "ended"], ["Restored from", of.restored, "ended"]].map(([title, value, kind]) => html`
  <div class="tile ${kind}" key=${title}><dt>${title}</dt><dd>${count(value)}</dd></div>`)}</dl>`;

function Latest({ of }) {
  const facts = [
    ["Completed", of.completed && html`number ${of.completed.id} · ${bytes(of.completed.state_size)} · ${duration(of.completed.end_to_end_duration)}${told(of.completed.external_path)}`],
    ["Savepoint", of.savepoint && html`number ${of.savepoint.id} · ${bytes(of.savepoint.state_size)}${told(of.savepoint.external_path)}`],
    ["Failed", of.failed && html`number ${of.failed.id} · ${time(of.failed.failure_timestamp)} · ${of.failed.failure_message}`],
    ["Restored from", of.restored && html`number ${of.restored.id} · ${time(of.restored.restore_timestamp)}${told(of.restored.external_path)}`],
  ].filter(([, value]) => value);
  return facts.length ? html`<${Facts} of=${facts} />` : html`<p class="empty">None yet.</p>`;
}

const told = path => path && path !== "<checkpoint-not-externally-addressable>" ? html`<br /><code>${path}</code>` : "";

const Config = ({ of }) => html`<${Facts} of=${[
  ["Every", of.interval > 0 ? duration(of.interval) : "only on request"], ["Guarantee", of.mode.replace("_", " ")], ["Given up after", duration(of.timeout)],
  ["Pause between", duration(of.min_pause)], ["At once", count(of.max_concurrent)], ["Unaligned", of.unaligned_checkpoints ? "yes" : "no"],
]} />`;

const PARTS = [["end_to_end_duration", "Duration", duration], ["checkpointed_size", "Written", bytes], ["state_size", "State", bytes], ["processed_data", "In-flight data processed", bytes], ["persisted_data", "In-flight data kept", bytes]];
const FIGURES = ["min", "avg", "max", "p50", "p95", "p99"];

function Summary({ of }) {
  const columns = [{ title: "Of all", cell: ([, title]) => title }, ...FIGURES.map(name => ({ title: name, number: true, cell: ([part, , format]) => format(of[part][name]) }))];
  return html`<${Table} caption="Checkpoints in sum" columns=${columns} rows=${PARTS.filter(([part]) => of[part])} keyOf=${([part]) => part} />`;
}

// One that is under way has taken as long as since its trigger
export const took = (each, now) => each.status === "IN_PROGRESS" ? `${duration(Math.max(now - each.trigger_timestamp, 0))} so far` : duration(each.end_to_end_duration);

const columns = (jid, now) => [
  { title: "Number", cell: each => html`<a href=${link("jobs", jid, "checkpoints", each.id)}>${each.id}</a>`, sort: each => each.id, number: true },
  { title: "State", cell: each => html`<${State} of=${each.status} />`, sort: each => each.status },
  { title: "Kind", cell: each => each.is_savepoint ? "savepoint" : "checkpoint", sort: each => String(each.is_savepoint) },
  { title: "Acknowledged", cell: each => `${count(each.num_acknowledged_subtasks)} of ${count(each.num_subtasks)}`, number: true },
  { title: "Triggered", short: true, cell: each => time(each.trigger_timestamp), sort: each => each.trigger_timestamp },
  { title: "Duration", cell: each => took(each, now), sort: each => each.end_to_end_duration, number: true },
  { title: "Written", cell: each => bytes(each.checkpointed_size), sort: each => each.checkpointed_size, number: true },
  { title: "State size", cell: each => bytes(each.state_size), sort: each => each.state_size, number: true },
];
