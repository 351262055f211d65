// How the subtasks of a vertex spend a second.

import { html } from "../vendor/preact-htm.js";
import { percent } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Load } from "../parts/load.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "Subtask", cell: each => each.subtask, sort: each => each.subtask, number: true },
  { title: "Level", cell: each => html`<b class="level ${each.backpressureLevel}">${each.backpressureLevel}</b>`, sort: each => each.ratio },
  { title: "A second", cell: each => html`<${Load} busy=${each.busyRatio} held=${each.ratio} />` },
  { title: "Idle", cell: each => percent(each.idleRatio), sort: each => each.idleRatio, number: true },
  { title: "Busy", cell: each => percent(each.busyRatio), sort: each => each.busyRatio, number: true },
  { title: "Back-pressured", cell: each => percent(each.ratio), sort: each => each.ratio, number: true },
];

export const BackPressure = ({ path }) => html`<${Answer} from=${useLive(`${path}/backpressure`)} show=${answer => html`
  <${Table} caption="Back-pressure of each subtask" columns=${COLUMNS} rows=${answer.subtasks || []} keyOf=${each => each.subtask} />
  <p class="quiet">Held up by those behind it: up to 10 % is ok, up to 50 % low, above that high. Of the last seconds.</p>`} />`;
