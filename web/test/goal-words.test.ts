import assert from "node:assert/strict";
import test from "node:test";
import { goalWords } from "../src/state/goal-words.ts";

test("no limit of a goal becomes a part of its text or of its check", () => {
  assert.deepEqual(goalWords("it's green --max-budget-usd $5 --check 'make test && make lint' --max-rounds 3 --max-time 1h30m"), {
    given: { text: "it's green", check: "make test && make lint", max_budget_usd: 5, max_rounds: 3, max_seconds: 5400 },
  });
  assert.deepEqual(goalWords('"make it pass" --check="make test" --outside-sandbox'), { given: { text: "make it pass", check: "make test", outside_sandbox: true } });
  assert.deepEqual(goalWords("make it pass --judge openai:big"), { given: { text: "make it pass", judge: "openai:big" } });
});

test("a check that stands last or before an option needs no quotes", () => {
  assert.deepEqual(goalWords("green --check pytest -q --maxfail 1"), { given: { text: "green", check: "pytest -q --maxfail 1" } });
  assert.deepEqual(goalWords("green --check make test --max-rounds 3"), { given: { text: "green", check: "make test", max_rounds: 3 } });
});

test("what is no option of a goal, and a value that is none, is said", () => {
  assert.deepEqual(goalWords("green --max-cost 5 --check true"), { trouble: "a goal has no option --max-cost" });
  assert.deepEqual(goalWords("green --check true --max-budget-usd five"), { trouble: "--max-budget-usd takes a number, not five" });
  assert.deepEqual(goalWords("green --check true --max-rounds 1.5"), { trouble: "--max-rounds takes a number, not 1.5" });
  assert.deepEqual(goalWords("green --check true --max-time soon"), { trouble: "--max-time takes 30s, 5m, 1h30m or 2d, not soon" });
  assert.deepEqual(goalWords("green --check"), { trouble: "--check needs a value" });
});
