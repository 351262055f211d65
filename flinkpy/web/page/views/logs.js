// What a process has written, and what its threads do. `path` is that of a TaskExecutor or of the JobManager.

import { html } from "../vendor/preact-htm.js";
import { bytes, time } from "../lib/format.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Table } from "../parts/table.js";
import { TextPane } from "../parts/text_pane.js";

export function Logs({ path, name, to }) {
  return name === undefined ? html`<${LogList} path=${path} to=${to} />` : html`<${LogFile} path=${path} name=${name} />`;
}

const LogList = ({ path, to }) => html`<${Answer} from=${useLive(`${path}/logs`)} missing="Logs are not told here." show=${({ logs }) => html`
  <${Table} caption="Log files" rows=${logs} keyOf=${log => log.name} empty="This process writes no log files." columns=${[
    { title: "File", cell: log => html`<a href=${to(log.name)}>${log.name}</a>`, sort: log => log.name },
    { title: "Changed", cell: log => time(log.mtime), sort: log => log.mtime },
    { title: "Size", cell: log => bytes(log.size), sort: log => log.size, number: true },
  ]} />`} />`;

const LogFile = ({ path, name }) => html`<h2><code>${name}</code></h2>
  <${Answer} from=${useLive(`${path}/logs/${encodeURIComponent(name)}`, { text: true })} missing="This file is not there any more." show=${text => html`
    <${TextPane} label=${`Log ${name}`} text=${text} />`} />`;

export const Output = ({ path }) => html`<${Answer} from=${useLive(`${path}/stdout`, { text: true })} missing="What this process prints is not told here." show=${text => html`
  <${TextPane} label="Standard output" text=${text} />`} />`;

export const Threads = ({ path }) => html`<${Answer} from=${useLive(`${path}/thread-dump`)} missing="Threads are not told here." show=${({ threadInfos }) => html`
  ${threadInfos.map(({ threadName, stringifiedThreadInfo }, index) => html`<details key=${`${threadName} ${index}`} open=${index === 0}>
    <summary>${threadName}</summary><pre class="text">${stringifiedThreadInfo}</pre></details>`)}`} />`;
