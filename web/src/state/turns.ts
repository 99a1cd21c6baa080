/** The tree of messages as turns, and its lines as lanes: what the thread bar and the map draw. */

import type { Node, TreeView } from "../types.ts";

export interface Turn {
  key: string;
  /** Its messages, the user's first. */
  nodes: string[];
  prompt: string;
  parent: string | null;
  children: string[];
  /** Its column: turns before it on its own line. */
  depth: number;
  isPartial: boolean;
  /** Another answer to the prompt of the turn beside it. */
  isAgain: boolean;
  /** When it began; 0 where that was not read. */
  at: number;
  /** What its answers cost, as far as it is known. */
  cost: number;
}

export interface Lane {
  keys: string[];
  /** The turn it leaves from; null where it starts at the root. */
  from: string | null;
  name: string;
  isLeft: boolean;
  row: number;
}

export interface TurnTree {
  turns: ReadonlyMap<string, Turn>;
  turnOf: ReadonlyMap<string, string>;
  /** The current line, from its first turn to the head. */
  line: string[];
  head: string | null;
  headBranch: string;
  lanes: Lane[];
  branchesAt: ReadonlyMap<string, string[]>;
  checkpointsAt: ReadonlyMap<string, string[]>;
  /** Order in which turns were begun, the first first. */
  order: string[];
}

export function turnTree(view: TreeView): TurnTree {
  const turns = new Map<string, Turn>();
  const turnOf = new Map<string, string>();
  for (const each of view.messages) {
    const parent = each.parent === null ? undefined : turns.get(turnOf.get(each.parent) ?? "");
    const goesOn = parent !== undefined && parent.nodes.at(-1) === each.parent;
    if (each.role !== "user" && parent !== undefined && goesOn) {
      parent.nodes.push(each.id);
      parent.isPartial = each.is_partial ?? false;
      parent.cost += each.cost_usd ?? 0;
      turnOf.set(each.id, parent.key);
      continue;
    }
    const isAgain = each.role !== "user" && parent !== undefined;
    // A second answer stands beside the first, so it leaves from where that one did.
    const from = isAgain ? turns.get(parent.parent ?? "") : parent;
    const turn: Turn = {
      key: each.id,
      nodes: [each.id],
      prompt: isAgain ? parent.prompt : (each.text ?? ""),
      parent: from?.key ?? null,
      children: [],
      depth: from ? from.depth + 1 : 0,
      isPartial: each.is_partial ?? false,
      isAgain,
      at: each.at ?? 0,
      cost: each.cost_usd ?? 0,
    };
    from?.children.push(turn.key);
    turns.set(turn.key, turn);
    turnOf.set(each.id, turn.key);
  }
  const head = view.head === null ? null : (turnOf.get(view.head) ?? null);
  const line = ancestors(turns, head);
  const branchesAt = names(view.branches, turnOf);
  const current = view.branches.find((each) => each.is_current);
  const tree = {
    turns,
    turnOf,
    line,
    head,
    headBranch: current?.name ?? "main",
    branchesAt,
    checkpointsAt: names(view.checkpoints ?? [], turnOf),
    order: [...turns.keys()],
  };
  return { ...tree, lanes: lanesOf(turns, line, branchesAt) };
}

/**
 * The tree with one more message at the end of its line; null where it grew elsewhere, and the
 * whole is to be read again. A long session is not read for every message: this takes no longer
 * with 100,000 of them. What it is given is not to be used any more.
 */
export function grownTree(tree: TurnTree, node: Node, at: number): TurnTree | null {
  const head = tree.turns.get(tree.head ?? "");
  if (tree.turnOf.has(node.id)) return tree;
  if (head ? head.nodes.at(-1) !== node.parent : tree.turns.size > 0 || (node.parent ?? null) !== null) return null;
  const turns = tree.turns as Map<string, Turn>;
  const turnOf = tree.turnOf as Map<string, string>;
  const isPartial = Boolean(node.metadata?.partial);
  const cost = node.usage?.cost_usd ?? 0;
  if (head && node.role !== "user") {
    turns.set(head.key, { ...head, nodes: [...head.nodes, node.id], isPartial, cost: head.cost + cost });
    turnOf.set(node.id, head.key);
    return { ...tree };
  }
  const turn: Turn = { key: node.id, nodes: [node.id], prompt: promptOf(node), parent: head?.key ?? null, children: [], depth: head ? head.depth + 1 : 0, isPartial, isAgain: false, at, cost };
  if (head) turns.set(head.key, { ...head, children: [...head.children, node.id] });
  turns.set(node.id, turn);
  turnOf.set(node.id, node.id);
  const branchesAt = new Map(tree.branchesAt);
  const there = branchesAt.get(head?.key ?? "") ?? [];
  const left = there.filter((name) => name !== tree.headBranch);
  if (left.length) branchesAt.set(head?.key ?? "", left);
  else branchesAt.delete(head?.key ?? "");
  branchesAt.set(node.id, [tree.headBranch]);
  tree.line.push(node.id);
  tree.order.push(node.id);
  return { ...tree, head: node.id, branchesAt };
}

