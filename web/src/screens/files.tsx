/** The project's files, as they are: a tree of them, who wrote a line, and lines for the message. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { get, of } from "../api.ts";
import { highlightLines, languageOf, spans } from "../code/highlight.ts";
import { fileTreeRows, rowAbove } from "../state/file-tree.ts";
import { go, project, route, session, touched, tree } from "../store.ts";
import { Button, Chip, Empty, Loading, PathName } from "../ui/controls.tsx";
import type { EditBoundary, ProjectFile, WhyReport } from "../types.ts";
import { Icon, Mark } from "../ui/icons.tsx";
import { filesTrouble, insert, projectFiles } from "./composer.tsx";

/** Lines that are put into a message, at most. */
const MOST_QUOTED = 200;
/** How long the mouse rests on a line before its writer is asked for. */
const REST_MS = 300;

export function Files(): JSX.Element {
  const files = useSignal<string[] | null>(null);
  const words = useSignal("");
  const open = useSignal<ProjectFile | null>(null);
  const trouble = useSignal("");
  const path = route.value.query.path ?? "";
  const [line = 0, last = 0] = linesOf(route.value.query);
  const bounds = useSignal<EditBoundary | null>(null);
  useEffect(() => {
    let isOld = false;
    void projectFiles().then((found) => { if (!isOld) files.value = found; });
    return () => { isOld = true; };
  }, [project.value.key]);
  useEffect(() => {
    open.value = null;
    trouble.value = "";
    bounds.value = null;
    if (!path || !session.value) return;
    // What comes late is of a file that is not looked at any more.
    let isOld = false;
    get<EditBoundary | null>(of(session.value.id, "boundaries", path)).then((found) => { if (!isOld) bounds.value = found; }, () => undefined);
    get<ProjectFile>(of(session.value.id, "file"), { path }).catch(() => get<ProjectFile>(`/projects/${encodeURIComponent(project.value.key)}/file`, { path })).then((found) => { if (!isOld) open.value = found; }, (error: Error) => { if (!isOld) trouble.value = error.message; });
    return () => { isOld = true; };
  }, [path, session.value?.id]);
  const low = words.value.toLowerCase();
  const changedNow = useMemo(() => new Set(touched.value.map((each) => each.path)), [touched.value]);
  const all = useMemo(() => (files.value?.length ? files.value : [...changedNow]), [files.value, changedNow]);
  const found = all.filter((each) => each.toLowerCase().includes(low)).slice(0, 500);
  const put = (): void => {
    insert(line && open.value?.text ? quoted(path, open.value.text, line, last) : `@${path} `);
    go("chat");
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key !== "@" || !path || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    put();
  };
  return (
    <div class="changes" onKeyDown={key}>
      <div class="changes-side">
        <div class="panel-row"><input class="field small" type="search" aria-label="Find a file" placeholder="Find a file" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} /></div>
        <div class="scroll" tabIndex={-1}>
          {files.value === null ? <Loading rows={5} /> : null}
          {low ? <ul class="file-list">{found.map((each) => <li key={each}><button type="button" class="file-row" aria-current={each === path} onClick={() => go("files", undefined, { path: each })}>{changedNow.has(each) ? <span class="letter">M</span> : <Icon name="file" size={14} />}<PathName path={each} /></button></li>)}</ul> : <FileTree paths={all} changed={changedNow} path={path} />}
        </div>
      </div>
      <div class="changes-main" tabIndex={-1}>
        {path ? <div class="file-head"><code><PathName path={path} /></code><span class="push" />{bounds.value ? <Chip icon="shield">{`edits only in lines ${bounds.value.first + 1}–${bounds.value.last + 1}`}</Chip> : null}{line ? <Button small icon="why" onClick={() => go("decisions", undefined, { why: `${path}:${line}` })}>Why line {line}?</Button> : null}<Button small keys="@" onClick={put}>{line ? `Put ${rangeWords(line, last)} into the message` : "Put into the message"}</Button></div> : filesTrouble.value ? <Empty title="The files cannot be listed">{filesTrouble.value}</Empty> : <Empty title="Choose a file">Files are shown as they are now; nothing is edited here.</Empty>}
        {trouble.value ? <div class="notice bad"><Icon name="cross" /><span class="words">{trouble.value}</span></div> : null}
        {line && open.value?.text ? <Writer path={path} line={line} /> : null}
        {path && !open.value && !trouble.value ? <Loading rows={6} /> : null}
        {open.value ? open.value.text === null ? <Empty title="Not text">{open.value.media_type ?? ""} · {open.value.size ?? 0} bytes</Empty> : <Source text={open.value.text} path={path} line={line} last={last} bounds={bounds.value} /> : null}
      </div>
    </div>
  );
}

