/** The project's files, as they are: a tree of them, who wrote a line, and lines for the message. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { get, of } from "../api.ts";
import { highlightLines, languageOf, spans } from "../code/highlight.ts";
import { fileTreeRows, rowAbove } from "../state/file-tree.ts";
import { go, project, route, session, touched, tree } from "../store.ts";
import { Button, Chip, Empty, Loading, PathName } from "../ui/controls.tsx";
import type { Blame, PastFiles } from "../generated/api.ts";
import type { EditBoundary, ProjectFile } from "../types.ts";
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
        {line && open.value?.text ? <Writer key={`${path}:${line}`} path={path} line={line} /> : null}
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

/** What wrote a line. */
function useWriter(path: string, line: number, rest = 0): ReadonlySignal<Blame | null> {
  const found = useSignal<Blame | null>(null);
  useEffect(() => {
    let isWanted = true;
    found.value = null;
    if (!line) return;
    const timer = window.setTimeout(() => {
      get<Blame>(`/projects/${encodeURIComponent(project.value.key)}/blame`, { path, line }).then((answer) => { if (isWanted) found.value = answer; }, () => undefined);
    }, rest);
    return () => { isWanted = false; window.clearTimeout(timer); };
  }, [path, line, project.value.key]);
  return found;
}

/** The turn of the open session's line in which a line was written. */
function turnHere(blame: Blame): string | undefined {
  return blame.open_node && blame.open_session === session.value?.id ? tree.value?.turnOf.get(blame.open_node) : undefined;
}

function WriterWords({ blame, line }: { blame: Blame; line: number }): JSX.Element {
  const here = turnHere(blame);
  return <>Line {line}{here ? `, turn ${(tree.value?.turns.get(here)?.depth ?? 0) + 1}` : ""}: {blame.sentence}</>;
}

/** What wrote the chosen line, why, and the way to the tree and the files as they were then. */
function Writer({ path, line }: { path: string; line: number }): JSX.Element | null {
  const blame = useWriter(path, line).value;
  const box = useRef<HTMLDivElement>(null);
  const isOpen = useSignal(false);
  useEffect(() => { isOpen.value = false; }, [path, line]);
  if (!blame) return <p class="line-writer" />;
  const here = turnHere(blame);
  const open = (): void => { if (blame.open_node) go("tree", blame.open_session ?? undefined, { at: blame.open_node }); };
  const { call, check, commit } = blame;
  const rows: [string, string][] = [
    ...(call?.reason ? [["reason", call.reason] as [string, string]] : []),
    ...(blame.decisions ?? []).flatMap((each): [string, string][] => [["decision", each.title], ...(each.rejected ?? []).map((other): [string, string] => ["rejected", other])]),
    ...(call?.allowed_by ? [["allowed by", `${call.allowed_by}${call.allowed_why ? `: ${call.allowed_why}` : ""}`] as [string, string]] : []),
    ...(blame.made_by === "user" ? [] : [["first check", check ? `${check.command}: ${check.exit_code === null ? "did not end" : `exit code ${check.exit_code}`}${check.tree ? `, tree ${check.tree.slice(0, 12)}` : ""}` : "none was run after it"] as [string, string]]),
    ...(commit ? [["commit", `${commit.commit.slice(0, 12)} ${commit.author ?? ""}: ${commit.summary ?? ""}${blame.committed_by ? ", made by a session" : ""}`] as [string, string]] : []),
    ...(blame.steps ?? []).map((each): [string, string] => ["name", each]),
    ...(blame.notes ?? []).map((each): [string, string] => ["note", each]),
  ];
  return (
    <div ref={box} class="line-blame" role="region" aria-label={`Blame of line ${line}`} onKeyDown={(event) => { if (event.key === "Enter" && event.target === box.current) open(); }} tabIndex={0}>
      <p class="line-writer">
        <Mark name={blame.made_by === "session" ? "weft" : blame.made_by === "user" ? "you" : "other"} label="" />
        <span class="words"><WriterWords blame={blame} line={line} /></span>
        {blame.open_node ? <Button kind="quiet" small onClick={open}>{here ? "Go to the turn" : "Open the session"}</Button> : null}
        {blame.open_node ? <Button kind="quiet" small onClick={() => { isOpen.value = !isOpen.value; }}>Files as they were</Button> : null}
      </p>
      {rows.length ? <dl class="facts-list">{rows.flatMap(([name, said], at) => [<dt key={`name ${at}`}>{name}</dt>, <dd key={at}>{said}</dd>])}</dl> : null}
      {isOpen.value && blame.open_session && blame.open_node ? <Past id={blame.open_session} node={blame.open_node} path={path} /> : null}
    </div>
  );
}

/** The project's files as they were at a message; the file that was looked at first. */
function Past({ id, node, path }: { id: string; node: string; path: string }): JSX.Element {
  const files = useSignal<PastFiles | null>(null);
  const chosen = useSignal(path);
  const text = useSignal<string | null>(null);
  const trouble = useSignal("");
  useEffect(() => { get<PastFiles>(of(id, "files"), { at: node }).then((found) => { files.value = found; if (!found.paths.includes(chosen.value)) chosen.value = found.paths[0] ?? ""; }, (error: Error) => { trouble.value = error.message; }); }, [id, node]);
  useEffect(() => {
    let isWanted = true;
    const put = (words: string): void => { if (isWanted) text.value = words; };
    text.value = null;
    if (files.value && chosen.value) get<ProjectFile>(of(id, "file"), { path: chosen.value, at: node }).then((found) => put(found.text ?? "(not text)"), (error: Error) => put(error.message));
    return () => { isWanted = false; };
  }, [chosen.value, files.value]);
  if (trouble.value) return <div class="notice bad"><Icon name="cross" /><span class="words">{trouble.value}</span></div>;
  if (!files.value) return <Loading rows={3} />;
  return (
    <div class="past-files">
      <label class="line"><span class="dim">{files.value.paths.length} files as they were then</span><select class="field small" aria-label="File as it was" value={chosen.value} onChange={(event) => { chosen.value = event.currentTarget.value; }}>{files.value.paths.slice(0, 2000).map((each) => <option key={each}>{each}</option>)}</select></label>
      {files.value.is_exact ? null : <p class="dim">{files.value.why}</p>}
      <pre class="quote" aria-label={`${chosen.value} as it was`}>{text.value ?? ""}</pre>
    </div>
  );
}

/** Beside a line that the mouse rests on: who wrote it. */
function WriterTip({ path, line, top, left }: { path: string; line: number; top: number; left: number }): JSX.Element | null {
  const blame = useWriter(path, line, REST_MS).value;
  return blame ? <span class="writer-tip" aria-hidden="true" style={{ top: `${top}px`, left: `${left}px` }}><WriterWords blame={blame} line={line} /></span> : null;
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
