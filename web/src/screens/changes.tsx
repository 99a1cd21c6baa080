/** Everything the session changed: files at the left, hunks at the right, each accepted or put back. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { HunkView } from "../diff/view.tsx";
import { parseDiff } from "../diff/parse.ts";
import { letter, placeOf, type NetFile, type NetPiece } from "../state/changes.ts";
import { go, looking, netScope, putBack, revertHunk, session, splitDiff, tree, treeView, undoPutBack, WHOLE } from "../store.ts";
import { Button, Chip, Empty, Key, Loading, Menu, PathName, Segments, Stat } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { busy, insert } from "./composer.tsx";
import { Differences } from "./differences.tsx";
import { accepted, changed, netChanged, turnNumber } from "./panel.tsx";

/** Turns of the line that changed files, the newest first: what the scope can be narrowed to. */
function changingTurns(): { key: string; number: number; until: string }[] {
  const known = tree.value;
  const begun = new Set(changed.value.flatMap((file) => file.hunks.map((each) => each.turn)));
  return [...begun].flatMap((node) => {
    const key = known?.turnOf.get(node) ?? "";
    const number = turnNumber(node);
    return number > 0 ? [{ key: node, number, until: known?.turns.get(key)?.nodes.at(-1) ?? "" }] : [];
  }).sort((a, b) => b.number - a.number);
}

export function Changes(): JSX.Element {
  const chosen = useSignal("");
  const at = useSignal("");
  const working = useSignal("");
  const box = useRef<HTMLDivElement>(null);
  const id = session.value?.id ?? "";
  const from = looking.value === null ? -1 : (tree.value?.line.indexOf(looking.value) ?? -1);
  const known = netChanged.value;
  const files = known ?? [];
  const seen = new Set(accepted.value[id] ?? []);
  const edited = files.filter((file) => !file.isByShell);
  const shell = files.filter((file) => file.isByShell);
  const all = edited.flatMap((file) => file.hunks);
  const pieces = files.flatMap((file) => file.hunks);
  const reviewed = all.filter((each) => seen.has(each.id)).length;
  const mark = (ids: string[], on: boolean): void => {
    const before = accepted.value[id] ?? [];
    accepted.value = { ...accepted.value, [id]: on ? [...new Set([...before, ...ids])] : before.filter((each) => !ids.includes(each)) };
  };
  const revert = async (file: NetFile, piece: NetPiece): Promise<void> => {
    if (working.value || file.why || busy.value) return;
    working.value = piece.id;
    await revertHunk(file.path, piece.id, rawOf(piece));
    working.value = "";
  };
  const ownerOf = (piece: NetPiece): NetFile | undefined => files.find((each) => each.hunks.includes(piece));
  const ask = (piece: NetPiece): void => { const file = ownerOf(piece); if (file) { insert(quoted(file.path, piece)); go("chat"); } };
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
      else if (event.key === "n" && current) { const file = ownerOf(current); if (file) void revert(file, current); }
      else if (event.key === "c" && current) ask(current);
      else if (event.key === "w" && current) why(files, current);
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  });
  const turns = changingTurns();
  const scope = netScope.value;
  const narrowed = turns.find((each) => each.key === scope.since);
  const words = looking.value !== null ? `Since turn ${from + 1}` : narrowed ? `Turn ${narrowed.number} only` : "Since this session began";
  const scopes = [{ value: "", label: "Since this session began", chosen: looking.value === null && !narrowed }, ...turns.slice(0, 40).map((each) => ({ value: each.key, label: `Turn ${each.number} only`, note: tree.value?.turns.get(tree.value.turnOf.get(each.key) ?? "")?.prompt.slice(0, 40) ?? "", chosen: each === narrowed }))];
  const setScope = (value: string): void => {
    const turn = turns.find((each) => each.key === value);
    looking.value = null;
    netScope.value = turn ? { since: turn.key, until: turn.until } : WHOLE;
  };
  const scopeMenu = <Menu label="Scope" items={scopes} onChoose={setScope}>{words}<Icon name="down" size={12} /></Menu>;
  const struck = putBack.value.filter((each) => each.node === treeView.value?.head || busy.value);
  if (known === null) return <Loading rows={6} />;
  if (files.length === 0 && struck.length === 0) return <>{looking.value !== null || narrowed ? <div class="panel-row scope">{scopeMenu}</div> : null}<Empty title={looking.value !== null ? "Nothing changed since" : "No changes yet"}>Files that the session changes appear here, the shell’s too.</Empty></>;
  if (window.innerWidth < 768 && current) return <PhoneHunk files={files} all={pieces} current={current} seen={seen} isWorking={working.value !== ""} mark={mark} scopeMenu={scopeMenu} revert={(each, hunk) => void revert(each, hunk)} choose={(hunk) => { at.value = hunk.id; }} />;
  const file = files.find((each) => each.path === chosen.value);
  const shown = file ? [file] : files;
  return (
    <div class="changes">
      <div class="changes-side">
        <div class="scroll">
          <div class="panel-row scope">
            {scopeMenu}
            <span class="push" /><Stat added={files.reduce((total, each) => total + each.added, 0)} removed={files.reduce((total, each) => total + each.removed, 0)} />
          </div>
          <ul class="file-list">{edited.map((each) => <FileRow key={each.path} file={each} seen={seen} isChosen={each.path === chosen.value} choose={() => { chosen.value = chosen.value === each.path ? "" : each.path; }} />)}</ul>
          {shell.length ? <section class="block"><h3>Changed by the shell</h3><ul class="file-list">{shell.map((each) => <FileRow key={each.path} file={each} seen={seen} isChosen={each.path === chosen.value} choose={() => { chosen.value = chosen.value === each.path ? "" : each.path; }} />)}</ul></section> : null}
          <Differences />
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
            {each.why ? <p class="dim pad">{each.hunks.length ? "" : "Its lines are not shown: "}{each.why}</p> : null}
            {each.hunks.map((hunk) => <HunkCard key={hunk.id} file={each} hunk={hunk} isCurrent={hunk === current} isSeen={seen.has(hunk.id)} isWorking={working.value === hunk.id} mark={mark} ask={() => ask(hunk)} revert={() => void revert(each, hunk)} choose={() => { at.value = hunk.id; }} />)}
          </section>
        ))}
        {struck.length ? (
          <section aria-label="Put back">{struck.map((each) => (
            <div key={each.hunk} class="hunk put-back">
              <div class="hunk-head"><code><PathName path={each.path} /></code><span class="dim">put back</span><span class="push" /><Button kind="quiet" small icon="undo" off={busy.value ? "A turn runs" : undefined} onClick={() => void undoPutBack(each.hunk)}>Undo</Button></div>
              {parseDiff(each.text, each.path).flatMap((file) => file.hunks).map((hunk, index) => <HunkView key={index} hunk={hunk} path={each.path} split={false} struck />)}
            </div>
          ))}</section>
        ) : null}
      </div>
    </div>
  );
}

