// How a vertex has done since this page looks: records per second, and how busy it was.

import { html, useMemo } from "../vendor/preact-htm.js";
import { bytes, count, duration, percent, rate } from "../lib/format.js";
import { Chart } from "../parts/chart.js";
import { Facts } from "../parts/facts.js";
import { StateCounts } from "../parts/state.js";

const RECORDS = [{ label: "in", colour: "--in", format: rate }, { label: "out", colour: "--out", format: rate }];
const TIME = [{ label: "busy", colour: "--busy", format: value => percent(value / 100) }, { label: "back-pressured", colour: "--held", format: value => percent(value / 100) }];
const ENDED = new Set(["FINISHED", "FAILED", "CANCELED"]);
const percentTick = value => `${value} %`;

export function VertexOverview({ vertex, points }) {
  const metrics = vertex.metrics, last = points.length ? points[points.length - 1].join() : "";
  const [records, time] = useMemo(() => {
    const column = index => points.map(point => point[index]);
    return [[column(0), column(1), column(2)], [column(0), column(3), column(4)]];
  }, [last]);
  return html`
    <${Facts} of=${[
      ["Tasks", html`<${StateCounts} counts=${vertex.tasks} />`], ["Duration", duration(vertex.duration)],
      ["Records in", count(metrics["read-records"])], ["Records out", count(metrics["write-records"])],
      ...(metrics["read-bytes-complete"] || metrics["read-bytes"] ? [["Bytes in", bytes(metrics["read-bytes"])]] : []),
      ...(metrics["write-bytes-complete"] || metrics["write-bytes"] ? [["Bytes out", bytes(metrics["write-bytes"])]] : []),
      ["Parallelism", `${vertex.parallelism} of at most ${count(vertex.maxParallelism)}`],
    ]} />
    ${ENDED.has(vertex.status) && points.length < 3
      ? html`<p class="empty">This vertex had ended before this page looked: charts show what is done while somebody looks.</p>`
      : html`<div class="charts">
        <${Chart} title="Records per second" series=${RECORDS} data=${records} format=${rate} />
        <${Chart} title="The busiest subtask" series=${TIME} data=${time} format=${percentTick} max=${100} />
      </div>`}`;
}
