/** What sessions cost: by day, by model and by project. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { costRows, everyDay, type CostRow } from "../state/costs.ts";
import { count, money } from "../state/words.ts";
import type { DailyUsage } from "../types.ts";
import { Empty, Loading, Segments } from "../ui/controls.tsx";

const SPANS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"]] as const;

export function Costs(): JSX.Element {
  const span = useSignal<"7" | "30" | "90">("30");
  const rows = useSignal<DailyUsage[] | null>(null);
  const trouble = useSignal("");
  useEffect(() => { get<DailyUsage[]>("/usage", { days: span.value }).then((found) => { rows.value = found; }, (error: Error) => { trouble.value = error.message; }); }, [span.value]);
  if (trouble.value) return <Empty title="Costs could not be read">{trouble.value}</Empty>;
  if (rows.value === null) return <Loading rows={4} />;
  const [all] = costRows(rows.value, () => "all");
  const now = new Date();
  const today = `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, "0")}-${String(now.getDate()).padStart(2, "0")}`;
  const days = everyDay(costRows(rows.value, (row) => row.day), Number(span.value), today);
  const byCost = (name: (row: DailyUsage) => string): CostRow[] => costRows(rows.value ?? [], name).sort((a, b) => b.cost - a.cost || b.tokens - a.tokens);
  return (
    <div class="cost-screen">
      <div class="line"><p class="sum"><strong>{money(all?.cost ?? 0)}</strong> <span class="dim">{count(all?.calls ?? 0, "call")}, {short(all?.tokens ?? 0)} tokens{all?.unpriced ? `; of ${count(all.unpriced, "call")} the price is not known` : ""}</span></p><span class="push" /><Segments name="How long" value={span.value} options={SPANS} onChange={(value) => { span.value = value; }} /></div>
      <Bars days={days} />
      {all ? null : <p class="dim">Nothing was used in this time.</p>}
      {all ? <><Table name="Day" rows={days.filter((row) => row.calls).reverse()} most={all.cost} /><Table name="Model" rows={byCost((row) => row.model ?? "")} most={all.cost} /><Table name="Project" rows={byCost((row) => row.project_path ?? "")} most={all.cost} /></> : null}
    </div>
  );
}

/** A bar for each day; the table below says the same in numbers. */
function Bars({ days }: { days: readonly CostRow[] }): JSX.Element {
  const most = Math.max(...days.map((row) => row.cost), 0);
  return (
    <div class="cost-bars" aria-hidden="true">
      {days.map((row) => <span key={row.name} title={`${dayName(row.name)}: ${money(row.cost)}`}><i style={{ height: `${most ? Math.max(row.cost ? 2 : 0, (row.cost / most) * 96) : 0}px` }} /></span>)}
    </div>
  );
}

function Table({ name, rows, most }: { name: string; rows: readonly CostRow[]; most: number }): JSX.Element {
  return (
    <table class="plain rows costs"><thead><tr><th scope="col">{name}</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Tokens</th><th scope="col" class="number">Cost</th><th scope="col"><span class="sr">Share</span></th></tr></thead>
      <tbody>{rows.slice(0, 90).map((row) => <tr key={row.name}><th scope="row">{(name === "Day" ? dayName(row.name) : row.name) || "none"}</th><td class="number">{row.calls.toLocaleString("en-US")}</td><td class="number">{short(row.tokens)}</td><td class="number">{row.unpriced && !row.cost ? "unknown" : money(row.cost)}</td><td class="share"><span style={{ width: `${most ? (row.cost / most) * 100 : 0}%` }} /></td></tr>)}</tbody></table>
  );
}

function dayName(day: string): string {
  return new Date(`${day}T12:00:00`).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
}

function short(tokens: number): string {
  return tokens >= 1e6 ? `${(tokens / 1e6).toFixed(1)} M` : tokens >= 1e4 ? `${Math.round(tokens / 1e3)} k` : tokens.toLocaleString("en-US");
}
