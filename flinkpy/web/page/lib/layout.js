// Places the vertices of a job in layers, along the flow of its data.

import dagre from "../vendor/dagre.js";
import { operators } from "./format.js";

export const WIDTH = 232;
export const LINES = 3;  // of a name

const cardHeight = name => 74 + 18 * Math.min(LINES, operators(name).length);

// nodes: those of Flink's plan. Returns {width, height, cards: [{id, x, y, height}], edges: [{from, to, path, x, y, label}]}
export function layout(nodes, isUpright) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: isUpright ? "TB" : "LR", nodesep: 24, ranksep: isUpright ? 52 : 100, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(nodes.map(node => node.id));
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: cardHeight(node.description) });
  for (const node of nodes) {
    (node.inputs || []).filter(input => known.has(input.id)).forEach((input, index) =>
      graph.setEdge(input.id, node.id, { label: input.ship_strategy || "" }, `${input.num ?? index}`));
  }
  dagre.layout(graph);
  const { width, height } = graph.graph();
  const cards = new Map(nodes.map(node => {
    const { x, y, height: tall } = graph.node(node.id);
    return [node.id, { id: node.id, x: x - WIDTH / 2, y: y - tall / 2, height: tall }];
  }));
  return {
    width: width || 0, height: height || 0, cards: [...cards.values()],
    edges: graph.edges().map(edge => {
      const { points, label } = graph.edge(edge), from = cards.get(edge.v), to = cards.get(edge.w);
      const inner = points.slice(1, -1);  // those at the ends lie anywhere on the cards' sides: take the middles
      const begin = isUpright ? { x: from.x + WIDTH / 2, y: from.y + from.height } : { x: from.x + WIDTH, y: from.y + from.height / 2 };
      const end = isUpright ? { x: to.x + WIDTH / 2, y: to.y } : { x: to.x, y: to.y + to.height / 2 };
      const line = inner.length > 1 ? [begin, ...inner, end] : [begin, end];
      const middle = inner.length > 1 ? inner[Math.floor(inner.length / 2)] : { x: (begin.x + end.x) / 2, y: (begin.y + end.y) / 2 };
      return { key: `${edge.v} ${edge.w} ${edge.name}`, from: edge.v, to: edge.w, path: curve(line, isUpright), x: middle.x, y: middle.y, label };
    }),
  };
}

// A line through the points that leaves and enters each of them along the flow
function curve([first, ...rest], isUpright) {
  let path = `M${first.x},${first.y}`, from = first;
  for (const to of rest) {
    const x = (from.x + to.x) / 2, y = (from.y + to.y) / 2;
    path += isUpright ? `C${from.x},${y} ${to.x},${y} ${to.x},${to.y}` : `C${x},${from.y} ${x},${to.y} ${to.x},${to.y}`;
    from = to;
  }
  return path;
}
