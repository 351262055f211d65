// How hard a vertex works, and whether it is held up: Flink's levels of back-pressure.

export const ok = 0.1;
const high = 0.5;

export const level = held => held > high ? "high" : held > ok ? "low" : "ok";

// The vertices that hold up those before them: not held up themselves, with a producer that is, and busy, or busier than that producer's other consumers.
// (Where subtasks share a thread, none of them is busy for most of the time.)
export function bottlenecks(vertices, nodes) {
  const byId = new Map(vertices.map(vertex => [vertex.id, vertex])), slow = new Set();
  for (const producer of vertices.filter(vertex => level(vertex.held) !== "ok")) {
    const consumers = nodes.filter(node => (node.inputs || []).some(input => input.id === producer.id)).map(node => byId.get(node.id))
      .filter(vertex => vertex && vertex.status === "RUNNING" && level(vertex.held) !== "high");
    const most = Math.max(...consumers.map(vertex => vertex.busy));
    consumers.filter(vertex => vertex.busy > high || (vertex.busy === most && most > ok && level(producer.held) === "high")).forEach(vertex => slow.add(vertex.id));
  }
  return slow;
}
