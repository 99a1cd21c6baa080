/** Two branches beside each other: what was said last, how long each is, and bringing lessons over. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { diffWordsWithSpace } from "diff";
import { get, of, send } from "../api.ts";
import { parseDiff } from "../diff/parse.ts";
import { HunkView } from "../diff/view.tsx";
import { checkPairs, checkWords } from "../state/checks.ts";
import { count, money, seconds, shortModel } from "../state/words.ts";
import { letter, placeOf } from "../state/changes.ts";
import { ancestors, type TurnTree } from "../state/turns.ts";
import { attempt, go, rewind, route, say, session, splitDiff, switchBranch, takeHunk, tree } from "../store.ts";
import { fork } from "../thread/layout.ts";
import type { BranchCommand, BranchFacts, BranchFile, FileComparison, FileWeave, TreeMessage } from "../types.ts";
import { Button, Chip, Empty, Filter, PathName, Segments, Stat } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";
import { busy } from "./composer.tsx";

export function Compare(): JSX.Element {
  const known = tree.value;
  const { a = "", b = "" } = route.value.query;
  const texts = useSignal<[string, string] | null>(null);
  const files = useSignal<FileComparison | null>(null);
  const trouble = useSignal("");
  const weaves = useSignal(false);
  const id = session.value?.id ?? "";
  const head = known?.head;
  useEffect(() => {
    if (!id || !a || !b) return;
    get<FileComparison>(of(id, "branch-files"), { first: a, second: b }).then((found) => { files.value = found; trouble.value = ""; }, (error: Error) => { trouble.value = error.message; });
  }, [id, a, b, head]);
  useEffect(() => {
    if (!id || !a || !b) return;
    const read = (node: string): Promise<string> => {
      const row = session.value?.rows.find((each) => each.id === node);
      return row ? Promise.resolve(row.message.content) : get<TreeMessage[]>(of(id, "nodes"), { ids: node }).then((found) => found[0]?.text ?? "");
    };
    void attempt(Promise.all([read(a), read(b)])).then((found) => { texts.value = found; });
  }, [id, a, b]);
  if (!known || !known.turnOf.has(a) || !known.turnOf.has(b)) return <Empty title="Nothing to compare">Mark two turns with = in the tree.</Empty>;
  const left = ancestors(known.turns, known.turnOf.get(a) ?? null);
  const right = ancestors(known.turns, known.turnOf.get(b) ?? null);
  const shared = left.filter((key, at) => right[at] === key);
  const name = (node: string): string => known.lanes.find((lane) => lane.keys.includes(known.turnOf.get(node) ?? ""))?.name ?? known.headBranch;
  const bring = async (): Promise<void> => {
    const done = await attempt(send<{ text: string }>("POST", of(id, "summarize-branch"), { node: b }));
    if (done) { say("ok", "What was learned on B is on this line now. No files were changed."); go("chat"); }
  };
  return (
    <div class="compare" tabIndex={-1}>
      <div class="compare-head">
        <Drawing known={known} shared={shared} left={left} right={right} />
        <Facts known={known} ends={[left, right]} shared={shared.length} names={[name(a), name(b)]} sides={files.value?.sides ?? []} />
        <div class="compare-acts"><Button kind="primary" icon="branch" onClick={() => void bring()}>Bring B’s lessons here</Button><div class="line"><Button off={busy.value ? "A turn runs" : undefined} onClick={() => void switchBranch(name(b)).then(() => go("chat"))}>Switch to B</Button><Button icon="weave" pressed={weaves.value} off={busy.value ? "A turn runs" : undefined} onClick={() => { weaves.value = !weaves.value; }}>Weave…</Button></div></div>
      </div>
      {weaves.value && files.value ? <WeaveForm found={files.value} close={() => { weaves.value = false; }} /> : null}
      <div class="compare-texts">{texts.value ? <><Side letter="A" name={name(a)} isHere={known.turnOf.get(a) === known.head} turn={left.length} model={files.value?.sides?.[0]?.model ?? ""}>{marked(texts.value, "a")}</Side><Side letter="B" name={name(b)} isHere={known.turnOf.get(b) === known.head} turn={right.length} model={files.value?.sides?.[1]?.model ?? ""}>{marked(texts.value, "b")}</Side></> : null}</div>
      {trouble.value ? <p class="dim pad">Files cannot be compared: {trouble.value}</p> : files.value ? <Files found={files.value} isHere={known.turnOf.get(a) === known.head} /> : null}
    </div>
  );
}

/** A row for each branch: what it took, and how its checks ended. */
function Facts({ known, ends, shared, names, sides }: { known: TurnTree; ends: readonly [string[], string[]]; shared: number; names: readonly [string, string]; sides: readonly BranchFacts[] }): JSX.Element {
  const checks = checkPairs(sides);
  const cost = (keys: readonly string[]): number => keys.slice(shared).reduce((sum, key) => sum + (known.turns.get(key)?.cost ?? 0), 0);
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Both branches in numbers">
      <table class="plain"><thead><tr><th scope="col"><span class="sr">Branch</span></th><th scope="col">Turns</th><th scope="col">Changes</th>{checks.map((pair) => <th key={pair.name} scope="col" title={pair.name}>{pair.name.slice(0, 24)}</th>)}<th scope="col">Cost</th><th scope="col">Time</th></tr></thead>
        <tbody>{(["A", "B"] as const).map((letter, at) => {
          const side = sides[at];
          return (
            <tr key={letter}><th scope="row" class={at === 0 ? "accent" : ""}>{letter} {names[at]}</th><td>{(ends[at]?.length ?? 0) - shared}</td><td>{side ? <>{count(side.files ?? 0, "file")} <Stat added={side.added ?? 0} removed={side.removed ?? 0} /></> : null}</td>
              {checks.map((pair) => <td key={pair.name}><Outcome check={pair.sides[at as 0 | 1]} /></td>)}
              <td>{money(cost(ends[at] ?? []))}</td><td>{side?.seconds ? seconds(side.seconds * 1000) : ""}</td></tr>
          );
        })}</tbody></table>
    </div>
  );
}

