// Names and their values, side by side.

import { html } from "../vendor/preact-htm.js";

export const Facts = ({ of }) => html`<dl class="facts">${of.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
