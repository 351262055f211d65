// What vertices did while somebody looked: rates between one answer and the next, the latest few minutes of them.

const POINTS = 300, MEAN_MS = 10000;

export class History {
  constructor() {
    this.vertices = new Map();  // id → {counted, at, points: [[second, in, out, busy, held], …]}
  }

  // Takes answers of jobs/:id and jobs/:id/loads, and returns the vertices with their rates and shares
  update(job, loads) {
    const present = new Set(), shares = new Map(loads.map(each => [each.id, each]));
    const vertices = job.vertices.map(vertex => {
      present.add(vertex.id);
      return { ...vertex, ...this.#rates(vertex, job, shares.get(vertex.id)) };
    });
    for (const id of this.vertices.keys()) if (!present.has(id)) this.vertices.delete(id);
    return vertices;
  }

  points(id) {
    return this.vertices.get(id)?.points ?? [];
  }

  #rates(vertex, job, load) {
    const counted = vertex.metrics, before = this.vertices.get(vertex.id);
    const shares = { busy: load?.busyTimeMsPerSecond / 1000, held: load?.backPressuredTimeMsPerSecond / 1000 };
    const busy = shares.busy * 100, held = shares.held * 100;
    if (before?.at === job.now) {  // the loads come a moment after the job
      for (const point of before.points) if (Number.isNaN(point[3])) point.splice(3, 2, busy, held);
      return { ...before.rates, ...shares };
    }
    const seconds = (before ? job.now - before.at : vertex.duration) / 1000;
    const per = name => seconds > 0 ? Math.max(0, counted[name] - (before ? before.counted[name] : 0)) / seconds : NaN;
    const rates = { inRate: per("read-records"), outRate: per("write-records") };
    // The first point is the mean since the vertex began, over the last seconds of that time: so there is a line at once
    const points = before?.points ?? [[(job.now - Math.min(MEAN_MS, Math.max(vertex.duration, 0))) / 1000, rates.inRate, rates.outRate, busy, held]];
    points.push([job.now / 1000, rates.inRate, rates.outRate, busy, held]);
    if (points.length > POINTS) points.shift();
    this.vertices.set(vertex.id, { counted, at: job.now, rates, points });
    return { ...rates, ...shares };
  }
}
