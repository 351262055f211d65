// Where the functions of a vertex spend their time: each frame as wide as its share of the samples, what it calls below it.

import { html, useMemo, useState } from "../vendor/preact-htm.js";
import { count, percent, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Search, matches } from "../parts/search.js";
import { Table } from "../parts/table.js";

const KINDS = [["full", "All time"], ["on_cpu", "On CPU"], ["off_cpu", "Waiting"]];
const SMALLEST = 0.002;  // share of the width below which a frame is not drawn
const HEIGHT = 22;

export function FlameGraph({ path, parallelism }) {
  const [kind, setKind] = useState("full"), [subtask, setSubtask] = useState("");
  const answer = useLive(`${path}/flamegraph?type=${kind}${subtask === "" ? "" : `&subtaskindex=${subtask}`}`);
  return html`
    <div class="bar">
      <span class="choice" role="group" aria-label="Which time">${KINDS.map(([word, title]) => html`<button key=${word} aria-pressed=${kind === word} onClick=${() => setKind(word)}>${title}</button>`)}</span>
      <label>Subtask <select value=${subtask} onChange=${event => setSubtask(event.target.value)}>
        <option value="">all</option>${Array.from({ length: parallelism }, (_, index) => html`<option value=${index}>${index}</option>`)}</select></label>
    </div>
    <${Answer} from=${answer} missing="Flame graphs are not drawn here." show=${({ data, endTimestamp }) => data && data.value > 0
      ? html`<${Flames} root=${data} /><p class="quiet">${count(data.value)} samples until ${time(endTimestamp)}.</p>`
      : html`<p class="empty">No samples yet: they are taken while somebody looks, whenever its functions run. A moment …</p>`} />`;
}

function Flames({ root }) {
  const [path, setPath] = useState([]), [wanted, setWanted] = useState("");
  const top = useMemo(() => find(root, path), [root, path]);
  const frames = useMemo(() => flatten(top), [top]), hottest = useMemo(() => ownTimes(top), [top]);
  const depth = Math.max(...frames.map(frame => frame.depth)) + 1;
  return html`
    <div class="bar"><${Search} label="Search functions" value=${wanted} onChange=${setWanted} />
      ${path.length > 0 && html`<button onClick=${() => setPath([])}>Show all</button>`}</div>
    <div class="flames" style=${{ height: `${depth * HEIGHT}px` }} aria-label="Flame graph; the table below has the same in words" role="group">
      ${frames.map(frame => html`<button key=${frame.key} tabindex="-1" class=${wanted && matches(frame.name, wanted) ? "found" : ""}
        style=${{ left: `${frame.left * 100}%`, width: `${frame.width * 100}%`, top: `${frame.depth * HEIGHT}px`, "--heat": `${warmth(frame.name)}deg` }}
        title="${frame.name}\n${percent(frame.width)}, ${count(frame.value)} samples" onClick=${() => setPath([...path, ...frame.path])}>${frame.name}</button>`)}
    </div>
    <h3>Functions by their own time</h3>
    <${Table} caption="Functions by their own time" rows=${hottest.filter(each => matches(each.name, wanted)).slice(0, 15)} keyOf=${each => each.name} columns=${COLUMNS} />`;
}

const COLUMNS = [
  { title: "Function", cell: each => html`<code>${each.name}</code>`, sort: each => each.name },
  { title: "Own time", cell: each => percent(each.share), sort: each => each.share, number: true },
  { title: "Samples", cell: each => count(each.value), sort: each => each.value, number: true },
];

// The frame at the end of a path of children's names; as far as the newest samples have it
function find(root, path) {
  let here = root;
  for (const name of path) here = here.children.find(child => child.name === name) ?? here;
  return here;
}

function flatten(top) {
  const frames = [];
  const visit = (frame, left, depth, path) => {
    const width = frame.value / top.value;
    if (width < SMALLEST) return;
    frames.push({ name: frame.name, value: frame.value, left, width, depth, path, key: path.join("\n") });
    for (const child of frame.children || []) {
      visit(child, left, depth + 1, [...path, child.name]);
      left += child.value / top.value;
    }
  };
  visit(top, 0, 0, []);
  return frames;
}

// What is left of each function's samples without those of the functions that it called
function ownTimes(top) {
  const own = new Map();
  const visit = frame => {
    const called = (frame.children || []).reduce((sum, child) => sum + child.value, 0);
    if (frame.value > called) own.set(frame.name, (own.get(frame.name) ?? 0) + frame.value - called);
    (frame.children || []).forEach(visit);
  };
  visit(top);
  return [...own].map(([name, value]) => ({ name, value, share: value / top.value })).sort((a, b) => b.value - a.value);
}

// A colour between red and yellow, the same for the same function
function warmth(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) % 997;
  return sum % 45;
}
