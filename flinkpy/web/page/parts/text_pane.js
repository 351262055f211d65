// Long text, such as a log: its end is in sight, unless the reader has scrolled up.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { Search, matches } from "./search.js";

const MOST_LINES = 5000;

export function TextPane({ label, text }) {
  const place = useRef(null), atEnd = useRef(true);
  const [wanted, setWanted] = useState("");
  const all = text.split("\n"), found = wanted ? all.filter(line => matches(line, wanted)) : all;
  useEffect(() => {
    if (atEnd.current) place.current.scrollTop = place.current.scrollHeight;
  }, [text, wanted]);
  const follow = () => {
    const { scrollTop, scrollHeight, clientHeight } = place.current;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 30;
  };
  return html`<div class="pane">
    <div class="bar"><${Search} label="Search lines" value=${wanted} onChange=${setWanted} />
      <span class="quiet">${found.length > MOST_LINES ? `the last ${MOST_LINES} of ${found.length} lines` : `${found.length} lines`}</span></div>
    <pre class="text" tabindex="0" role="region" aria-label=${label} ref=${place} onScroll=${follow}>${found.slice(-MOST_LINES).join("\n") || "(empty)"}</pre>
  </div>`;
}
