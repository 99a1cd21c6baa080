/** The project's files, read-only. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of } from "../api.ts";
import { highlightLines, languageOf, spans } from "../code/highlight.ts";
import { go, project, route, session, touched } from "../store.ts";
import { Button, Chip, Empty, Loading, PathName } from "../ui/controls.tsx";
import type { EditBoundary, ProjectFile } from "../types.ts";
import { Icon } from "../ui/icons.tsx";
import { filesTrouble, insert, projectFiles } from "./composer.tsx";


export function Files(): JSX.Element {
  const files = useSignal<string[] | null>(null);
  const words = useSignal("");
  const open = useSignal<ProjectFile | null>(null);
  const trouble = useSignal("");
  const path = route.value.query.path ?? "";
  const line = Number(route.value.query.line ?? 0);
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
        {path ? <div class="file-head"><code><PathName path={path} /></code><span class="push" />{bounds.value ? <Chip icon="shield">{`edits only in lines ${bounds.value.first + 1}–${bounds.value.last + 1}`}</Chip> : null}{line ? <Button small icon="why" onClick={() => go("decisions", undefined, { why: `${path}:${line}` })}>Why line {line}?</Button> : null}<Button small onClick={() => { insert(`@${path} `); go("chat"); }}>Put into the message</Button></div> : filesTrouble.value ? <Empty title="The files cannot be listed">{filesTrouble.value}</Empty> : <Empty title="Choose a file">Files are shown as they are now; nothing is edited here.</Empty>}
        {trouble.value ? <div class="notice bad"><Icon name="cross" /><span class="words">{trouble.value}</span></div> : null}
        {path && !open.value && !trouble.value ? <Loading rows={6} /> : null}
        {open.value ? open.value.text === null ? <Empty title="Not text">{open.value.media_type ?? ""} · {open.value.size ?? 0} bytes</Empty> : <Source text={open.value.text} path={path} line={line} bounds={bounds.value} /> : null}
      </div>
    </div>
  );
}

/** Lines with numbers that can be chosen; the part that may be edited has a bar beside it. */
function Source({ text, path, line, bounds }: { text: string; path: string; line: number; bounds: EditBoundary | null }): JSX.Element {
  const lines = highlightLines(text, languageOf(path));
  const look = (at: number): string => ["same", at + 1 === line ? "here" : "", bounds && at >= bounds.first && at <= bounds.last ? "editable" : ""].filter(Boolean).join(" ");
  return (
    <div class="diff">
      <table class="unified" aria-label={path}><tbody>{lines.slice(0, 5000).map((each, at) => <tr key={at} class={look(at)}><th scope="row"><button type="button" class="line-number" tabIndex={-1} onClick={() => go("files", undefined, { path, line: String(at + 1) })}>{at + 1}</button></th><td class="text">{spans(each)}</td></tr>)}</tbody></table>
    </div>
  );
}