/** The lines that are chosen, the first and the last; none: [0, 0]. */
function linesOf(query: Record<string, string>): [number, number] {
  const first = Math.max(0, Math.floor(Number(query.line ?? 0)) || 0);
  return [first, Math.max(first, Math.floor(Number(query.to ?? 0)) || 0)];
}

function rangeWords(first: number, last: number): string {
  return last > first ? `lines ${first}–${last}` : `line ${first}`;
}

/** The lines for the message: where they stand, and what they say, in a fence that they cannot end. */
function quoted(path: string, text: string, first: number, last: number): string {
  const lines = text.split("\n").slice(first - 1, last).slice(0, MOST_QUOTED).join("\n");
  const longest = Math.max(2, ...[...lines.matchAll(/`+/g)].map((each) => each[0].length));
  const fence = "`".repeat(longest + 1);
  return `@${path} ${rangeWords(first, last)}:\n${fence}\n${lines}\n${fence}\n`;
}

/** The project's folders and files; each row is reached with the arrows. */
function FileTree({ paths, changed, path }: { paths: readonly string[]; changed: ReadonlySet<string>; path: string }): JSX.Element {
  const chosen = useSignal<ReadonlyMap<string, boolean>>(new Map());
  const at = useSignal("");
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => fileTreeRows(paths, [path, ...changed], chosen.value), [paths, path, changed, chosen.value]);
  const here = Math.max(0, rows.findIndex((row) => row.path === (at.value || path)));
  const open = (place: number, isOpen: boolean): void => { chosen.value = new Map([...chosen.value, [rows[place]?.path ?? "", isOpen]]); };
  const use = (place: number): void => {
    const row = rows[place];
    if (!row) return;
    at.value = row.path;
    if (row.isOpen === null) go("files", undefined, { path: row.path });
    else open(place, !row.isOpen);
  };
  const move = (place: number): void => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, place))];
    if (!row) return;
    at.value = row.path;
    box.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[rows.indexOf(row)]?.focus();
  };
  const key = (event: KeyboardEvent): void => {
    const isOpen = rows[here]?.isOpen;
    if (event.key === "ArrowDown") move(here + 1);
    else if (event.key === "ArrowUp") move(here - 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(rows.length - 1);
    else if (event.key === "Enter" || event.key === " ") use(here);
    else if (event.key === "ArrowRight" && isOpen !== null) { if (isOpen) move(here + 1); else open(here, true); }
    else if (event.key === "ArrowLeft") { if (isOpen) open(here, false); else if (rowAbove(rows, here) >= 0) move(rowAbove(rows, here)); }
    else return;
    event.preventDefault();
  };
  return (
    <div ref={box} class="file-list" role="tree" aria-label="Files" onKeyDown={key}>
      {rows.map((row, place) => (
        <div key={row.path} role="treeitem" class={row.isOpen === null ? "file-row" : "file-row folder"} tabIndex={place === here ? 0 : -1} aria-level={row.depth + 1} aria-expanded={row.isOpen ?? undefined} aria-selected={row.path === path} aria-current={row.path === path} style={{ paddingLeft: `${16 + Math.min(row.depth, 12) * 12}px` }} title={row.path} onClick={() => use(place)} onFocus={() => { at.value = row.path; }}>
          {row.isOpen === null ? changed.has(row.path) ? <span class="letter">M</span> : <Icon name="file" size={14} /> : <Icon name={row.isOpen ? "down" : "right"} size={14} />}<span class="name">{row.name}</span>
        </div>
      ))}
    </div>
  );
}

