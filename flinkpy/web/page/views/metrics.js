// All metrics of something, with their values now.

import { html, useMemo, useState } from "../vendor/preact-htm.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Search, matches } from "../parts/search.js";
import { Table } from "../parts/table.js";

const MOST = 60;  // values asked for at once
const COLUMNS = [
  { title: "Metric", cell: each => html`<code>${each.id}</code>`, sort: each => each.id },
  { title: "Value", cell: each => each.value, sort: each => Number(each.value), number: true },
];

// `path` has the route `metrics` below it
export function Metrics({ path }) {
  const [wanted, setWanted] = useState("");
  return html`<${Answer} from=${useLive(`${path}/metrics`)} missing="Metrics are not told here." show=${names => html`
    <${Search} label="Search metrics" value=${wanted} onChange=${setWanted} />
    <${Values} path=${path} names=${names} wanted=${wanted} />`} />`;
}

function Values({ path, names, wanted }) {
  const found = useMemo(() => names.map(each => each.id).filter(id => matches(id, wanted)).sort(), [names, wanted]);
  const asked = found.slice(0, MOST).map(encodeURIComponent).join(",");
  const values = useLive(asked ? `${path}/metrics?get=${asked}` : null);
  if (!found.length) return html`<p class="empty">No such metric.</p>`;
  return html`<${Answer} from=${values} show=${rows => html`
    <${Table} caption="Metrics" columns=${COLUMNS} rows=${rows} keyOf=${each => each.id} />
    ${found.length > MOST && html`<p class="quiet">${MOST} of ${found.length} metrics; search to see others.</p>`}`} />`;
}
