// The sums that the functions of a vertex keep.

import { html } from "../vendor/preact-htm.js";
import { useLive } from "../lib/live.js";
import { Answer } from "../parts/answer.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { title: "Name", cell: each => each.name, sort: each => each.name },
  { title: "Type", cell: each => each.type, sort: each => each.type },
  { title: "Value", cell: each => each.value, sort: each => each.value },
];

export const Accumulators = ({ path }) => html`<${Answer} from=${useLive(`${path}/accumulators`)} missing="Accumulators of a vertex are not told here." show=${answer => html`
  <${Table} caption="Accumulators" columns=${COLUMNS} rows=${answer["user-accumulators"]} keyOf=${each => each.name} empty="The functions of this vertex have none." />`} />`;
