/** Commands of two branches that check something, side by side. Pure. */

import type { BranchCommand, BranchFacts } from "../types.ts";

export interface CheckPair {
  name: string;
  sides: [BranchCommand | null, BranchCommand | null];
}

/** Programs that test, type or lint; two runs of one are the same check, whatever its options. */
const CHECKS = /\b(pytest|mypy|ruff|tox|nox|pyright|unittest|make (?:test|check|lint)|npm (?:run )?(?:test|lint)|pnpm (?:test|lint)|yarn (?:test|lint)|cargo (?:test|check|clippy)|go (?:test|vet)|tsc|eslint|jest|vitest|phpunit|rspec|gradle test|mvn test)\b/;
const MOST = 3;

export function checkPairs(sides: readonly BranchFacts[]): CheckPair[] {
  const found = new Map<string, CheckPair>();
  const texts = sides.map((side) => new Set((side.commands ?? []).map((each) => each.command)));
  sides.slice(0, 2).forEach((side, at) => {
    for (const each of side.commands ?? []) {
      const program = CHECKS.exec(each.command)?.[1];
      if (!program && !texts[1 - at]?.has(each.command)) continue;
      const name = program ?? each.command;
      const pair = found.get(name) ?? { name, sides: [null, null] };
      pair.sides[at as 0 | 1] = each;
      found.set(name, pair);
    }
  });
  // What both ran comes first: only that can be compared.
  const both = (pair: CheckPair): number => (pair.sides[0] && pair.sides[1] ? 0 : 1);
  return [...found.values()].sort((one, other) => both(one) - both(other)).slice(0, MOST);
}

/** How a check ended, in a few words. */
export function checkWords(check: BranchCommand): { passed: boolean; text: string } {
  const passed = check.exit_code === 0;
  const line = check.last_line ?? "";
  const said = (passed ? /\b\d+ passed\b/ : /\b\d+ (?:failed|errors?|failures?|problems?)\b/i).exec(line)?.[0];
  if (check.exit_code === null || check.exit_code === undefined) return { passed: false, text: "did not end" };
  return { passed, text: said ?? (passed ? "passed" : `exit ${check.exit_code}`) };
}
