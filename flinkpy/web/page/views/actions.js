// What one may do with a running job: take a savepoint, stop it with one, cancel it.

import { html, useRef, useState } from "../vendor/preact-htm.js";
import { ask } from "../lib/api.js";
import { Copy } from "../parts/copy.js";

const ENDED = new Set(["FINISHED", "FAILED", "CANCELED", "SUSPENDED"]);
const LOOK_AGAIN_MS = 500;
const ASKED = "Asked …";
const ACTIONS = {
  savepoint: { title: "Take a savepoint", says: "The job goes on. It can be started again from the savepoint.", button: "Take it",
               path: "savepoints", body: directory => ({ "target-directory": directory, "cancel-job": false }) },
  stop: { title: "Stop with a savepoint", says: "The job ends. It can be started again from the savepoint.", button: "Stop the job",
          path: "stop", body: directory => ({ targetDirectory: directory, drain: false }) },
  cancel: { title: "Cancel the job", says: "The job ends at once, without a savepoint.", button: "Cancel the job" },
};

export function Actions({ job }) {
  const dialog = useRef(null);
  const [kind, setKind] = useState("savepoint"), [directory, setDirectory] = useState(""), [told, setTold] = useState(null), [place, setPlace] = useState(null);
  const hasEnded = ENDED.has(job.state);
  if (hasEnded && told === null) return null;  // else the dialog still says where the savepoint is
  const action = ACTIONS[kind];

  const open = which => {
    setKind(which);
    setTold(null);
    setPlace(null);
    dialog.current.showModal();
  };
  const act = async event => {
    event.preventDefault();
    setTold(ASKED);
    try {
      if (kind === "cancel") {
        await ask(`jobs/${job.jid}?mode=cancel`, { method: "PATCH" });
        dialog.current?.close();
      } else {
        setPlace(await outcome(job.jid, await ask(`jobs/${job.jid}/${action.path}`, { method: "POST", body: action.body(directory || null) })));
        setTold("Done: the savepoint is at");
      }
    } catch (failure) {
      setTold(failure.message);
    }
  };
  return html`<span class="actions">
    ${!hasEnded && html`
      <button onClick=${() => open("savepoint")}>Savepoint …</button>
      <button onClick=${() => open("stop")}>Stop …</button>
      <button class="danger" onClick=${() => open("cancel")}>Cancel …</button>`}
    <dialog ref=${dialog} aria-labelledby="action-title"><form onSubmit=${act}>
      <h2 id="action-title">${action.title}</h2>
      <p>${action.says}</p>
      ${kind !== "cancel" && html`<label>Folder (empty: that of the job's options)
        <input value=${directory} onInput=${event => setDirectory(event.target.value)} placeholder="/savepoints or s3://bucket/savepoints" /></label>`}
      ${told && html`<div role="status" class="told">${told}${place && html`<${Copy} label="the savepoint's place" text=${place} />
        To start from it:<${Copy} label="the command" text=${`flinkpy run -s ${quoted(place)} PROGRAM`} />`}</div>`}
      <div class="bar">${place ? html`<button type="button" class="main" onClick=${() => dialog.current.close()}>Done</button>` : html`
        <button type="button" onClick=${() => dialog.current.close()}>Close</button>
        <button class=${kind === "savepoint" ? "main" : "main danger"} disabled=${hasEnded || told === ASKED}>${action.button}</button>`}</div>
    </form></dialog>
  </span>`;
}

// As a shell takes it
const quoted = text => /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

// Waits until a savepoint is there, and says where; what went wrong is thrown
async function outcome(job, { "request-id": request }) {
  for (;;) {
    const { status, operation } = await ask(`jobs/${job}/savepoints/${request}`);
    if (status.id === "COMPLETED") {
      if (operation["failure-cause"]) throw new Error(operation["failure-cause"]["stack-trace"]);
      return operation.location;
    }
    await new Promise(resolve => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
