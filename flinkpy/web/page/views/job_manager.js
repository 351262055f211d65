// The process that leads: its configuration, metrics, logs and threads.

import { html } from "../vendor/preact-htm.js";
import { useLive } from "../lib/live.js";
import { link } from "../lib/route.js";
import { Answer } from "../parts/answer.js";
import { Facts } from "../parts/facts.js";
import { Settings } from "../parts/settings.js";
import { Tabs } from "../parts/tabs.js";
import { Logs, Output, Threads } from "./logs.js";
import { Metrics } from "./metrics.js";

const TABS = [["configuration", "Configuration"], ["environment", "Environment"], ["metrics", "Metrics"], ["logs", "Logs"], ["stdout", "Output"], ["threads", "Threads"]];
const PATH = "jobmanager";

export function JobManager({ words: [tab = "configuration", ...rest] }) {
  return html`<h1>JobManager</h1>
    <${Tabs} label="Views of the JobManager" tabs=${TABS} current=${tab} to=${word => link("jobmanager", word)} />
    ${tab === "environment" ? html`<${Environment} />`
      : tab === "metrics" ? html`<${Metrics} path=${PATH} />`
      : tab === "logs" ? html`<${Logs} path=${PATH} name=${rest[0]} to=${name => link("jobmanager", "logs", name)} />`
      : tab === "stdout" ? html`<${Output} path=${PATH} />`
      : tab === "threads" ? html`<${Threads} path=${PATH} />`
      : html`<${Options} />`}`;
}

const Options = () => html`<${Answer} from=${useLive(`${PATH}/config`)} missing="The cluster's configuration is not told here." show=${pairs => html`
  <${Settings} caption="Options of the cluster" pairs=${pairs.map(({ key, value }) => [key, value])} empty="The cluster was started without options." />`} />`;

const Environment = () => html`<${Answer} from=${useLive(`${PATH}/environment`)} missing="The environment is not told here." show=${of => html`
  <${Facts} of=${Object.entries(of.jvm ?? {}).filter(([, value]) => typeof value === "string")} />
  <${List} title="Options" of=${of.jvm?.options} /><${List} title="Paths" of=${of.classpath} />`} />`;

const List = ({ title, of }) => of?.length ? html`<h2>${title}</h2><ul class="plain">${of.map(each => html`<li key=${each}><code>${each}</code></li>`)}</ul>` : null;
