/** All sessions, searched: what needs you first, then by project. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { age, count, money } from "../state/words.ts";
import { access, attempt, go, listReady, loadSessions, minute, readAccess, rows, say, startSession } from "../store.ts";
import type { SessionRow } from "../types.ts";
import { Button, Filter, Key, Loading } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { FirstRun } from "./first-run.tsx";
import { lazy } from "./lazy.tsx";
import { standing, titleOf } from "./shell.tsx";

const Imports = lazy(() => import("./imports.tsx"), "Imports");
type View = "all" | "needs" | "running" | "archived";

export function Sessions(): JSX.Element {
  const words = useSignal("");
  const view = useSignal<View>("all");
  const found = useSignal<SessionRow[] | null>(null);
  const said = useSignal<Record<string, string>>({});
  const at = useSignal(0);
  const field = useRef<HTMLInputElement>(null);
  const imports = useSignal(false);
  useEffect(() => { if (window.innerWidth >= 768) field.current?.focus(); void loadSessions(); }, []);
  useEffect(() => {
    if (!words.value.trim()) said.value = {};
    if (!words.value.trim() && view.value !== "archived") { found.value = null; return; }
    let isPast = false;
    const timer = window.setTimeout(() => {
      if (words.value.trim()) get<{ excerpts: Record<string, string> }>("/sessions/excerpts", { q: words.value.trim() }).then((answer) => { if (!isPast) said.value = answer.excerpts; }, () => undefined);
      void attempt(get<{ rows: SessionRow[] }>("/sessions", { q: words.value.trim(), archived: view.value === "archived", limit: 100 })).then((answer) => { if (!isPast) { found.value = answer?.rows ?? []; at.value = 0; } });
    }, 120);
    return () => { isPast = true; window.clearTimeout(timer); };
  }, [words.value, view.value]);
  const all = found.value ?? rows.value;
  const shown = all.filter((row) => view.value === "needs" ? ["needs", "partial"].includes(standing(row).mark) : view.value === "running" ? standing(row).mark === "running" : true);
  const rank = (row: SessionRow): number => (standing(row).mark === "needs" ? 0 : 1);
  const groups = new Map<string, SessionRow[]>();
  for (const row of [...shown].sort((a, b) => rank(a) - rank(b))) groups.set(row.project_path, [...(groups.get(row.project_path) ?? []), row]);
  const order = [...groups.values()].flat();
  const chosen = order[Math.min(at.value, order.length - 1)];
  const damaged = rows.value.filter((row) => row.damaged).length;
  const number = (mark: string): number => rows.value.filter((row) => standing(row).mark === mark).length;
  const key = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") at.value = Math.min(order.length - 1, at.value + 1);
    else if (event.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
    else if (event.key === "Enter" && chosen) go("chat", chosen.id);
    else if (event.key === "a" && chosen && !(event.target instanceof HTMLInputElement) && !event.ctrlKey && !event.metaKey) archive(chosen, view.value === "archived");
    else return;
    event.preventDefault();
    document.querySelector(".session-row.chosen")?.scrollIntoView({ block: "nearest" });
  };
  const isFirst = listReady.value && rows.value.length === 0 && !words.value && view.value === "all";
  useEffect(() => { if (isFirst) void readAccess(); }, [isFirst]);
  // Who was led to a key here goes on from here, and not from an empty list.
  const led = useRef(false);
  if (isFirst && access.value && !access.value.has_default) led.current = true;
  if (isFirst && led.current) return <FirstRun />;
  return (
    <div class="sessions" onKeyDown={key}>
      <div class="sessions-head">
        <div class="search"><Icon name="search" /><input ref={field} type="search" class="field" aria-label="Search sessions" placeholder="Search titles and everything said" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} />{words.value ? <span class="dim">{shown.length} in {count(groups.size, "project")}</span> : null}</div>
        <Filter chosen={view.value === "all"} onClick={() => { view.value = "all"; }}>All projects</Filter>
        <Filter chosen={view.value === "needs"} onClick={() => { view.value = "needs"; }}>Needs you {number("needs") + number("partial") || ""}</Filter>
        <Filter chosen={view.value === "running"} onClick={() => { view.value = "running"; }}>Running {number("running") || ""}</Filter>
        <Filter chosen={view.value === "archived"} onClick={() => { view.value = "archived"; }}>Archived</Filter>
        <span class="push" />
        <Button onClick={() => { imports.value = !imports.value; }}>Import…</Button>
        <Button kind="primary" icon="plus" keys="N" onClick={() => void startSession()}>New session</Button>
      </div>
      {imports.value ? <Imports /> : null}
      <div class="sessions-list" tabIndex={-1}>
        {!listReady.value ? <Loading rows={6} /> : null}
        {listReady.value && order.length === 0 ? <div class="empty"><p class="title">{words.value ? `Nothing found for “${words.value}”` : "No sessions yet"}</p><p>{words.value && view.value !== "archived" ? <button type="button" class="link" onClick={() => { view.value = "archived"; }}>Search archived too</button> : "Start one: it is kept here, with everything said and changed."}</p></div> : null}
        {[...groups].map(([path, list]) => (
          <section key={path}>
            <h2 class="group"><span class="name">{path.split("/").filter(Boolean).at(-1) ?? path}</span><span class="dim">{path}</span><span class="push" /><span class="dim">{words.value ? `${list.length} found` : list.length}</span></h2>
            <ul>{list.map((row) => <Line key={row.id} row={row} words={words.value} said={said.value[row.id]} isChosen={row === chosen} isArchived={view.value === "archived"} />)}</ul>
          </section>
        ))}
      </div>
      <div class="sessions-foot desktop"><span class="hint"><Key>↑</Key><Key>↓</Key> choose <Key>Enter</Key> open <Key>A</Key> archive</span><span class="push" /><span class="dim">{[count(rows.value.length, "session"), damaged ? `${damaged} damaged` : "", money(rows.value.reduce((sum, row) => sum + (row.cost_usd ?? 0), 0))].filter(Boolean).join(" · ")}</span></div>
    </div>
  );
}

/** Puts a session away, or takes it back. */
function archive(row: SessionRow, isArchived: boolean): void {
  const put = (archived: boolean): Promise<void> => attempt(send("PATCH", of(row.id), { archived })).then(() => loadSessions());
  void put(!isArchived).then(() => say("ok", isArchived ? "Back from the archive." : "Archived.", () => void put(isArchived)));
}

