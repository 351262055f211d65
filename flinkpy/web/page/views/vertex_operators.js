// The operators of a vertex that have state, or rows that change: sums over its subtasks.

import { html } from "../vendor/preact-htm.js";
import { bytes, count } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Table } from "../parts/table.js";

const KINDS = [["-U", "UpdateBefore"], ["+U", "UpdateAfter"], ["-D", "Delete"]];
const OF_STATE = ["numKeyValueStateEntries", "stateBytes"];
const OF_CHANGES = ["In", "Out"].flatMap(way => KINDS.map(([, kind]) => `num${kind}Records${way}`));
const TOLD = new Set([...OF_STATE, ...OF_CHANGES]);
const RECORDS = new Set(["numRecordsIn", "numRecordsOut"]);
const COLUMNS = [
  { title: "Operator", cell: each => each.name, sort: each => each.name },
  { title: "State entries", cell: each => some(count, each.values.numKeyValueStateEntries), sort: each => each.values.numKeyValueStateEntries, number: true },
  { title: "State size", cell: each => some(bytes, each.values.stateBytes), sort: each => each.values.stateBytes, number: true },
  { title: "Changes in", cell: each => changes(each.values, "In"), short: true },
  { title: "Changes out", cell: each => changes(each.values, "Out"), short: true },
];

const some = (format, value) => value === undefined ? "–" : format(value);
const parted = id => { const at = id.lastIndexOf("."); return [id.slice(0, at), id.slice(at + 1)]; };

function changes(values, way) {
  if (!OF_CHANGES.some(name => name in values)) return "–";
  const kinds = KINDS.map(([sign, kind]) => [sign, values[`num${kind}Records${way}`] ?? 0]);
  const added = (values[`numRecords${way}`] ?? 0) - kinds.reduce((sum, [, number]) => sum + number, 0);
  return [["+I", added], ...kinds].filter(([, number]) => number).map(([sign, number]) => `${sign} ${count(number)}`).join(", ") || "none";
}

export function VertexOperators({ path }) {
  const names = (useLive(`${path}/subtasks/metrics`).data ?? []).map(each => each.id);
  const told = new Set(names.filter(id => TOLD.has(parted(id)[1])).map(id => parted(id)[0]).filter(Boolean));
  const asked = names.filter(id => told.has(parted(id)[0]) && (TOLD.has(parted(id)[1]) || RECORDS.has(parted(id)[1])));
  const sums = useLive(asked.length ? `${path}/subtasks/metrics?agg=sum&get=${asked.map(encodeURIComponent).join(",")}` : null).data ?? [];
  const operators = new Map();
  for (const { id, sum } of sums) {
    const [name, metric] = parted(id);
    if (!operators.has(name)) operators.set(name, { name, values: {} });
    operators.get(name).values[metric] = sum;
  }
  return operators.size > 0 && html`<h3>State, and rows that change</h3>
    <${Table} caption="Operators" columns=${COLUMNS} rows=${[...operators.values()]} keyOf=${each => each.name} />`;
}
