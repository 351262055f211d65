// A chart over time. It is made once, and then given new data.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import uPlot from "../vendor/uplot.js";
import { colour, theme } from "../lib/theme.js";
import { useStore } from "../lib/store.js";

const HEIGHT = 170;

// series: [{label, colour (a variable of the style sheet), format(value)}]; data: [seconds, values, …]; `max` fixes the upper end
export function Chart({ title, series, data, format, max }) {
  const place = useRef(null), plot = useRef(null), current = useRef(data);
  const dark = useStore(theme), [pointed, setPointed] = useState(null);  // the point under the mouse
  current.current = data;

  useEffect(() => {
    const ink = colour("--quiet"), grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
    plot.current = new uPlot({
      width: place.current.clientWidth, height: HEIGHT, cursor: { y: false }, legend: { show: false }, hooks: { setCursor: [chart => setPointed(chart.cursor.idx ?? null)] },
      scales: { y: { range: (_, low, high) => [0, max ?? Math.max(1, (high || 0) * 1.1)] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(second => new Date(second * 1000).toLocaleTimeString("sv-SE")), space: 90 },
             { ...axis, values: (_, ticks) => ticks.map(format), size: 64 }],
      series: [{ value: (_, second) => second ? new Date(second * 1000).toLocaleTimeString("sv-SE") : "" },
               ...series.map(each => ({ label: each.label, stroke: colour(each.colour), width: 2, value: (_, value) => value == null ? "" : format(value) }))],
    }, current.current, place.current);
    const watcher = new ResizeObserver(() => place.current && plot.current.setSize({ width: place.current.clientWidth, height: HEIGHT }));
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      plot.current.destroy();
    };
  }, [dark]);

  useEffect(() => plot.current.setData(data), [data]);

  const newest = data[0].length - 1, at = pointed !== null && pointed <= newest ? pointed : newest;
  const says = (each, index, point) => `${each.label} ${(each.format ?? format)(data[index + 1][point] ?? NaN)}`;
  const latest = series.map((each, index) => says(each, index, newest)).join(", ");
  return html`<figure class="chart">
    <figcaption>${title}<span class="values" aria-hidden="true">${series.map((each, index) => html`
      <span key=${each.label}><i style=${{ background: `var(${each.colour})` }}></i>${says(each, index, at)}</span>`)}
      ${pointed !== null && data[0][at] && html`<span class="quiet">at ${new Date(data[0][at] * 1000).toLocaleTimeString("sv-SE")}</span>`}</span></figcaption>
    <div ref=${place} role="img" aria-label="${title}; now ${latest}"></div></figure>`;
}
