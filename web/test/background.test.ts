import assert from "node:assert/strict";
import test from "node:test";
import { lastLine, readAgain, withOutput } from "../src/state/background.ts";

const work = (more: object = {}) => ({ id: "bg_1", kind: "shell" as const, title: "serve", status: "running" as const, exit_code: null, output: "", printed: 0, ...more });
const event = (offset: number, chunk: string, id = "bg_1") => ({ kind: "background_output", id, offset, chunk });

test("output is added where it belongs, and once", () => {
  const first = withOutput([work()], event(0, "a🧵\n"));
  assert.deepEqual([first?.[0]?.output, first?.[0]?.printed], ["a🧵\n", 3]);
  assert.equal(withOutput(first ?? [], event(0, "a🧵\n"))?.[0]?.output, "a🧵\n");
  assert.equal(withOutput(first ?? [], event(1, "🧵\nb"))?.[0]?.output, "a🧵\nb");
  assert.equal(withOutput([work()], event(0, "x", "bg_2")), null);
});

test("an answer that is older than what has come takes nothing away", () => {
  const now = [work({ output: "ab", printed: 2 })];
  assert.equal(readAgain(now, [work({ output: "a", printed: 1 })])[0]?.output, "ab");
  assert.equal(readAgain(now, [work({ output: "abc", printed: 3 })])[0]?.output, "abc");
  assert.deepEqual(readAgain(now, []), []);
});

test("the last line is the last that says something", () => {
  assert.equal(lastLine("one\ntwo  \n\n"), "two");
  assert.equal(lastLine(""), "");
});
