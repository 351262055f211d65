// A table that sorts by the columns' headings. On a phone each row becomes a card.

import { html, useMemo, useState } from "../vendor/preact-htm.js";

// columns: [{title, cell(row), sort(row)?, number?, short?}], `short` for what stays on one line; `keyOf` names a row; `empty` is said where there are none
export function Table({ caption, columns, rows, keyOf, empty = "Nothing here yet." }) {
  const [order, setOrder] = useState(null);  // [column, is descending]
  const sorted = useMemo(() => {
    if (order === null) return rows;
    const [index, down] = order, value = columns[index].sort;
    return [...rows].sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
  }, [rows, order]);
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll"><table role="table">
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map((column, index) => {
      const [is, down] = order && order[0] === index ? [true, order[1]] : [false, Boolean(column.number)];
      return html`<th role="columnheader" scope="col" class=${column.number ? "number" : ""} aria-sort=${is ? (down ? "descending" : "ascending") : null}>
        ${column.sort
          ? html`<button class="sort" onClick=${() => setOrder([index, is ? !down : down])}>${column.title}<i aria-hidden="true">${is ? (down ? " ↓" : " ↑") : ""}</i></button>`
          : column.title}</th>`;
    })}</tr></thead>
    <tbody role="rowgroup">${sorted.map(row => html`<tr role="row" key=${keyOf(row)}>${columns.map(column => html`
      <td role="cell" class=${column.number ? "number" : column.short ? "short" : ""} data-title=${column.title}>${column.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

const compare = (a, b) => typeof a === "string" ? a.localeCompare(b) : (a ?? -1) - (b ?? -1);
