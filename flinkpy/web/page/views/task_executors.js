// The processes that run tasks.

import { html, useMemo, useRef } from "../vendor/preact-htm.js";
import { bytes, count, percent, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Executor } from "../parts/executor.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "TaskExecutor", cell: each => html`<${Executor} id=${each.id} host=${each.path} />`, sort: each => each.id },
  { title: "Host", cell: each => each.host ? html`<code>${each.host}</code>` : html`<code>${each.path}</code>`, sort: each => each.host ?? each.path },
  { title: "Process", cell: each => each.pid ?? "–", sort: each => each.pid, number: true },
  { title: "Last heartbeat", short: true, cell: each => time(each.timeSinceLastHeartbeat), sort: each => each.timeSinceLastHeartbeat },
  { title: "Free slots", cell: each => `${count(each.freeSlots)} of ${count(each.slotsNumber)}`, sort: each => each.freeSlots, number: true },
  { title: "Tasks", cell: each => count(each.assignedTasks), sort: each => each.assignedTasks, number: true },
  { title: "CPU", cell: each => each.cpu === undefined ? "–" : `${percent(each.cpu / Math.max(each.hardware?.cpuCores ?? 1, 1))} of ${count(each.hardware?.cpuCores)}`, sort: each => each.cpu, number: true },
  { title: "Memory used", cell: each => `${bytes(each.rss)} of ${bytes(each.memoryLimit ?? each.hardware?.physicalMemory)}`, sort: each => each.rss, number: true },
  { title: "Jobs", cell: each => each.jobs?.length ? each.jobs.map((jid, index) => html`${index > 0 && ", "}<a href=${link("jobs", jid)}>${each.names.get(jid) ?? jid.slice(0, 8)}</a>`) : "–" },
];

export function TaskExecutors() {
  const figures = useFigures(), jobs = useLive("jobs/overview").data?.jobs, known = useLive("taskmanagers");
  const names = useMemo(() => new Map((jobs ?? []).map(job => [job.jid, job.name])), [jobs]);
  return html`<h1>TaskExecutors</h1>
  <${Answer} from=${known} missing="This cluster does not tell of its TaskExecutors." show=${({ taskmanagers }) => html`
    <${Table} caption="TaskExecutors" columns=${COLUMNS} rows=${taskmanagers.map(each => ({ ...each, ...figures.get(each.id), names }))} keyOf=${each => each.id} empty="None runs now: they start with a job." />`} />`;
}

// What each process uses now, by its id: processor time is told since its start, so the share of it needs two answers
function useFigures() {
  const told = useLive("taskmanagers/figures").data?.taskmanagers, before = useRef(new Map());
  return useMemo(() => {
    const now = new Map();
    for (const each of told ?? []) {
      const last = before.current.get(each.id), seconds = last ? (each.at - last.at) / 1000 : 0;
      const cpu = seconds > 0 ? (each.cpuSeconds - last.cpuSeconds) / seconds : last?.cpu;
      now.set(each.id, { at: each.at, cpuSeconds: each.cpuSeconds, rss: each.rss, memoryLimit: each.memoryLimit, cpu });
    }
    before.current = now;
    return now;
  }, [told]);
}
