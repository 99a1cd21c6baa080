/** The project's files, read-only. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of } from "../api.ts";
import { highlightLines, languageOf, spans } from "../code/highlight.ts";
import { go, project, route, session, touched } from "../store.ts";
import { Button, Empty, Loading, PathName } from "../ui/controls.tsx";
import type { ProjectFile } from "../types.ts";
import { Icon } from "../ui/icons.tsx";
import { filesTrouble, insert, projectFiles } from "./composer.tsx";


export function Files(): JSX.Element {
  const files = useSignal<string[] | null>(null);
  const words = useSignal("");
  const open = useSignal<ProjectFile | null>(null);
  const trouble = useSignal("");
  const path = route.value.query.path ?? "";
  const line = Number(route.value.query.line ?? 0);
  useEffect(() => { void projectFiles().then((found) => { files.value = found; }); }, [project.value.key]);
  useEffect(() => {
    open.value = null;
    trouble.value = "";
    if (!path || !session.value) return;
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
        {path ? <div class="file-head"><code><PathName path={path} /></code><span class="push" /><Button small onClick={() => { insert(`@${path} `); go("chat"); }}>Put into the message</Button></div> : filesTrouble.value ? <Empty title="The files cannot be listed">{filesTrouble.value}</Empty> : <Empty title="Choose a file">Files are shown as they are now; nothing is edited here.</Empty>}
        {trouble.value ? <div class="notice bad"><Icon name="cross" /><span class="words">{trouble.value}</span></div> : null}
        {path && !open.value && !trouble.value ? <Loading rows={6} /> : null}
        {open.value ? open.value.text === null ? <Empty title="Not text">{open.value.media_type ?? ""} · {open.value.size ?? 0} bytes</Empty> : <Source text={open.value.text} path={path} line={line} /> : null}
      </div>
    </div>
  );
}

function Source({ text, path, line }: { text: string; path: string; line: number }): JSX.Element {
  const lines = highlightLines(text, languageOf(path));
  return (
    <div class="diff">
      <table class="unified" aria-label={path}><tbody>{lines.slice(0, 5000).map((each, at) => <tr key={at} class={at + 1 === line ? "same here" : "same"}><th scope="row">{at + 1}</th><td class="text">{spans(each)}</td></tr>)}</tbody></table>
    </div>
  );
}
