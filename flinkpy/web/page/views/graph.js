// The job as a graph: each vertex a card that says how busy it is, coloured by back-pressure. One of them may be open below.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { operators, rate } from "../lib/format.js";
import { LINES, WIDTH, layout } from "../lib/layout.js";
import { bottlenecks, level, ok } from "../lib/pressure.js";
import { link } from "../lib/route.js";
import { Load } from "../parts/load.js";
import { State } from "../parts/state.js";
import { VertexPanel } from "./vertex.js";
import { Vertices } from "./vertices.js";

const NARROW = 640, SMALLEST = 0.2, LARGEST = 1.5;

export function GraphView({ job, vertices, history, words: [open, tab] }) {
  const chosen = vertices.find(vertex => vertex.id === open);
  return html`
    <${Graph} job=${job} vertices=${vertices} chosen=${chosen?.id} />
    ${chosen
      ? html`<${VertexPanel} key=${chosen.id} job=${job} vertex=${chosen} history=${history} tab=${tab} />`
      : html`<p class="hint">Choose a vertex for its subtasks, watermarks, back-pressure, flame graph and metrics.</p>
        <${Vertices} job=${job} vertices=${vertices} />`}`;
}

function Graph({ job, vertices, chosen }) {
  const place = useRef(null), [room, setRoom] = useState(null), [zoom, setZoom] = useState(null);
  const nodes = job.plan.nodes, shape = JSON.stringify(nodes.map(node => [node.id, node.inputs]));
  const isUpright = room !== null && room < NARROW;
  const placed = useMemo(() => layout(nodes, isUpright), [shape, isUpright]);
  const byId = new Map(vertices.map(vertex => [vertex.id, vertex])), slow = bottlenecks(vertices, nodes);
  const fitting = room === null ? 1 : Math.max(SMALLEST, Math.min(1, room / placed.width));
  const scale = zoom ?? Math.max(fitting, 0.6);

  useEffect(() => {
    const watcher = new ResizeObserver(() => place.current && setRoom(place.current.clientWidth));
    watcher.observe(place.current);
    setRoom(place.current.clientWidth);
    return () => watcher.disconnect();
  }, []);

  const zoomBy = factor => setZoom(Math.max(SMALLEST, Math.min(LARGEST, scale * factor)));
  return html`<section class="graph ${chosen ? "beside" : ""}" aria-label="Graph of the job: ${nodes.length} vertices">
    <div class="canvas" ref=${place} tabindex="-1">
      <div class="sized" style=${{ width: `${placed.width * scale}px`, height: `${placed.height * scale}px` }}>
        <div class="scaled" style=${{ transform: `scale(${scale})`, width: `${placed.width}px`, height: `${placed.height}px` }}>
          <${Edges} of=${placed} byId=${byId} slow=${slow} isUpright=${isUpright} />
          ${placed.cards.map(card => byId.has(card.id) && html`
            <${Card} key=${card.id} at=${card} job=${job} vertex=${byId.get(card.id)} isChosen=${card.id === chosen} isSlow=${slow.has(card.id)} />`)}
        </div>
      </div>
    </div>
    <div class="below"><${Legend} />
      <span class="zoom"><button onClick=${() => zoomBy(1.25)} aria-label="Larger">+</button><button onClick=${() => zoomBy(0.8)} aria-label="Smaller">−</button>
        <button onClick=${() => setZoom(fitting)}>Fit</button></span></div>
  </section>`;
}

// An edge is coloured where its producer is held up, and its consumer is slow or held up itself
const flow = (from, to, slow) => to && (slow.has(to.id) || to.held > ok) ? level(from?.held) : "ok";

function Edges({ of, byId, slow, isUpright }) {
  return html`<svg class="edges" width=${of.width} height=${of.height} aria-hidden="true">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
      <path d="M0 0L8 4L0 8z" fill="context-stroke" /></marker></defs>
    ${of.edges.map(edge => html`<g key=${edge.key} class="edge ${flow(byId.get(edge.from), byId.get(edge.to), slow)}">
      <path d=${edge.path} marker-end="url(#arrow)" />
      <text class=${isUpright ? "aside" : ""} x=${isUpright ? edge.x + 7 : edge.x} y=${isUpright ? edge.y + 4 : edge.y - 6}>${edge.label}</text></g>`)}
  </svg>`;
}

// How the work ended, or is ending, comes before how it flows
const STATES = { FAILED: "broken", FINISHED: "done", CANCELED: "gone", CANCELING: "gone" };
const kind = vertex => vertex.tasks?.FAILED > 0 ? "broken" : STATES[vertex.status] ?? level(vertex.held);

function Card({ at, job, vertex, isChosen, isSlow }) {
  const names = operators(vertex.name), shown = names.length > LINES ? [...names.slice(0, LINES - 1), `… ${names.length - LINES + 1} more`] : names;
  return html`<a class="card ${kind(vertex)} ${isChosen ? "chosen" : ""}" title=${vertex.name} aria-current=${isChosen ? "true" : null}
      href=${isChosen ? link("jobs", job.jid) : link("jobs", job.jid, "graph", vertex.id)}
      style=${{ left: `${at.x}px`, top: `${at.y}px`, width: `${WIDTH}px`, height: `${at.height}px` }}>
    <span class="names">${shown.map(name => html`<span>${name}</span>`)}</span>
    <span class="row"><${State} of=${vertex.status} /> <span class="quiet">× ${vertex.parallelism}</span>
      ${isSlow && html`<b class="slow">bottleneck</b>`}</span>
    <${Load} busy=${vertex.busy} held=${vertex.held} />
    <span class="row quiet"><span>in ${rate(vertex.inRate)}</span><span>out ${rate(vertex.outRate)}</span></span>
  </a>`;
}

const Legend = () => html`<p class="legend quiet"><span class="ok"><i></i>flows</span> <span class="low"><i></i>back-pressured above 10 %</span>
  <span class="high"><i></i>above 50 %</span> <span class="broken"><i></i>failed</span></p>`;
