/** What stands beside the chat: changes, files, todos. */

import { computed, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { HunkView } from "../diff/view.tsx";
import { changedFiles, letter, netFiles, type ChangedFile, type NetFile } from "../state/changes.ts";
import { lastLine } from "../state/background.ts";
import { usageOf } from "../state/costs.ts";
import { fileName, money } from "../state/words.ts";
import { attempt, background, go, kept, looking, net, panelOpen, panelWidth, project, revertHunk, session, slice, touched, tree } from "../store.ts";
import type { BackgroundWork, DecisionList } from "../types.ts";
import { Button, Chip, Empty, Menu, PathName, Stat, Tabs } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { busy, projectFiles } from "./composer.tsx";

export const changed = computed<ChangedFile[]>(() => changedFiles(slice.rows.value ?? [], slice.results.value ?? new Map(), touched.value));
/** What the screens show of changes: all that happened to a file as one difference. */
export const netChanged = computed<NetFile[] | null>(() => (net.value === null ? null : netFiles(net.value, slice.rows.value ?? [], slice.results.value ?? new Map())));
export const accepted = kept<Record<string, string[]>>("accepted", {});

type Tab = "changes" | "files" | "todos";
const tab = signal<Tab>("changes");
let openedOnce = false;

/** The number of the turn that begins with a message; 0 where it is not on the line. */
export function turnNumber(node: string): number {
  const known = tree.value;
  return known ? known.line.indexOf(known.turnOf.get(node) ?? "") + 1 : 0;
}

export function Panel(): JSX.Element {
  const todos = slice.todos.value ?? [];
  const done = todos.filter((each) => each.status === "done").length;
  useEffect(() => {
    if (openedOnce || touched.value.length === 0) return;
    openedOnce = true;
    if (window.innerWidth >= 1024) panelOpen.value = true;
  }, [touched.value.length]);
  const past = looking.value !== null;
  const name = past ? "Turn to now" : tab.value === "changes" ? "Changes" : tab.value === "files" ? "Files" : "Todos";
  return (
    <aside class="panel" aria-label={name} style={{ width: `${panelWidth.value}px` }}>
      <Grip />
      <div class="panel-head">
        {past
          ? <Tabs name="Panel" value="changes" onChange={() => undefined} tabs={[{ id: "changes", label: `Turn ${(tree.value?.line.indexOf(looking.value ?? "") ?? 0) + 1} to now`, count: netChanged.value?.length ?? 0 }]} />
          : <Tabs<Tab> name="Panel" value={tab.value} onChange={(next) => { tab.value = next; }} tabs={[{ id: "changes", label: "Changes", count: netChanged.value?.length ?? 0 }, { id: "files", label: "Files" }, { id: "todos", label: "Todos", count: todos.length ? `${done}/${todos.length}` : 0 }]} />}
        <Button kind="quiet" icon="changes" label="All changes" onClick={() => go("changes")} />
      </div>
      {past ? <ChangesTab files={netChanged.value} isPast /> : tab.value === "changes" ? <ChangesTab files={netChanged.value} /> : tab.value === "files" ? <FilesTab /> : <TodosTab />}
    </aside>
  );
}

function Grip(): JSX.Element {
  const drag = (event: PointerEvent): void => {
    const from = event.clientX;
    const width = panelWidth.value;
    const move = (next: PointerEvent): void => { panelWidth.value = Math.max(320, Math.min(640, width + from - next.clientX)); };
    const end = (): void => { window.removeEventListener("pointermove", move); window.removeEventListener("pointerup", end); };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  };
  return <div class="grip" role="separator" aria-orientation="vertical" aria-label="Width of the panel" aria-valuemin={320} aria-valuemax={640} aria-valuenow={panelWidth.value} tabIndex={0} onPointerDown={drag} onKeyDown={(event) => { const step = event.key === "ArrowLeft" ? 16 : event.key === "ArrowRight" ? -16 : 0; if (step) panelWidth.value = Math.max(320, Math.min(640, panelWidth.value + step)); }} />;
}

function ChangesTab({ files, isPast = false }: { files: NetFile[] | null; isPast?: boolean }): JSX.Element {
  const chosen = useSignal("");
  const place = useSignal(0);
  if (files === null) return <div class="panel-body" />;
  if (files.length === 0) return <div class="panel-body"><Empty title={isPast ? "Nothing changed since" : "No changes yet"}>{isPast ? "Files are as they were then." : "Files that the session changes appear here, the shell’s too."}</Empty></div>;
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  const file = files.find((each) => each.path === chosen.value) ?? files.find((each) => each.hunks.length > 0) ?? files[0];
  const hunks = file?.hunks ?? [];
  const at = Math.min(place.value, Math.max(0, hunks.length - 1));
  const hunk = hunks[at];
  const id = session.value?.id ?? "";
  const seen = accepted.value[id] ?? [];
  const turns = hunk ? hunk.turns.map(turnNumber).filter(Boolean) : [];
  return (
    <>
      <div class="panel-body">
        <div class="panel-row scope"><span>{isPast ? "What has changed since" : "Since this session began"}</span><span class="push" /><Stat added={added} removed={removed} /></div>
        <ul class="file-list">
          {files.map((each) => (
            <li key={each.path}><button type="button" class="file-row" aria-current={each === file} onClick={() => { chosen.value = each.path; place.value = 0; }}>
              <span class={`letter ${each.action}`}>{letter(each.action)}</span><PathName path={each.path} /><span class="push" />{each.hunks.length ? <Stat added={each.added} removed={each.removed} /> : <span class="dim">{each.why ? "not shown" : ""}</span>}
            </button></li>
          ))}
        </ul>
        {file && hunk ? (
          <>
            <div class="hunk-head"><code>{fileName(file.path)[1]}</code><span class="dim">{isPast ? "then › now" : turns.length ? `turn ${turns.join(" and ")}` : ""}</span><span class="push" /><span class="dim">{at + 1} of {hunks.length}</span>
              <Button kind="quiet" small icon="up" label="Previous hunk" onClick={() => { place.value = (at - 1 + hunks.length) % hunks.length; }} /><Button kind="quiet" small icon="down" label="Next hunk" onClick={() => { place.value = (at + 1) % hunks.length; }} /></div>
            <HunkView hunk={hunk.hunk} path={file.path} split={false} />
            {isPast ? <p class="dim pad">Looking changes nothing. Files on disk are as they are now until you rewind or branch.</p> : (
              <div class="hunk-acts">
                {seen.includes(hunk.id) ? <span class="ok">Accepted</span> : <Button small icon="check" onClick={() => { accepted.value = { ...accepted.value, [id]: [...seen, hunk.id] }; }}>Accept</Button>}
                <Button small icon="undo" off={file.why || (busy.value ? "A turn runs" : undefined)} onClick={() => void revertHunk(file.path, hunk.id, "")}>Revert</Button>
                <span class="push" /><Button kind="quiet" small onClick={() => go("decisions", undefined, { why: `${file.path}:${hunk.hunk.after}` })}>Why this change?</Button>
              </div>
            )}
          </>
        ) : null}
      </div>
      {isPast ? null : <PutBack />}
    </>
  );
}

function PutBack(): JSX.Element | null {
  const known = tree.value;
  const turns = [...new Set(changed.value.flatMap((file) => file.hunks.map((each) => each.turn)))].map((node) => ({ node, number: turnNumber(node) })).filter((each) => each.number > 0).sort((a, b) => a.number - b.number);
  const chosen = useSignal("");
  const at = turns.find((each) => each.node === chosen.value) ?? turns.at(-1);
  if (!known || !at) return null;
  return (
    <div class="panel-foot">
      <Icon name="undo" />
      <span class="dim">Put files back to</span>
      <Menu up label="Put files back to" items={turns.map((each) => ({ value: each.node, label: `before turn ${each.number}`, chosen: each === at }))} onChoose={(value) => { chosen.value = value; }}>before turn {at.number}<Icon name="down" size={12} /></Menu>
      <span class="push" />
      <Button small onClick={() => go("tree", undefined, { at: known.line[at.number - 2] ?? known.line[0] ?? "" })}>Preview</Button>
    </div>
  );
}

function FilesTab(): JSX.Element {
  const files = useSignal<string[]>([]);
  const words = useSignal("");
  useEffect(() => { void projectFiles().then((found) => { files.value = found; }); }, []);
  const found = files.value.filter((each) => each.toLowerCase().includes(words.value.toLowerCase())).slice(0, 300);
  return (
    <div class="panel-body">
      <div class="panel-row"><input class="field small" type="search" aria-label="Find a file" placeholder="Find a file" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} /></div>
      {files.value.length === 0 ? <Empty title="No files to show">The files of the project appear here.</Empty> : null}
      <ul class="file-list">{found.map((path) => <li key={path}><button type="button" class="file-row" onClick={() => go("files", undefined, { path })}><Icon name="file" size={14} /><PathName path={path} /></button></li>)}</ul>
    </div>
  );
}

