import assert from "node:assert/strict";
import test from "node:test";
import { fileTreeRows, rowAbove } from "../src/state/file-tree.ts";

const said = (rows: ReturnType<typeof fileTreeRows>): string[] => rows.map((row) => `${"  ".repeat(row.depth)}${row.isOpen === null ? "" : row.isOpen ? "- " : "+ "}${row.name}`);

test("folders come first, and one that holds nothing but a folder goes with it", () => {
  const rows = fileTreeRows(["README.md", "src/app/a.py", "src/app/web/b.ts", "tests/x.py"], [], new Map());
  assert.deepEqual(said(rows), ["- src/app", "  - web", "    b.ts", "  a.py", "- tests", "  x.py", "README.md"]);
  assert.equal(rowAbove(rows, 2), 1);
  assert.equal(rowAbove(rows, 3), 0);
  assert.equal(rowAbove(rows, 0), -1);
});

test("of a large project only what is looked at stands open, and what the user opened or closed", () => {
  const many = Array.from({ length: 100 }, (_, at) => `lib/part${at % 3}/file${at}.py`);
  assert.deepEqual(said(fileTreeRows([...many, "a.py"], [], new Map())), ["+ lib", "a.py"]);
  const shown = fileTreeRows(many, ["lib/part1/file1.py"], new Map([["lib/part1", false]]));
  assert.deepEqual(said(shown), ["- lib", "  + part0", "  + part1", "  + part2"]);
  assert.equal(fileTreeRows(many, ["lib/part1/file1.py"], new Map()).length, 4 + 33);
});

test("names that are words of the language are names", () => {
  assert.deepEqual(said(fileTreeRows(["__proto__/constructor.ts", "toString"], [], new Map())), ["- __proto__", "  constructor.ts", "toString"]);
});