interface PhoneProps { files: NetFile[]; all: NetPiece[]; current: NetPiece; seen: ReadonlySet<string>; isWorking: boolean; mark: (ids: string[], on: boolean) => void; scopeMenu: JSX.Element; revert: (file: NetFile, hunk: NetPiece) => void; choose: (hunk: NetPiece) => void }

/** One hunk a screen, its answers within the thumb's reach. */
function PhoneHunk({ files, all, current, seen, isWorking, mark, scopeMenu, revert, choose }: PhoneProps): JSX.Element | null {
  const file = files.find((each) => each.hunks.includes(current));
  if (!file) return null;
  const at = all.indexOf(current);
  const next = (): void => { const found = all.slice(at + 1).find((each) => !seen.has(each.id)) ?? all[at + 1]; if (found) choose(found); };
  const turns = current.turns.map(turnNumber).filter(Boolean);
  const isSeen = seen.has(current.id);
  return (
    <div class="phone-hunk">
      <div class="panel-row scope">{scopeMenu}<span class="push" /><Stat added={files.reduce((total, each) => total + each.added, 0)} removed={files.reduce((total, each) => total + each.removed, 0)} /></div>
      <div class="file-head"><span class={`letter ${file.action}`}>{letter(file.action)}</span><PathName path={file.path} /><span class="push" />
        <Menu label="File" items={files.filter((each) => each.hunks.length > 0).map((each) => ({ value: each.path, label: each.path, chosen: each === file }))} onChoose={(path) => { const found = files.find((each) => each.path === path)?.hunks[0]; if (found) choose(found); }}>{files.indexOf(file) + 1} of {files.length}<Icon name="down" size={12} /></Menu></div>
      <div class="hunk-head"><span class="where">{placeOf(current.hunk, file.action === "created" && file.hunks.length === 1)}</span>{turns.length ? <span class="dim">turn {turns.join(" and ")}</span> : null}<span class="push" /><span class="dim">hunk {file.hunks.indexOf(current) + 1} of {file.hunks.length}</span></div>
      <div class="hunk-scroll" tabIndex={0} role="region" aria-label={`Change of ${file.path}`}><HunkView key={current.id} hunk={current.hunk} path={file.path} split={false} /></div>
      <div class="acts">
        <Button icon="undo" off={file.why || (busy.value && !isWorking ? "A turn runs" : undefined)} busy={isWorking} onClick={() => revert(file, current)}>Revert</Button>
        {isSeen ? <Button onClick={next}>Accepted · next</Button> : <Button kind="primary" icon="check" onClick={() => { mark([current.id], true); next(); }}>Accept</Button>}
      </div>
    </div>
  );
}

