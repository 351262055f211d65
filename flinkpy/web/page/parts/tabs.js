// Links to the views of one thing.

import { html, useEffect, useRef } from "../vendor/preact-htm.js";

// tabs: [[word, title]]; `to(word)` is the address. Where there is no room for all of them, the current one is in sight.
export function Tabs({ label, tabs, current, to }) {
  const place = useRef(null);
  useEffect(() => {
    const row = place.current, tab = row.querySelector("[aria-current]");
    if (tab) row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  }, [current]);
  return html`<nav class="tabs" aria-label=${label} ref=${place}>
    ${tabs.map(([word, title]) => html`<a key=${word} href=${to(word)} aria-current=${word === current ? "page" : null}>${title}</a>`)}
  </nav>`;
}
