// The processes that run tasks.

import { html } from "../vendor/preact-htm.js";
import { bytes, count, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "TaskExecutor", cell: each => html`<a href=${link("taskmanagers", each.id)}>${each.id}</a>`, sort: each => each.id },
  { title: "Address", cell: each => html`<code>${each.path}</code>`, sort: each => each.path },
  { title: "Last heartbeat", short: true, cell: each => time(each.timeSinceLastHeartbeat), sort: each => each.timeSinceLastHeartbeat },
  { title: "Slots", cell: each => count(each.slotsNumber), sort: each => each.slotsNumber, number: true },
  { title: "Free slots", cell: each => count(each.freeSlots), sort: each => each.freeSlots, number: true },
  { title: "Cores", cell: each => count(each.hardware?.cpuCores), sort: each => each.hardware?.cpuCores, number: true },
  { title: "Memory of the machine", cell: each => bytes(each.hardware?.physicalMemory), sort: each => each.hardware?.physicalMemory, number: true },
];

export const TaskExecutors = () => html`<h1>TaskExecutors</h1>
  <${Answer} from=${useLive("taskmanagers")} missing="This cluster does not tell of its TaskExecutors." show=${({ taskmanagers }) => html`
    <${Table} caption="TaskExecutors" columns=${COLUMNS} rows=${taskmanagers} keyOf=${each => each.id} empty="None runs now: they start with a job." />`} />`;
