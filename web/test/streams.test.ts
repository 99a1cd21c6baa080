import assert from "node:assert/strict";
import test from "node:test";
import { growStreams, type Stream } from "../src/state/streams.ts";
import { layoutDecisions } from "../src/state/decisions.ts";
import type { Event } from "../src/types.ts";

const PLAN: Event = { kind: "branches_started", seq: 3, plan: [{ node_id: "a", model: "x:one" }, { node_id: "b", model: "x:two" }] };

function grown(...events: Event[]): readonly Stream[] {
  return events.reduce<readonly Stream[]>(growStreams, []);
}

test("streams keep the order of their plan, whichever grows first", () => {
  const found = grown(PLAN, { kind: "text_delta", node_id: "b", offset: 0, text: "second" }, { kind: "text_delta", node_id: "a", offset: 0, text: "first" });
  assert.deepEqual(found.map((each) => [each.model, each.text.text]), [["x:one", "first"], ["x:two", "second"]]);
});

test("a page that comes late gets what is there as a draft", () => {
  const found = grown({ kind: "draft", node_id: "a", text: "so far" }, { kind: "text_delta", node_id: "a", offset: 6, text: " and on" });
  assert.equal(found[0]?.text.text, "so far and on");
});

test("a stream that failed keeps its place and says why, and the end takes all away", () => {
  const failed = grown(PLAN, { kind: "branch_failed", seq: 4, slot: 0, category: "auth", sentence: "The key was refused." });
  assert.deepEqual(failed.map((each) => each.failure), ["The key was refused.", ""]);
  assert.equal(growStreams(failed, { kind: "branches_ended", seq: 5 }).length, 0);
});

test("decisions stand in the column of their kind, and no two boxes on one place", () => {
  const nodes = ["goal", "decision", "option", "option", "action", "outcome", "goal", "decision"].map((kind, at) => ({ id: `n${at}`, kind, title: kind }));
  const edges = [[0, 1], [1, 2], [1, 3], [2, 4], [4, 5], [6, 7]].map(([a, b]) => ({ source: `n${a}`, target: `n${b}`, kind: "leads_to" }));
  const laid = layoutDecisions(nodes, edges);
  const places = laid.boxes.map((box) => `${box.x},${box.y}`);
  assert.equal(new Set(places).size, nodes.length);
  assert.ok((laid.boxes[0]?.x ?? 0) < (laid.boxes[1]?.x ?? 0));
  assert.ok(laid.chain("n2").has("n0>n1") && laid.chain("n2").has("n4>n5"));
});
