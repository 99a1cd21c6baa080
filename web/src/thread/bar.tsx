/** The thread bar: the whole conversation as one line, its branches beside it, you on it. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { ago, count } from "../state/words.ts";
import type { Lane, Turn, TurnTree } from "../state/turns.ts";
import { go, looking, minute, slice, tree } from "../store.ts";
import { Button, Key } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { columns, fork, type Columns } from "./layout.ts";

const MIDDLE = 17;
const LANE = 10;
const BAR_ROWS = [-1, 1, 2];

/** When the turn was begun, from what the page has read of the line; 0 where it has not. */
export function timeOf(turn: Turn): number {
  return turn.at || (slice.rows.value?.find((row) => turn.nodes.includes(row.id))?.message.at ?? 0);
}

export function ThreadBar({ hint = "Drag to go back", right }: { hint?: string; right?: JSX.Element }): JSX.Element | null {
  const known = tree.value;
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const hovered = useSignal<number | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => { width.value = element.clientWidth; };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [known === null || known.line.length === 0]);
  if (known === null || known.line.length === 0)
    return <div class="thread-bar empty-bar" role="region" aria-label="Thread" />;
  const line = known.line;
  const at = looking.value === null ? line.length - 1 : Math.max(0, line.indexOf(looking.value));
  const turn = known.turns.get(line[at] ?? "");
  const longest = Math.max(line.length, ...known.lanes.map((lane) => deepest(known, lane.keys)));
  const place = columns(longest, width.value);
  const isBusy = !["idle", "interrupted", "error", "awaiting_permission"].includes(slice.status.value) && (slice.requests.value?.length ?? 0) === 0;
  const lookAt = (column: number): void => {
    const next = Math.max(0, Math.min(line.length - 1, column));
    looking.value = next === line.length - 1 ? null : (line[next] ?? null);
  };
  const drag = (event: PointerEvent): void => {
    const area = event.currentTarget as HTMLElement;
    const left = area.getBoundingClientRect().left;
    const from = event.clientX;
    let moved = event.pointerType === "mouse";
    const move = (next: PointerEvent): void => {
      if (Math.abs(next.clientX - from) > 4) moved = true;
      if (moved) lookAt(place.at(next.clientX - left));
    };
    const end = (next: PointerEvent): void => {
      if (moved) move(next);
      area.removeEventListener("pointermove", move);
      area.removeEventListener("pointerup", end);
    };
    area.setPointerCapture(event.pointerId);
    area.addEventListener("pointermove", move);
    area.addEventListener("pointerup", end);
    if (moved) move(event);
  };
  const pointed = hovered.value === null ? undefined : known.turns.get(line[Math.min(hovered.value, line.length - 1)] ?? "");
  const words = turn ? `turn ${at + 1} of ${line.length}, ${turn.prompt}, ${ago(timeOf(turn), minute.value)}` : "";
  return (
    <div class={looking.value === null ? "thread-bar" : "thread-bar past"} role="region" aria-label="Thread">
      <button type="button" class="step-back" aria-label="Previous turn" title="Previous turn" disabled={at === 0} onClick={() => lookAt(at - 1)}><Icon name="left" size={14} /></button>
      <span class="place"><strong>Turn {at + 1}</strong> of {line.length}</span>
      {place.folded > 0 ? <span class="folded" title={`${count(place.folded, "older turn")} folded`}>‹ {place.folded}</span> : null}
      <div ref={box} class="track" role="slider" tabIndex={0} aria-label="Turn" aria-valuemin={1} aria-valuemax={line.length} aria-valuenow={at + 1} aria-valuetext={words} onPointerDown={drag} onPointerMove={(event) => { const left = event.currentTarget.getBoundingClientRect().left; hovered.value = event.pointerType === "mouse" ? place.at(event.clientX - left) : null; }} onPointerLeave={() => { hovered.value = null; }} onDblClick={() => go("tree", undefined, { at: line[at] ?? "" })} onKeyDown={(event) => { if (event.key === "Enter") go("tree", undefined, { at: line[at] ?? "" }); else steer(event, known, at, lookAt); }}>
        {width.value > 0 ? <Drawing tree={known} place={place} at={at} isBusy={isBusy} /> : null}
        {width.value > 0 && isBusy ? <span class="at-work" style={{ left: `${place.x(line.length - 1) - 8}px` }}><Mark name="running" label="" /></span> : null}
        {looking.value !== null && turn ? (
          <span class="tag" style={{ left: `${place.x(at)}px` }}>{ago(timeOf(turn), minute.value) || `turn ${at + 1}`}</span>
        ) : null}
      </div>
      {pointed && hovered.value !== null && looking.value === null ? <span key={pointed.key} class="tip" aria-hidden="true"><strong>{hovered.value + 1}</strong> {pointed.prompt.slice(0, 90)}<span class="dim"> {ago(timeOf(pointed), minute.value)}</span></span> : null}
      {hidden(known, place) > 0 ? <button type="button" class="link hint" onClick={() => go("tree")}>+{count(hidden(known, place), "branch", "branches")}</button> : null}
      {right ?? (looking.value === null
        ? <span class="hint">{hint} <Key>Esc Esc</Key></span>
        : <Button small keys="Esc" onClick={() => { looking.value = null; }}>Back to now</Button>)}
    </div>
  );
}

function deepest(known: TurnTree, keys: readonly string[]): number {
  return (known.turns.get(keys.at(-1) ?? "")?.depth ?? 0) + 1;
}

