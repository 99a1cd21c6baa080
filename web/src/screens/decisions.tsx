/** What was decided, why, and what not to propose again: a graph, a list, a narrative. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, send } from "../api.ts";
import { attempt, go, minute, project, route, say, session } from "../store.ts";
import { age, count } from "../state/words.ts";
import { layoutDecisions, BOX_HEIGHT, BOX_WIDTH, type Decision, type Edge } from "../state/decisions.ts";
import type { DecisionList, ProjectFile, PulseReport, WhyReport } from "../types.ts";
import { Markdown } from "../md/markdown.tsx";
import { Button, Empty, Filter, Loading, Segments } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { insert } from "./composer.tsx";


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
  const form = useSignal<{ supersedes: Decision | null } | null>(null);
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
          <span class="push" /><Button small icon="plus" onClick={() => { chosen.value = ""; form.value = { supersedes: null }; }}>New…</Button><Segments name="View" value={view.value} options={[["graph", "Graph"], ["list", "List"], ["narrative", "Narrative"]] as const} onChange={(value) => { view.value = value; }} />
        </div>
        <div class="decisions-body" tabIndex={0} role="region" aria-label="Decisions">
          {shown.length === 0 ? <Empty title="No decisions yet">What you and the model decide is kept here, with its reason and what was rejected.</Empty> : view.value === "graph" ? <GraphView nodes={shown} edges={graph.value.edges} chosen={chosen.value} choose={(id) => { chosen.value = id; }} stateOf={stateOf} /> : view.value === "list" ? <ListView nodes={shown} chosen={chosen.value} choose={(id) => { chosen.value = id; }} stateOf={stateOf} /> : <div class="pad"><Markdown text={story.value} /></div>}
        </div>
        {pulse.value && pulse.value.findings.length ? (
          <section class="pulse" aria-label="Pulse"><div class="pulse-head"><strong>Pulse</strong><span class="dim">{count(pulse.value.findings.length, "thing")} to look at</span><span class="push" /><span class="dim">health {pulse.value.score} of 100</span></div>
            {pulse.value.findings.slice(0, 5).map((each) => <div key={each.check + each.id} class="pulse-row"><span class="warn"><Icon name="warn" /></span><span class="words">{each.text}</span><PulseActs node={graph.value?.nodes.find((one) => one.id === each.id)} look={() => { form.value = null; chosen.value = each.id; }} reload={load} /></div>)}</section>
        ) : null}
      </div>
      <aside class="panel" aria-label="Why"><WhyPanel first={route.value.query.why ?? ""} />{form.value ? <div class="panel-body"><DecisionForm key={form.value.supersedes?.id ?? "new"} supersedes={form.value.supersedes} done={(made) => { form.value = null; if (made) { chosen.value = made; load(); } }} /></div> : node ? <NodePanel key={node.id} node={node} edges={graph.value.edges} nodes={graph.value.nodes} state={stateOf(node)} reload={load} supersede={() => { form.value = { supersedes: node }; }} /> : <div class="panel-body" />}</aside>
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

const at = (node: Decision, ...rest: string[]): string => [base(), encodeURIComponent(node.id), ...rest].join("/");

/** Gives a proposal up; it can be taken back. */
async function drop(node: Decision, reload: () => void): Promise<void> {
  const before = node.status ?? "proposed";
  if ((await attempt(send("PATCH", at(node), { status: "abandoned", reason: "dropped on the page" }))) === null) return;
  reload();
  say("ok", `Dropped: ${node.title}`, () => void attempt(send("PATCH", at(node), { status: before })).then(reload));
}

/** One action for a finding: what is proposed is answered, a goal is planned, the rest is looked at. */
function PulseActs({ node, look, reload }: { node: Decision | undefined; look: () => void; reload: () => void }): JSX.Element {
  if (node?.status === "proposed") return <><Button small onClick={() => void attempt(send("POST", at(node, "accept"), {})).then(reload)}>Accept</Button><Button small onClick={() => void drop(node, reload)}>Drop</Button></>;
  if (node?.kind === "goal" && session.value) return <Button small onClick={() => { insert(`Plan how to reach this goal: ${node.title}`); go("chat"); }}>Plan it</Button>;
  return <Button small onClick={look}>Look</Button>;
}

