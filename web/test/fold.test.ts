import assert from "node:assert/strict";
import test from "node:test";
import { begin, fold, take, withEarlier, type SessionState } from "../src/state/fold.ts";
import type { Event, Snapshot } from "../src/types.ts";

const SNAPSHOT: Snapshot = {
  seq: 10, status: "idle", model: "a:b", mode: "normal", permission_mode: "default", thinking: "default", draft_node: null,
  draft: "", queue: [], steering_length: 0, follow_up_length: 0, pending_approval: null, pending_plan: null, requests: [], error: "", context_used: 0, cost_usd: 0, title: "T",
};

function start(changes: Partial<Snapshot> = {}): SessionState {
  const page = { messages: [{ id: "n1", message: { role: "user" as const, content: "hello", at: 1 } }], seq: 10 };
  return begin("s", { ...SNAPSHOT, ...changes }, page);
}

function answer(seq: number): Event {
  return { kind: "new_message", seq, at: 5, node: { id: "n2", role: "assistant", parent: "n1", parts: [{ type: "text", text: "hi 🧵" }, { type: "tool_call", call_uid: "c1", name: "shell", args: { command: "ls" } }] } };
}

test("a fact that comes twice changes nothing", () => {
  const once = take(start(), answer(11));
  assert.equal(take(once, answer(11)), once);
  assert.equal(once.rows.length, 2);
});

test("pieces of an answer become a draft, and the message takes its place", () => {
  const pieces: Event[] = [
    { kind: "thinking_delta", node_id: "n2", offset: 0, text: "hm", at: 1 },
    { kind: "text_delta", node_id: "n2", offset: 0, text: "hi ", at: 2 },
    { kind: "text_delta", node_id: "n2", offset: 3, text: "🧵", at: 2 },
  ];
  const state = fold(start(), pieces);
  assert.equal(state.drafts[0]?.text.text, "hi 🧵");
  assert.equal(state.drafts[0]?.thinking.text, "hm");
  const done = take(state, answer(11));
  assert.equal(done.drafts.length, 0);
  assert.equal(done.rows[1]?.message.content, "hi 🧵");
  assert.equal(take(done, { kind: "text_delta", node_id: "n2", offset: 0, text: "late" }), done);
});

test("a missing piece asks for the draft again, and a draft frame is taken as it is", () => {
  const state = fold(start(), [{ kind: "text_delta", node_id: "n2", offset: 7, text: "x" }]);
  assert.ok(state.hasGap);
  const whole = take(state, { kind: "draft", node_id: "n2", text: "all of it", after_seq: 10 });
  assert.equal(whole.drafts[0]?.text.text, "all of it");
  assert.equal(whole.hasGap, false);
});

test("an answer that begins anew loses what came before", () => {
  const state = fold(start(), [{ kind: "text_delta", node_id: "n2", offset: 0, text: "abc" }, { kind: "answer_restarted", node_id: "n2" }]);
  assert.equal(state.drafts.length, 0);
});

test("a tool runs, prints, and is done", () => {
  const running = fold(take(start(), answer(11)), [
    { kind: "tool_executing", seq: 12, call_uid: "c1", node: "n2", tool_name: "shell", at: 6 },
    { kind: "tool_output", call_uid: "c1", chunk: "a\n" },
    { kind: "tool_output", call_uid: "c1", chunk: "b" },
  ]);
  assert.equal(running.output.get("c1"), "a\nb");
  const done = take(running, { kind: "tool_complete", seq: 13, call_uid: "c1", node: "n2", duration_ms: 7, result: { call_uid: "c1", text: "x", data: { exit_code: 2 } }, is_error: true });
  assert.equal(done.running.size, 0);
  assert.equal(done.results.get("c1")?.exitCode, 2);
  assert.equal(done.output.has("c1"), false);
});

test("a request opens, and its answer closes it and is kept beside the call", () => {
  const asked = take(start(), { kind: "permission_request", seq: 11, request_id: "r", call_uid: "c1", node: "n2", tool_name: "shell" });
  assert.equal(asked.requests.length, 1);
  const done = take(asked, { kind: "permission_resolved", seq: 12, request_id: "r", action: "deny", by: "page", reason: "keep it" });
  assert.equal(done.requests.length, 0);
  assert.equal(done.answered.get("c1")?.reason, "keep it");
});

