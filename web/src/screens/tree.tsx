/** The thread bar unfolded: the map of all branches, the list of turns, and what a rewind would do. */

import { computed, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { of, send } from "../api.ts";
import { deepestTurn, type Lane, type Turn, type TurnTree } from "../state/turns.ts";
import { untrackedRows } from "../state/untracked.ts";
import { age, ago, count, money, shortModel } from "../state/words.ts";
import { attempt, branchAt, go, looking, minute, rewind, route, session, slice, switchBranch, tree } from "../store.ts";
import { fork } from "../thread/layout.ts";
import { timeOf } from "../thread/bar.tsx";
import type { RewindItem, RewindPlan } from "../types.ts";
import { Button, Check, Chip, Empty, Filter, Key, PathName, Segments, Stat } from "../ui/controls.tsx";
import { Icon, Mark, type MarkName } from "../ui/icons.tsx";
import { Bisect, Verdict } from "./bisect.tsx";
import { Sent } from "./sent.tsx";
import { busy } from "./composer.tsx";
import { changed } from "./panel.tsx";

const COLUMN = 68;
const LANE = 44;
const ROW = window.matchMedia("(pointer: coarse)").matches ? 44 : 36;
type View = "all" | "line" | "changed" | "checkpoints";

const selected = signal<string | null>(null);
const marked = signal<string | null>(null);
const showsMap = signal(true);
const zoom = signal(1);
/** How far the map can be seen from: half a screen beside what is in view is drawn too. */
const BESIDE = 600;
const CROWDED = 12;

interface TurnFacts { added: number; removed: number; cost: number | null; at: number; model: string }

/** What is known of a turn besides its words: of those on the line that were read. */
const facts = computed<Map<string, TurnFacts>>(() => {
  const known = tree.value;
  const found = new Map<string, TurnFacts>();
  if (known === null) return found;
  for (const row of slice.rows.value ?? []) {
    const key = known.turnOf.get(row.id);
    if (key === undefined) continue;
    const each = found.get(key) ?? { added: 0, removed: 0, cost: 0, at: row.message.at ?? 0, model: "" };
    const cost = row.message.usage?.cost_usd;
    if (row.role === "assistant") { each.cost = each.cost === null || cost === null || cost === undefined ? each.cost : each.cost + cost; each.model = row.message.model || each.model; }
    found.set(key, each);
  }
  for (const file of changed.value)
    for (const hunk of file.hunks) {
      const each = found.get(known.turnOf.get(hunk.turn) ?? "");
      if (each) { each.added += hunk.hunk.added; each.removed += hunk.hunk.removed; }
    }
  return found;
});

export function Tree(): JSX.Element {
  const known = tree.value;
  const view = useSignal<View>("all");
  useEffect(() => {
    const named = route.value.query.at;
    // The tree may be read only after this address was opened.
    const at = known?.turnOf.get(named ?? "") ?? named;
    selected.value = at ?? looking.value;
    if (at && known?.line.includes(at) && at !== known.line.at(-1)) looking.value = at;
  }, [route.value.query.at, known !== null]);
  useEffect(() => () => { marked.value = null; }, []);
  if (known === null) return <div />;
  if (known.turns.size === 0) return <Empty title="One dot">Branches appear when you go back and say something else.</Empty>;
  const choose = (key: string): void => {
    selected.value = key;
    looking.value = known.line.includes(key) && key !== known.line.at(-1) ? key : null;
  };
  const key = selected.value ?? known.head ?? known.order.at(-1) ?? "";
  const turn = known.turns.get(key);
  return (
    <div class="tree-screen">
      <div class="tree-main">
        {showsMap.value ? <MapView known={known} chosen={key} choose={choose} /> : <div class="map-head alone"><MapControls known={known} /></div>}
        <div class="filters">
          <Filter chosen={view.value === "all"} onClick={() => { view.value = "all"; }}>All branches</Filter>
          <Filter chosen={view.value === "line"} onClick={() => { view.value = "line"; }}>This line</Filter>
          <Filter chosen={view.value === "changed"} onClick={() => { view.value = "changed"; }}>Changed files</Filter>
          <Filter chosen={view.value === "checkpoints"} onClick={() => { view.value = "checkpoints"; }}>Checkpoints</Filter>
          <span class="push" />
          <span class="hint desktop"><Key>J</Key><Key>K</Key> turn <Key>H</Key><Key>L</Key> branch <Key>B</Key> branch here <Key>=</Key> compare</span>
        </div>
        <List known={known} chosen={key} choose={choose} view={view.value} />
      </div>
      {turn ? <TurnPanel known={known} turn={turn} key={turn.key} choose={choose} /> : null}
    </div>
  );
}

const SMALLEST = 0.02;

/** The zoom at which the whole map is in view; no larger than its full size. */
function fitting(known: TurnTree): number {
  const room = (document.querySelector(".map-scroll")?.clientWidth ?? 900) - 220;
  const columns = Math.max(1, deepestTurn(known));
  return Math.max(SMALLEST, Math.min(1, room / (columns * COLUMN)));
}

function MapControls({ known }: { known: TurnTree }): JSX.Element {
  const state = session.value;
  return (
    <>
      <span class="sums"><strong>{count(Math.max(1, known.lanes.length + 1), "branch", "branches")}</strong> · {count(known.turns.size, "turn")}{state?.cost !== null ? ` · ${money(state?.cost ?? 0)}` : ""}</span>
      <span class="push" />
      <Segments name="View" value={showsMap.value ? "map" : "outline"} options={[["map", "Map"], ["outline", "Outline"]] as const} onChange={(value) => { showsMap.value = value === "map"; }} />
      <Button small label="Smaller" onClick={() => { zoom.value = Math.max(SMALLEST, zoom.value / 1.25); }}>−</Button>
      <Button small label="Larger" onClick={() => { zoom.value = Math.min(2, zoom.value * 1.25); }}>+</Button>
      <Button small title="All of it, or its full size" onClick={() => { const all = fitting(known); zoom.value = zoom.value === all ? 1 : all; }}>Fit</Button>
    </>
  );
}

function MapView({ known, chosen, choose }: { known: TurnTree; chosen: string; choose: (key: string) => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  // A row above the line is kept free for the tag of the turn that is looked at.
  const top = Math.min(-1, ...known.lanes.map((lane) => lane.row));
  const bottom = Math.max(0, ...known.lanes.map((lane) => lane.row));
  const step = COLUMN * zoom.value;
  const x = (depth: number): number => 28 + depth * step;
  const y = (row: number): number => 62 + (row - top) * LANE;
  const deepest = deepestTurn(known);
  const width = x(deepest) + 180;
  const height = Math.max(160, y(bottom) + 44);
  const at = looking.value === null ? known.line.length - 1 : known.line.indexOf(looking.value);
  const isPast = looking.value !== null;
  const view = useSignal<[number, number]>([0, 2000]);
  const look = (): void => {
    const element = box.current;
    if (!element) return;
    // In steps: most scrolling draws nothing anew.
    const left = Math.floor(element.scrollLeft / BESIDE) * BESIDE;
    const next: [number, number] = [left - BESIDE, left + element.clientWidth + 2 * BESIDE];
    if (next[0] !== view.value[0] || next[1] !== view.value[1]) view.value = next;
  };
  const inView = (depth: number): boolean => x(depth) >= view.value[0] && x(depth) <= view.value[1];
  /** Where columns are crowded only what is more than a point on the line has a mark. */
  const hasMark = (key: string, depth: number): boolean => inView(depth) && (step >= CROWDED || key === looking.value || depth === known.line.length - 1 || (known.turns.get(key)?.children.length ?? 0) > 1 || known.checkpointsAt.has(key));
  const rowOf = (key: string | null): number => known.lanes.find((lane) => key !== null && lane.keys.includes(key))?.row ?? 0;
  useLayoutEffect(() => {
    const element = box.current;
    if (element) element.scrollLeft = x(known.turns.get(chosen)?.depth ?? deepest) - element.clientWidth * 0.6;
    look();
  }, [chosen, zoom.value]);
  const turn = known.turns.get(chosen);
  return (
    <div class="map">
      <div class="map-head"><MapControls known={known} /></div>
      <div class="map-scroll" ref={box} tabIndex={-1} onScroll={look}>
        <svg class="drawing" width={width} height={height} aria-hidden="true">
          {isPast ? <><defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V8" stroke="var(--line)" stroke-width="1" /></pattern></defs><rect x={x(at)} y="0" width={width} height={height} fill="url(#hatch)" /></> : null}
          {known.lanes.map((lane) => <LanePath key={lane.keys[0]} lane={lane} known={known} x={x} y={y} parentRow={rowOf(lane.from)} choose={choose} hasMark={hasMark} />)}
          <path class="main" d={`M${x(0)} ${y(0)}H${x(at)}`} />
          {isPast ? <path class="ahead" d={`M${x(at)} ${y(0)}H${x(known.line.length - 1)}`} /> : null}
          {known.line.map((key, depth) => {
            if (!hasMark(key, depth)) return null;
            const isHead = depth === known.line.length - 1;
            return (
              <g key={key} class="hit" onClick={() => choose(key)}>
                <rect x={x(depth) - step / 2} y={y(0) - 16} width={step} height={32} fill="transparent" />
                <Bars fact={facts.value.get(key)} x={x(depth)} y={y(0)} />
                {isHead ? <g transform={`translate(${x(depth)} ${y(0)})`}><circle class="ring-here" r="7" /><circle class="dot" r="3.6" /></g> : key === looking.value ? <circle class="dot" cx={x(depth)} cy={y(0)} r="6.5" /> : depth > at ? <circle class="ring" cx={x(depth)} cy={y(0)} r="3.6" /> : <circle class="dot" cx={x(depth)} cy={y(0)} r="4" />}
              </g>
            );
          })}
          {isPast ? <path class="shuttle" d={`M${x(at)} 44V${height}`} /> : null}
          <text class="name here" x={x(known.line.length - 1) + 16} y={y(0) + 4}>{known.headBranch}</text>
        </svg>
        {isPast && turn ? <span class="tag" style={{ left: `${Math.max(70, x(at))}px` }}>Turn {at + 1}{timeOf(turn) ? ` · ${ago(timeOf(turn), minute.value)}` : ""}</span> : null}
      </div>
      {isPast ? <span class="ahead-words">{count(known.line.length - 1 - at, "turn")} ahead, kept</span> : null}
    </div>
  );
}

function LanePath({ lane, known, x, y, parentRow, choose, hasMark }: { hasMark: (key: string, depth: number) => boolean; lane: Lane; known: TurnTree; x: (depth: number) => number; y: (row: number) => number; parentRow: number; choose: (key: string) => void }): JSX.Element | null {
  const turns = lane.keys.map((key) => known.turns.get(key)).filter((turn) => turn !== undefined);
  const from = known.turns.get(lane.from ?? "");
  const first = turns[0];
  const last = turns.at(-1);
  if (!first || !last) return null;
  const begin = from ? fork(x(from.depth), y(parentRow), x(first.depth), y(lane.row)) : `M${x(first.depth)} ${y(lane.row)}`;
  return (
    <g class={lane.isLeft ? "lane left" : "lane"}>
      <path d={`${begin}H${x(last.depth)}`} />
      {turns.filter((turn) => hasMark(turn.key, turn.depth)).map((turn) => (
        <g key={turn.key} class="hit" onClick={() => choose(turn.key)}>
          <rect x={x(turn.depth) - 20} y={y(lane.row) - 16} width={40} height={32} fill="transparent" stroke="none" />
          <circle cx={x(turn.depth)} cy={y(lane.row)} r={selected.value === turn.key ? 6 : 4} />
        </g>
      ))}
      <text class="name" x={x(last.depth) + 16} y={y(lane.row) + 4}>{lane.name}</text>
    </g>
  );
}

function Bars({ fact, x, y }: { fact: TurnFacts | undefined; x: number; y: number }): JSX.Element | null {
  if (!fact || (!fact.added && !fact.removed)) return null;
  const tall = (lines: number): number => Math.min(18, 1 + Math.sqrt(lines) * 2.2);
  return <g><rect class="bar-add" x={x - 4} y={y - 10 - tall(fact.added)} width="3" height={fact.added ? tall(fact.added) : 0} /><rect class="bar-del" x={x} y={y - 10 - tall(fact.removed)} width="3" height={fact.removed ? tall(fact.removed) : 0} /></g>;
}

/** Fixed rows, so that only those in view are drawn, however many there are. */
function List({ known, chosen, choose, view }: { known: TurnTree; chosen: string; choose: (key: string) => void; view: View }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(800);
  const keys = [...known.order].reverse().filter((key) => {
    if (view === "line") return known.line.includes(key);
    if (view === "checkpoints") return known.checkpointsAt.has(key);
    if (view === "changed") return Boolean(facts.value.get(key)?.added || facts.value.get(key)?.removed);
    return true;
  });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => { height.value = element.clientHeight; });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const at = keys.indexOf(chosen);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || at < 0) return;
    if (at * ROW < element.scrollTop) element.scrollTop = at * ROW;
    else if ((at + 1) * ROW > element.scrollTop + element.clientHeight) element.scrollTop = (at + 1) * ROW - element.clientHeight;
  }, [at]);
  const first = Math.max(0, Math.floor(top.value / ROW) - 8);
  const last = Math.min(keys.length, Math.ceil((top.value + height.value) / ROW) + 8);
  const lanes = laneColumns(known);
  const wide = 14 + Math.min(6, Math.max(...lanes.values(), 0)) * 20 + 34;
  /** The branch beside this turn's: the nearest one by lane, at its end. */
  const beside = (step: number): void => {
    const ends = [known.line.at(-1) ?? "", ...known.lanes.map((lane) => lane.keys.at(-1) ?? "")];
    const now = known.line.includes(chosen) ? 0 : known.lanes.findIndex((lane) => lane.keys.includes(chosen)) + 1;
    const next = ends[(now + step + ends.length) % ends.length];
    if (next) choose(next);
  };
  const move = (event: KeyboardEvent): void => {
    const step = ["ArrowDown", "j", "J"].includes(event.key) ? 1 : ["ArrowUp", "k", "K"].includes(event.key) ? -1 : 0;
    const next = event.key === "Home" ? keys[0] : event.key === "End" ? keys.at(-1) : step ? keys[Math.max(0, Math.min(keys.length - 1, at + step))] : undefined;
    if (next) { event.preventDefault(); choose(next); }
    else if (["h", "l", "ArrowLeft", "ArrowRight"].includes(event.key)) { event.preventDefault(); beside(event.key === "l" || event.key === "ArrowRight" ? 1 : -1); }
    else if (event.key === "b" && !busy.value) { event.preventDefault(); void branchAt(known.turns.get(chosen)?.nodes.at(-1) ?? chosen).then((done) => done && go("chat")); }
    else if (event.key === "=") compare(known, chosen);
    // What it will do stands beside the list; it does nothing while that is not known.
    else if (event.key === "Enter") { event.preventDefault(); document.querySelector<HTMLElement>(".turn-panel .panel-foot .primary")?.click(); }
  };
  if (keys.length === 0) return <Empty title="None">{view === "checkpoints" ? "A checkpoint is a turn that you gave a name." : "No turn here changed files."}</Empty>;
  return (
    <div class="tree-list" ref={box} role="tree" aria-label="Turns, newest first" tabIndex={0} aria-activedescendant={`turn-${chosen}`} onScroll={(event) => { top.value = event.currentTarget.scrollTop; }} onKeyDown={move}>
      <div class="tall" style={{ height: `${keys.length * ROW}px` }} role="none">
        <svg class="drawing lanes" width={wide} height={keys.length * ROW} aria-hidden="true">{lanePaths(known, keys, lanes, first, last)}</svg>
        {keys.slice(first, last).map((key, index) => <TurnRow key={key} turnKey={key} known={known} top={(first + index) * ROW} left={wide} lane={lanes.get(key) ?? 0} isChosen={key === chosen} choose={choose} />)}
      </div>
    </div>
  );
}

