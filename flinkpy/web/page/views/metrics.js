// All metrics of something, with their values now.

import { html, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Chart } from "../parts/chart.js";
import { Search, matches } from "../parts/search.js";
import { Table } from "../parts/table.js";

const MOST = 60;  // values asked for at once
const POINTS = 300;
const LIMITS = { "-9223372036854775808": "none yet", "9223372036854775807": "the end" };  // of watermarks
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const formatted = value => Number.isFinite(value) ? short.format(value) : "–";
const SERIES = [{ label: "now", colour: "--in", format: formatted }];
const asNumber = value => value in LIMITS ? NaN : Number(value);

const columns = (chosen, choose) => [
  { title: "Metric", cell: each => html`<code>${each.id}</code>`, sort: each => each.id },
  { title: "Value", cell: each => LIMITS[each.value] ?? each.value, sort: each => Number(each.value), number: true },
  { title: "Chart", cell: each => Number.isNaN(asNumber(each.value)) ? "–" : html`
    <button aria-pressed=${each.id === chosen} aria-label="Chart of ${each.id}" onClick=${() => choose(each.id === chosen ? null : each.id)}>Chart</button>` },
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
  const [chosen, choose] = useState(null), kept = useRef(new Map());  // the points of each metric since this view looks
  const points = useMemo(() => {
    for (const { id, value } of values.data ?? []) {
      if (!kept.current.has(id)) kept.current.set(id, []);
      const known = kept.current.get(id);
      known.push([Date.now() / 1000, asNumber(value)]);
      if (known.length > POINTS) known.shift();
    }
    const of = kept.current.get(chosen) ?? [];
    return [of.map(point => point[0]), of.map(point => point[1])];
  }, [values.data, chosen]);
  if (!found.length) return html`<p class="empty">No such metric.</p>`;
  return html`<${Answer} from=${values} show=${rows => html`
    ${chosen && html`<${Chart} key=${chosen} title=${chosen} series=${SERIES} data=${points} format=${formatted} />`}
    <${Table} caption="Metrics" columns=${columns(chosen, choose)} rows=${rows} keyOf=${each => each.id} />
    ${found.length > MOST && html`<p class="quiet">${MOST} of ${found.length} metrics; search to see others.</p>`}`} />`;
}