/** One command or agent beside the turns: a line, and what it prints once opened. */
function Beside({ work, session: id }: { work: BackgroundWork; session: string }): JSX.Element {
  const open = useSignal(false);
  const screen = useRef<HTMLPreElement>(null);
  const sticks = useRef(true);
  const output = work.output ?? "";
  useLayoutEffect(() => { if (screen.current && sticks.current) screen.current.scrollTop = screen.current.scrollHeight; }, [output, open.value]);
  const runs = work.status === "running" || work.status === "thinking";
  const says = work.exit_code === null || work.exit_code === undefined ? work.status : `${work.status} with ${work.exit_code}`;
  return (
    <div class="beside-work">
      <div class="beside">
        <Mark name={runs ? "running" : work.exit_code ? "failed" : "rest"} />
        <span class="words"><code title={work.title}>{work.title}</code><span class="dim last">{work.kind === "shell" ? "command" : "agent"} · {says}{!open.value && output ? ` · ${lastLine(output)}` : ""}</span></span>
        {work.kind === "shell" ? <Button kind="quiet" small icon={open.value ? "up" : "down"} expanded={open.value} label={`Output of ${work.title}`} onClick={() => { open.value = !open.value; sticks.current = true; }} /> : null}
        {runs ? <Button small icon="stop" label={`End ${work.title}`} onClick={() => void attempt(send("DELETE", of(id, "background", work.id), {}))}>Stop</Button> : null}
      </div>
      {open.value ? <pre class="beside-output" ref={screen} tabIndex={0} role="region" aria-live="off" aria-label={`What ${work.title} prints`} onScroll={(event) => { const at = event.currentTarget; sticks.current = at.scrollHeight - at.scrollTop - at.clientHeight < 40; }}>{output || "It has printed nothing yet."}</pre> : null}
    </div>
  );
}