/** The column of each turn's lane in the list; 0 is the current line's. */
function laneColumns(known: TurnTree): Map<string, number> {
  const found = new Map<string, number>();
  for (const key of known.line) found.set(key, 0);
  const taken: { column: number; from: number; to: number }[] = [];
  const place = new Map(known.order.map((key, at) => [key, at]));
  for (const lane of known.lanes) {
    const from = place.get(lane.from ?? "") ?? 0;
    const to = Math.max(...lane.keys.map((key) => place.get(key) ?? 0));
    let column = 1;
    while (taken.some((each) => each.column === column && each.from < to && from < each.to)) column += 1;
    taken.push({ column, from, to });
    for (const key of lane.keys) found.set(key, column);
  }
  return found;
}

function lanePaths(known: TurnTree, keys: readonly string[], lanes: ReadonlyMap<string, number>, first: number, last: number): JSX.Element[] {
  const rowOf = new Map(keys.map((key, at) => [key, at]));
  const x = (column: number): number => 26 + Math.min(column, 6) * 20;
  const y = (row: number): number => row * ROW + ROW / 2;
  const found: JSX.Element[] = [];
  const at = looking.value === null ? known.line.length - 1 : known.line.indexOf(looking.value);
  const below = (line: readonly string[]): [string, string][] => line.slice(1).map((key, index) => [line[index] ?? "", key]);
  const visible = (a: number, b: number): boolean => Math.max(a, b) >= first - 1 && Math.min(a, b) <= last;
  for (const [parent, key] of below(known.line)) {
    const a = rowOf.get(parent);
    const b = rowOf.get(key);
    if (a === undefined || b === undefined || !visible(a, b)) continue;
    const isAhead = (known.turns.get(key)?.depth ?? 0) > at;
    found.push(<path key={`m${key}`} class={isAhead ? "ahead" : "main"} d={`M${x(0)} ${y(a)}V${y(b)}`} />);
  }
  for (const lane of known.lanes) {
    const look = lane.isLeft ? "lane left" : "lane";
    const column = lanes.get(lane.keys[0] ?? "") ?? 1;
    const start = rowOf.get(lane.from ?? "");
    const begin = rowOf.get(lane.keys[0] ?? "");
    const end = rowOf.get(lane.keys.at(-1) ?? "");
    if (begin === undefined || end === undefined) continue;
    const base = start ?? begin;
    if (!visible(base, end)) continue;
    const parent = x(lanes.get(lane.from ?? "") ?? 0);
    const bend = start === undefined ? "" : `M${parent} ${y(start)}Q${x(column)} ${y(start)} ${x(column)} ${y(start) - 16}`;
    found.push(<g key={`l${lane.keys[0]}`} class={look}><path d={`${bend}${bend ? "" : `M${x(column)} ${y(begin)}`}V${y(end)}`} /></g>);
  }
  return found;
}