/** A hunk as text again, for as long as it is shown struck. */
function rawOf({ hunk }: NetPiece): string {
  const lines = hunk.lines.map((line) => (line.kind === "add" ? "+" : line.kind === "del" ? "-" : " ") + line.text);
  const count = (kind: "add" | "del"): number => hunk.lines.filter((line) => line.kind !== kind).length;
  return [`@@ -${hunk.before},${count("add")} +${hunk.after},${count("del")} @@`, ...lines].join("\n");
}

function why(files: readonly NetFile[], hunk: NetPiece): void {
  const file = files.find((each) => each.hunks.some((one) => one.id === hunk.id));
  if (file) go("decisions", undefined, { why: `${file.path}:${hunk.hunk.after}` });
}

function FileRow({ file, seen, isChosen, choose }: { file: NetFile; seen: ReadonlySet<string>; isChosen: boolean; choose: () => void }): JSX.Element {
  const done = file.hunks.filter((each) => seen.has(each.id)).length;
  return (
    <li><button type="button" class="file-row" aria-current={isChosen} onClick={choose}>
      <span class={`letter ${file.action}`}>{letter(file.action)}</span><PathName path={file.path} /><span class="push" /><Stat added={file.added} removed={file.removed} />
      <span class="reviewed">{file.hunks.length === 0 ? "" : done === file.hunks.length ? <span class="ok" role="img" aria-label="all reviewed"><Icon name="check" size={14} /></span> : `${done}/${file.hunks.length}`}</span>
    </button></li>
  );
}

interface HunkProps { file: NetFile; hunk: NetPiece; isCurrent: boolean; isSeen: boolean; isWorking: boolean; mark: (ids: string[], on: boolean) => void; ask: () => void; revert: () => void; choose: () => void }

function HunkCard({ file, hunk, isCurrent, isSeen, isWorking, mark, ask, revert, choose }: HunkProps): JSX.Element {
  const turns = hunk.turns.map(turnNumber).filter(Boolean);
  const wide = window.innerWidth >= 900;
  const off = file.why || (busy.value && !isWorking ? "A turn runs" : undefined);
  return (
    <div class={isCurrent ? "hunk current" : "hunk"} data-hunk={hunk.id} onFocusIn={choose}>
      <div class="hunk-head">
        <span class="where">{placeOf(hunk.hunk, file.action === "created" && file.hunks.length === 1)}</span>
        {turns.length ? <button type="button" class="link quiet" onClick={() => { looking.value = tree.value?.line[(turns[0] ?? 1) - 1] ?? null; go("chat"); }}><Mark name="weft" size={12} label="" /> turn {turns.join(" and ")}</button> : null}
        <span class="push" />
        {isSeen
          ? <><span class="ok accepted"><Icon name="check" size={14} /> Accepted</span><Button kind="quiet" small onClick={() => mark([hunk.id], false)}>Undo</Button></>
          : <><Button small icon="check" keys={isCurrent ? "Y" : undefined} onClick={() => mark([hunk.id], true)}>Accept</Button>
              <Button small icon="undo" keys={isCurrent ? "N" : undefined} off={off} busy={isWorking} onClick={revert}>Revert</Button>
              {isCurrent ? <Button kind="quiet" small icon="chat" keys="C" class="desktop" onClick={ask}>Ask for a change</Button> : null}</>}
      </div>
      {isSeen ? null : <HunkView hunk={hunk.hunk} path={file.path} split={splitDiff.value && wide} />}
    </div>
  );
}

function quoted(path: string, { hunk }: NetPiece): string {
  const lines = hunk.lines.map((line) => (line.kind === "add" ? "+" : line.kind === "del" ? "-" : " ") + line.text);
  return `About @${path}, line ${hunk.after}:\n\`\`\`diff\n${lines.slice(0, 40).join("\n")}\n\`\`\`\n`;
}
