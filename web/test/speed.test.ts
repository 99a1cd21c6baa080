import assert from "node:assert/strict";
import test from "node:test";
import { sampled, speedOf, type Sample } from "../src/state/speed.ts";

test("a text that grows by 240 characters a second is written at 60 tokens a second", () => {
  let samples: readonly Sample[] = [];
  for (let at = 0; at < 20; at += 1) samples = sampled(samples, at, (at + 1) * 240);
  assert.equal(speedOf(samples), 60);
  assert.ok(samples.length <= 7);
});

test("nothing is said of one sample, and another text begins anew", () => {
  const one = sampled([], 1, 100);
  assert.equal(speedOf(one), 0);
  const other = sampled(sampled(one, 2, 500), 3, 10);
  assert.deepEqual([other.length, speedOf(other), sampled(other, 4, 0).length], [1, 0, 0]);
});
