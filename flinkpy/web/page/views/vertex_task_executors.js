// Where the subtasks of a vertex run.

import { html } from "../vendor/preact-htm.js";
import { count, duration } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { State, StateCounts } from "../parts/state.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "TaskExecutor", sort: each => each.endpoint, cell: each => each["taskmanager-id"].startsWith("(") ? "not placed yet"
    : html`<a href=${link("taskmanagers", each["taskmanager-id"])}>${each.endpoint}</a>` },
  { title: "State", cell: each => html`<${State} of=${each.status} />`, sort: each => each.status },
  { title: "Subtasks", cell: each => html`<${StateCounts} counts=${each["status-counts"]} />` },
  { title: "Records in", cell: each => count(each.metrics["read-records"]), sort: each => each.metrics["read-records"], number: true },
  { title: "Records out", cell: each => count(each.metrics["write-records"]), sort: each => each.metrics["write-records"], number: true },
  { title: "Duration", cell: each => duration(each.duration), sort: each => each.duration, number: true },
];

export const VertexTaskExecutors = ({ path }) => html`<${Answer} from=${useLive(`${path}/taskmanagers`)} show=${answer => html`
  <${Table} caption="TaskExecutors of this vertex" columns=${COLUMNS} rows=${answer.taskmanagers} keyOf=${each => each["taskmanager-id"]} />`} />`;
