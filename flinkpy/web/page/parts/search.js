// A field that narrows a long list.

import { html } from "../vendor/preact-htm.js";

export const Search = ({ label, value, onChange }) => html`
  <input class="search" type="search" aria-label=${label} placeholder=${label} value=${value} onInput=${event => onChange(event.target.value)} />`;

export const matches = (text, wanted) => text.toLowerCase().includes(wanted.trim().toLowerCase());
