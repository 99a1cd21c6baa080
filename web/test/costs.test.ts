import assert from "node:assert/strict";
import test from "node:test";
import { asCsv, costRows, everyDay, onlyThose } from "../src/state/costs.ts";
import type { DailyUsage } from "../src/types.ts";

const ROWS: DailyUsage[] = [
  { day: "2026-11-18", model: "a:b", project_path: "/p", calls: 2, usage: { input_tokens: 10, output_tokens: 5, cost_usd: 0.5 } },
  { day: "2026-11-17", model: "a:b", project_path: "/q", calls: 1, usage: { input_tokens: 1, cost_usd: 0.25 } },
  { day: "2026-11-17", model: "c:d", project_path: "/q", calls: 3, usage: { input_tokens: 7, cost_usd: null } },
];

test("what has no price is counted apart, and in no sum of money", () => {
  const [all] = costRows(ROWS, () => "all");
  assert.deepEqual(all, { name: "all", cost: 0.75, calls: 6, tokens: 23, unpriced: 3 });
  assert.deepEqual(costRows(ROWS, (row) => row.model ?? "").map((row) => [row.name, row.cost]), [["a:b", 0.75], ["c:d", 0]]);
});

test("days without use have a row too, across the end of a month", () => {
  const days = everyDay(costRows(ROWS, (row) => row.day), 20, "2026-11-18");
  assert.deepEqual([days.length, days[0]?.name, days[19]?.name, days[19]?.cost, days[5]?.calls], [20, "2026-10-30", "2026-11-18", 0.5, 0]);
});

test("rows of one day, model or project are looked at alone, or of several of them together", () => {
  const models = (filter: Parameters<typeof onlyThose>[1]): (string | undefined)[] => onlyThose(ROWS, filter).map((row) => row.model);
  assert.deepEqual(models({}), ["a:b", "a:b", "c:d"]);
  assert.deepEqual(models({ project_path: "/q" }), ["a:b", "c:d"]);
  assert.deepEqual(models({ project_path: "/q", model: "a:b" }), ["a:b"]);
  assert.deepEqual(models({ day: "2026-11-18", model: "c:d" }), []);
});

test("a file for a table calculation has a line a row, and nothing in it is a formula", () => {
  const lines = asCsv([...ROWS, { day: "2026-11-16", model: '=HYPERLINK("x")', project_path: "/a,b" }]).split("\r\n");
  assert.equal(lines[0], "day,project,model,calls,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,cost_usd");
  assert.equal(lines[1], "2026-11-18,/p,a:b,2,10,5,0,0,0.5");
  assert.equal(lines[3], "2026-11-17,/q,c:d,3,7,0,0,0,", "a cost that is not known is no zero");
  assert.equal(lines[4], `2026-11-16,"/a,b","'=HYPERLINK(""x"")",0,0,0,0,0,`);
  assert.equal(lines.length, 6);
});
