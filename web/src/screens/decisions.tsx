/** What was decided, why, and what not to propose again: a graph, a list, a narrative. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, send } from "../api.ts";
import { attempt, go, minute, project, route } from "../store.ts";
import { age, count } from "../state/words.ts";
import { layoutDecisions, BOX_HEIGHT, BOX_WIDTH, type Decision, type Edge } from "../state/decisions.ts";
import type { DecisionList, PulseReport, WhyReport } from "../types.ts";
import { Markdown } from "../md/markdown.tsx";
import { Button, Empty, Filter, Loading, Segments } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";


type View = "graph" | "list" | "narrative";
const base = (): string => `/projects/${encodeURIComponent(project.value.key)}/decisions`;

export function Decisions(): JSX.Element {
  const graph = useSignal<DecisionList | null>(null);
  const pulse = useSignal<PulseReport | null>(null);
  const story = useSignal("");
  const trouble = useSignal("");
  const view = useSignal<View>(window.innerWidth < 768 ? "list" : "graph");
  const status = useSignal("");
  const chosen = useSignal("");
  const load = (): void => {
    get<DecisionList>(base(), { limit: 500 }).then((found) => { graph.value = { nodes: found.nodes ?? [], edges: found.edges ?? [] }; }, (error: Error) => { trouble.value = error.message; });
    get<PulseReport>(`${base()}/pulse`).then((found) => { pulse.value = found; }, () => { pulse.value = null; });
  };
  useEffect(load, [project.value.key]);
  useEffect(() => { if (view.value === "narrative" && !story.value) void get<{ text: string } | string>(`${base()}/narrative`).then((found) => { story.value = typeof found === "string" ? found : found.text; }, () => { story.value = "_No narrative._"; }); }, [view.value]);
  if (trouble.value) return <Empty title="Decisions could not be read">{trouble.value}</Empty>;
  if (!graph.value) return <Loading rows={4} />;
  const rejectedIds = new Set(graph.value.edges.filter((edge) => edge.kind === "rejected").map((edge) => edge.target));
  const stateOf = (node: Decision): string => (rejectedIds.has(node.id) ? "rejected" : node.status ?? "proposed");
  const counts = new Map<string, number>();
  for (const node of graph.value.nodes) counts.set(stateOf(node), (counts.get(stateOf(node)) ?? 0) + 1);
  const shown = status.value ? graph.value.nodes.filter((node) => stateOf(node) === status.value) : graph.value.nodes;
  const node = graph.value.nodes.find((each) => each.id === chosen.value);
  return (
    <div class="decisions">
      <div class="decisions-main">
        <div class="filters tall">
          <Filter chosen={!status.value} onClick={() => { status.value = ""; }}>All {graph.value.nodes.length}</Filter>
          {[...counts].map(([name, number]) => <Filter key={name} chosen={status.value === name} onClick={() => { status.value = name; }}>{name} {number}</Filter>)}
          <span class="push" /><Segments name="View" value={view.value} options={[["graph", "Graph"], ["list", "List"], ["narrative", "Narrative"]] as const} onChange={(value) => { view.value = value; }} />
        </div>
        <div class="decisions-body" tabIndex={0} role="region" aria-label="Decisions">
          {shown.length === 0 ? <Empty title="No decisions yet">What you and the model decide is kept here, with its reason and what was rejected.</Empty> : view.value === "graph" ? <GraphView nodes={shown} edges={graph.value.edges} chosen={chosen.value} choose={(id) => { chosen.value = id; }} stateOf={stateOf} /> : view.value === "list" ? <ListView nodes={shown} chosen={chosen.value} choose={(id) => { chosen.value = id; }} stateOf={stateOf} /> : <div class="pad"><Markdown text={story.value} /></div>}
        </div>
        {pulse.value && pulse.value.findings.length ? (
          <section class="pulse" aria-label="Pulse"><div class="pulse-head"><strong>Pulse</strong><span class="dim">{count(pulse.value.findings.length, "thing")} to look at</span><span class="push" /><span class="dim">health {pulse.value.score} of 100</span></div>
            {pulse.value.findings.slice(0, 5).map((each) => <div key={each.check + each.id} class="pulse-row"><span class="warn"><Icon name="warn" /></span><span class="words">{each.text}</span><Button small onClick={() => { chosen.value = each.id; }}>Look</Button></div>)}</section>
        ) : null}
      </div>
      <aside class="panel" aria-label="Why"><WhyPanel first={route.value.query.why ?? ""} /><div class="panel-body">{node ? <NodePanel node={node} edges={graph.value.edges} nodes={graph.value.nodes} state={stateOf(node)} reload={load} /> : null}</div></aside>
    </div>
  );
}

function GraphView({ nodes, edges, chosen, choose, stateOf }: { nodes: Decision[]; edges: Edge[]; chosen: string; choose: (id: string) => void; stateOf: (node: Decision) => string }): JSX.Element {
  const laid = layoutDecisions(nodes, edges);
  const chain = laid.chain(chosen);
  return (
    <div class="graph" style={{ width: `${laid.width}px`, height: `${laid.height}px` }}>
      <svg class="drawing" width={laid.width} height={laid.height} aria-hidden="true">
        {laid.links.map((link) => <g key={link.id} class={chain.has(link.id) ? "chain" : ["rejected", "supersedes"].includes(link.kind) ? "lane left" : "lane"}><path d={link.path} /><path class="head" d={link.head} /></g>)}
      </svg>
      {laid.boxes.map(({ node, x, y }) => (
        <button key={node.id} type="button" class={["box", ["rejected", "superseded", "abandoned"].includes(stateOf(node)) ? "gone" : "", node.id === chosen ? "chosen" : ""].join(" ")} style={{ left: `${x}px`, top: `${y}px`, width: `${BOX_WIDTH}px`, height: `${BOX_HEIGHT}px` }} aria-pressed={node.id === chosen} title={node.title} onClick={() => choose(node.id)}>
          <span class="box-head"><span>{node.kind[0]?.toUpperCase()}{node.kind.slice(1)}</span><span>{stateOf(node)}{node.confidence ? ` · ${node.confidence}` : ""}</span></span><span class="box-title">{node.title}</span>
        </button>
      ))}
    </div>
  );
}

function ListView({ nodes, chosen, choose, stateOf }: { nodes: Decision[]; chosen: string; choose: (id: string) => void; stateOf: (node: Decision) => string }): JSX.Element {
  return (
    <table class="plain rows"><thead><tr><th scope="col">Kind</th><th scope="col">What</th><th scope="col">State</th><th scope="col">By</th><th scope="col">When</th></tr></thead>
      <tbody>{nodes.map((node) => <tr key={node.id} class={node.id === chosen ? "chosen" : ""}><td>{node.kind}</td><th scope="row"><button type="button" class="link plain-link" onClick={() => choose(node.id)}>{node.title}</button></th><td>{stateOf(node)}</td><td>{node.by ?? "user"}</td><td>{age(node.at ?? 0, minute.value)}</td></tr>)}</tbody></table>
  );
}

function evidenceOf(each: NonNullable<Decision["evidence"]>[number]): string {
  switch (each.kind) {
    case "file": return `file ${each.path}`;
    case "commit": return `commit ${each.commit.slice(0, 8)}`;
    case "check": return `${each.command} ended with ${each.exit}`;
    default: return "said in a turn";
  }
}

function NodePanel({ node, edges, nodes, state, reload }: { node: Decision; edges: Edge[]; nodes: Decision[]; state: string; reload: () => void }): JSX.Element {
  const rejected = edges.filter((edge) => edge.source === node.id && edge.kind === "rejected");
  const title = (id: string): string => nodes.find((each) => each.id === id)?.title ?? id;
  return (
    <>
      <div class="block"><p class="dim">{node.kind} · {state}{node.confidence ? ` · confidence ${node.confidence}` : ""} · {node.by ?? "user"}</p><h3 class="big">{node.title}</h3>{node.why ? <p>{node.why}</p> : null}</div>
      {rejected.length ? <div class="block"><h3>Not to propose again</h3>{rejected.map((edge) => <p key={edge.target} class="line"><span class="bad"><Icon name="cross" /></span>{title(edge.target)}{edge.rationale ? <span class="dim"> · “{edge.rationale}”</span> : null}</p>)}</div> : null}
      {node.scope?.length ? <div class="block"><h3>About</h3>{node.scope.map((each) => <p key={each}><code>{each}</code></p>)}</div> : null}
      {node.evidence?.length ? <div class="block"><h3>Evidence</h3>{node.evidence.map((each, at) => <p key={at} class="dim">{evidenceOf(each)}</p>)}</div> : null}
      {state === "proposed" ? <div class="panel-foot"><Button kind="primary" onClick={() => void attempt(send("POST", `${base()}/${encodeURIComponent(node.id)}/accept`, {})).then(reload)}>Accept</Button></div> : null}
    </>
  );
}

function WhyPanel({ first }: { first: string }): JSX.Element {
  const words = useSignal(first);
  const found = useSignal<WhyReport | null>(null);
  const ask = (): void => {
    const [, path = "", line = ""] = /^(.*?)(?::(\d+))?$/.exec(words.value.trim()) ?? [];
    if (path) void attempt(get<WhyReport>(`${base()}/why`, { path, line })).then((answer) => { found.value = answer; });
  };
  useEffect(() => { words.value = first; if (first) ask(); }, [first]);
  const why = found.value;
  return (
    <div class="why">
      <form class="why-field" onSubmit={(event) => { event.preventDefault(); ask(); }}><span class="dim">why</span><input class="field" aria-label="Why: a path and a line" placeholder="src/file.py:24" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} /></form>
      {why ? (
        <div class="block">
          <ul class="why-chain">
            <li><Mark name="you" label="" /><span>{why.line ? `Line ${why.line}` : "The file"} {why.turn ? "was written by a session" : why.commit ? `was committed as ${why.commit.commit.slice(0, 8)}` : "was written by no session"}</span></li>
            {why.turn ? <li><Mark name="weft" label="" /><span>{why.turn.prompt ? `“${why.turn.prompt.slice(0, 160)}”` : "in a turn of it"}</span></li> : null}
            {(why.decisions ?? []).slice(0, 3).map((each) => <li key={each.id}><Mark name="here" label="" /><span>{each.title}<span class="dim">{each.status ?? "proposed"}{each.why ? ` · ${each.why}` : ""}</span></span></li>)}
          </ul>
          {!why.decisions?.length ? <p class="dim">Nothing was decided about it.</p> : null}
          {why.rejected?.length ? <><h3>Not to propose again</h3>{why.rejected.map((each) => <p key={each.id} class="line"><span class="bad"><Icon name="cross" /></span>{each.title}</p>)}</> : null}
          {why.turn?.session_id ? <Button kind="quiet" small icon="branch" onClick={() => go("chat", why.turn?.session_id)}>Go to the session</Button> : null}
        </div>
      ) : null}
    </div>
  );
}