/** A new decision, alone or in the place of another one. */
function DecisionForm({ supersedes, done }: { supersedes: Decision | null; done: (made: string) => void }): JSX.Element {
  const kind = useSignal(supersedes?.kind ?? "decision");
  const title = useSignal("");
  const why = useSignal("");
  const scope = useSignal((supersedes?.scope ?? []).join(", "));
  const options = useSignal("");
  const listed = (text: string, by: RegExp): string[] => text.split(by).map((each) => each.trim()).filter(Boolean);
  const save = async (): Promise<void> => {
    const body = { title: title.value, kind: kind.value, why: why.value, scope: listed(scope.value, /[,\s]+/), options: listed(options.value, /\n/), ...(supersedes ? { supersedes: supersedes.id } : {}) };
    const made = await attempt(send<Decision>("POST", base(), body));
    if (made) done(made.id);
  };
  return (
    <form class="new-form narrow" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <h3>{supersedes ? <>In the place of “{supersedes.title}”</> : "Note a decision"}</h3>
      {supersedes ? null : <label>Kind<select class="field" value={kind.value} onChange={(event) => { kind.value = event.currentTarget.value; }}>{["decision", "goal", "constraint", "observation", "action", "outcome"].map((each) => <option key={each} value={each}>{each}</option>)}</select></label>}
      <label>What<input class="field" value={title.value} onInput={(event) => { title.value = event.currentTarget.value; }} /></label>
      <label>Why<textarea class="field tall-field" rows={3} value={why.value} onInput={(event) => { why.value = event.currentTarget.value; }} /></label>
      <label>Files it is about<input class="field" placeholder="src/app.py, docs/**" value={scope.value} onInput={(event) => { scope.value = event.currentTarget.value; }} /></label>
      {kind.value === "decision" ? <label>Not to propose again, one a line<textarea class="field tall-field" rows={2} value={options.value} onInput={(event) => { options.value = event.currentTarget.value; }} /></label> : null}
      <div class="line"><Button kind="primary" off={title.value.trim() ? undefined : "Say what was decided"} onClick={() => void save()}>Save</Button><Button kind="quiet" onClick={() => done("")}>Cancel</Button></div>
    </form>
  );
}

function NodePanel({ node, edges, nodes, state, reload, supersede }: { node: Decision; edges: Edge[]; nodes: Decision[]; state: string; reload: () => void; supersede: () => void }): JSX.Element {
  const edits = useSignal<{ title: string; why: string } | null>(null);
  const rejected = edges.filter((edge) => edge.source === node.id && edge.kind === "rejected");
  const title = (id: string): string => nodes.find((each) => each.id === id)?.title ?? id;
  const save = async (): Promise<void> => {
    const given = edits.value;
    edits.value = null;
    if (given && (await attempt(send("PATCH", at(node), { ...given, reason: "changed on the page" })))) reload();
  };
  return (
    <>
      <div class="panel-body">
        <div class="block"><p class="dim">{node.kind} · {state}{node.confidence ? ` · confidence ${node.confidence}` : ""} · {node.by ?? "user"}</p>
          {edits.value ? (
            <form class="new-form narrow" onSubmit={(event) => { event.preventDefault(); void save(); }}><label>What<input class="field" value={edits.value.title} onInput={(event) => { edits.value = { title: event.currentTarget.value, why: edits.value?.why ?? "" }; }} /></label><label>Why<textarea class="field tall-field" rows={4} value={edits.value.why} onInput={(event) => { edits.value = { title: edits.value?.title ?? "", why: event.currentTarget.value }; }} /></label><div class="line"><Button small kind="primary" onClick={() => void save()}>Save</Button><Button small kind="quiet" onClick={() => { edits.value = null; }}>Cancel</Button></div></form>
          ) : <><h3 class="big">{node.title}</h3>{node.why ? <p>{node.why}</p> : null}</>}
        </div>
        {rejected.length ? <div class="block"><h3>Not to propose again</h3>{rejected.map((edge) => <p key={edge.target} class="line"><span class="bad"><Icon name="cross" /></span>{title(edge.target)}{edge.rationale ? <span class="dim"> · “{edge.rationale}”</span> : null}</p>)}</div> : null}
        {node.scope?.length ? <div class="block"><h3>About</h3>{node.scope.map((each) => <p key={each}><button type="button" class="link" onClick={() => go("files", undefined, { path: each })}><code>{each}</code></button></p>)}</div> : null}
        {node.evidence?.length ? <div class="block"><h3>Evidence</h3>{node.evidence.map((each, index) => <p key={index} class="dim">{evidenceOf(each)}</p>)}</div> : null}
      </div>
      <div class="panel-foot">
        {state === "proposed" ? <><Button kind="primary" onClick={() => void attempt(send("POST", at(node, "accept"), {})).then(reload)}>Accept</Button><Button onClick={() => void drop(node, reload)}>Drop</Button></> : state === "active" ? <Button onClick={supersede}>Supersede…</Button> : null}
        <span class="push" />{edits.value ? null : <Button kind="quiet" icon="pen" onClick={() => { edits.value = { title: node.title, why: node.why ?? "" }; }}>Edit</Button>}
      </div>
    </>
  );
}

