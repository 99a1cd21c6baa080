/** Trees of text: reading column, siblings at each fork, and streams that grow from where you stand. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { get, send } from "../api.ts";
import { count, money, shortModel } from "../state/words.ts";
import { childrenOf, loomMap, sizesOf, type LoomMap } from "../state/loom-map.ts";
import { attempt, go, link, route, say } from "../store.ts";
import { growStreams, type Stream } from "../state/streams.ts";
import type { BranchComparison, CatalogueEntry, Event, LoomNode, LoomState } from "../types.ts";
import { Button, Empty, Key, Loading } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { LoomPanel, loomPath } from "./loom-panel.tsx";


const at = loomPath;

export function Loom(): JSX.Element {
  const root = route.value.query.loom ?? "";
  return root ? <LoomTree key={root} id={root} /> : <Catalogue />;
}

function Catalogue(): JSX.Element {
  const trees = useSignal<CatalogueEntry[] | null>(null);
  const text = useSignal("");
  const trouble = useSignal("");
  useEffect(() => { get<{ entries: CatalogueEntry[] }>("/looms").then((found) => { trees.value = found.entries; }, (error: Error) => { trouble.value = error.message; }); }, []);
  const begin = async (): Promise<void> => {
    const made = await attempt(send<LoomNode>("POST", "/looms", { text: text.value }));
    if (made) go("loom", undefined, { loom: made.id });
  };
  return (
    <div class="new-form"><h2>Trees of text</h2><p class="dim">Begin with a line; several models go on from it, side by side, and you choose.</p>
      <label>First words<textarea class="field tall-field" rows={3} value={text.value} onInput={(event) => { text.value = event.currentTarget.value; }} /></label><div><Button kind="primary" off={text.value.trim() ? undefined : "Write the first words"} onClick={() => void begin()}>Begin</Button></div>
      {trouble.value ? <Empty title="Trees could not be read">{trouble.value}</Empty> : trees.value === null ? <Loading rows={3} /> : <ul>{trees.value.map((each) => <li key={each.root_id}><button type="button" class="option" onClick={() => go("loom", undefined, { loom: each.root_id })}><span class="label">{each.name || "No words yet"}</span><span class="push" /><span class="dim">{count(each.nodes, "node")}</span></button></li>)}</ul>}
    </div>
  );
}

function LoomTree({ id }: { id: string }): JSX.Element {
  const state = useSignal<LoomState | null>(null);
  const nodes = useSignal<LoomNode[]>([]);
  const here = useSignal("");
  const streams = useSignal<readonly Stream[]>([]);
  const chosen = useSignal(0);
  const first = useSignal<{ act: "compare" | "weave"; node: string } | null>(null);
  const compared = useSignal<BranchComparison | null>(null);
  const busy = useSignal(false);
  const stream = useSignal("");
  const trouble = useSignal("");
  const box = useRef<HTMLDivElement>(null);
  const load = async (): Promise<void> => {
    try {
      const found = await get<LoomState>(at(id));
      const all = await get<LoomNode[] | { nodes: LoomNode[] }>(at(found.root_id, "tree"));
      state.value = found;
      nodes.value = (Array.isArray(all) ? all : all.nodes).filter((each) => !each.hidden);
      if (!here.value) here.value = found.current_node_id;
    } catch (error) { trouble.value = error instanceof Error ? error.message : String(error); }
  };
  useEffect(() => { void load(); }, [id]);
  const rootId = state.value?.root_id ?? "";
  useEffect(() => {
    if (rootId) void get<{ value: string }>(at(rootId, "session")).then((found) => { stream.value = found.value; }, () => undefined);
  }, [rootId]);
  useEffect(() => {
    const name = stream.value;
    if (!name) return;
    // A tree of text is a session: its tokens come the same way.
    link.follow(name, -1, (events: Event[]) => {
      for (const event of events) {
        streams.value = growStreams(streams.value, event);
        if (event.kind === "branches_ended") { busy.value = false; void load(); }
        else if (event.kind === "branches_started") busy.value = true;
      }
    });
    return () => link.drop(name);
  }, [stream.value]);
  if (trouble.value && !state.value) return <Empty title="This tree could not be read">{trouble.value}</Empty>;
  if (!state.value) return <Loading rows={5} />;
  const byId = new Map(nodes.value.map((each) => [each.id, each]));
  const byParent = childrenOf(nodes.value);
  const kids = (node: string | null): LoomNode[] => byParent.get(node ?? "") ?? [];
  const line: LoomNode[] = [];
  for (let node = byId.get(here.value); node; node = byId.get(node.parent_id ?? "")) line.unshift(node);
  const below = kids(here.value);
  const generate = (): void => { busy.value = true; streams.value = []; void attempt(send("POST", at(here.value, "generate"), {})).then(() => { busy.value = false; streams.value = []; void load(); }); };
  const step = (node: LoomNode, by: number): void => { const all = kids(node.parent_id); const next = all[(all.indexOf(node) + by + all.length) % all.length]; if (next) here.value = next.id; };
  /** The first press marks where you stand, the second one acts on both. */
  const two = (act: "compare" | "weave"): void => {
    const one = first.value;
    compared.value = null;
    if (one === null || one.act !== act || one.node === here.value) { first.value = { act, node: here.value }; return; }
    first.value = null;
    if (act === "compare") void attempt(get<BranchComparison>(at(one.node, "compare"), { other: here.value })).then((found) => { compared.value = found; });
    else void attempt(send<LoomNode>("POST", at(one.node, "weave"), { first: one.node, second: here.value })).then(async (made) => { if (!made) return; await load(); here.value = made.id; say("ok", "Woven: all of the first, and what only the second has."); });
  };
  const key = (event: KeyboardEvent): void => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.ctrlKey || event.altKey) return;
    const current = byId.get(here.value);
    if (event.key === "h" && current?.parent_id) here.value = current.parent_id;
    else if (event.key === "l" && below[0]) here.value = (below[chosen.value] ?? below[0]).id;
    else if (event.key === "j" || event.key === "k") { const by = event.key === "j" ? 1 : -1; if (below.length) chosen.value = (chosen.value + by + below.length) % below.length; else if (current) step(current, by); }
    else if (event.key === "Enter" && below[chosen.value]) here.value = below[chosen.value]?.id ?? here.value;
    else if (event.key === " ") generate();
    else if (event.key === "=") two("compare");
    else if (event.key === "w") two("weave");
    else if (event.key === "Escape" && (first.value || compared.value)) { first.value = null; compared.value = null; }
    else return;
    event.preventDefault();
  };
  const current = byId.get(here.value);
  const onLine = new Set(line.map((each) => each.id));
  const sizes = sizesOf(nodes.value, byParent);
  const size = (node: string): number => sizes.get(node) ?? 1;
  const rows = (node: LoomNode, depth: number): JSX.Element[] => [
    <button key={node.id} type="button" class={["loom-row", onLine.has(node.id) ? "" : "quiet"].join(" ")} aria-current={node.id === here.value} style={{ paddingLeft: `${16 + Math.min(depth, 14) * 11}px` }} onClick={() => { here.value = node.id; }}><Mark name={node.id === here.value ? "here" : node.partial ? "partial" : onLine.has(node.id) ? "weft" : "other"} size={14} label="" /><span class="words">{node.text.trim().slice(0, 60) || "…"}</span><span class="dim">{size(node.id)}</span></button>,
    ...kids(node.id).flatMap((each) => rows(each, depth + 1)),
  ];
  const rootNode = byId.get(rootId);
  return (
    <div class="loom" onKeyDown={key} tabIndex={-1} ref={box}>
      <div class="loom-side"><div class="panel-row scope"><span>{count(nodes.value.length, "node")}</span><span class="dim">{money(state.value.cost)}</span><span class="push" /><Button kind="quiet" small onClick={() => go("loom")}>All trees</Button></div><div class="scroll" tabIndex={-1}>{rootNode ? rows(rootNode, 0) : null}</div>{rootNode && nodes.value.length > 2 ? <SmallMap map={loomMap(rootNode, byParent, 232, 84)} onLine={onLine} here={here.value} /> : null}</div>
      <div class="loom-main">
        <div class="loom-read" tabIndex={0} role="region" aria-label="Text">
          {line.map((node) => {
            const all = kids(node.parent_id);
            return <p key={node.id} class={node.id === here.value ? "here" : ""}>{all.length > 1 && node.parent_id ? <span class="siblings"><button type="button" aria-label="Previous sibling" onClick={() => step(node, -1)}><Icon name="left" size={11} /></button>{all.indexOf(node) + 1}/{all.length}<button type="button" aria-label="Next sibling" onClick={() => step(node, 1)}><Icon name="right" size={11} /></button></span> : null}{node.id === here.value ? <span class="here-mark"><Mark name="here" label="" /></span> : null}<span class="text">{node.text}</span></p>;
          })}
          {compared.value ? <div class="loom-compared" role="region" aria-label="Two branches compared" tabIndex={0}><p class="meta">{compared.value.first === here.value ? "" : "First on violet, second on grey; what both have is plain."}<span class="push" /><Button small onClick={() => { compared.value = null; }}>Close</Button></p><p>{compared.value.parts.map((part, index) => part.kind === "same" ? <span key={index}>{part.first}</span> : <span key={index}><span class="only-first">{part.first}</span><span class="only-second">{part.second}</span></span>)}</p></div> : null}
          {streams.value.length + below.length > 0 ? <Curves count={streams.value.length || below.length} chosen={streams.value.length ? 0 : chosen.value} /> : null}
          <div class="streams">
            {streams.value.map((each, index) => <div key={each.id} class="stream grows" aria-live="off"><p class="stream-head"><strong>{String.fromCharCode(65 + index)}</strong> {shortModel(each.model)}<span class="push" />{each.failure ? <Mark name="failed" /> : <Mark name="running" label="growing" />}</p><p>{each.text.text}{each.failure ? <span class="bad">{each.failure}</span> : <span class="caret" />}</p></div>)}
            {streams.value.length === 0 ? below.map((each, index) => <button key={each.id} type="button" class={index === chosen.value ? "stream chosen" : "stream"} onClick={() => { here.value = each.id; chosen.value = 0; }}><span class="stream-head"><strong>{String.fromCharCode(65 + index)}</strong> {shortModel(each.model ?? "you")}<span class="push" />{each.partial ? <Mark name="partial" /> : null}</span><span class="stream-text">{each.text}</span></button>) : null}
          </div>
        </div>
        <div class="loom-foot"><span class="hint desktop"><Key>H</Key><Key>L</Key> parent, child <Key>J</Key><Key>K</Key> sibling <Key>Space</Key> generate <Key>=</Key> compare <Key>W</Key> weave</span>{first.value ? <span class="hint">{first.value.act === "compare" ? "Compare" : "Weave"} with: choose another node and press {first.value.act === "compare" ? "=" : "W"} again</span> : null}<span class="push" />{busy.value ? <Button icon="stop" small onClick={() => void attempt(send("POST", at(rootId, "cancel"), { keep_partial: true }))}>Stop, keep what is there</Button> : <Button kind="primary" small onClick={generate}>Generate</Button>}</div>
      </div>
      {current ? <LoomPanel state={state.value} node={current} below={size(current.id) - 1} session={stream.value} isBusy={busy.value} reload={load} to={(node) => { here.value = node; }} /> : null}
    </div>
  );
}

/** From where you stand to each stream: one curve each. */
function Curves({ count: number, chosen }: { count: number; chosen: number }): JSX.Element {
  const shown = Math.min(number, 6);
  return (
    <svg class="curves" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
      {Array.from({ length: shown }, (_, index) => { const x = ((index + 0.5) / shown) * 100; return <path key={index} class={index === chosen ? "chosen" : ""} d={`M12.5 0C12.5 26 ${x} 10 ${x} 40`} />; })}
    </svg>
  );
}

/** The whole tree, small: your line in the accent. */
function SmallMap({ map, onLine, here }: { map: LoomMap; onLine: ReadonlySet<string>; here: string }): JSX.Element {
  const stands = map.places.get(here);
  return (
    <svg class="small-map" width="264" height="116" viewBox="-16 -16 264 116" aria-hidden="true">
      {map.links.map((each) => <path key={each.to} class={onLine.has(each.to) ? "on" : ""} d={each.path} />)}
      {stands ? <><circle class="gap" cx={stands.x} cy={stands.y} r="6" /><circle class="ring-here" cx={stands.x} cy={stands.y} r="5" /><circle class="dot" cx={stands.x} cy={stands.y} r="2.5" /></> : null}
    </svg>
  );
}
