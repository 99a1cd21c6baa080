import assert from "node:assert/strict";
import test from "node:test";
import { costRows, everyDay } from "../src/state/costs.ts";
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