function TurnRow({ turnKey, known, top, left, lane, isChosen, choose }: { turnKey: string; known: TurnTree; top: number; left: number; lane: number; isChosen: boolean; choose: (key: string) => void }): JSX.Element | null {
  const turn = known.turns.get(turnKey);
  if (!turn) return null;
  const onLine = lane === 0 && known.line.includes(turnKey);
  const at = looking.value === null ? known.line.length - 1 : known.line.indexOf(looking.value);
  const isHead = turnKey === known.head;
  const isAhead = onLine && turn.depth > at;
  const mark: MarkName = isHead ? "here" : turnKey === looking.value ? "looking" : turn.isPartial ? "partial" : !onLine ? "other" : isAhead ? "you" : "weft";
  const fact = facts.value.get(turnKey);
  const cost = turn.cost || fact?.cost;
  const isTip = known.branchesAt.get(turnKey) ?? [];
  const names = known.checkpointsAt.get(turnKey) ?? [];
  return (
    <div id={`turn-${turnKey}`} class={["tree-row", isChosen ? "chosen" : "", onLine && !isAhead ? "" : "quiet", marked.value === turnKey ? "marked" : ""].join(" ")} role="treeitem" aria-level={Math.min(turn.depth + 1, 99)} aria-selected={isChosen} style={{ top: `${top}px`, height: `${ROW}px`, paddingLeft: `${left}px` }} onClick={() => choose(turnKey)} onDblClick={() => go("chat")}>
      <span class="at" style={{ left: `${18 + Math.min(lane, 6) * 20}px` }}><Mark name={mark} label="" /></span>
      <span class="number">{turn.depth + 1}</span>
      <span class="words">{turn.prompt || "…"}</span>
      {isTip.map((name) => <Chip key={name} tone={isHead && name === known.headBranch ? "accent" : undefined}>{name}</Chip>)}
      {names.map((name) => <Chip key={name} icon="mark">{name}</Chip>)}
      {onLine ? <Verdict turn={turn.depth + 1} /> : null}
      <span class="note">{turn.isPartial ? "interrupted" : turn.isAgain ? "answered again" : marked.value === turnKey ? "marked to compare" : ""}</span>
      <span class="push" />
      <span class="cell wide"><Stat added={fact?.added ?? 0} removed={fact?.removed ?? 0} /></span>
      <span class="cell">{cost ? money(cost) : ""}</span>
      <span class="cell">{age(turn.at || fact?.at || 0, minute.value)}</span>
    </div>
  );
}

