import assert from "node:assert/strict";
import test from "node:test";
import { untrackedRows } from "../src/state/untracked.ts";

test("folders of one name that are not tracked share a row", () => {
  const caches = Array.from({ length: 40 }, (_, at) => `src/p${at}/__pycache__/: ignored`);
  assert.deepEqual(untrackedRows([".git/: its own", ".venv/: ignored", ...caches, "notes.bin: too large"]), [
    { name: ".venv/", why: "gitignored" },
    { name: "__pycache__/ in 40 folders", why: "gitignored" },
    { name: "notes.bin", why: "too large" },
  ]);
});

test("no more is listed than leaves the changed files in view", () => {
  const rows = untrackedRows(Array.from({ length: 100 }, (_, at) => `f${at}: ignored`));
  assert.equal(rows.length, 11);
  assert.equal(rows[10]!.name, "90 more");
});
