// Why a job failed, and each of its failures.

import { html } from "../vendor/preact-htm.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Failure, grouped } from "../parts/failure.js";

export function Exceptions({ id }) {
  return html`<${Answer} from=${useLive(`jobs/${id}/exceptions`)} show=${({ exceptionHistory: { entries, truncated } }) => entries.length === 0
    ? html`<p class="empty">No failures.</p>`
    : html`<ol class="failures">${grouped(entries).map((entry, index) => html`<li key=${`${entry.timestamp} ${entry.taskName}`}><${Failure} of=${entry} open=${index === 0} /></li>`)}</ol>
      ${truncated && html`<p class="quiet">There were more; these are the latest.</p>`}`} />`;
}
