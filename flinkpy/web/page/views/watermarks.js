// How far event time has come in each subtask.

import { html } from "../vendor/preact-htm.js";
import { duration } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { ENDED, NONE, told } from "../lib/watermark.js";
import { Answer } from "../parts/answer.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "Subtask", cell: each => each.subtask, sort: each => each.subtask, number: true },
  { title: "Watermark", cell: each => told(each.watermark), sort: each => each.watermark },
  { title: "Behind the furthest", cell: each => each.behind === null ? "–" : duration(each.behind), sort: each => each.behind, number: true },
];

export const Watermarks = ({ path }) => html`<${Answer} from=${useLive(`${path}/watermarks`)} missing="Watermarks are not told here." show=${answer => html`
  <${Table} caption="Watermarks of the subtasks" columns=${COLUMNS} rows=${rows(answer)} keyOf=${each => each.subtask}
    empty="No watermark has arrived: the job has no event time, or its sources have not read far enough." />`} />`;

function rows(answer) {
  const found = answer.filter(each => each.id.endsWith("currentInputWatermark")).map(each => ({ subtask: parseInt(each.id, 10), watermark: Number(each.value) }));
  const there = found.map(each => each.watermark).filter(watermark => watermark > NONE && watermark < ENDED);
  const furthest = Math.max(...there);
  return found.map(each => ({ ...each, behind: there.includes(each.watermark) ? furthest - each.watermark : null }));
}