function WhyPanel({ first }: { first: string }): JSX.Element {
  const words = useSignal(first);
  const found = useSignal<WhyReport | null>(null);
  const near = useSignal<{ number: number; text: string }[]>([]);
  const ask = (): void => {
    const [, path = "", line = ""] = /^(.*?)(?::(\d+))?$/.exec(words.value.trim()) ?? [];
    near.value = [];
    if (!path) return;
    void attempt(get<WhyReport>(`${base()}/why`, { path, line })).then((answer) => { found.value = answer; });
    const number = Number(line);
    if (number) get<ProjectFile>(`/projects/${encodeURIComponent(project.value.key)}/file`, { path }).then((file) => { near.value = (file.text ?? "").split("\n").map((text, index) => ({ number: index + 1, text })).slice(Math.max(0, number - 2), number + 1); }, () => undefined);
  };
  useEffect(() => { words.value = first; if (first) ask(); }, [first]);
  const why = found.value;
  return (
    <div class="why">
      <form class="why-field" onSubmit={(event) => { event.preventDefault(); ask(); }}><span class="dim">why</span><input class="field" aria-label="Why: a path and a line" placeholder="src/file.py:24" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} /></form>
      {why && near.value.length ? <div class="diff"><table class="unified" aria-label={`Around line ${why.line}`}><tbody>{near.value.map((each) => <tr key={each.number} class={each.number === why.line ? "same here" : "same"}><th scope="row">{each.number}</th><td class="text">{each.text}</td></tr>)}</tbody></table></div> : null}
      {why ? (
        <div class="block">
          <ul class="why-chain">
            <li><Mark name="you" label="" /><span>{why.line ? `Line ${why.line}` : "The file"} {why.turn ? "was written by a session" : why.commit ? `was committed as ${why.commit.commit.slice(0, 8)}` : "was written by no session"}</span></li>
            {why.turn ? <li><Mark name="weft" label="" /><span>{why.turn.prompt ? `“${why.turn.prompt.slice(0, 160)}”` : "in a turn of it"}</span></li> : null}
            {(why.decisions ?? []).slice(0, 3).map((each) => <li key={each.id}><Mark name="here" label="" /><span>{each.title}<span class="dim">{each.status ?? "proposed"}{each.why ? ` · ${each.why}` : ""}</span></span></li>)}
          </ul>
          {!why.decisions?.length ? <p class="dim">Nothing was decided about it.</p> : null}
          {why.rejected?.length ? <><h3>Not to propose again</h3>{why.rejected.map((each) => <p key={each.id} class="line"><span class="bad"><Icon name="cross" /></span>{each.title}</p>)}</> : null}
          {why.turn?.session_id ? <Button kind="quiet" small icon="branch" onClick={() => (why.turn?.node ? go("tree", why.turn.session_id, { at: why.turn.node }) : go("chat", why.turn?.session_id))}>Go to the turn</Button> : null}
        </div>
      ) : null}
    </div>
  );
}
