// The state of a job, a vertex or a subtask; and how many of them are in which state.

import { html } from "../vendor/preact-htm.js";

const KINDS = {
  CREATED: "waiting", SCHEDULED: "waiting", DEPLOYING: "waiting", INITIALIZING: "waiting", RECONCILING: "waiting", PENDING: "waiting",
  RUNNING: "running", IN_PROGRESS: "running", FINISHED: "finished", COMPLETED: "finished", SUSPENDED: "ended",
  CANCELLING: "ended", CANCELING: "ended", CANCELED: "ended", DISCARDED: "ended",
  RESTARTING: "troubled", FAILING: "failed", FAILED: "failed",
};

const kind = state => KINDS[String(state).toUpperCase()] || "waiting";

export const State = ({ of }) => html`<span class="state ${kind(of)}">${of}</span>`;

// A strip with a part for each state, as wide as its share; read out as "2 running, 1 finished"
export function StateCounts({ counts }) {
  const there = Object.entries(counts).filter(([name, count]) => name !== "total" && count > 0);
  const total = there.reduce((sum, [, count]) => sum + count, 0);
  const told = there.map(([name, count]) => `${count} ${name.toLowerCase()}`).join(", ");
  return html`<span class="counts" title=${told}>
    <span class="strip" aria-hidden="true">${there.map(([name, count]) => html`<i class=${kind(name)} style=${{ width: `${100 * count / total}%` }}></i>`)}</span>
    <span>${told || "none"}</span>
  </span>`;
}
