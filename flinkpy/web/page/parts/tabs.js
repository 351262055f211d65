// Links to the views of one thing.

import { html } from "../vendor/preact-htm.js";

// tabs: [[word, title]]; `to(word)` is the address
export const Tabs = ({ label, tabs, current, to }) => html`<nav class="tabs" aria-label=${label}>
  ${tabs.map(([word, title]) => html`<a key=${word} href=${to(word)} aria-current=${word === current ? "page" : null}>${title}</a>`)}
</nav>`;
