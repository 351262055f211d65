// One vertex: what its subtasks do.

import { html } from "../vendor/preact-htm.js";
import { operators } from "../lib/format.js";
import { link } from "../lib/route.js";
import { State } from "../parts/state.js";
import { Tabs } from "../parts/tabs.js";
import { Accumulators } from "./accumulators.js";
import { BackPressure } from "./back_pressure.js";
import { FlameGraph } from "./flame_graph.js";
import { Metrics } from "./metrics.js";
import { Subtasks } from "./subtasks.js";
import { VertexOperators } from "./vertex_operators.js";
import { VertexOverview } from "./vertex_overview.js";
import { VertexTaskExecutors } from "./vertex_task_executors.js";
import { Watermarks } from "./watermarks.js";

const TABS = [["overview", "Overview"], ["subtasks", "Subtasks"], ["taskmanagers", "TaskExecutors"], ["watermarks", "Watermarks"],
              ["backpressure", "Back-pressure"], ["flamegraph", "Flame graph"], ["metrics", "Metrics"], ["accumulators", "Accumulators"]];

export function VertexPanel({ job, vertex, history, tab = "overview" }) {
  const path = `jobs/${job.jid}/vertices/${vertex.id}`;
  return html`<section class="panel" aria-labelledby="vertex-title">
    <div class="head"><h2 id="vertex-title">${operators(vertex.name).map((name, index) => html`${index > 0 && html`<span class="quiet"> → </span>`}${name}`)}</h2>
      <${State} of=${vertex.status} /> <a class="close" href=${link("jobs", job.jid)} aria-label="Close the vertex">✕</a></div>
    <${Tabs} label="Views of the vertex" tabs=${TABS} current=${tab} to=${word => link("jobs", job.jid, "graph", vertex.id, word)} />
    ${tab === "subtasks" ? html`<${Subtasks} path=${path} />`
      : tab === "taskmanagers" ? html`<${VertexTaskExecutors} path=${path} />`
      : tab === "watermarks" ? html`<${Watermarks} path=${path} />`
      : tab === "backpressure" ? html`<${BackPressure} path=${path} />`
      : tab === "flamegraph" ? html`<${FlameGraph} path=${path} parallelism=${vertex.parallelism} />`
      : tab === "metrics" ? html`<${Metrics} path=${path} />`
      : tab === "accumulators" ? html`<${Accumulators} path=${path} />`
      : html`<${VertexOverview} vertex=${vertex} points=${history.points(vertex.id)} /><${VertexOperators} path=${path} />`}
  </section>`;
}
