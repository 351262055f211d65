// Answers that stay fresh: asked again and again while somebody looks, not while the tab is hidden or the page is paused.

import { useEffect, useState } from "../vendor/preact-htm.js";
import { ask } from "./api.js";
import { store } from "./store.js";

export const paused = store(false);
export const refreshMs = store(2000);
const SELDOM_MS = 30000;  // for what is not there
const KEPT = 60;
const latest = new Map();  // the last answers by path: a view that is opened again shows something at once

function keep(path, data) {
  latest.delete(path);
  latest.set(path, data);
  if (latest.size > KEPT) latest.delete(latest.keys().next().value);
}

// The answer of a route. `data` is undefined until the first one; `failure` is that of the last try. `once` asks one time only.
export function useLive(path, { once = false, text = false } = {}) {
  const [state, setState] = useState({ path: null });
  useEffect(() => {
    if (path === null) return undefined;
    let timer, wanted = true, asking = false;
    const aborter = new AbortController();

    async function refresh() {
      clearTimeout(timer);
      if (!wanted || asking) return;
      asking = true;
      let wait = refreshMs.get();
      try {
        const data = await ask(path, { signal: aborter.signal, text });
        keep(path, data);
        if (wanted) setState({ path, data, failure: undefined });
      } catch (failure) {
        if (failure.status === 404) wait = Math.max(wait, SELDOM_MS);
        if (wanted) setState(before => ({ path, data: before.path === path ? before.data : latest.get(path), failure }));
      }
      asking = false;
      if (wanted && !once) timer = setTimeout(() => watching() && refresh(), wait);
    }

    const watching = () => !document.hidden && !paused.get();
    const resume = () => watching() && refresh();
    refresh();
    document.addEventListener("visibilitychange", resume);
    const forget = paused.listen(resume);
    return () => {
      wanted = false;
      clearTimeout(timer);
      aborter.abort();
      document.removeEventListener("visibilitychange", resume);
      forget();
    };
  }, [path, once, text]);
  return state.path === path ? state : { path, data: latest.get(path), failure: undefined };
}
