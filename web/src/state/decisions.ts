/** Where the boxes of the decision graph stand: a column for each kind, the goal first. Pure. */

import type { DecisionEdge as Edge, DecisionNode as Decision } from "../types.ts";

export type { Decision, Edge };

export const BOX_WIDTH = 204;
export const BOX_HEIGHT = 60;
const COLUMN = 250;
const ROW = 92;
const COLUMNS: Record<string, number> = { goal: 0, constraint: 0, decision: 1, revisit: 1, option: 2, observation: 2, action: 3, outcome: 3 };

export interface Laid {
  width: number;
  height: number;
  boxes: { node: Decision; x: number; y: number }[];
  links: { id: string; kind: string; path: string; head: string; source: string; target: string }[];
  chain: (id: string) => Set<string>;
}

export function layoutDecisions(nodes: readonly Decision[], edges: readonly Edge[]): Laid {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const lines = edges.filter((edge) => known.has(edge.source) && known.has(edge.target) && edge.weight !== 0);
  const columnOf = (node: Decision): number => COLUMNS[node.kind] ?? 2;
  const rows = new Map<string, number>();
  const next = [0, 0, 0, 0];
  const seen = new Set<string>();
  const place = (node: Decision, least: number): void => {
    if (seen.has(node.id)) return;
    seen.add(node.id);
    const column = columnOf(node);
    const row = Math.max(next[column] ?? 0, least);
    rows.set(node.id, row);
    next[column] = row + 1;
    for (const edge of lines.filter((each) => each.source === node.id)) {
      const target = known.get(edge.target);
      if (target && columnOf(target) > column) place(target, row);
    }
    // What comes next in this column starts below everything that hangs on this one.
    if (column < 2) for (let each = column; each < 4; each += 1) next[column] = Math.max(next[column] ?? 0, each > column ? (next[each] ?? 0) : 0, row + 1);
  };
  for (const node of [...nodes].sort((a, b) => columnOf(a) - columnOf(b))) place(node, 0);
  const x = (node: Decision): number => 20 + columnOf(node) * COLUMN;
  const y = (node: Decision): number => 20 + (rows.get(node.id) ?? 0) * ROW;
  const links = lines.map((edge) => {
    const from = known.get(edge.source) as Decision;
    const to = known.get(edge.target) as Decision;
    const x0 = x(from) + BOX_WIDTH;
    const y0 = y(from) + BOX_HEIGHT / 2;
    const y1 = y(to) + BOX_HEIGHT / 2;
    const path = columnOf(from) < columnOf(to)
      ? `M${x0} ${y0}C${x0 + 30} ${y0} ${x(to) - 30} ${y1} ${x(to)} ${y1}`
      : `M${x(from) + BOX_WIDTH / 2} ${y(from)}V${y(to) + BOX_HEIGHT}`;
    const head = columnOf(from) < columnOf(to) ? `M${x(to) - 6} ${y1 - 4}l6 4-6 4` : `M${x(from) + BOX_WIDTH / 2 - 4} ${y(to) + BOX_HEIGHT + 6}l4-6 4 6`;
    return { id: `${edge.source}>${edge.target}`, kind: edge.kind, path, head, source: edge.source, target: edge.target };
  });
  return {
    width: 40 + 3 * COLUMN + BOX_WIDTH,
    height: 40 + (Math.max(0, ...rows.values()) + 1) * ROW,
    boxes: nodes.map((node) => ({ node, x: x(node), y: y(node) })),
    links,
    chain: (id) => {
      const found = new Set<string>();
      const up = (at: string): void => { for (const link of links) if (link.target === at && !found.has(link.id) && link.kind !== "rejected") { found.add(link.id); up(link.source); } };
      const down = (at: string): void => { for (const link of links) if (link.source === at && !found.has(link.id) && link.kind !== "rejected") { found.add(link.id); down(link.target); } };
      if (id) { up(id); down(id); }
      return found;
    },
  };
}