function compare(known: TurnTree, key: string): void {
  const node = known.turns.get(key)?.nodes.at(-1) ?? "";
  if (marked.value === null || marked.value === key) { marked.value = marked.value === key ? null : key; return; }
  const a = known.turns.get(marked.value)?.nodes.at(-1) ?? "";
  go("compare", undefined, { a, b: node });
}

function Checkpoint({ id }: { id: string }): JSX.Element {
  const name = useSignal<string | null>(null);
  const save = (): void => {
    const label = name.value?.trim();
    name.value = null;
    if (label) void attempt(send("POST", of(id, "checkpoints"), { label }));
  };
  if (name.value === null) return <Button kind="quiet" small onClick={() => { name.value = ""; }}>Checkpoint…</Button>;
  return <form class="line" onSubmit={(event) => { event.preventDefault(); save(); }}><input class="field small" aria-label="Name of the checkpoint" placeholder="Name" value={name.value} ref={(element) => { if (element && !name.value) element.focus(); }} onInput={(event) => { name.value = event.currentTarget.value; }} /><Button small onClick={save}>Save</Button></form>;
}

const ACTS: Record<RewindItem["action"], string> = { restore: "back to what it was", delete: "made later, removed", recreate: "removed later, made again", conflict: "changed by you since: left alone", unavailable: "what it was is gone: left alone", unchanged: "as it was already" };