function Line({ row, words, said, isChosen, isArchived }: { row: SessionRow; words: string; said: string | undefined; isChosen: boolean; isArchived: boolean }): JSX.Element {
  const { mark, words: state } = standing(row);
  return (
    <li class={isChosen ? "session-row chosen" : "session-row"}>
      <button type="button" class="open" onClick={() => go("chat", row.id)}>
        <Mark name={mark} label="" /><span class="words"><span class="name">{found(titleOf(row), words)}</span><span class="sub">{found(said ?? row.first_prompt.replace(/\s+/g, " ").slice(0, 160), words)}</span></span>
        <span class={row.damaged ? "cell state bad" : "cell state"}>{row.damaged ? `damaged: ${row.damaged}` : state.split(" · ")[0]}</span>
        <span class="cell turns">{row.branch ? <><Icon name="branch" size={13} /> {row.branch}</> : ""}</span>
        <span class="cell turns">{count(row.turn_count, "turn")}</span><span class="cell cost">{row.cost_usd === null ? "" : money(row.cost_usd)}</span><span class="cell age">{age(row.last_active, minute.value)}</span>
      </button>
      <Button kind="quiet" small label={isArchived ? `Take ${titleOf(row)} out of the archive` : `Archive ${titleOf(row)}`} onClick={() => archive(row, isArchived)}>{isArchived ? "Restore" : "Archive"}</Button>
    </li>
  );
}

/** The words that were searched for, marked in a text. */
export function found(text: string, words: string): ComponentChildren {
  const wanted = words.trim().split(/\s+/).filter((each) => each.length > 1).map((each) => each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (wanted.length === 0) return text;
  return text.split(new RegExp(`(${wanted.join("|")})`, "gi")).map((part, at) => (at % 2 === 1 ? <mark key={at}>{part}</mark> : part));
}
