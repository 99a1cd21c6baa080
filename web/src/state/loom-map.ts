/** The shape of a tree of text: children, sizes, and where its nodes stand on a small map. Pure. */

import { fork } from "../thread/layout.ts";
import type { LoomNode } from "../types.ts";

export interface LoomMap {
  places: ReadonlyMap<string, { x: number; y: number }>;
  links: { to: string; path: string }[];
}

/** The children of each node, in their order; those of the root under "". */
export function childrenOf(nodes: readonly LoomNode[]): Map<string, LoomNode[]> {
  const found = new Map<string, LoomNode[]>();
  for (const node of nodes) {
    const list = found.get(node.parent_id ?? "");
    if (list) list.push(node);
    else found.set(node.parent_id ?? "", [node]);
  }
  return found;
}

/** How many nodes each one and all below it are. */
export function sizesOf(nodes: readonly LoomNode[], children: ReadonlyMap<string, LoomNode[]>): Map<string, number> {
  const sizes = new Map<string, number>();
  const open = [...(children.get("") ?? []), ...nodes.filter((node) => node.parent_id === null)];
  const order: LoomNode[] = [];
  const seen = new Set<string>();
  for (let node = open.pop(); node; node = open.pop()) {
    if (seen.has(node.id)) continue;
    seen.add(node.id);
    order.push(node);
    open.push(...(children.get(node.id) ?? []));
  }
  for (const node of order.reverse()) sizes.set(node.id, 1 + (children.get(node.id) ?? []).reduce((sum, each) => sum + (sizes.get(each.id) ?? 1), 0));
  return sizes;
}

/** A column for each depth, a row for each end; a node stands in the middle of those below it. */
export function loomMap(root: LoomNode, children: ReadonlyMap<string, LoomNode[]>, width: number, height: number): LoomMap {
  const raw = new Map<string, { depth: number; row: number }>();
  let ends = 0;
  let deepest = 1;
  const walk: { node: LoomNode; depth: number; done: boolean }[] = [{ node: root, depth: 0, done: false }];
  for (let at = walk.pop(); at; at = walk.pop()) {
    const below = children.get(at.node.id) ?? [];
    deepest = Math.max(deepest, at.depth);
    if (below.length === 0) { raw.set(at.node.id, { depth: at.depth, row: ends }); ends += 1; continue; }
    if (at.done) {
      const rows = below.map((each) => raw.get(each.id)?.row ?? 0);
      raw.set(at.node.id, { depth: at.depth, row: (Math.min(...rows) + Math.max(...rows)) / 2 });
      continue;
    }
    walk.push({ ...at, done: true });
    for (const each of [...below].reverse()) walk.push({ node: each, depth: at.depth + 1, done: false });
  }
  const stepX = width / deepest;
  const stepY = ends > 1 ? Math.min(14, height / (ends - 1)) : 0;
  const top = (height - stepY * Math.max(0, ends - 1)) / 2;
  const places = new Map([...raw].map(([id, { depth, row }]) => [id, { x: depth * stepX, y: top + row * stepY }]));
  const links: LoomMap["links"] = [];
  for (const [id, list] of children)
    for (const each of list) {
      const from = places.get(id);
      const to = places.get(each.id);
      if (from && to) links.push({ to: each.id, path: fork(from.x, from.y, to.x, to.y) });
    }
  return { places, links };
}
