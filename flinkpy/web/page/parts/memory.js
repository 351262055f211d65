// A process's memory: how much of its size is used, the parts that the size is for, and who has most of it.

import { html } from "../vendor/preact-htm.js";
import { bytes, percent } from "../lib/format.js";
import { Table } from "./table.js";

// Flink's names of the parts, ours, and what they are for
const PARTS = [
  ["taskHeap", "tasks' objects", "records, state in memory, windows"],
  ["managedMemory", "managed", "state on disk, sorting, hash tables"],
  ["networkMemory", "network", "batches on their way"],
  ["taskOffHeap", "tasks off heap", "Arrow and numpy of functions"],
  ["frameworkHeap", "engine", "objects of the engine"],
  ["frameworkOffHeap", "engine off heap", "blocking results"],
  ["jvmMetaspace", "interpreter", "Python and its libraries"],
  ["jvmOverhead", "overhead", "stacks, code, what the allocator cannot use"],
];
// From there on caches shrink, sources rest, and a task fails
const LEVELS = [0.8, 0.9, 0.97];
const OWNERS = [
  { title: "Owner", cell: each => each.owner, sort: each => each.owner },
  { title: "What", cell: each => each.what, sort: each => each.what },
  { title: "Bytes", cell: each => bytes(each.size), sort: each => each.size, number: true },
  { title: "Option", cell: each => html`<code>${each.option}</code>`, sort: each => each.option },
];

export function Memory({ sizes, memory }) {
  const total = sizes?.totalProcessMemory ?? 0, used = memory?.used ?? 0, whole = memory?.limit ?? total;
  return html`<h2>Memory</h2>
    ${memory?.sourcesRest && html`<p class="memory-alarm" role="alert">Sources rest, because the process has nearly used up its memory.</p>`}
    ${whole > 0 && html`<${Used} used=${used} whole=${whole} limited=${memory?.limit != null} />`}
    ${total > 0 && html`<${Parts} sizes=${sizes} total=${total} managed=${memory?.managedReserved} />`}
    ${memory?.owners.length > 0 && html`<${Table} caption="Who has the memory" columns=${OWNERS} rows=${memory.owners} keyOf=${each => `${each.owner} ${each.what}`} empty="" />`}`;
}

const Used = ({ used, whole, limited }) => html`<p>${bytes(used)} used of ${bytes(whole)}${limited ? "" : ", the share of the machine that its slots have; nothing limits it"}</p>
  <div class="memory-bar" role="img" aria-label=${`${percent(used / whole)} used`}>
    <div class=${level(limited ? used / whole : 0)} style=${{ width: `${100 * Math.min(1, used / whole)}%` }}></div>
    ${limited && LEVELS.map(each => html`<i key=${each} style=${{ left: `${100 * each}%` }} title=${percent(each)}></i>`)}
  </div>`;

const Parts = ({ sizes, total, managed }) => html`<div class="memory-bar" role="img" aria-label="The parts of the process's size">
    ${PARTS.map(([key, name], index) => sizes[key] > 0 && html`<div key=${key} class=${`memory-part part-${index}`} style=${{ width: `${100 * sizes[key] / total}%` }} title=${`${name}: ${bytes(sizes[key])}`}></div>`)}
  </div>
  <ul class="memory-parts">${PARTS.map(([key, name, what], index) => html`<li key=${key}><span class=${`part-${index}`}></span>${name} <b>${bytes(sizes[key])}</b>${key === "managedMemory" && managed != null && html`, of it reserved ${bytes(managed)}`}: ${what}</li>`)}</ul>`;

const level = share => `memory-used ${share >= 0.97 ? "failing" : share >= 0.9 ? "resting" : share >= 0.8 ? "shrinking" : ""}`;