function Outcome({ check }: { check: BranchCommand | null }): JSX.Element {
  if (!check) return <span class="dim">not run</span>;
  const { passed, text } = checkWords(check);
  return <span class={passed ? "ok" : "bad"} title={check.command}><Icon name={passed ? "check" : "cross"} size={13} /> {text}</span>;
}

/** Both branches' files put together below the turn where they part; a side is chosen where both meet. */
function WeaveForm({ found, close }: { found: FileComparison; close: () => void }): JSX.Element {
  const picks = useSignal<Record<string, "first" | "second">>({});
  const plan = useSignal<FileWeave | null>(null);
  const working = useSignal(false);
  const id = session.value?.id ?? "";
  const body = { first: found.first, second: found.second, picks: picks.value };
  useEffect(() => { void attempt(send<FileWeave>("POST", of(id, "branch-files", "weave"), { ...body, preview: true })).then((made) => { plan.value = made; }); }, [picks.value]);
  const meets = found.files.filter((each) => each.origin === "conflict");
  const open = meets.filter((each) => !picks.value[each.path]);
  const weave = async (): Promise<void> => {
    working.value = true;
    const done = await attempt(send<FileWeave>("POST", of(id, "branch-files", "weave"), body));
    working.value = false;
    if (!done) return;
    say(done.left?.length ? "warn" : "ok", `Woven: ${count(done.written?.length ?? 0, "file")} written, ${count(done.removed?.length ?? 0, "file")} removed.${done.left?.length ? ` Left: ${done.left.join(", ")}` : ""}`, () => void rewind(found.first, true, true));
    go("chat");
  };
  return (
    <section class="weave-form" aria-label="Weave both branches">
      <p><strong>Weave both branches’ files</strong> <span class="dim">below turn where they part: a new line, both are kept. What only one changed is taken from it, what goes together is merged.</span></p>
      {meets.map((file) => <div key={file.path} class="line"><PathName path={file.path} /><span class="dim">{file.why}</span><span class="push" /><Segments name={`Whose ${file.path}`} value={picks.value[file.path] ?? ""} options={[["first", "A’s"], ["second", "B’s"]] as const} onChange={(side) => { picks.value = { ...picks.value, [file.path]: side as "first" | "second" }; }} /></div>)}
      <div class="line"><span class="dim">{plan.value ? `${count((plan.value.files ?? []).length, "file")} differ${plan.value.left?.length ? `; left alone: ${plan.value.left.join(", ")}` : ""}` : ""}</span><span class="push" /><Button kind="quiet" onClick={close}>Cancel</Button><Button icon="weave" busy={working.value} off={open.length ? `Choose whose ${open[0]?.path} is taken` : undefined} onClick={() => void weave()}>Weave</Button></div>
    </section>
  );
}

function wordsOf(file: BranchFile): string {
  const diff = parseDiff(file.diff ?? "", file.path)[0];
  if (file.origin === "same") return "same";
  if (diff?.action === "created") return "only in B";
  if (diff?.action === "deleted") return "only in A";
  return "";
}

function Files({ found, isHere }: { found: FileComparison; isHere: boolean }): JSX.Element {
  const chosen = useSignal("");
  const shown = found.files.filter((each) => each.origin !== "same" && (!chosen.value || each.path === chosen.value));
  const wide = window.innerWidth >= 900;
  return (
    <>
      <div class="filters compare-files"><span class="dim">Files A to B</span>
        {found.files.map((each) => { const diff = parseDiff(each.diff ?? "", each.path)[0]; return <Filter key={each.path} chosen={chosen.value === each.path} onClick={() => { chosen.value = chosen.value === each.path ? "" : each.path; }}>{each.path.split("/").at(-1)} {wordsOf(each) ? <span class="dim">{wordsOf(each)}</span> : <Stat added={diff?.added ?? 0} removed={diff?.removed ?? 0} />}</Filter>; })}
        {found.files.length === 0 ? <span>are the same</span> : null}
        <span class="push" /><Segments name="Diff" value={splitDiff.value ? "split" : "unified"} options={[["split", "Split"], ["unified", "Unified"]] as const} onChange={(value) => { splitDiff.value = value === "split"; }} />
      </div>
      {found.why ? <p class="dim pad">{found.why}</p> : null}
      {shown.map((file) => <OneFile key={file.path} file={file} found={found} split={splitDiff.value && wide} isHere={isHere} />)}
    </>
  );
}

