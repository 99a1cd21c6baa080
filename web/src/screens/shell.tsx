/** The frame of the page: sessions at the left, the top bar, the screens, the panel. */

import { effect, signal, untracked, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { lazy } from "./lazy.tsx";
import { useEffect, useRef } from "preact/hooks";
import { of, send } from "../api.ts";
import { sampled, speedOf, type Sample } from "../state/speed.ts";
import { age, money } from "../state/words.ts";
import { attempt, go, link, listReady, live, loadSessions, looking, minute, needsYou, notice, now, opening, panelOpen, paletteOpen, route, rows, session, sideWidth, slice, spoken, startSession, tree, touched, type Screen } from "../store.ts";
import { ThreadBar } from "../thread/bar.tsx";
import type { SessionRow } from "../types.ts";
import { Button, Key, Loading, Menu } from "../ui/controls.tsx";
import { Icon, Logo, Mark, type MarkName } from "../ui/icons.tsx";
import { Chat } from "./chat.tsx";
import { busy } from "./composer.tsx";
import { Panel } from "./panel.tsx";

const Tree = lazy(() => import("./tree.tsx"), "Tree");
const Changes = lazy(() => import("./changes.tsx"), "Changes");
const Files = lazy(() => import("./files.tsx"), "Files");
const Plan = lazy(() => import("./plan.tsx"), "Plan");
const Decisions = lazy(() => import("./decisions.tsx"), "Decisions");
const Loom = lazy(() => import("./loom.tsx"), "Loom");
const Fan = lazy(() => import("./fan.tsx"), "Fan");
const Compare = lazy(() => import("./compare.tsx"), "Compare");
const Sessions = lazy(() => import("./sessions.tsx"), "Sessions");
const Settings = lazy(() => import("./settings.tsx"), "Settings");
const FirstRun = lazy(() => import("./first-run.tsx"), "FirstRun");

const WIDE: Screen[] = ["chat", "plan"];
/** The tree has its map instead, but on a phone, where there is no room for it. */
const WITH_BAR: Screen[] = ["chat", "changes", "files", "plan"];
const WITH_PANEL: Screen[] = ["chat"];

export function Shell(): JSX.Element {
  const { screen, session: id } = route.value;
  const drawer = useSignal(false);
  useEffect(() => { drawer.value = false; }, [route.value]);
  // The drawer of a phone is never slim.
  const isOpen = drawer.value || (sideWidth.value[screen] ?? (WIDE.includes(screen) && window.innerWidth >= 1280));
  const hasSession = id !== "";
  const panel = hasSession && WITH_PANEL.includes(screen) && panelOpen.value;
  const flip = (): void => {
    if (window.innerWidth < 768) drawer.value = !drawer.value;
    else sideWidth.value = { ...sideWidth.value, [screen]: !isOpen };
  };
  return (
    <div class={["shell", isOpen ? "side-open" : "side-slim", drawer.value ? "drawer" : "", `on-${screen}`].join(" ")}>
      <Side isOpen={isOpen} flip={flip} />
      {drawer.value ? <div class="scrim" onClick={() => { drawer.value = false; }} /> : null}
      <div class="page">
        {hasSession ? <TopBar screen={screen} flip={flip} /> : <PlainTop screen={screen} flip={flip} />}
        {hasSession && (WITH_BAR.includes(screen) || (screen === "tree" && window.innerWidth < 768)) ? <ThreadBar /> : null}
        <div class="middle">
          <main class="screen" id="main">{hasSession ? <h2 class="sr">{screen === "chat" ? "Conversation" : screen}</h2> : null}<ScreenView screen={screen} hasSession={hasSession} /></main>
          {panel ? <Panel /> : null}
        </div>
        <PhoneBar screen={screen} />
      </div>
      <p class="sr" role="status" aria-live="polite">{spoken.value}</p>
      <NoticeView />
    </div>
  );
}

function ScreenView({ screen, hasSession }: { screen: Screen; hasSession: boolean }): JSX.Element {
  const trouble = opening.value;
  if (hasSession && trouble) return trouble.error ? <div class="empty"><p class="title">This session could not be opened</p><p>{trouble.error}</p></div> : <Loading rows={4} />;
  switch (screen) {
    case "tree": return <Tree />;
    case "changes": return <Changes />;
    case "files": return <Files />;
    case "plan": return <Plan />;
    case "decisions": return <Decisions />;
    case "loom": return <Loom />;
    case "fan": return <Fan />;
    case "compare": return <Compare />;
    case "settings": return <Settings />;
    case "start": return <FirstRun />;
    case "chat": return hasSession ? <Chat /> : <Sessions />;
    default: return <Sessions />;
  }
}

/** How a session stands, as a mark and words. */
export function standing(row: SessionRow): { mark: MarkName; words: string } {
  const open = slice.id.value === row.id ? slice.status.value : live.value.get(row.id);
  if (row.damaged) return { mark: "failed", words: "damaged" };
  if (open === "awaiting_permission") return { mark: "needs", words: "waiting for you" };
  if (open === "thinking" || open === "executing_tool" || open === "waiting") return { mark: "running", words: open === "thinking" ? "writing" : open === "waiting" ? "waiting" : "working" };
  if (open === "error") return { mark: "failed", words: "error" };
  if (open === "interrupted" || (row.turn_open && open === undefined)) return { mark: "partial", words: "interrupted · go on?" };
  return { mark: "rest", words: row.turn_count ? "done" : "new" };
}

export function titleOf(row: SessionRow): string {
  return row.title || row.first_prompt.split("\n")[0] || "New session";
}

function Side({ isOpen, flip }: { isOpen: boolean; flip: () => void }): JSX.Element {
  const groups = new Map<string, SessionRow[]>();
  for (const row of rows.value) groups.set(row.project_path, [...(groups.get(row.project_path) ?? []), row]);
  const folded = useSignal<Record<string, boolean>>({});
  const id = route.value.session;
  const shown = rows.value.find((row) => row.id === id)?.project_path ?? rows.value[0]?.project_path;
  const needs = rows.value.filter((row) => ["needs", "running"].includes(standing(row).mark)).slice(0, 6);
  return (
    <nav class="side" aria-label="Sessions">
      <div class="brand"><button type="button" class="home" aria-label="Weft, all sessions" title="All sessions" onClick={() => go("sessions", "")}><Logo />{isOpen ? <strong>Weft</strong> : null}</button>{isOpen ? <Button kind="quiet" icon="rail" label="Fold the sessions" onClick={flip} /> : null}</div>
      {isOpen ? (
        <div class="top">
          <button type="button" class="field fake" onClick={() => { paletteOpen.value = true; }}><Icon name="search" /><span>Search sessions</span><Key>Ctrl K</Key></button>
          <button type="button" class="button plain new" onClick={() => void startSession()}><Icon name="plus" /><span class="label">New session</span><Key>N</Key></button>
        </div>
      ) : (
        <div class="rail-icons">
          <Button kind="quiet" icon="rail" label="Show the sessions" onClick={flip} />
          <Button kind="quiet" icon="search" label="Search sessions" onClick={() => go("sessions", "")} />
          <Button kind="quiet" icon="plus" label="New session" onClick={() => void startSession()} />
          {needs.length ? <span class="rule" /> : null}
          {needs.map((row) => <button key={row.id} type="button" class={row.id === id ? "button quiet bare on" : "button quiet bare"} aria-label={`${titleOf(row)}, ${standing(row).words}`} title={titleOf(row)} onClick={() => go("chat", row.id)}><Mark name={standing(row).mark} label="" /></button>)}
        </div>
      )}
      {isOpen ? (
        <div class="groups">
          {!listReady.value ? <Loading rows={5} /> : null}
          {[...groups].map(([path, list]) => {
            const isFolded = folded.value[path] ?? path !== shown;
            return (
              <section key={path}>
                <button type="button" class="group" aria-expanded={!isFolded} title={path} onClick={() => { folded.value = { ...folded.value, [path]: !isFolded }; }}><Icon name={isFolded ? "right" : "down"} size={13} /><span>{path.split("/").filter(Boolean).at(-1) ?? path}</span><span class="number">{list.length}</span></button>
                {isFolded ? null : <ul>{list.slice(0, 60).map((row) => <SideRow key={row.id} row={row} isOpen={row.id === id} />)}</ul>}
              </section>
            );
          })}
        </div>
      ) : null}
      <div class="bottom">
        {isOpen ? <><Connection /><span class="push" /><Today /></> : null}
        <Button kind="quiet" icon="gear" label="Settings" class={route.value.screen === "settings" ? "on" : ""} onClick={() => go("settings", "")} />
      </div>
    </nav>
  );
}

function SideRow({ row, isOpen }: { row: SessionRow; isOpen: boolean }): JSX.Element {
  const { mark, words } = standing(row);
  const cost = row.cost_usd ? money(row.cost_usd) : "";
  return (
    <li><button type="button" class="session" aria-current={isOpen ? "page" : undefined} onClick={() => go("chat", row.id)}>
      <Mark name={mark} label="" /><span class="words"><span class="name">{titleOf(row)}</span><span class="sub">{[words, cost].filter(Boolean).join(" · ")}</span></span><span class="age">{age(row.last_active, minute.value)}</span>
    </button></li>
  );
}

export function Connection(): JSX.Element {
  const at = link.state.value.at;
  return <span class="connection">{at === "open" ? <Icon name="check" size={14} /> : at === "lost" ? <Icon name="warn" size={14} /> : <Mark name="running" size={14} label="" />}{at === "open" ? "Connected" : at === "lost" ? "Not connected" : "Connecting"}</span>;
}

export function Today(): JSX.Element | null {
  const begin = new Date(minute.value * 1000).setHours(0, 0, 0, 0) / 1000;
  const today = rows.value.filter((row) => row.created >= begin);
  const sum = today.reduce((total, row) => total + (row.cost_usd ?? 0), 0);
  return listReady.value ? <span class="today" title="Sessions that began today">{sum ? money(sum) : "$0.00"} today</span> : null;
}

function TopBar({ screen, flip }: { screen: Screen; flip: () => void }): JSX.Element {
  const plan = slice.plan.value;
  const renaming = useSignal<string | null>(null);
  const row = rows.value.find((each) => each.id === route.value.session);
  const title = slice.title.value || (row ? titleOf(row) : "") || "New session";
  const mark = needsYou.value ? "● " : "";
  useEffect(() => { document.title = `${mark}${title} · Weft`; }, [title, mark]);
  const known = tree.value;
  const branches = known?.branchesAt ? [...known.branchesAt.values()].flat().length : 0;
  const steps = plan ? Object.values(plan.steps ?? {}).filter((each) => each === "passed").length : 0;
  const planSteps = Array.isArray(plan?.plan.steps) ? plan.plan.steps.length : 0;
  const tabs: { id: Screen; label: string; count?: string | number }[] = [
    { id: "chat", label: "Chat" },
    { id: "tree", label: "Tree", count: branches > 1 ? branches : 0 },
    { id: "changes", label: "Changes", count: touched.value.length },
    { id: "plan", label: "Plan", count: planSteps ? (plan?.approved ? `${steps}/${planSteps}` : planSteps) : 0 },
    { id: "decisions", label: "Decisions" },
    { id: "loom", label: "Loom" },
  ];
  const rename = (): void => {
    if (renaming.value?.trim()) void attempt(send("PATCH", of(route.value.session), { title: renaming.value.trim() })).then(() => loadSessions());
    renaming.value = null;
  };
  const act = (what: string): void => {
    const id = route.value.session;
    if (what === "rename") renaming.value = title;
    else if (what === "archive") void attempt(send("PATCH", of(id), { archived: true })).then(() => { void loadSessions(); go("sessions", ""); });
    else if (what === "fork") void attempt(send<{ id: string }>("POST", of(id, "fork"), {})).then((made) => { if (made) { void loadSessions(); go("chat", made.id); } });
    else if (what === "compact") void attempt(send("POST", of(id, "compact"), { queue: true }));
    else go(what as Screen);
  };
  return (
    <header class="top-bar">
      <Button kind="quiet" icon="rail" label="Sessions" class="phone" onClick={flip} />
      <div class="heading">
        {renaming.value !== null
          ? <input class="field small" aria-label="Title" value={renaming.value} ref={(element) => { if (element && document.activeElement !== element) { element.focus(); element.select(); } }} onInput={(event) => { renaming.value = event.currentTarget.value; }} onBlur={rename} onKeyDown={(event) => { if (event.key === "Enter") rename(); if (event.key === "Escape") { event.stopPropagation(); renaming.value = null; } }} />
          : <h1 title={title}>{title}</h1>}
        <p class="meta phone"><PhoneMeta /></p>
      </div>
      <Menu label="Session" class="desktop title-menu" items={[{ value: "rename", label: "Rename…" }, { value: "fork", label: "Fork as a new session" }, { value: "compact", label: "Compact the context" }, { value: "files", label: "Files" }, { value: "fan", label: "Candidates" }, { value: "archive", label: "Archive" }]} onChoose={act}><Icon name="down" size={14} /></Menu>
      <button type="button" class="chip accent desktop" title="The current branch; opens the tree" onClick={() => go("tree")}><Icon name="branch" size={14} /><span class="clip">{known?.headBranch ?? "main"}</span></button>
      <nav class="screens desktop" aria-label="Screens">
        {tabs.map((tab) => <a key={tab.id} href={`#/s/${encodeURIComponent(route.value.session)}/${tab.id}`} aria-current={screen === tab.id || (tab.id === "tree" && (screen === "compare" || screen === "fan")) ? "page" : undefined}>{tab.label}{tab.count ? <span class="count">{tab.count}</span> : null}</a>)}
      </nav>
      <span class="push" />
      <StatusWords screen={screen} />
      <Ring />
      <span class="cost desktop" title="What this session cost">{slice.id.value ? money(slice.cost.value) : ""}</span>
      <Button kind="quiet" icon="panel" label={panelOpen.value ? "Close the panel" : "Open the panel"} class="desktop" pressed={panelOpen.value} onClick={() => { panelOpen.value = !panelOpen.value; }} />
      <Menu label="More" class="phone" items={[{ value: "plan", label: "Plan" }, { value: "decisions", label: "Decisions" }, { value: "loom", label: "Loom" }, { value: "files", label: "Files" }, { value: "rename", label: "Rename…" }, { value: "compact", label: "Compact the context" }, { value: "archive", label: "Archive" }]} onChoose={act}><Icon name="more" /></Menu>
    </header>
  );
}

function PhoneMeta(): JSX.Element {
  if (!slice.id.value) return <span />;
  const full = slice.window.value ? `${Math.round((slice.used.value / slice.window.value) * 100)} %` : "";
  return <>{[busy.value ? statusWords(slice.status.value, slice.isWriting.value) : "", tree.value?.headBranch ?? "main", full, money(slice.cost.value)].filter(Boolean).join(" · ")}</>;
}

function statusWords(status: string, writes: boolean): string {
  return { idle: "Idle", thinking: writes ? "Writing" : "Thinking", executing_tool: "Working", awaiting_permission: "Waiting for you", waiting: "Waiting", interrupted: "Interrupted", error: "Error" }[status] ?? status;
}

/** Tokens a second of the answer that is being written; 0: not known. */
const speed = signal(0);
let samples: readonly Sample[] = [];
effect(() => {
  const at = now.value;
  const length = untracked(() => slice.status.value === "thinking" ? (session.value?.drafts ?? []).reduce((sum, each) => sum + each.text.length + each.thinking.length, 0) : 0);
  samples = sampled(samples, at, length);
  speed.value = speedOf(samples);
});

function StatusWords({ screen }: { screen: Screen }): JSX.Element | null {
  if (!slice.id.value) return null;
  const asks = (slice.requests.value?.length ?? 0) > 0;
  const status = slice.status.value;
  if (asks || slice.plan.value?.approved === null) {
    const words = asks ? "Waiting for you" : "Plan waits for you";
    return <button type="button" class="status" onClick={() => { looking.value = null; go(asks ? "chat" : "plan"); }}><Mark name="needs" label="" />{words}</button>;
  }
  if (screen === "compare") return <span class="status"><Icon name="swap" />Comparing two branches</span>;
  if (looking.value !== null) {
    const at = (tree.value?.line.indexOf(looking.value) ?? 0) + 1;
    return <span class="status"><Icon name="eye" /><span class="words">Looking at turn {at}</span>{screen === "tree" ? <Button small keys="Esc" class="desktop" onClick={() => { looking.value = null; }}>Back to now</Button> : null}</span>;
  }
  const mark: MarkName = busy.value ? "running" : status === "interrupted" ? "partial" : status === "error" ? "failed" : "rest";
  return <span class="status"><Mark name={mark} label="" /><span>{statusWords(status, slice.isWriting.value)}</span>{busy.value && speed.value > 0 ? <span class="speed desktop" title="Tokens a second, estimated from the text">{speed.value} tok/s</span> : null}</span>;
}

function Ring(): JSX.Element | null {
  const used = slice.used.value;
  const size = slice.window.value;
  if (!size) return null;
  const part = Math.min(1, used / size);
  const round = 2 * Math.PI * 5;
  return (
    <span class="ring desktop" title={`${used.toLocaleString("en-US")} of ${size.toLocaleString("en-US")} tokens of context`}>
      <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><circle cx="7" cy="7" r="5" fill="none" stroke="var(--line)" stroke-width="3" /><circle cx="7" cy="7" r="5" fill="none" stroke="var(--text-2)" stroke-width="3" stroke-dasharray={`${part * round} ${round}`} transform="rotate(-90 7 7)" /></svg>
      <span class="percent">{Math.round(part * 100)} %</span>
    </span>
  );
}

function PlainTop({ screen, flip }: { screen: Screen; flip: () => void }): JSX.Element {
  const name = screen === "settings" ? "Settings" : screen === "start" ? "Weft" : "Sessions";
  useEffect(() => { document.title = `${name} · Weft`; }, [name]);
  return (
    <header class="top-bar">
      <Button kind="quiet" icon="rail" label="Sessions" class="phone" onClick={flip} />
      <div class="heading"><h1>{name}</h1></div><span class="push" /><Connection /><Today />
    </header>
  );
}

function PhoneBar({ screen }: { screen: Screen }): JSX.Element | null {
  const id = route.value.session;
  if (!id) return null;
  const items: [Screen, string, Parameters<typeof Icon>[0]["name"]][] = [["chat", "Chat", "chat"], ["changes", touched.value.length ? `Changes ${touched.value.length}` : "Changes", "changes"], ["tree", "Tree", "branch"]];
  return (
    <nav class="phone-bar" aria-label="Screens">
      {items.map(([name, label, icon]) => <a key={name} href={`#/s/${encodeURIComponent(id)}/${name}`} aria-current={screen === name ? "page" : undefined}><Icon name={icon} size={18} />{label}</a>)}
      <a href="#/sessions"><Icon name="more" size={18} />More</a>
    </nav>
  );
}

function NoticeView(): JSX.Element | null {
  const shown = notice.value;
  const held = useRef(false);
  useEffect(() => {
    if (!shown) return;
    const timer = window.setInterval(() => { if (!held.current && notice.value?.id === shown.id) notice.value = null; }, 10_000);
    return () => window.clearInterval(timer);
  }, [shown?.id]);
  if (!shown) return null;
  return (
    <div class={`notice float ${shown.tone}`} role={shown.tone === "bad" ? "alert" : "status"} onMouseEnter={() => { held.current = true; }} onMouseLeave={() => { held.current = false; }} onFocusIn={() => { held.current = true; }} onFocusOut={() => { held.current = false; }}>
      <Icon name={shown.tone === "ok" ? "check" : shown.tone === "bad" ? "cross" : "warn"} /><span class="words">{shown.text}</span>
      {shown.undo ? <Button small onClick={() => { shown.undo?.(); notice.value = null; }}>Undo</Button> : null}
      <Button kind="quiet" small icon="cross" label="Close" onClick={() => { notice.value = null; }} />
    </div>
  );
}


