/** What `/goal` says: a text and its options, the same as in the chat of a terminal. Pure. */

export type GoalFields = Record<string, string | number | boolean>;

/** The fields of a goal, or why the words are none. */
export type GoalWords = { given: GoalFields } | { trouble: string };

const FIELDS: Record<string, string> = {
  "--check": "check",
  "--judge": "judge",
  "--max-budget-usd": "max_budget_usd",
  "--max-time": "max_seconds",
  "--max-rounds": "max_rounds",
  "--outside-sandbox": "outside_sandbox",
};
const ANY = /(?<=^|\s)--[a-z][\w-]*(?=[\s=]|$)/;
const KNOWN = new RegExp(`\\s(?:${Object.keys(FIELDS).join("|")})(?=[\\s=]|$)`);
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };

export function goalWords(words: string): GoalWords {
  const given: GoalFields = {};
  const text: string[] = [];
  let rest = words.trim();
  for (let found = ANY.exec(rest); found !== null; found = ANY.exec(rest)) {
    const name = found[0];
    const field = FIELDS[name];
    if (field === undefined) return { trouble: `a goal has no option ${name}` };
    text.push(rest.slice(0, found.index));
    rest = rest.slice(found.index + name.length);
    if (field === "outside_sandbox") {
      given[field] = true;
      continue;
    }
    const [said, behind] = valueOf(rest.replace(/^[\s=]+/, ""), field === "check");
    rest = behind;
    if (!said) return { trouble: `${name} needs a value` };
    const value = read(name, said);
    if (value === null) return { trouble: `${name} takes ${name === "--max-time" ? "30s, 5m, 1h30m or 2d" : "a number"}, not ${said}` };
    given[field] = value;
  }
  const whole = bare([...text, rest].map((part) => part.trim()).filter(Boolean).join(" "));
  return { given: whole ? { text: whole, ...given } : given };
}

/** The value that a text begins with, and what stands behind it: a check needs no quotes. */
function valueOf(text: string, isLine: boolean): [string, string] {
  const quoted = /^(["'])(.*?)\1(?=\s|$)/s.exec(text);
  if (quoted) return [quoted[2] ?? "", text.slice(quoted[0].length)];
  const end = isLine ? text.search(KNOWN) : text.search(/\s|$/);
  return end < 0 ? [text.trim(), ""] : [text.slice(0, end).trim(), text.slice(end)];
}

function read(name: string, said: string): string | number | null {
  if (name === "--max-time") return seconds(said);
  if (name !== "--max-budget-usd" && name !== "--max-rounds") return said;
  const number = /^\$?\d+(\.\d+)?$/.test(said) ? Number(said.replace("$", "")) : NaN;
  return Number.isFinite(number) && (name !== "--max-rounds" || Number.isInteger(number)) ? number : null;
}

function seconds(said: string): number | null {
  if (!/^(\d+(\.\d+)?[smhd])+$/.test(said)) return null;
  return [...said.matchAll(/(\d+(?:\.\d+)?)([smhd])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (SECONDS[unit ?? ""] ?? 0), 0);
}

function bare(text: string): string {
  return text.replace(/^(["'])(.*)\1$/s, "$2");
}
