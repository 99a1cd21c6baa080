import assert from "node:assert/strict";
import test from "node:test";
import { childrenOf, loomMap, sizesOf } from "../src/state/loom-map.ts";
import { commandWords } from "../src/state/words.ts";
import type { LoomNode } from "../src/types.ts";

const node = (id: string, parent_id: string | null): LoomNode => ({ id, parent_id, root_id: "r", text: id });
const NODES = [node("r", null), node("a", "r"), node("b", "r"), node("c", "a"), node("d", "a")];

test("a node counts all that is below it", () => {
  const sizes = sizesOf(NODES, childrenOf(NODES));
  assert.deepEqual([sizes.get("r"), sizes.get("a"), sizes.get("b")], [5, 3, 1]);
});

test("each depth has a column, each end a row, and a parent stands between its children", () => {
  const map = loomMap(NODES[0] as LoomNode, childrenOf(NODES), 200, 60);
  const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => map.places.get(id));
  assert.equal(a?.x, b?.x);
  assert.ok((c?.x ?? 0) > (a?.x ?? 0));
  assert.equal(a?.y, ((c?.y ?? 0) + (d?.y ?? 0)) / 2);
  assert.equal(map.links.length, 4);
  assert.ok([...map.places.values()].every((each) => each.x <= 200 && each.y >= 0 && each.y <= 60));
});

test("a tree as deep as a book is laid out without a deep stack", () => {
  const deep = Array.from({ length: 20_000 }, (_, at) => node(`n${at}`, at ? `n${at - 1}` : null));
  const children = childrenOf(deep);
  assert.equal(sizesOf(deep, children).get("n0"), 20_000);
  assert.equal(loomMap(deep[0] as LoomNode, children, 200, 60).places.size, 20_000);
});

test("a command line is cut as a shell cuts it", () => {
  assert.deepEqual(commandWords(`npx -y 'two words' "a \\"b\\"" c`), ["npx", "-y", "two words", 'a "b"', "c"]);
});