function TodosTab(): JSX.Element {
  const todos = slice.todos.value ?? [];
  const state = session.value;
  const mark = { done: "checked", in_progress: "running", pending: "coming", cancelled: "partial" } as const;
  return (
    <div class="panel-body">
      {todos.length === 0 ? <Empty title="No todos">The model’s list of tasks appears here when it keeps one.</Empty> : null}
      <ul class="todos">{todos.map((each) => <li key={each.id} class={each.status ?? "pending"}><Mark name={mark[each.status ?? "pending"]} />{each.text}</li>)}</ul>
      {background.value.length ? (
        <section class="block"><h3>Running beside this turn</h3>
          {background.value.map((each) => <Beside key={each.id} work={each} session={state?.id ?? ""} />)}
        </section>
      ) : null}
      {state ? <TurnFacts /> : null}
      <InForce />
    </div>
  );
}

/** What the newest turn has used, and the session as a whole. */
function TurnFacts(): JSX.Element | null {
  const state = session.value;
  if (!state) return null;
  const rows = state.rows.slice(state.rows.findLastIndex((row) => row.role === "user") + 1);
  const used = usageOf(rows.flatMap((row) => row.message.usage ?? []));
  const number = (tokens: number): string => `${tokens.toLocaleString("en-US")} tokens`;
  return (
    <>
      {used.input || used.output ? (
        <section class="block"><h3>This turn</h3>
          <dl class="facts-list">
            <dt>Input</dt><dd>{number(used.input)}{used.cached ? <span class="dim"> · {Math.round((used.cached / used.input) * 100)} % from cache</span> : null}</dd>
            <dt>Output</dt><dd>{number(used.output)}</dd>
            <dt>Cost</dt><dd>{money(used.cost)}</dd>
          </dl>
        </section>
      ) : null}
      <section class="block"><h3>This session</h3>
        <dl class="facts-list">
          <dt>Model</dt><dd>{state.model}</dd>
          <dt>Context</dt><dd>{state.contextUsed.toLocaleString("en-US")}{state.contextWindow ? ` of ${state.contextWindow.toLocaleString("en-US")} tokens` : " tokens"}</dd>
          <dt>Cost</dt><dd>{money(state.cost)}</dd>
        </dl>
      </section>
    </>
  );
}

/** The newest decisions that hold, and what is not to be proposed again. */
function InForce(): JSX.Element | null {
  const found = useSignal<DecisionList | null>(null);
  const key = project.value.key;
  useEffect(() => { get<DecisionList>(`/projects/${encodeURIComponent(key)}/decisions`, { limit: 100 }).then((list) => { found.value = list; }, () => undefined); }, [key]);
  const rejected = new Set((found.value?.edges ?? []).filter((edge) => edge.kind === "rejected").map((edge) => edge.target));
  const shown = (found.value?.nodes ?? []).filter((node) => rejected.has(node.id) || (node.kind === "decision" && node.status === "active")).slice(0, 5);
  if (shown.length === 0) return null;
  return (
    <section class="block"><h3 class="line">In force here<span class="push" /><Button kind="quiet" small onClick={() => go("decisions")}>Decisions</Button></h3>
      <ul class="in-force">{shown.map((node) => <li key={node.id}><Chip>{rejected.has(node.id) ? "never" : "chosen"}</Chip><span class="words">{node.title}<span class="dim">{[node.by ?? "user", ...(node.scope ?? [])].join(" · ")}</span></span></li>)}</ul>
    </section>
  );
}
