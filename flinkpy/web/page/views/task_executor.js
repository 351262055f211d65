// One TaskExecutor: its memory, metrics, logs and threads.

import { html } from "../vendor/preact-htm.js";
import { bytes, count, duration, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Facts } from "../parts/facts.js";
import { Memory } from "../parts/memory.js";
import { Tabs } from "../parts/tabs.js";
import { Logs, Output, Threads } from "./logs.js";
import { Metrics } from "./metrics.js";

const TABS = [["overview", "Overview"], ["metrics", "Metrics"], ["logs", "Logs"], ["stdout", "Output"], ["threads", "Threads"]];

export function TaskExecutorView({ id, words: [tab = "overview", ...rest] }) {
  const path = `taskmanagers/${encodeURIComponent(id)}`, to = word => link("taskmanagers", id, word);
  return html`<p><a href=${link("taskmanagers")}>← All TaskExecutors</a></p>
    <h1>${id}</h1>
    <${Tabs} label="Views of the TaskExecutor" tabs=${TABS} current=${tab} to=${to} />
    ${tab === "metrics" ? html`<${Metrics} path=${path} />`
      : tab === "logs" ? html`<${Logs} path=${path} name=${rest[0]} to=${name => link("taskmanagers", id, "logs", name)} />`
      : tab === "stdout" ? html`<${Output} path=${path} />`
      : tab === "threads" ? html`<${Threads} path=${path} />`
      : html`<${Overview} path=${path} />`}`;
}

const Overview = ({ path }) => html`<${Answer} from=${useLive(path)} missing="There is no such TaskExecutor (any more), or this cluster does not tell of them." show=${of => html`
  <${Facts} of=${[
    ["Host", of.host ?? "–"], ["Process", of.pid ?? "–"], ["Address", html`<code>${of.path}</code>`], ["Last heartbeat", time(of.timeSinceLastHeartbeat)],
    ["Slots", `${count(of.slotsNumber)}, of them free ${count(of.freeSlots)}`], ["Cores", count(of.hardware?.cpuCores)],
    ["Memory of the machine", `${bytes(of.hardware?.physicalMemory)}${of.hardware?.freeMemory > 0 ? `, of it free ${bytes(of.hardware.freeMemory)}` : ""}`],
    ["Tasks", count(of.assignedTasks)],
    ["Jobs", of.jobs?.length ? of.jobs.map((jid, index) => html`${index > 0 && ", "}<a href=${link("jobs", jid)}><code>${jid.slice(0, 8)}</code></a>`) : "none"],
  ]} />
  <${Memory} sizes=${of.memoryConfiguration} memory=${of.memory} />
  ${of.metrics && html`<h2>Process</h2><${Facts} of=${figures(of.metrics)} />`}`} />`;

// What Flink tells of a Java process says less here than what Python's process tells; without that it is shown under its own names
const figures = metrics => metrics.python
  ? [["Memory in use", bytes(metrics.python.rss)], ["Threads", count(metrics.python.threads)], ["CPU time", duration(metrics.python.cpuSeconds * 1000)]]
  : Object.entries(metrics).filter(([, value]) => typeof value === "number" && value > 0)
  .map(([name, value]) => [name, /memory|bytes|rss|heap/i.test(name) ? bytes(value) : count(value)]);
