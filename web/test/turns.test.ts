import assert from "node:assert/strict";
import test from "node:test";
import { grownTree, siblings, turnTree } from "../src/state/turns.ts";
import { columns, FOLD_WIDTH, NARROWEST, WIDEST } from "../src/thread/layout.ts";
import type { TreeMessage, TreeView } from "../src/types.ts";

function message(id: string, parent: string | null, role: "user" | "assistant" = "user", text = id): TreeMessage {
  return { id, parent, role, text, calls: 0, is_partial: false, is_pinned: false, revision: 0, at: 0 };
}

function view(messages: TreeMessage[], head: string, branches: [string, string][] = []): TreeView {
  return { messages, head, branches: branches.map(([name, node]) => ({ name, node, is_current: node === head })), checkpoints: [], summarized_to: null, can_undo_compaction: false };
}

test("a turn is a prompt and what was answered to it", () => {
  const tree = turnTree(view([message("u1", null), message("a1", "u1", "assistant"), message("a2", "a1", "assistant"), message("u2", "a2")], "u2"));
  assert.deepEqual(tree.line, ["u1", "u2"]);
  assert.deepEqual(tree.turns.get("u1")?.nodes, ["u1", "a1", "a2"]);
  assert.equal(tree.turnOf.get("a2"), "u1");
});

test("a branch leaves from its fork and gets a row of its own", () => {
  const tree = turnTree(view(
    [message("u1", null), message("a1", "u1", "assistant"), message("u2", "a1"), message("v2", "a1"), message("v3", "v2"), message("w2", "a1")],
    "u2", [["main", "u2"], ["side", "v3"], ["main@2", "w2"]],
  ));
  assert.deepEqual(tree.line, ["u1", "u2"]);
  assert.deepEqual(tree.lanes.map((lane) => [lane.name, lane.isLeft, lane.row]), [["side", false, 1], ["main@2", true, -1]]);
  assert.deepEqual(siblings(tree, "u2"), ["u2", "v2", "w2"]);
});

test("no two lanes of one row overlap", () => {
  const messages = [message("u0", null)];
  for (let at = 1; at < 60; at += 1) messages.push(message(`u${at}`, `u${at - 1}`));
  for (let at = 0; at < 50; at += 1) {
    messages.push(message(`x${at}`, `u${at}`));
    messages.push(message(`y${at}`, `x${at}`));
  }
  const tree = turnTree(view(messages, "u59"));
  const spans = tree.lanes.map((lane) => {
    const depths = lane.keys.map((key) => tree.turns.get(key)?.depth ?? 0);
    return { row: lane.row, from: Math.min(...depths), to: Math.max(...depths) };
  });
  for (const a of spans) for (const b of spans) if (a !== b && a.row === b.row) assert.ok(a.to < b.from || b.to < a.from);
  assert.ok(spans.every((each) => each.row !== 0));
});

test("a second answer stands beside the first", () => {
  const tree = turnTree(view([message("u1", null), message("a1", "u1", "assistant"), message("b1", "u1", "assistant")], "b1"));
  assert.deepEqual(tree.line, ["b1"]);
  assert.equal(tree.turns.get("b1")?.depth, 0);
  assert.ok(tree.turns.get("b1")?.isAgain);
});

test("columns are at most 58 and at least 12 px wide, and older turns fold", () => {
  assert.equal(columns(4, 900).step, WIDEST);
  const many = columns(400, 800);
  assert.equal(many.step, NARROWEST);
  assert.ok(many.folded > 300 && many.end <= 800);
  assert.equal(many.at(many.x(399)), 399);
  assert.equal(many.at(many.x(200)), 200);
  assert.ok(many.x(many.folded) - many.x(0) <= FOLD_WIDTH + 1);
});

test("every place of the bar is a turn", () => {
  for (const count of [1, 2, 50, 5000]) {
    const place = columns(count, 640);
    for (const x of [-50, 0, 300, 640, 5000]) assert.ok(place.at(x) >= 0 && place.at(x) < count);
  }
});

test("a tree that grows message by message is the one that is read whole", () => {
  const messages = [message("u1", null), message("a1", "u1", "assistant"), message("a2", "a1", "assistant"), message("u2", "a2"), message("a3", "u2", "assistant")];
  let grown: ReturnType<typeof grownTree> = turnTree(view(messages.slice(0, 1), "u1", [["main", "u1"]]));
  for (const each of messages.slice(1)) grown = grown && grownTree(grown, { id: each.id, role: each.role, parent: each.parent, parts: [{ type: "text", text: each.text ?? "" }] }, 0);
  assert.deepEqual(grown, turnTree(view(messages, "a3", [["main", "a3"]])));
  assert.equal(grown && grownTree(grown, { id: "x", role: "user", parent: "a1" }, 0), null);
});

test("no lane is crossed by the curve that leads to another", () => {
  const messages = [message("u1", null), message("u2", "u1"), message("u3", "u2"), message("x2", "u1"), message("x3", "x2"), message("y3", "u2"), message("u4", "u3")];
  const tree = turnTree(view(messages, "u4", [["main", "u4"], ["x", "x3"], ["y", "y3"]]));
  assert.deepEqual(tree.lanes.map((lane) => [lane.name, lane.row]), [["x", 1], ["y", -1]]);
});
