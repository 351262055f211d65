// Where the subtasks of a vertex run.

import { html } from "../vendor/preact-htm.js";
import { count, duration } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Executor } from "../parts/executor.js";
import { State, StateCounts } from "../parts/state.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "TaskExecutor", sort: each => each["taskmanager-id"], cell: each => html`<${Executor} id=${each["taskmanager-id"]} host=${each.endpoint} />` },
  { title: "State", cell: each => html`<${State} of=${each.status} />`, sort: each => each.status },
  { title: "Subtasks", cell: each => html`<${StateCounts} counts=${each["status-counts"]} />` },
  { title: "Records in", cell: each => count(each.metrics["read-records"]), sort: each => each.metrics["read-records"], number: true },
  { title: "Records out", cell: each => count(each.metrics["write-records"]), sort: each => each.metrics["write-records"], number: true },
  { title: "Duration", cell: each => duration(each.duration), sort: each => each.duration, number: true },
];

export const VertexTaskExecutors = ({ path }) => html`<${Answer} from=${useLive(`${path}/taskmanagers`)} show=${answer => html`
  <${Table} caption="TaskExecutors of this vertex" columns=${COLUMNS} rows=${answer.taskmanagers} keyOf=${each => each["taskmanager-id"]} />`} />`;
