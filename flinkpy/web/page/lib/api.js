// Asks the REST endpoint. The token comes with the address (#token=…), is kept for this tab, and travels as a header only.

import { store } from "./store.js";

const KEY = "flinkpy.token";

// What stands between the page and the cluster: "" (nothing), "token" (there is none), "wrong token", or a sentence.
export const trouble = store("");

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// #token=abc/jobs/1 becomes #/jobs/1: the token does not stay in the address, nor in the browser's history.
export function takeToken() {
  const found = location.hash.match(/^#token=([^/]*)(\/.*)?$/);
  if (!found) return;
  keepToken(decodeURIComponent(found[1]));
  history.replaceState(null, "", "#" + (found[2] || "/"));
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
  trouble.set("");
}

export async function ask(path, { method = "GET", body, signal, text = false } = {}) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    trouble.set("The JobManager does not answer. It may have ended; this page keeps trying.");
    throw new Failure(0, trouble.get());
  }
  if (response.ok) {
    const answer = text ? await response.text() : await response.json();
    trouble.set("");
    return answer;
  }
  const message = await response.json().then(answer => answer.errors.join("\n"), () => response.statusText);
  if (response.status === 401) trouble.set(token ? "wrong token" : "token");
  else if (response.status === 503) trouble.set(`The cluster does not answer (${message}); this page keeps trying.`);
  else trouble.set("");
  throw new Failure(response.status, message);
}
