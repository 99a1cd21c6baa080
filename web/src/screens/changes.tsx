/** Everything the session changed: files at the left, hunks at the right, each accepted or asked back. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { HunkView } from "../diff/view.tsx";
import { letter, placeOf, type ChangedFile, type ChangedHunk } from "../state/changes.ts";
import { go, looking, session, slice, splitDiff, tree } from "../store.ts";
import { Button, Chip, Empty, Key, Menu, PathName, Segments, Stat } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { insert } from "./composer.tsx";
import { accepted, askToRevert, changed, turnNumber } from "./panel.tsx";

type Scope = "session" | "turn" | "looked";

export function Changes(): JSX.Element {
  const scope = useSignal<Scope>("session");
  const chosen = useSignal("");
  const at = useSignal("");
  const box = useRef<HTMLDivElement>(null);
  const id = session.value?.id ?? "";
  const last = slice.rows.value?.findLast((row) => row.role === "user")?.id ?? "";
  const from = looking.value === null ? -1 : (tree.value?.line.indexOf(looking.value) ?? -1);
  const keeps = (each: ChangedHunk): boolean => {
    if (looking.value !== null) return turnNumber(each.turn) - 1 > from;
    return scope.value === "turn" ? each.turn === last : true;
  };
  const files = changed.value
    .map((file) => { const hunks = file.hunks.filter(keeps); return { ...file, hunks, added: sum(hunks, "added"), removed: sum(hunks, "removed") }; })
    .filter((file) => file.hunks.length > 0 || (scope.value === "session" && looking.value === null));
  const seen = new Set(accepted.value[id] ?? []);
  const edited = files.filter((file) => !file.isByShell);
  const shell = files.filter((file) => file.isByShell);
  const all = edited.flatMap((file) => file.hunks);
  const reviewed = all.filter((each) => seen.has(each.id)).length;
  const mark = (ids: string[], on: boolean): void => {
    const before = accepted.value[id] ?? [];
    accepted.value = { ...accepted.value, [id]: on ? [...new Set([...before, ...ids])] : before.filter((each) => !ids.includes(each)) };
  };
  const current = all.find((each) => each.id === at.value) ?? all.find((each) => !seen.has(each.id)) ?? all[0];
  const step = (by: number): void => {
    const place = current ? all.indexOf(current) : -1;
    const next = all[Math.max(0, Math.min(all.length - 1, place + by))];
    if (next) { at.value = next.id; box.current?.querySelector(`[data-hunk="${CSS.escape(next.id)}"]`)?.scrollIntoView({ block: "nearest" }); }
  };
  useEffect(() => {
    const down = (event: KeyboardEvent): void => {
      if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "j") step(1);
      else if (event.key === "k") step(-1);
      else if (event.key === "y" && current) { mark([current.id], true); step(1); }
      else if (event.key === "w" && current) why(files, current);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  });
  if (files.length === 0) return <Empty title="No changes yet">Files that the session changes appear here, the shell’s too.</Empty>;
  const words = looking.value !== null ? `Since turn ${from + 1}` : scope.value === "turn" ? "This turn" : "Since this session began";
  const file = edited.find((each) => each.path === chosen.value);
  const shown = file ? [file] : edited;
  return (
    <div class="changes">
      <div class="changes-side">
        <div class="scroll">
          <div class="panel-row scope">
            <Menu label="Scope" items={[{ value: "session", label: "Since this session began", chosen: scope.value === "session" }, { value: "turn", label: "This turn", chosen: scope.value === "turn" }]} onChoose={(value) => { scope.value = value as Scope; looking.value = null; }}>{words}<Icon name="down" size={12} /></Menu>
            <span class="push" /><Stat added={files.reduce((total, each) => total + each.added, 0)} removed={files.reduce((total, each) => total + each.removed, 0)} />
          </div>
          <ul class="file-list">{edited.map((each) => <FileRow key={each.path} file={each} seen={seen} isChosen={each.path === chosen.value} choose={() => { chosen.value = chosen.value === each.path ? "" : each.path; }} />)}</ul>
          {shell.length ? <section class="block"><h3>Changed by the shell</h3><ul class="file-list">{shell.map((each) => <FileRow key={each.path} file={each} seen={seen} isChosen={false} choose={() => go("files", undefined, { path: each.path })} />)}</ul></section> : null}
        </div>
        <div class="panel-foot column">
          <p>{reviewed} of {all.length} hunks reviewed</p>
          <div class="progress" role="progressbar" aria-label="Reviewed" aria-valuemin={0} aria-valuemax={all.length} aria-valuenow={reviewed}><span style={{ width: `${all.length ? (reviewed / all.length) * 100 : 0}%` }} /></div>
          <div class="line"><Button off={reviewed === all.length ? "All are reviewed" : undefined} onClick={() => mark(all.map((each) => each.id), true)}>Accept the rest</Button><Button kind="quiet" onClick={() => { insert("Commit what you changed, with a plain subject line."); go("chat"); }}>Commit…</Button></div>
        </div>
      </div>
      <div class="changes-main" ref={box} tabIndex={-1}>
        {shown.map((each, index) => (
          <section key={each.path} aria-label={each.path}>
            <div class="file-head"><code><PathName path={each.path} /></code>{each.action === "created" ? <Chip tone="ok">new</Chip> : each.action === "deleted" ? <Chip tone="bad">removed</Chip> : null}<Stat added={each.added} removed={each.removed} /><span class="push" />
              {index === 0 ? <><span class="hint desktop"><Key>J</Key><Key>K</Key> hunk</span><Segments name="Diff" value={splitDiff.value ? "split" : "unified"} options={[["split", "Split"], ["unified", "Unified"]] as const} onChange={(value) => { splitDiff.value = value === "split"; }} /></> : null}
              <Button kind="quiet" small onClick={() => go("files", undefined, { path: each.path })}>Open</Button></div>
            {each.hunks.map((hunk) => <HunkCard key={hunk.id} file={each} hunk={hunk} isCurrent={hunk === current} isSeen={seen.has(hunk.id)} mark={mark} choose={() => { at.value = hunk.id; }} />)}
          </section>
        ))}
      </div>
    </div>
  );
}

function sum(hunks: readonly ChangedHunk[], name: "added" | "removed"): number {
  return hunks.reduce((total, each) => total + each.hunk[name], 0);
}

function why(files: readonly ChangedFile[], hunk: ChangedHunk): void {
  const file = files.find((each) => each.hunks.some((one) => one.id === hunk.id));
  if (file) go("decisions", undefined, { why: `${file.path}:${hunk.hunk.after}` });
}

function FileRow({ file, seen, isChosen, choose }: { file: ChangedFile; seen: ReadonlySet<string>; isChosen: boolean; choose: () => void }): JSX.Element {
  const done = file.hunks.filter((each) => seen.has(each.id)).length;
  return (
    <li><button type="button" class="file-row" aria-current={isChosen} onClick={choose}>
      <span class={`letter ${file.action}`}>{letter(file.action)}</span><PathName path={file.path} /><span class="push" /><Stat added={file.added} removed={file.removed} />
      <span class="reviewed">{file.hunks.length === 0 ? "" : done === file.hunks.length ? <span class="ok" role="img" aria-label="all reviewed"><Icon name="check" size={14} /></span> : `${done}/${file.hunks.length}`}</span>
    </button></li>
  );
}

function HunkCard({ file, hunk, isCurrent, isSeen, mark, choose }: { file: ChangedFile; hunk: ChangedHunk; isCurrent: boolean; isSeen: boolean; mark: (ids: string[], on: boolean) => void; choose: () => void }): JSX.Element {
  const turn = turnNumber(hunk.turn);
  const wide = window.innerWidth >= 900;
  return (
    <div class={isCurrent ? "hunk current" : "hunk"} data-hunk={hunk.id} onFocusIn={choose}>
      <div class="hunk-head">
        <span class="where">{placeOf(hunk.hunk, file.action === "created" && file.hunks.length === 1)}</span>
        {turn ? <button type="button" class="link quiet" onClick={() => { looking.value = tree.value?.line[turn - 1] ?? null; go("chat"); }}><Mark name="weft" size={12} label="" /> turn {turn}</button> : null}
        <span class="push" />
        {isSeen
          ? <><span class="ok"><Icon name="check" size={14} /> Accepted</span><Button kind="quiet" small onClick={() => mark([hunk.id], false)}>Undo</Button></>
          : <><Button small icon="check" keys={isCurrent ? "Y" : undefined} onClick={() => mark([hunk.id], true)}>Accept</Button>
              <Button small icon="undo" onClick={() => { insert(askToRevert(file.path, turn)); go("chat"); }}>Ask to revert</Button>
              {isCurrent ? <Button kind="quiet" small icon="chat" onClick={() => { insert(quoted(file.path, hunk)); go("chat"); }}>Ask for a change</Button> : null}</>}
      </div>
      {isSeen ? null : <HunkView hunk={hunk.hunk} path={file.path} split={splitDiff.value && wide} />}
    </div>
  );
}

function quoted(path: string, { hunk }: ChangedHunk): string {
  const lines = hunk.lines.map((line) => (line.kind === "add" ? "+" : line.kind === "del" ? "-" : " ") + line.text);
  return `About @${path}, line ${hunk.after}:\n\`\`\`diff\n${lines.slice(0, 40).join("\n")}\n\`\`\`\n`;
}
