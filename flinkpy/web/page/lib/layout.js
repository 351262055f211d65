// Places the vertices of a job in layers, along the flow of its data.

import dagre from "../vendor/dagre.js";
import { operators } from "./format.js";

export const WIDTH = 232;
export const LINES = 3;  // of a name

const cardHeight = name => 74 + 18 * Math.min(LINES, operators(name).length);

// nodes: those of Flink's plan. Returns {width, height, cards: [{id, x, y, height}], edges: [{from, to, path, x, y, label}]}
export function layout(nodes, isUpright) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: isUpright ? "TB" : "LR", nodesep: 24, ranksep: isUpright ? 52 : 76, marginx: 16, marginy: 16, ranker: "longest-path" });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(nodes.map(node => node.id));
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: cardHeight(node.description) });
  for (const node of nodes) {
    (node.inputs || []).filter(input => known.has(input.id)).forEach((input, index) =>
      graph.setEdge(input.id, node.id, { label: input.ship_strategy || "" }, `${input.num ?? index}`));
  }
  dagre.layout(graph);
  const { width, height } = graph.graph();
  return {
    width: width || 0, height: height || 0,
    cards: nodes.map(node => {
      const { x, y, height: tall } = graph.node(node.id);
      return { id: node.id, x: x - WIDTH / 2, y: y - tall / 2, height: tall };
    }),
    edges: graph.edges().map(edge => {
      const { points, label } = graph.edge(edge);
      const middle = points[Math.floor(points.length / 2)];
      return { key: `${edge.v} ${edge.w} ${edge.name}`, from: edge.v, to: edge.w, path: curve(points), x: middle.x, y: middle.y, label };
    }),
  };
}

// A line through the points, rounded at each of them
function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x},${first.y}`;
  for (let index = 0; index < rest.length - 1; index++) {
    const here = rest[index], next = rest[index + 1];
    path += `Q${here.x},${here.y} ${(here.x + next.x) / 2},${(here.y + next.y) / 2}`;
  }
  const last = rest[rest.length - 1];
  return `${path}L${last.x},${last.y}`;
}
