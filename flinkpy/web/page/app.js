// The page: reads where in it we are, and shows the view for that.

import { html, render, useEffect } from "./vendor/preact-htm.js";
import { takeToken } from "./lib/api.js";
import { isHistory } from "./lib/history_server.js";
import { refreshMs, useLive } from "./lib/live.js";
import { useRoute } from "./lib/route.js";
import { showTheme } from "./lib/theme.js";
import { Frame } from "./parts/frame.js";
import { JobManager } from "./views/job_manager.js";
import { JobView } from "./views/job.js";
import { Jobs } from "./views/jobs.js";
import { TaskExecutorView } from "./views/task_executor.js";
import { TaskExecutors } from "./views/task_executors.js";

function view([place, id, ...rest]) {
  if (place === "jobs" && id) return html`<${JobView} key=${id} id=${id} words=${rest} />`;
  if (place === "taskmanagers") return id ? html`<${TaskExecutorView} key=${id} id=${id} words=${rest} />` : html`<${TaskExecutors} />`;
  if (place === "jobmanager") return html`<${JobManager} words=${id ? [id, ...rest] : []} />`;
  return html`<${Jobs} />`;
}

function App() {
  const route = useRoute(), config = useLive("config", { once: true });
  const [place = "jobs", id] = route;
  useEffect(() => {
    refreshMs.set(config.data?.["refresh-interval"] ?? refreshMs.get());
    isHistory.set(config.data?.features?.["web-history"] ?? false);
  }, [config.data]);
  useEffect(() => {  // another view: its beginning, and the keyboard there
    document.title = `${id ? `${id.slice(0, 8)} – ` : ""}flinkpy`;
    scrollTo(0, 0);
    if (document.activeElement !== document.body) document.getElementById("main").focus({ preventScroll: true });
  }, [place, id]);
  return html`<${Frame} place=${place} version=${config.data?.["flink-version"] ?? ""}>${view(route)}<//>`;
}

takeToken();
addEventListener("hashchange", takeToken);
showTheme();
render(html`<${App} />`, document.getElementById("app"));
