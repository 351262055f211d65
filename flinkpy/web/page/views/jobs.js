// All jobs: what runs, and what has ended.

import { html, useMemo, useState } from "../vendor/preact-htm.js";
import { count, duration, time } from "../lib/format.js";
import { isHistory } from "../lib/history_server.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { useStore } from "../lib/store.js";
import { Answer } from "../parts/answer.js";
import { Search, matches } from "../parts/search.js";
import { State, StateCounts } from "../parts/state.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "Name", cell: job => html`<a href=${link("jobs", job.jid)}>${job.name}</a>`, sort: job => job.name },
  { title: "State", short: true, cell: job => html`<${State} of=${job.state} />`, sort: job => job.state },
  { title: "Restarts", cell: job => job.restarts > 0 ? html`<b class="times" title=${job["last-failure"]?.summary ?? ""}>${count(job.restarts)}</b>` : count(job.restarts), sort: job => job.restarts, number: true },
  { title: "Last failure", cell: job => job["last-failure"] ? html`<a class="error" href=${link("jobs", job.jid, "exceptions")}>${job["last-failure"].summary}</a>` : "–", sort: job => job["last-failure"]?.timestamp },
  { title: "Tasks", short: true, cell: job => html`<${StateCounts} counts=${job.tasks} />`, sort: job => job.tasks.total },
  { title: "Started", short: true, cell: job => time(job["start-time"]), sort: job => job["start-time"] },
  { title: "Duration", cell: job => duration(job.duration), sort: job => job.duration, number: true },
  { title: "Id", short: true, cell: job => html`<code class="quiet">${job.jid.slice(0, 8)}</code>`, sort: job => job.jid },
];
const ENDED = new Set(["FINISHED", "FAILED", "CANCELED"]);
const MANY = 10;

export function Jobs() {
  const ofHistory = useStore(isHistory), overview = useLive("overview"), jobs = useLive("jobs/overview");
  return html`
    <h1>Jobs</h1>
    <${Answer} from=${overview} show=${cluster => html`<${Cluster} of=${cluster} hasProcesses=${!ofHistory} />`} />
    <${Answer} from=${jobs} show=${answer => html`<${Lists} jobs=${answer.jobs} hasRunning=${!ofHistory} />`} />`;
}

const Cluster = ({ of, hasProcesses }) => html`<dl class="tiles">
  ${hasProcesses && html`<${Tile} title="Running" value=${of["jobs-running"]} kind="running" />`}
  <${Tile} title="Finished" value=${of["jobs-finished"]} kind="finished" />
  <${Tile} title="Canceled" value=${of["jobs-cancelled"]} kind="ended" />
  <${Tile} title="Failed" value=${of["jobs-failed"]} kind=${of["jobs-failed"] ? "failed" : "ended"} />
  ${hasProcesses && html`<${Tile} title="TaskExecutors" value=${of.taskmanagers} />
    <${Tile} title="Slots in use" value=${of["slots-total"] - of["slots-available"]} of=${of["slots-total"]} />`}
</dl>`;

const Tile = ({ title, value, of, kind = "" }) => html`<div class="tile ${kind}"><dt>${title}</dt><dd>${count(value)}${of === undefined ? "" : html` <small>of ${count(of)}</small>`}</dd></div>`;

function Lists({ jobs, hasRunning }) {
  const [wanted, setWanted] = useState("");
  const [running, ended] = useMemo(() => {
    const found = jobs.filter(job => matches(`${job.name} ${job.jid} ${job.state}`, wanted)).sort((a, b) => b["start-time"] - a["start-time"]);
    return [found.filter(job => !ENDED.has(job.state)), found.filter(job => ENDED.has(job.state))];
  }, [jobs, wanted]);
  const keyOf = job => job.jid;
  const none = wanted ? "No such job." : "None.";
  return html`
    ${jobs.length > MANY && html`<${Search} label="Search jobs" value=${wanted} onChange=${setWanted} />`}
    ${hasRunning && html`<section><h2>Running</h2><${Table} caption="Running jobs" columns=${COLUMNS} rows=${running} keyOf=${keyOf} empty=${none} /></section>`}
    <section><h2>Ended</h2><${Table} caption="Ended jobs" columns=${COLUMNS} rows=${ended} keyOf=${keyOf} empty=${none} /></section>`;
}
