// All vertices of a job in a table.

import { html, useMemo } from "../vendor/preact-htm.js";
import { bytes, count, shortName } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { told } from "../lib/watermark.js";
import { Load } from "../parts/load.js";
import { State } from "../parts/state.js";
import { Table } from "../parts/table.js";

export function Vertices({ job, vertices }) {
  const lowest = useLive(`jobs/${job.jid}/watermarks`).data?.vertices;
  const rows = useMemo(() => {
    const byId = new Map((lowest ?? []).map(each => [each.id, each.lowest]));
    return vertices.map(vertex => ({ ...vertex, watermark: byId.get(vertex.id) ?? null }));
  }, [vertices, lowest]);
  return html`<section class="vertices"><h2>Vertices</h2>
    <${Table} caption="All vertices" columns=${columns(job.jid)} rows=${rows} keyOf=${each => each.id} /></section>`;
}

const metric = (title, name, format) => ({ title, cell: each => format(each.metrics[name]), sort: each => each.metrics[name], number: true });

const columns = jid => [
  { title: "Vertex", cell: each => html`<a href=${link("jobs", jid, "graph", each.id)} title=${each.name}>${shortName(each.name)}</a>`, sort: each => each.name },
  { title: "State", short: true, cell: each => html`<${State} of=${each.status} />`, sort: each => each.status },
  { title: "Parallelism", cell: each => count(each.parallelism), sort: each => each.parallelism, number: true },
  metric("Records in", "read-records", count), metric("Records out", "write-records", count),
  metric("Bytes in", "read-bytes", bytes), metric("Bytes out", "write-bytes", bytes),
  { title: "A second", cell: each => html`<${Load} busy=${each.busy} held=${each.held} />`, sort: each => each.busy },
  { title: "Watermark", short: true, cell: each => told(each.watermark), sort: each => each.watermark },
];
