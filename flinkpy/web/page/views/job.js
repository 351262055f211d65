// One job: its head, why it failed, and one of its views.

import { html, useMemo } from "../vendor/preact-htm.js";
import { duration, time } from "../lib/format.js";
import { History } from "../lib/history.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Failure } from "../parts/failure.js";
import { State } from "../parts/state.js";
import { Tabs } from "../parts/tabs.js";
import { Actions } from "./actions.js";
import { Checkpoints } from "./checkpoints.js";
import { Configuration } from "./configuration.js";
import { Exceptions } from "./exceptions.js";
import { GraphView } from "./graph.js";
import { Timeline } from "./timeline.js";

const TABS = [["graph", "Graph"], ["timeline", "Timeline"], ["checkpoints", "Checkpoints"], ["exceptions", "Exceptions"], ["configuration", "Configuration"]];
const IN_TROUBLE = new Set(["FAILED", "FAILING", "RESTARTING"]);

export function JobView({ id, words: [tab = "graph", ...rest] }) {
  const job = useLive(`jobs/${id}`), loads = useLive(`jobs/${id}/loads`).data?.vertices, history = useMemo(() => new History(), []);
  const vertices = useMemo(() => job.data && history.update(job.data, loads ?? []), [job.data, loads]);
  return html`<${Answer} from=${job} missing=${html`There is no job ${id}. <a href=${link("jobs")}>All jobs</a>`} show=${data => html`
    <${Head} job=${data} />
    ${tab !== "exceptions" && IN_TROUBLE.has(data.state) && html`<${Why} id=${id} />`}
    <${Tabs} label="Views of the job" tabs=${TABS} current=${tab} to=${word => link("jobs", id, word)} />
    ${tab === "timeline" ? html`<${Timeline} job=${data} />`
      : tab === "checkpoints" ? html`<${Checkpoints} job=${data} words=${rest} />`
      : tab === "exceptions" ? html`<${Exceptions} id=${id} />`
      : tab === "configuration" ? html`<${Configuration} id=${id} />`
      : html`<${GraphView} job=${data} vertices=${vertices} history=${history} words=${rest} />`}`} />`;
}

function Head({ job }) {
  return html`<div class="head">
    <h1>${job.name}</h1> <${State} of=${job.state} />
    <span class="quiet">${job["job-type"]} · started ${time(job["start-time"])} · ${duration(job.duration)} · <code title=${job.jid}>${job.jid}</code></span>
    <${Actions} job=${job} />
  </div>
  ${job.restarts > 0 && html`<p class="restarts"><b>${job.restarts === 1 ? "1 restart" : `${job.restarts} restarts`}</b>${job["last-failure"] && html`
    <span class="quiet"> · the last failure ${time(job["last-failure"].timestamp)}:</span> <a href=${link("jobs", job.jid, "exceptions")}>${job["last-failure"].summary}</a>`}</p>`}`;
}

// Of a job that has failed, or is about to start again: why, above everything else
function Why({ id }) {
  const latest = useLive(`jobs/${id}/exceptions?maxExceptions=1`).data?.exceptionHistory.entries[0];
  return latest ? html`<div class="failures why" role="alert"><${Failure} of=${latest} open=${true} /></div>` : null;
}
