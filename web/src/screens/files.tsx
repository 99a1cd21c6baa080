/** The project's files, as they are: who wrote a line, and lines for the message. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of } from "../api.ts";
import { highlightLines, languageOf, spans } from "../code/highlight.ts";
import { go, project, route, session, touched, tree } from "../store.ts";
import { Button, Chip, Empty, Loading, PathName } from "../ui/controls.tsx";
import type { EditBoundary, ProjectFile, WhyReport } from "../types.ts";
import { Icon, Mark } from "../ui/icons.tsx";
import { filesTrouble, insert, projectFiles } from "./composer.tsx";

/** Lines that are put into a message, at most. */
const MOST_QUOTED = 200;

export function Files(): JSX.Element {
  const files = useSignal<string[] | null>(null);
  const words = useSignal("");
  const open = useSignal<ProjectFile | null>(null);
  const trouble = useSignal("");
  const path = route.value.query.path ?? "";
  const [line = 0, last = 0] = linesOf(route.value.query);
  const bounds = useSignal<EditBoundary | null>(null);
  useEffect(() => { void projectFiles().then((found) => { files.value = found; }); }, [project.value.key]);
  useEffect(() => {
    open.value = null;
    trouble.value = "";
    bounds.value = null;
    if (!path || !session.value) return;
    get<EditBoundary | null>(of(session.value.id, "boundaries", path)).then((found) => { bounds.value = found; }, () => undefined);
    get<ProjectFile>(of(session.value.id, "file"), { path }).catch(() => get<ProjectFile>(`/projects/${encodeURIComponent(project.value.key)}/file`, { path })).then((found) => { open.value = found; }, (error: Error) => { trouble.value = error.message; });
  }, [path, session.value?.id]);
  const low = words.value.toLowerCase();
  const changedNow = new Set(touched.value.map((each) => each.path));
  const found = (files.value?.length ? files.value : [...changedNow]).filter((each) => each.toLowerCase().includes(low)).slice(0, 500);
  return (
    <div class="changes">
      <div class="changes-side">
        <div class="panel-row"><input class="field small" type="search" aria-label="Find a file" placeholder="Find a file" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} /></div>
        <div class="scroll" tabIndex={-1}>
          {files.value === null ? <Loading rows={5} /> : null}
          <ul class="file-list">{found.map((each) => <li key={each}><button type="button" class="file-row" aria-current={each === path} onClick={() => go("files", undefined, { path: each })}>{changedNow.has(each) ? <span class="letter">M</span> : <Icon name="file" size={14} />}<PathName path={each} /></button></li>)}</ul>
        </div>
      </div>
      <div class="changes-main" tabIndex={-1}>
        {path ? <div class="file-head"><code><PathName path={path} /></code><span class="push" />{bounds.value ? <Chip icon="shield">{`edits only in lines ${bounds.value.first + 1}–${bounds.value.last + 1}`}</Chip> : null}{line ? <Button small icon="why" onClick={() => go("decisions", undefined, { why: `${path}:${line}` })}>Why line {line}?</Button> : null}<Button small onClick={() => { insert(line && open.value?.text ? quoted(path, open.value.text, line, last) : `@${path} `); go("chat"); }}>{line ? `Put ${rangeWords(line, last)} into the message` : "Put into the message"}</Button></div> : filesTrouble.value ? <Empty title="The files cannot be listed">{filesTrouble.value}</Empty> : <Empty title="Choose a file">Files are shown as they are now; nothing is edited here.</Empty>}
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

/** Who wrote the line: the turn of a session, or a commit. */
function Writer({ path, line }: { path: string; line: number }): JSX.Element | null {
  const found = useSignal<WhyReport | null>(null);
  useEffect(() => {
    let isWanted = true;
    found.value = null;
    get<WhyReport>(`/projects/${encodeURIComponent(project.value.key)}/decisions/why`, { path, line }).then((answer) => { if (isWanted) found.value = answer; }, () => undefined);
    return () => { isWanted = false; };
  }, [path, line, project.value.key]);
  const why = found.value;
  if (!why) return <p class="line-writer" />;
  const { turn } = why;
  const here = turn?.node && turn.session_id === session.value?.id ? tree.value?.turnOf.get(turn.node) : undefined;
  return (
    <p class="line-writer">
      <Mark name={turn ? "weft" : "other"} label="" />
      <span class="words">Line {line}: {turn ? <>written in {here ? `turn ${(tree.value?.turns.get(here)?.depth ?? 0) + 1}` : "another session"}{turn.prompt ? `, “${turn.prompt.slice(0, 120)}”` : ""}</> : why.commit ? <>commit <code>{why.commit.commit.slice(0, 8)}</code> {why.commit.summary ?? ""}</> : "no session or commit is known that wrote it"}</span>
      {turn ? <Button kind="quiet" small onClick={() => (here ? go("tree", undefined, { at: here }) : go("chat", turn.session_id))}>{here ? "Go to the turn" : "Open the session"}</Button> : null}
    </p>
  );
}

/** Lines with numbers that can be chosen, with Shift several; the part that may be edited has a bar beside it. */
function Source({ text, path, line, last, bounds }: { text: string; path: string; line: number; last: number; bounds: EditBoundary | null }): JSX.Element {
  const lines = highlightLines(text, languageOf(path));
  const look = (at: number): string => ["same", at + 1 >= line && at + 1 <= last ? "here" : "", bounds && at >= bounds.first && at <= bounds.last ? "editable" : ""].filter(Boolean).join(" ");
  const choose = (at: number, isMore: boolean): void => {
    const [from, to] = isMore && line ? [Math.min(line, at), Math.max(last, at)] : [at, at];
    go("files", undefined, { path, line: String(from), ...(to > from ? { to: String(to) } : {}) });
  };
  return (
    <div class="diff">
      <table class="unified" aria-label={path}><tbody>{lines.slice(0, 5000).map((each, at) => <tr key={at} class={look(at)}><th scope="row"><button type="button" class="line-number" tabIndex={-1} title="Choose the line; with Shift, all up to it" onClick={(event) => choose(at + 1, event.shiftKey)}>{at + 1}</button></th><td class="text">{spans(each)}</td></tr>)}</tbody></table>
    </div>
  );
}
