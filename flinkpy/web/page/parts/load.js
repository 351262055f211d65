// How a second is spent: busy, back-pressured, idle.

import { html } from "../vendor/preact-htm.js";
import { percent } from "../lib/format.js";

const width = share => ({ width: `${Math.max(0, Math.min(1, share || 0)) * 100}%` });

export const Load = ({ busy, held }) => html`<span class="load">
  <span class="strip" aria-hidden="true"><i class="busy" style=${width(busy)}></i><i class="held" style=${width(held)}></i></span>
  <span class="words">busy ${percent(busy)} <b class=${held > 0.1 ? "" : "quiet"}>back-pressured ${percent(held)}</b></span>
</span>`;
