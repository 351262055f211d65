// Why a job failed, each of its failures, and what its scheduler did last.

import { html } from "../vendor/preact-htm.js";
import { time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Failure, grouped } from "../parts/failure.js";
import { Table } from "../parts/table.js";

export const Exceptions = ({ id }) => html`
  <${Answer} from=${useLive(`jobs/${id}/exceptions`)} show=${told => html`
    <${Failures} of=${told.exceptionHistory} />
    <${SchedulerEvents} of=${told["scheduler-events"] ?? []} />`} />`;

function Failures({ of: { entries, truncated } }) {
  if (entries.length === 0) return html`<p class="empty">No failures.</p>`;
  return html`<ol class="failures">${grouped(entries).map((entry, index) => html`
      <li key=${`${entry.timestamp} ${entry.taskName}`}><${Failure} of=${entry} open=${index === 0} /></li>`)}</ol>
    ${truncated && html`<p class="quiet">There were more; these are the latest.</p>`}`;
}

const COLUMNS = [
  { title: "Time", cell: ({ timestamp }) => time(timestamp), short: true },
  { title: "Event", cell: ({ event }) => event, short: true },
  { title: "Details", cell: ({ details }) => details },
  { title: "Decided", cell: ({ commands }) => counted(commands) },
];

// An archive of an earlier version has none
const SchedulerEvents = ({ of }) => of.length > 0 && html`<details>
  <summary>The scheduler's last ${of.length} events</summary>
  <${Table} caption="The scheduler's last events" columns=${COLUMNS} keyOf=${({ number }) => number}
    rows=${of.map((event, number) => ({ ...event, number })).reverse()} />
</details>`;

// DeployTasks × 2, SetTimer
function counted(commands) {
  const times = new Map();
  for (const command of commands) times.set(command, (times.get(command) ?? 0) + 1);
  return [...times].map(([command, count]) => count > 1 ? `${command} × ${count}` : command).join(", ");
}