function TurnPanel({ known, turn, choose }: { known: TurnTree; turn: Turn; choose: (key: string) => void }): JSX.Element {
  const conversation = useSignal(true);
  const files = useSignal(true);
  const plan = useSignal<RewindPlan | null>(null);
  const trouble = useSignal("");
  const overwrite = useSignal<string[]>([]);
  const state = session.value;
  const node = turn.nodes.at(-1) ?? "";
  const isHead = turn.key === known.head;
  const onLine = known.line.includes(turn.key);
  const working = busy.value;
  useEffect(() => {
    if (isHead || !state || working) return;
    const timer = window.setTimeout(() => {
      send<RewindPlan>("POST", of(state.id, "rewind"), { to: node, files: true, conversation: true, preview: true }).then((found) => { plan.value = found; trouble.value = ""; }, (error: Error) => { plan.value = null; trouble.value = error.message; });
    }, 200);
    return () => window.clearTimeout(timer);
  }, [node, isHead, working]);
  const fact = facts.value.get(turn.key);
  const items = (plan.value?.files ?? []).filter((each) => each.action !== "unchanged");
  const change = items.filter((each) => ["restore", "delete", "recreate"].includes(each.action)).length;
  const asks = items.filter((each) => each.action === "conflict").length;
  const ahead = onLine ? known.line.length - 1 - turn.depth : 0;
  const lane = known.lanes.find((each) => each.keys.includes(turn.key));
  const off = busy.value ? "A turn runs: stop it first" : !conversation.value && !files.value ? "Choose what goes back" : undefined;
  const answer = slice.rows.value?.find((row) => row.id === node)?.message.content.split("\n").find((line) => line.trim()) ?? "";
  return (
    <aside class="panel turn-panel" aria-label={`Turn ${turn.depth + 1}`}>
      <div class="panel-body">
        <div class="block first">
          <p class="dim"><Mark name={onLine ? "weft" : "other"} label="" /> {[`Turn ${turn.depth + 1}`, lane?.name || known.headBranch, fact?.at ? ago(fact.at, minute.value) : "", fact?.model ? shortModel(fact.model) : ""].filter(Boolean).join(" · ")}</p>
          <h3 class="big">{turn.prompt || "…"}</h3>
          {answer ? <p class="quote">“{answer.slice(0, 180)}”</p> : null}
        </div>
        <Sent nodes={turn.nodes} key={turn.key} />
        {isHead ? <p class="dim pad">The conversation stands here: the next message goes on from this turn.</p> : (
          <>
            <div class="block">
              <h3 class="act"><Icon name="undo" />Rewind to here</h3>
              <div class="line"><Check on={conversation.value} onChange={(on) => { conversation.value = on; }}>Conversation</Check><span class="push" /><span class="dim">{ahead > 0 ? `leaves ${count(ahead, "turn")}, kept` : "the present line is kept"}</span></div>
              <div class="line"><Check on={files.value} onChange={(on) => { files.value = on; }}>Files</Check><span class="push" /><span class="dim">{plan.value ? [change ? `${change} change` : "none changes", asks ? `${asks} asks` : ""].filter(Boolean).join(", ") : busy.value ? "known after this turn" : trouble.value || "…"}</span></div>
            </div>
            {files.value && items.length ? (
              <div class="block"><h3>What happens to files</h3>
                {items.map((each) => {
                  const force = overwrite.value.includes(each.path);
                  return (
                    <div key={each.path} class="rewind-item"><span class={`letter ${each.action === "delete" ? "deleted" : each.action === "recreate" ? "created" : each.action === "conflict" ? "warn" : ""}`}>{{ restore: "M", delete: "D", recreate: "A", conflict: "?", unavailable: "·", unchanged: "·" }[each.action]}</span>
                      <span class="words"><PathName path={each.path} /><span class={each.action === "conflict" ? "warn" : "dim"}>{force ? "goes back all the same" : each.reason || ACTS[each.action]}</span></span>
                      {each.action === "conflict" ? <Button small pressed={force} onClick={() => { overwrite.value = force ? overwrite.value.filter((path) => path !== each.path) : [...overwrite.value, each.path]; }}>{force ? "Leave alone" : "Put back too"}</Button> : null}
                    </div>
                  );
                })}
                {untrackedRows(plan.value?.left_out ?? []).map(({ name, why }) => <div key={name} class="rewind-item"><span class="letter">·</span><span class="words"><span>{name}</span><span class="dim">{why ? `not tracked (${why})` : "not tracked"}: stays as it is</span></span></div>)}
              </div>
            ) : null}
          </>
        )}
      </div>
      <div class="panel-foot column">
        {isHead ? <Button onClick={() => go("chat")}>Go on here</Button> : (
          <div class="line">
            <Button kind="primary" icon="undo" keys="Enter" off={off} onClick={() => void rewind(node, files.value, conversation.value, overwrite.value).then((done) => done && go("chat"))}>Rewind</Button>
            <Button icon="branch" keys="B" off={busy.value ? "A turn runs: stop it first" : undefined} onClick={() => void branchAt(node).then((done) => done && go("chat"))}>Branch here</Button>
            {lane?.name ? <Button kind="quiet" off={busy.value ? "A turn runs" : undefined} onClick={() => void switchBranch(lane.name).then(() => go("chat"))}>Switch</Button> : null}
          </div>
        )}
        <div class="line"><Button kind="quiet" small onClick={() => compare(known, turn.key)}>{marked.value && marked.value !== turn.key ? "Compare with the marked one" : "Mark to compare"}</Button>{isHead ? <Checkpoint id={state?.id ?? ""} /> : null}</div>
        <Bisect choose={(found) => choose(known.turnOf.get(found) ?? found)} />
        <p class="dim">Nothing is lost. A rewind can itself be undone.</p>
      </div>
    </aside>
  );
}
