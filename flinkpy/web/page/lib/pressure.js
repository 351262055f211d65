// How hard a vertex works, and whether it is held up: Flink's levels of back-pressure.

export const ok = 0.1, high = 0.5;

export const level = held => held > high ? "high" : held > ok ? "low" : "ok";

// The vertices that hold up those before them: busy, not held up themselves, and with a producer that is held up.
export function bottlenecks(vertices, nodes) {
  const byId = new Map(vertices.map(vertex => [vertex.id, vertex]));
  const holdsUp = node => (node.inputs || []).some(input => level(byId.get(input.id)?.held) !== "ok");
  return new Set(nodes.filter(node => {
    const vertex = byId.get(node.id);
    return vertex && vertex.status === "RUNNING" && vertex.busy > high && level(vertex.held) !== "high" && holdsUp(node);
  }).map(node => node.id));
}
