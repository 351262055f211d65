// What a view shows while it waits for an answer, and where there is none.

import { html } from "../vendor/preact-htm.js";

// `show` gets the data. A route that is not there is no error: `missing` says what would be here.
export function Answer({ from, show, missing = "This is not there." }) {
  if (from.data !== undefined) return show(from.data);
  if (from.failure === undefined) return html`<p class="empty" role="status">Loading …</p>`;
  if (from.failure.status === 404 || from.failure.status === 405 || from.failure.status === 501) return html`<p class="empty">${missing}</p>`;
  if (from.failure.status === 401 || from.failure.status === 0) return null;  // the head of the page says it
  return html`<p class="problem" role="alert">${from.failure.message}</p>`;
}
