// Keys and values of a configuration.

import { html, useState } from "../vendor/preact-htm.js";
import { Search, matches } from "./search.js";
import { Table } from "./table.js";

const COLUMNS = [
  { title: "Option", cell: ([key]) => html`<code>${key}</code>`, sort: ([key]) => key },
  { title: "Value", cell: ([, value]) => html`<code>${String(value)}</code>`, sort: ([, value]) => String(value) },
];

export function Settings({ caption, pairs, empty }) {
  const [wanted, setWanted] = useState("");
  return html`
    ${pairs.length > 8 && html`<${Search} label="Search options" value=${wanted} onChange=${setWanted} />`}
    <${Table} caption=${caption} columns=${COLUMNS} keyOf=${([key]) => key} empty=${empty} rows=${pairs.filter(pair => matches(pair.join(" "), wanted))} />`;
}
