// The frame around every view: where one can go, how the page stands with the cluster, light and dark.

import { html, useState } from "../vendor/preact-htm.js";
import { keepToken, trouble } from "../lib/api.js";
import { isHistory } from "../lib/history_server.js";
import { paused } from "../lib/live.js";
import { link } from "../lib/route.js";
import { useStore } from "../lib/store.js";
import { nextTheme, theme } from "../lib/theme.js";

const PLACES = [["jobs", "Jobs"], ["taskmanagers", "TaskExecutors"], ["jobmanager", "JobManager"]];
const ENDED = [["jobs", "Jobs"]];  // of a history server
const THEMES = { auto: "◐", light: "☀", dark: "☾" };

export function Frame({ place, version, children }) {
  const isPaused = useStore(paused), colours = useStore(theme), says = useStore(trouble), ofHistory = useStore(isHistory);
  return html`
    <a class="skip" href="#main" onClick=${event => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${link("jobs")}><img src="page/icon.svg" alt="" width="22" height="22" /><b>flinkpy</b> <small>${version}${ofHistory ? " · history" : ""}</small></a>
      <nav aria-label="Places">${(ofHistory ? ENDED : PLACES).map(([word, title]) => html`
        <a key=${word} href=${link(word)} aria-current=${word === place ? "page" : null}>${title}</a>`)}</nav>
      <span class="tools">
        <button aria-pressed=${isPaused} onClick=${() => paused.set(!isPaused)} title="Stop and go on asking for news">
          <i class="dot ${isPaused || says ? "" : "live"}" aria-hidden="true"></i>${isPaused ? "Paused" : "Live"}</button>
        <button onClick=${nextTheme} aria-label="Colours: ${colours}" title="Colours: ${colours}">${THEMES[colours]}</button>
      </span>
    </header>
    ${says === "token" || says === "wrong token" ? html`<${TokenForm} isWrong=${says === "wrong token"} />` : says && html`<p class="notice" role="alert">${says}</p>`}
    <main id="main" tabindex="-1">${children}</main>`;
}

// Shown when the token is missing or wrong
function TokenForm({ isWrong }) {
  const [token, setToken] = useState("");
  const submit = event => {
    event.preventDefault();
    keepToken(token.trim());
    location.reload();
  };
  return html`<form class="notice token" onSubmit=${submit}>
    ${isWrong && html`<b class="error" role="alert">The token is wrong: a cluster that was started anew has another one.</b>`}
    <label for="token">This cluster is asked with a token. Whoever started it has seen it printed, with the address.</label>
    <input id="token" type="password" autocomplete="off" value=${token} onInput=${event => setToken(event.target.value)} required />
    <button class="main">Show the cluster</button>
  </form>`;
}
