import assert from "node:assert/strict";
import test from "node:test";
import { diffTexts, parseDiff, splitRows } from "../src/diff/parse.ts";
import { changedFiles } from "../src/state/changes.ts";
import type { CallResult, Row } from "../src/state/fold.ts";

const DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@ def f\n a\n-value = old(1)\n+value = new(1)\n c\n--- /dev/null\n+++ b/y.py\n@@ -0,0 +1,2 @@\n+one\n+two\n";

test("a unified diff is read into files, hunks and numbered lines", () => {
  const [x, y] = parseDiff(DIFF);
  assert.equal(x?.path, "x.py");
  assert.deepEqual([x?.added, x?.removed, y?.added, y?.action], [1, 1, 2, "created"]);
  assert.deepEqual(x?.hunks[0]?.lines.map((line) => [line.before, line.after]), [[1, 1], [2, 2], [3, 2], [3, 3]]);
});

test("changed words are marked where most of the line is the same", () => {
  const line = parseDiff(DIFF)[0]?.hunks[0]?.lines[2];
  assert.deepEqual(line?.words.map(([a, b]) => line.text.slice(a, b)), ["new"]);
  const other = diffTexts("z", "all of this goes", "nothing stays here")?.hunks[0]?.lines[1];
  assert.deepEqual(other?.words, []);
});

test("side by side, what was replaced stands beside what replaced it", () => {
  const rows = splitRows(parseDiff(DIFF)[0]?.hunks[0]?.lines ?? []);
  assert.equal(rows.length, 3);
  assert.equal(rows[1]?.left?.kind, "del");
  assert.equal(rows[1]?.right?.kind, "add");
});

test("a line of a diff that looks like a file's head is a line", () => {
  const [file] = parseDiff("--- a/m\n+++ b/m\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n c\n");
  assert.deepEqual(file?.hunks[0]?.lines.map((line) => line.text), ["-- old", "++ new", "c"]);
});

test("each hunk knows its turn, and what a command changed is told apart", () => {
  const call = { id: "c", name: "edit", args: { path: "x.py" } };
  const rows: Row[] = [
    { id: "u", role: "user", message: { role: "user", content: "go" } },
    { id: "a", role: "assistant", message: { role: "assistant", content: "", tool_calls: [call] } },
  ];
  const result: CallResult = { text: "", isError: false, status: "done", diff: DIFF, output: "", exitCode: null, durationMs: 1, allowed: "", at: 0 };
  const files = changedFiles(rows, new Map([["c", result]]), [{ path: "x.py", action: "modified", at: 1 }, { path: "lock", action: "modified", at: 2 }]);
  assert.deepEqual(files.map((file) => [file.path, file.isByShell, file.hunks.length]), [["lock", true, 0], ["x.py", false, 1], ["y.py", false, 1]]);
  assert.equal(files[1]?.hunks[0]?.turn, "u");
});
