// What a job was started with.

import { html } from "../vendor/preact-htm.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Facts } from "../parts/facts.js";
import { Settings } from "../parts/settings.js";

export function Configuration({ id }) {
  return html`<${Answer} from=${useLive(`jobs/${id}/config`)} show=${({ "execution-config": config }) => html`
    <${Facts} of=${[["Parallelism", config["job-parallelism"]], ["Restart strategy", config["restart-strategy"]], ["Object reuse", config["object-reuse-mode"] ? "on" : "off"]]} />
    <${Settings} caption="Options of the job" pairs=${Object.entries(config["user-config"])} empty="The job has no options of its own." />`} />`;
}
