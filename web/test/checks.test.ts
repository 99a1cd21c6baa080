import assert from "node:assert/strict";
import test from "node:test";
import { checkPairs, checkWords } from "../src/state/checks.ts";

const ran = (command: string, exit_code: number | null, last_line = "") => ({ command, exit_code, last_line });

test("runs of one program are one check, and what both ran comes first", () => {
  const pairs = checkPairs([
    { commands: [ran("ls -l", 0), ran("mypy -p x", 0), ran("pytest -q tests/a.py", 1), ran("pytest -q", 0, "184 passed in 2 s")] },
    { commands: [ran("cd x && pytest -q", 1, "2 failed, 180 passed"), ran("./own-check", 0)] },
  ]);
  assert.deepEqual(pairs.map((pair) => [pair.name, pair.sides.map((side) => side?.command ?? null)]), [["pytest", ["pytest -q", "cd x && pytest -q"]], ["mypy", ["mypy -p x", null]]]);
});

test("a command that both branches ran word for word is a check, whatever its name", () => {
  assert.deepEqual(checkPairs([{ commands: [ran("./own-check", 0)] }, { commands: [ran("./own-check", 3)] }]).map((pair) => pair.name), ["./own-check"]);
});

test("the outcome is told by what was printed, and else by the exit code", () => {
  assert.deepEqual([ran("a", 0, "184 passed in 2 s"), ran("a", 1, "2 failed, 1 passed"), ran("a", 0), ran("a", 3), ran("a", null)].map((each) => checkWords(each).text), ["184 passed", "2 failed", "passed", "exit 3", "did not end"]);
  assert.equal(checkWords(ran("a", 1, "9 passed")).passed, false);
});
