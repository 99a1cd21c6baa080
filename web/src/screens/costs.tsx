/** What sessions cost: by day, by model and by project; one of them alone, and as a file. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "../api.ts";
import { asCsv, costRows, everyDay, onlyThose, type CostFilter, type CostRow } from "../state/costs.ts";
import { count, money } from "../state/words.ts";
import type { DailyUsage } from "../types.ts";
import { Button, Empty, Loading, Segments } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

const SPANS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"]] as const;

type Name = keyof CostFilter;

export function Costs(): JSX.Element {
  const span = useSignal<"7" | "30" | "90">("30");
  const read = useSignal<DailyUsage[] | null>(null);
  const filter = useSignal<CostFilter>({});
  const trouble = useSignal("");
  useEffect(() => { get<DailyUsage[]>("/usage", { days: span.value }).then((found) => { read.value = found; }, (error: Error) => { trouble.value = error.message; }); }, [span.value]);
  if (trouble.value) return <Empty title="Costs could not be read">{trouble.value}</Empty>;
  if (read.value === null) return <Loading rows={4} />;
  const rows = onlyThose(read.value, filter.value);
  const [all] = costRows(rows, () => "all");
  const now = new Date();
  const today = `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, "0")}-${String(now.getDate()).padStart(2, "0")}`;
  const days = everyDay(costRows(rows, (row) => row.day), Number(span.value), today);
  const byCost = (name: (row: DailyUsage) => string): CostRow[] => costRows(rows, name).sort((a, b) => b.cost - a.cost || b.tokens - a.tokens);
  const only = (name: Name, value: string): void => { filter.value = { ...filter.value, [name]: value }; };
  return (
    <div class="cost-screen">
      <div class="line"><p class="sum"><strong>{money(all?.cost ?? 0)}</strong> <span class="dim">{count(all?.calls ?? 0, "call")}, {short(all?.tokens ?? 0)} tokens{all?.unpriced ? `; of ${count(all.unpriced, "call")} the price is not known` : ""}</span></p><span class="push" /><Button small off={rows.length ? undefined : "Nothing was used in this time"} onClick={() => saveAs(`weft-costs-${today}.csv`, asCsv(rows))}>Save as CSV</Button><Segments name="How long" value={span.value} options={SPANS} onChange={(value) => { span.value = value; }} /></div>
      <Chosen filter={filter.value} change={(next) => { filter.value = next; }} />
      <Bars days={days} />
      {all ? null : <p class="dim">Nothing was used in this time.</p>}
      {all ? <><Table name="Day" rows={days.filter((row) => row.calls).reverse()} most={all.cost} choose={(value) => only("day", value)} /><Table name="Model" rows={byCost((row) => row.model ?? "")} most={all.cost} choose={(value) => only("model", value)} /><Table name="Project" rows={byCost((row) => row.project_path ?? "")} most={all.cost} choose={(value) => only("project_path", value)} /></> : null}
    </div>
  );
}

/** What alone is looked at; each name can be taken off again. */
function Chosen({ filter, change }: { filter: CostFilter; change: (next: CostFilter) => void }): JSX.Element | null {
  const names = Object.entries(filter) as [Name, string][];
  if (names.length === 0) return null;
  const without = (name: Name): void => change(Object.fromEntries(names.filter(([each]) => each !== name)));
  return (
    <p class="line chosen-costs"><span class="dim">Only</span>{names.map(([name, value]) => (
      <button key={name} type="button" class="chip accent" title="Show all again" aria-label={`Only ${label(name, value)}: show all again`} onClick={() => without(name)}><span class="clip">{label(name, value)}</span><Icon name="cross" size={12} /></button>
    ))}</p>
  );
}

function label(name: Name, value: string): string {
  return (name === "day" ? dayName(value) : value) || "none";
}

/** Has the browser save a text as a file. */
function saveAs(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(address), 1000);
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

function Table({ name, rows, most, choose }: { name: string; rows: readonly CostRow[]; most: number; choose: (value: string) => void }): JSX.Element {
  return (
    <table class="plain rows costs"><thead><tr><th scope="col">{name}</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Tokens</th><th scope="col" class="number">Cost</th><th scope="col"><span class="sr">Share</span></th></tr></thead>
      <tbody>{rows.slice(0, 90).map((row) => <tr key={row.name}><th scope="row"><button type="button" class="link" title="Only this" onClick={() => choose(row.name)}>{(name === "Day" ? dayName(row.name) : row.name) || "none"}</button></th><td class="number">{row.calls.toLocaleString("en-US")}</td><td class="number">{short(row.tokens)}</td><td class="number">{row.unpriced && !row.cost ? "unknown" : money(row.cost)}</td><td class="share"><span style={{ width: `${most ? (row.cost / most) * 100 : 0}%` }} /></td></tr>)}</tbody></table>
  );
}

function dayName(day: string): string {
  return new Date(`${day}T12:00:00`).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
}

function short(tokens: number): string {
  return tokens >= 1e6 ? `${(tokens / 1e6).toFixed(1)} M` : tokens >= 1e4 ? `${Math.round(tokens / 1e3)} k` : tokens.toLocaleString("en-US");
}
