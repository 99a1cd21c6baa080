/** What was used, by day, model and project: sums of the server's rows. Pure. */

import type { DailyUsage, Usage } from "../types.ts";

export interface CostRow {
  name: string;
  cost: number;
  calls: number;
  tokens: number;
  /** Calls whose price is not known: they are in none of the sums of money. */
  unpriced: number;
}

/** What alone is looked at; a name that is missing leaves all. */
export type CostFilter = Partial<Record<"day" | "model" | "project_path", string>>;

export function onlyThose(rows: readonly DailyUsage[], filter: CostFilter): DailyUsage[] {
  return rows.filter((row) => Object.entries(filter).every(([name, value]) => (row[name as keyof CostFilter] ?? "") === value));
}

const COLUMNS = ["day", "project", "model", "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd"];

/** The rows for a table calculation: RFC 4180; what begins like a formula begins with an apostrophe. */
export function asCsv(rows: readonly DailyUsage[]): string {
  const lines = rows.map((row) => {
    const used = row.usage ?? {};
    return [row.day, row.project_path ?? "", row.model ?? "", row.calls ?? 0, used.input_tokens ?? 0, used.output_tokens ?? 0, used.cache_read_tokens ?? 0, used.cache_write_tokens ?? 0, used.cost_usd ?? ""];
  });
  return [COLUMNS, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

function cell(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function costRows(rows: readonly DailyUsage[], of: (row: DailyUsage) => string): CostRow[] {
  const found = new Map<string, CostRow>();
  for (const row of rows) {
    const name = of(row);
    const sum = found.get(name) ?? { name, cost: 0, calls: 0, tokens: 0, unpriced: 0 };
    const usage = row.usage ?? {};
    sum.calls += row.calls ?? 0;
    sum.tokens += (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
    if (usage.cost_usd === null || usage.cost_usd === undefined) sum.unpriced += row.calls ?? 0;
    else sum.cost += usage.cost_usd;
    found.set(name, sum);
  }
  return [...found.values()];
}

/** A row for each of the last days, those without use too, the oldest first. */
export function everyDay(rows: readonly CostRow[], days: number, today: string): CostRow[] {
  const known = new Map(rows.map((row) => [row.name, row]));
  const last = Date.parse(`${today}T12:00:00Z`);
  return Array.from({ length: days }, (_, at) => {
    const name = new Date(last - (days - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return known.get(name) ?? { name, cost: 0, calls: 0, tokens: 0, unpriced: 0 };
  });
}

/** What several calls used together; the cost is null where one of them has no price. */
export function usageOf(all: readonly Usage[]): { input: number; output: number; cached: number; cost: number | null } {
  const sum = (pick: (each: Usage) => number | undefined): number => all.reduce((total, each) => total + (pick(each) ?? 0), 0);
  const cached = sum((each) => each.cache_read_tokens);
  return {
    input: sum((each) => each.input_tokens) + cached + sum((each) => each.cache_write_tokens),
    output: sum((each) => each.output_tokens),
    cached,
    cost: all.some((each) => each.cost_usd === null || each.cost_usd === undefined) ? null : sum((each) => each.cost_usd ?? 0),
  };
}
