/** Two branches beside each other: what was said last, how long each is, and bringing lessons over. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { diffWordsWithSpace } from "diff";
import { get, of, send } from "../api.ts";
import { ancestors, type TurnTree } from "../state/turns.ts";
import { attempt, go, route, say, session, switchBranch, tree } from "../store.ts";
import { fork } from "../thread/layout.ts";
import type { TreeMessage } from "../types.ts";
import { Button, Empty } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

export function Compare(): JSX.Element {
  const known = tree.value;
  const { a = "", b = "" } = route.value.query;
  const texts = useSignal<[string, string] | null>(null);
  const id = session.value?.id ?? "";
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
        <table class="plain"><thead><tr><th scope="col" /><th scope="col">Turns since</th><th scope="col">Last prompt</th></tr></thead>
          <tbody><tr><th scope="row" class="accent">A {name(a)}</th><td>{left.length - shared.length}</td><td>{known.turns.get(left.at(-1) ?? "")?.prompt}</td></tr><tr><th scope="row">B {name(b)}</th><td>{right.length - shared.length}</td><td>{known.turns.get(right.at(-1) ?? "")?.prompt}</td></tr></tbody></table>
        <span class="push" />
        <div class="compare-acts"><Button kind="primary" icon="branch" onClick={() => void bring()}>Bring B’s lessons here</Button><Button onClick={() => void switchBranch(name(b)).then(() => go("chat"))}>Switch to B</Button></div>
      </div>
      <div class="compare-texts">{texts.value ? <><Side letter="A" name={name(a)} turn={left.length}>{marked(texts.value, "a")}</Side><Side letter="B" name={name(b)} turn={right.length}>{marked(texts.value, "b")}</Side></> : null}</div>
    </div>
  );
}

function Side({ letter, name, turn, children }: { letter: "A" | "B"; name: string; turn: number; children: ComponentChildren }): JSX.Element {
  return <section class={`compare-side ${letter}`} aria-label={`${letter}: ${name}`}><p class="meta"><span class="letter-box">{letter}</span><span class="chip"><Icon name="branch" size={13} />{name}</span><span class="push" /><span>turn {turn}</span></p><p class="prose">{children}</p></section>;
}

function marked([a, b]: [string, string], side: "a" | "b"): ComponentChildren {
  return diffWordsWithSpace(a.slice(0, 20_000), b.slice(0, 20_000)).map((part, at) => {
    if (side === "a" ? part.added : part.removed) return null;
    return part.added || part.removed ? <span key={at} class="only">{part.value}</span> : part.value;
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