function OneFile({ file, found, split, isHere }: { file: BranchFile; found: FileComparison; split: boolean; isHere: boolean }): JSX.Element {
  const working = useSignal("");
  const hunks = file.hunks ?? [];
  const action = parseDiff(file.diff ?? "", file.path)[0]?.action ?? "modified";
  const off = !isHere ? "Switch to A first: hunks are taken into the line you are on" : busy.value && !working.value ? "A turn runs" : undefined;
  const take = async (hunk: string): Promise<void> => {
    if (working.value) return;
    working.value = hunk;
    await takeHunk(file.path, hunk, found.first, found.second);
    working.value = "";
  };
  if (hunks.length === 0) return <div class="file-head"><code><PathName path={file.path} /></code><span class="dim">{file.why || "its content is not shown"}</span></div>;
  return (
    <section aria-label={file.path}>
      {hunks.map((each, at) => {
        const hunk = parseDiff(each.text, file.path)[0]?.hunks[0];
        if (!hunk) return null;
        const isWhole = action !== "modified";
        return (
          <div key={each.id} class="hunk">
            <div class="hunk-head"><code>{isWhole ? <span class={`letter ${action}`}>{letter(action)}</span> : null} <PathName path={file.path} /></code><span class="dim">{isWhole ? wordsOf(file) : placeOf(hunk, false)}</span>{isWhole ? <Stat added={each.added} removed={each.removed} /> : null}{file.origin === "conflict" ? <Chip tone="warn">both changed it</Chip> : null}
              <span class="push" />{hunks.length > 1 ? <span class="dim">hunk {at + 1} of {hunks.length}</span> : null}
              <Button small icon="left" off={off} busy={working.value === each.id} onClick={() => void take(each.id)}>{isWhole ? (action === "created" ? "Take the file into A" : "Remove it in A too") : "Take B’s hunk into A"}</Button></div>
            <HunkView hunk={hunk} path={file.path} split={split} />
          </div>
        );
      })}
    </section>
  );
}

function Side({ letter, name, isHere, turn, model, children }: { letter: "A" | "B"; name: string; isHere: boolean; turn: number; model: string; children: ComponentChildren }): JSX.Element {
  return <section class={`compare-side ${letter}`} aria-label={`${letter}: ${name}`}><p class="meta"><span class="letter-box">{letter}</span><span class="chip"><Icon name="branch" size={13} />{name}</span>{isHere ? "you are here" : ""}<span class="push" /><span>{[`turn ${turn}`, model ? shortModel(model) : ""].filter(Boolean).join(" · ")}</span></p><p class="prose">{children}</p></section>;
}

function marked([a, b]: [string, string], side: "a" | "b"): ComponentChildren {
  const mine = diffWordsWithSpace(a.slice(0, 20_000), b.slice(0, 20_000)).filter((part) => !(side === "a" ? part.added : part.removed));
  // A space between two words that only one side has is that side's too.
  const isOnly = (at: number): boolean => Boolean(mine[at]?.added || mine[at]?.removed);
  return mine.map((part, at) => {
    const joins = !part.value.trim() && isOnly(at - 1) && isOnly(at + 1);
    return isOnly(at) || joins ? <span key={at} class="only">{part.value}</span> : part.value;
  });
}

function Drawing({ shared, left, right }: { known: TurnTree; shared: string[]; left: string[]; right: string[] }): JSX.Element {
  const trunk = Math.min(3, Math.max(1, shared.length));
  const arms = [Math.min(6, left.length - shared.length), Math.min(6, right.length - shared.length)] as const;
  const at = 20 + (trunk - 1) * 44;
  const arm = (count: number, y: number, look: string): JSX.Element | null => count === 0 ? null : <g class={look}><path class={look === "here" ? "main" : undefined} d={`${fork(at, 54, at + 70, y)}H${at + 70 + (count - 1) * 38}`} />{Array.from({ length: count }, (_, index) => <circle key={index} class={look === "here" ? "dot" : undefined} cx={at + 70 + index * 38} cy={y} r={index === count - 1 ? 5 : 4} />)}</g>;
  return (
    <svg class="drawing" width="400" height="100" role="img" aria-label={`Both share ${shared.length} turns; A goes on for ${arms[0]}, B for ${arms[1]}`}>
      {arm(arms[1], 78, "lane")}<path class="main" d={`M20 54H${at}`} />{arm(arms[0], 30, "here")}
      {Array.from({ length: trunk }, (_, index) => <circle key={index} class="dot" cx={20 + index * 44} cy="54" r="4" />)}<text x={at - 18} y="78">turn {shared.length}</text>
    </svg>
  );
}