/** The beginning of what a message says, in one line. */
function promptOf(node: Node): string {
  const text = (node.parts ?? []).flatMap((part) => (part.type === "text" ? [part.typed || part.text] : [])).join("");
  return text.trim().replace(/\s+/g, " ").slice(0, 200);
}

/** Its last column. */
export function deepestTurn(tree: TurnTree): number {
  let most = 0;
  for (const turn of tree.turns.values()) if (turn.depth > most) most = turn.depth;
  return most;
}

function names(  refs: readonly { name: string; node: string | null }[],
  turnOf: ReadonlyMap<string, string>,
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const ref of refs) {
    const key = turnOf.get(ref.node ?? "");
    if (key !== undefined) found.set(key, [...(found.get(key) ?? []), ref.name]);
  }
  return found;
}

export function ancestors(turns: ReadonlyMap<string, Turn>, key: string | null): string[] {
  const found: string[] = [];
  let at = key === null ? undefined : turns.get(key);
  while (at !== undefined) {
    found.push(at.key);
    at = at.parent === null ? undefined : turns.get(at.parent);
  }
  return found.reverse();
}

function lanesOf(
  turns: ReadonlyMap<string, Turn>,
  line: readonly string[],
  branchesAt: ReadonlyMap<string, string[]>,
): Lane[] {
  const onLine = new Set(line);
  const heights = heightsOf(turns);
  const lanes: Lane[] = [];
  const starts: { key: string; row: number }[] = [];
  const roots = [...turns.values()].filter((turn) => turn.parent === null);
  const beside = [...roots.map((turn) => turn.key), ...line.flatMap((key) => turns.get(key)?.children ?? [])];
  for (const key of beside) if (!onLine.has(key)) starts.push({ key, row: 0 });
  const taken: [number, number, number][] = [];
  while (starts.length > 0) {
    const start = starts.shift();
    if (start === undefined) break;
    const keys = longest(turns, heights, start.key);
    const first = turns.get(start.key);
    const last = turns.get(keys.at(-1) ?? "");
    if (first === undefined || last === undefined) continue;
    const name = keys.flatMap((key) => branchesAt.get(key) ?? []).at(-1) ?? "";
    // What a rewind left keeps a name that nobody chose.
    const isLeft = name === "" || name.includes("@") || /^rewound-\d+$/.test(name);
    const row = freeRow(taken, first.depth - 1, last.depth + 1, isLeft, start.row);
    lanes.push({ keys, from: first.parent, name, isLeft, row });
    for (const key of keys)
      for (const each of turns.get(key)?.children ?? [])
        if (!keys.includes(each)) starts.push({ key: each, row });
  }
  return lanes;
}

/** The first row in which nothing stands between two columns; 0 is the current line's. */
function freeRow(
  taken: [number, number, number][],
  from: number,
  to: number,
  isLeft: boolean,
  parentRow: number,
): number {
  const side = parentRow === 0 ? (isLeft ? -1 : 1) : Math.sign(parentRow);
  const near = Math.abs(parentRow) + 1;
  for (let step = 0; ; step += 1) {
    // Its own side has two rows before the other side gets one.
    for (const row of [side * (near + step), side * (near + step + 1), -side * (1 + step)]) {
      if (parentRow !== 0 && Math.sign(row) !== side && step < 3) continue;
      // Nor should the curve that leads there cross another lane, or the name at its end; where
      // there are many, it must.
      const clash = taken.some(([at, a, b]) => (at === row && a < to && from < b) || (step < 2 && isBetween(at, parentRow, row) && a < from + 1 && from < b));
      if (!clash) {
        taken.push([row, from, to]);
        return row;
      }
    }
  }
}

function isBetween(row: number, a: number, b: number): boolean {
  return row > Math.min(a, b) && row < Math.max(a, b);
}

function heightsOf(turns: ReadonlyMap<string, Turn>): Map<string, number> {
  const heights = new Map<string, number>();
  for (const turn of [...turns.values()].reverse()) {
    const below = turn.children.map((key) => heights.get(key) ?? 0);
    heights.set(turn.key, 1 + Math.max(0, ...below));
  }
  return heights;
}

function longest(
  turns: ReadonlyMap<string, Turn>,
  heights: ReadonlyMap<string, number>,
  start: string,
): string[] {
  const keys = [start];
  for (;;) {
    const children = turns.get(keys.at(-1) ?? "")?.children ?? [];
    if (children.length === 0) return keys;
    keys.push(children.reduce((a, b) => ((heights.get(b) ?? 0) > (heights.get(a) ?? 0) ? b : a)));
  }
}

/** The other turns that leave from the same place, this one among them, oldest first. */
export function siblings(tree: TurnTree, key: string): string[] {
  const turn = tree.turns.get(key);
  if (turn === undefined) return [];
  if (turn.parent === null)
    return [...tree.turns.values()].filter((each) => each.parent === null).map((each) => each.key);
  return tree.turns.get(turn.parent)?.children ?? [];
}