test("the queue is edited, ordered, and emptied", () => {
  const text = (words: string): { type: "text"; text: string }[] => [{ type: "text", text: words }];
  const queued = fold(start(), [
    { kind: "input_queued", seq: 11, entry_id: "a", delivery: "follow_up", parts: text("one") },
    { kind: "input_queued", seq: 12, entry_id: "b", delivery: "follow_up", parts: text("two") },
    { kind: "input_edited", seq: 13, entry_id: "a", parts: text("uno") },
    { kind: "inputs_reordered", seq: 14, entries: ["b", "a"] },
  ]);
  assert.deepEqual(queued.queue.map((each) => each.entry_id), ["b", "a"]);
  assert.equal(fold(queued, [{ kind: "input_promoted", seq: 15, entries: ["b"] }, { kind: "input_removed", seq: 16, entry_id: "a" }]).queue.length, 0);
});

test("a rewind asks for the line, the tree and the files again", () => {
  const before = start();
  const after = take(before, { kind: "rewound", seq: 11, to: "n1" });
  assert.ok(after.lineVersion > before.lineVersion && after.treeVersion > before.treeVersion && after.filesVersion > before.filesVersion);
});

test("a message that grew elsewhere asks for the line again", () => {
  const state = take(start(), { kind: "new_message", seq: 11, node: { id: "n9", role: "user", parent: "n0", parts: [] } });
  assert.equal(state.lineVersion, 1);
});

test("what an event does not touch keeps its identity", () => {
  const before = start();
  const after = take(before, { kind: "text_delta", node_id: "n2", offset: 0, text: "x" });
  assert.equal(after.rows, before.rows);
  assert.equal(after.results, before.results);
  assert.equal(after.queue, before.queue);
});

test("an earlier page goes before, and what is known is not doubled", () => {
  const state = withEarlier({ ...start(), before: "n1" }, { messages: [{ id: "n0", message: { role: "user", content: "first" } }, { id: "n1", message: { role: "user", content: "hello" } }], previous: null });
  assert.deepEqual(state.rows.map((row) => row.id), ["n0", "n1"]);
  assert.equal(state.before, null);
});

test("a cost that is not known makes the sum unknown, and never 0", () => {
  const state = take(start(), { kind: "usage_recorded", seq: 11, model: "a:b", usage: { input_tokens: 5 } });
  assert.equal(state.cost, null);
});

test("what only the model is told is no row", () => {
  const told: Event = { kind: "system_note", seq: 11, at: 5, text: "<environment>\nDate: today\n</environment>", to_model: true };
  assert.equal(take(start(), told).rows.length, 1);
  const page = { messages: [{ id: "n1", message: { role: "system" as const, content: told.text as string, at: 1 } }], seq: 10 };
  assert.equal(begin("s", SNAPSHOT, page).rows.length, 0);
  const said: Event = { ...told, text: "the model was changed" };
  assert.equal(take(start(), said).rows.length, 2);
});

test("a request that is offered again stands open once", () => {
  const offered = { kind: "request_offered", request: { kind: "permission_request", request_id: "r1", call_uid: "c1", node: "n1", tool_name: "write" } };
  const once = take(start(), offered);
  assert.equal(once.requests.length, 1);
  assert.equal(take(once, offered), once);
});

test("what the snapshot has counted is not counted again, if the page of messages was read before it", () => {
  const used = (seq: number): Event => ({ kind: "usage_recorded", seq, at: 5, usage: { cost_usd: 2 } });
  const page = { messages: [], seq: 10 };
  const state = fold(begin("s", { ...SNAPSHOT, seq: 12, cost_usd: 5 }, page), [used(11), answer(12), used(13)]);
  assert.equal(state.seq, 13);
  assert.equal(state.rows.length, 1);
  assert.equal(state.cost, 7);
});

test("a side question of before stands behind its message after a reload", () => {
  const asides = [{ seq: 5, node: "n1", question: "why?", answer: "so", model: "a:b", at: 2 }];
  const rows = ["n1", "n2"].map((id) => ({ id, message: { role: "user" as const, content: id, at: 1 } }));
  const state = begin("s", SNAPSHOT, { messages: rows, seq: 10, asides });
  assert.deepEqual(state.rows.map((row) => row.id), ["n1", "note_5", "n2"]);
  assert.equal(state.rows[1]?.message.content, "Side question: why?\nso");
});
