// A text to take along, with a button that copies it.

import { html, useState } from "../vendor/preact-htm.js";

export function Copy({ label, text }) {
  const [says, setSays] = useState("Copy");
  const copy = async event => {
    const code = event.target.previousElementSibling;
    try {
      await navigator.clipboard.writeText(text);
      setSays("Copied");
    } catch {  // only pages of this machine, and those over https, may use the clipboard: the text is selected instead
      getSelection().selectAllChildren(code);
      setSays("Selected: Ctrl+C");
    }
  };
  return html`<span class="copy"><code>${text}</code><button type="button" aria-label="Copy ${label}" onClick=${copy}>${says}</button></span>`;
}
