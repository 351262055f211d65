// The subtasks of a vertex: their state, attempt and place, and what they have done.

import { html } from "../vendor/preact-htm.js";
import { bytes, count, duration, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Executor } from "../parts/executor.js";
import { State } from "../parts/state.js";
import { Table } from "../parts/table.js";

const metric = (title, name, format = count) => ({ title, cell: each => format(each.metrics[name]), sort: each => each.metrics[name], number: true });

const COLUMNS = [
  { title: "Subtask", cell: each => each.subtask, sort: each => each.subtask, number: true },
  { title: "State", cell: each => html`<${State} of=${each.status} />`, sort: each => each.status },
  { title: "Attempt", cell: each => each.attempt + 1, sort: each => each.attempt, number: true },
  metric("Records in", "read-records"), metric("Records out", "write-records"),
  metric("Busy", "accumulated-busy-time", duration), metric("Back-pressured", "accumulated-backpressured-time", duration),
  { title: "Started", short: true, cell: each => time(each["start-time"]), sort: each => each["start-time"] },
  { title: "Duration", cell: each => duration(each.duration), sort: each => each.duration, number: true },
  { title: "TaskExecutor", sort: each => each["taskmanager-id"], cell: each => html`<${Executor} id=${each["taskmanager-id"]} host=${each.endpoint} />` },
];
const BYTES = [metric("Bytes in", "read-bytes", bytes), metric("Bytes out", "write-bytes", bytes)];

export const Subtasks = ({ path }) => html`<${Answer} from=${useLive(path)} show=${({ subtasks }) => html`
  <${Table} caption="Subtasks" rows=${subtasks} keyOf=${each => each.subtask} empty="The subtasks are not there yet."
    columns=${subtasks.some(each => each.metrics["read-bytes-complete"] || each.metrics["write-bytes-complete"]) ? COLUMNS.toSpliced(5, 0, ...BYTES) : COLUMNS} />`} />`;