/** The bar has room for the nearest lanes, and none for what is folded. */
function isShown(known: TurnTree, lane: Lane, place: Columns): boolean {
  return BAR_ROWS.includes(lane.row) && deepest(known, lane.keys) > place.folded;
}

function hidden(known: TurnTree, place: Columns): number {
  return known.lanes.filter((lane) => !isShown(known, lane, place)).length;
}

function steer(event: KeyboardEvent, known: TurnTree, at: number, lookAt: (column: number) => void): void {
  const forks = known.line.map((key, column) => ((known.turns.get(key)?.children.length ?? 0) > 1 ? column : -1)).filter((each) => each >= 0);
  const next = (): number => {
    switch (event.key) {
      case "ArrowLeft": return event.shiftKey ? (forks.findLast((each) => each < at) ?? 0) : at - 1;
      case "ArrowRight": return event.shiftKey ? (forks.find((each) => each > at) ?? known.line.length - 1) : at + 1;
      case "Home": return 0;
      case "End": return known.line.length - 1;
      default: return Number.NaN;
    }
  };
  const column = next();
  if (Number.isNaN(column)) return;
  event.preventDefault();
  lookAt(column);
}

function Drawing({ tree: known, place, at, isBusy }: { tree: TurnTree; place: Columns; at: number; isBusy: boolean }): JSX.Element {
  const y = (row: number): number => MIDDLE + row * LANE;
  const last = known.line.length - 1;
  const isPast = at < last;
  const shown = (column: number, key: string): boolean =>
    column >= place.folded || (known.turns.get(key)?.children.length ?? 0) > 1 || known.checkpointsAt.has(key);
  return (
    <svg class="drawing" width="100%" height="44" aria-hidden="true">
      {known.lanes.filter((lane) => isShown(known, lane, place)).map((lane) => {
        const from = known.turns.get(lane.from ?? "");
        const keys = lane.keys.map((key) => known.turns.get(key)).filter((turn) => turn !== undefined);
        const first = keys[0];
        const end = keys.at(-1);
        if (!first || !end) return null;
        const parentRow = known.lanes.find((each) => each !== lane && lane.from !== null && each.keys.includes(lane.from))?.row ?? 0;
        const begin = from ? fork(place.x(from.depth), y(parentRow), place.x(first.depth), y(lane.row)) : `M${place.x(first.depth)} ${y(lane.row)}`;
        return (
          <g key={lane.keys[0]} class={lane.isLeft ? "lane left" : "lane"}>
            <path d={`${begin}H${place.x(end.depth)}`} />
            {keys.filter((turn) => shown(turn.depth, turn.key)).map((turn) => turn.isPartial
              ? <HalfDot key={turn.key} x={place.x(turn.depth)} y={y(lane.row)} />
              : <circle key={turn.key} cx={place.x(turn.depth)} cy={y(lane.row)} r="3.3" />)}
          </g>
        );
      })}
      <path class="main" d={`M${place.x(0)} ${MIDDLE}H${place.x(at)}`} />
      {isPast ? <path class="ahead" d={`M${place.x(at)} ${MIDDLE}H${place.x(last)}`} /> : null}
      {drawn(known, place.folded).map((column) => {
        const key = known.line[column] ?? "";
        if (column === last) return null;
        if (column > at) return <circle key={key} class="ring" cx={place.x(column)} cy={MIDDLE} r="3" />;
        if (known.checkpointsAt.has(key)) return <path key={key} class="diamond" d={`M${place.x(column)} ${MIDDLE - 4.5}l4.5 4.5-4.5 4.5-4.5-4.5z`} />;
        return <circle key={key} class="dot" cx={place.x(column)} cy={MIDDLE} r="3.3" />;
      })}
      <circle class="focus" cx={place.x(at)} cy={MIDDLE} r="11" />
      {isPast ? (
        <g>
          <path class="shuttle" d={`M${place.x(at)} 0V30`} />
          <circle class="dot" cx={place.x(at)} cy={MIDDLE} r="5.5" />
        </g>
      ) : null}
      {isBusy ? (
        <circle class="gap" cx={place.x(last)} cy={MIDDLE} r="7.5" />
      ) : (
        <g transform={`translate(${place.x(last)} ${MIDDLE})`}>
          <circle class="ring-here" r="6" />
          <circle class="dot" r="3" />
        </g>
      )}
    </svg>
  );
}

let marks: { line: readonly string[]; upTo: number; columns: number[] } = { line: [], upTo: -1, columns: [] };

/** The columns that have a mark: forks and checkpoints of what is folded, and all behind it. */
function drawn(known: TurnTree, folded: number): number[] {
  if (marks.line !== known.line || marks.upTo !== folded) {
    const columns: number[] = [];
    for (let at = 0; at < Math.min(folded, known.line.length); at += 1) {
      const key = known.line[at] ?? "";
      if ((known.turns.get(key)?.children.length ?? 0) > 1 || known.checkpointsAt.has(key)) columns.push(at);
    }
    marks = { line: known.line, upTo: folded, columns };
  }
  const rest = Array.from({ length: Math.max(0, known.line.length - folded) }, (_, at) => folded + at);
  return [...marks.columns, ...rest];
}

function HalfDot({ x, y }: { x: number; y: number }): JSX.Element {
  return (
    <g>
      <circle class="half" cx={x} cy={y} r="3.3" />
      <path d={`M${x} ${y - 3.3}a3.3 3.3 0 0 0 0 6.6z`} class="fill" />
    </g>
  );
}