/** Who wrote a line: the turn of a session, or a commit. */
function useWriter(path: string, line: number, rest = 0): ReadonlySignal<WhyReport | null> {
  const found = useSignal<WhyReport | null>(null);
  useEffect(() => {
    let isWanted = true;
    found.value = null;
    if (!line) return;
    const timer = window.setTimeout(() => {
      get<WhyReport>(`/projects/${encodeURIComponent(project.value.key)}/decisions/why`, { path, line }).then((answer) => { if (isWanted) found.value = answer; }, () => undefined);
    }, rest);
    return () => { isWanted = false; window.clearTimeout(timer); };
  }, [path, line, project.value.key]);
  return found;
}

/** The turn of the open session's line in which a line was written. */
function turnHere(why: WhyReport): string | undefined {
  return why.turn?.node && why.turn.session_id === session.value?.id ? tree.value?.turnOf.get(why.turn.node) : undefined;
}

function WriterWords({ why, line }: { why: WhyReport; line: number }): JSX.Element {
  const { turn } = why;
  const here = turnHere(why);
  return <>Line {line}: {turn ? <>written in {here ? `turn ${(tree.value?.turns.get(here)?.depth ?? 0) + 1}` : "another session"}{turn.prompt ? `, “${turn.prompt.slice(0, 120)}”` : ""}</> : why.commit ? <>commit <code>{why.commit.commit.slice(0, 8)}</code> {why.commit.summary ?? ""}</> : "no session or commit is known that wrote it"}</>;
}

/** Who wrote the chosen line, and the way there. */
function Writer({ path, line }: { path: string; line: number }): JSX.Element | null {
  const why = useWriter(path, line).value;
  if (!why) return <p class="line-writer" />;
  const { turn } = why;
  const here = turnHere(why);
  return (
    <p class="line-writer">
      <Mark name={turn ? "weft" : "other"} label="" />
      <span class="words"><WriterWords why={why} line={line} /></span>
      {turn ? <Button kind="quiet" small onClick={() => (here ? go("tree", undefined, { at: here }) : go("chat", turn.session_id))}>{here ? "Go to the turn" : "Open the session"}</Button> : null}
    </p>
  );
}

/** Beside a line that the mouse rests on: who wrote it. */
function WriterTip({ path, line, top, left }: { path: string; line: number; top: number; left: number }): JSX.Element | null {
  const why = useWriter(path, line, REST_MS).value;
  return why ? <span class="writer-tip" aria-hidden="true" style={{ top: `${top}px`, left: `${left}px` }}><WriterWords why={why} line={line} /></span> : null;
}

/** Lines with numbers that can be chosen, with Shift several; the part that may be edited has a bar beside it. */
function Source({ text, path, line, last, bounds }: { text: string; path: string; line: number; last: number; bounds: EditBoundary | null }): JSX.Element {
  // What ends the last line begins none.
  const lines = highlightLines(text.replace(/\n$/, ""), languageOf(path));
  const look = (at: number): string => ["same", at + 1 >= line && at + 1 <= last ? "here" : "", bounds && at >= bounds.first && at <= bounds.last ? "editable" : ""].filter(Boolean).join(" ");
  const choose = (at: number, isMore: boolean): void => {
    const [from, to] = isMore && line ? [Math.min(line, at), Math.max(last, at)] : [at, at];
    go("files", undefined, { path, line: String(from), ...(to > from ? { to: String(to) } : {}) });
  };
  const pointed = useSignal<{ line: number; top: number; left: number } | null>(null);
  const over = (event: MouseEvent): void => {
    const number = (event.target as Element).closest("th");
    const at = number ? Number(number.textContent) : 0;
    const place = number?.getBoundingClientRect();
    if (at !== pointed.value?.line) pointed.value = place && at ? { line: at, top: place.bottom, left: place.right } : null;
  };
  return (
    <div class="diff" onMouseOver={over} onMouseLeave={() => { pointed.value = null; }}>
      {pointed.value ? <WriterTip path={path} {...pointed.value} /> : null}
      <table class="unified" aria-label={path}><tbody>{lines.slice(0, 5000).map((each, at) => <tr key={at} class={look(at)}><th scope="row"><button type="button" class="line-number" tabIndex={-1} title="Choose the line; with Shift, all up to it" onClick={(event) => choose(at + 1, event.shiftKey)}>{at + 1}</button></th><td class="text">{spans(each)}</td></tr>)}</tbody></table>
    </div>
  );
}
