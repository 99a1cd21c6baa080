/** What stands beside a tree of text: the node, what models are told, its tokens, its revisions. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { ago, count, money, shortModel } from "../state/words.ts";
import { attempt, drafts, go, loadSessions, minute, say } from "../store.ts";
import type { LoomNode, LoomState, ModelPlanEntry, SessionView, TokenLogprob, TreeSettings } from "../types.ts";
import { Button, Check, Empty, Loading, Tabs } from "../ui/controls.tsx";

type Tab = "node" | "prompt" | "tokens" | "revisions";

interface PanelProps { state: LoomState; node: LoomNode; below: number; session: string; isBusy: boolean; reload: () => Promise<void>; to: (node: string) => void }

export const loomPath = (id: string, ...rest: string[]): string => ["/looms", encodeURIComponent(id), ...rest].join("/");

export function LoomPanel(props: PanelProps): JSX.Element {
  const tab = useSignal<Tab>("node");
  const tabs = [{ id: "node", label: "Node" }, { id: "prompt", label: "Prompt" }, { id: "tokens", label: "Tokens" }, { id: "revisions", label: "Revisions", count: (props.node.revision ?? 0) || undefined }] as const;
  return (
    <aside class="panel loom-panel" aria-label="Node">
      <div class="panel-head"><Tabs<Tab> name="About this node" value={tab.value} onChange={(next) => { tab.value = next; }} tabs={tabs} /></div>
      <div class="panel-body">
        {tab.value === "node" ? <NodeTab {...props} /> : tab.value === "prompt" ? <PromptTab {...props} /> : tab.value === "tokens" ? <TokensTab {...props} /> : <RevisionsTab {...props} />}
      </div>
      <div class="panel-foot"><Button icon="chat" onClick={() => void asSession(props.node)}>Make it a coding session</Button></div>
    </aside>
  );
}

/** A new session with the whole text in its message, not sent yet. */
async function asSession(node: LoomNode): Promise<void> {
  const text = await attempt(get<{ text: string }>(loomPath(node.id, "text")));
  if (text === null) return;
  const made = await attempt(send<SessionView>("POST", "/sessions", {}));
  if (made === null) return;
  drafts.value = { ...drafts.value, [made.id]: text.text };
  void loadSessions();
  go("chat", made.id);
}

function NodeTab({ state, node, below, isBusy, reload, to }: PanelProps): JSX.Element {
  const words = useSignal<string | null>(null);
  useEffect(() => { words.value = null; }, [node.id]);
  const act = async (what: string, body: Record<string, unknown>): Promise<void> => {
    const made = await attempt(send<LoomNode | null>("POST", loomPath(node.id, what), body));
    await reload();
    if (made?.id && what !== "rate") to(made.id);
  };
  const save = async (fork: boolean): Promise<void> => {
    const text = words.value;
    words.value = null;
    if (text !== null && text !== node.text) await act("edit", { text, fork });
  };
  const remove = async (): Promise<void> => {
    const above = node.parent_id;
    if (!above || (await attempt(send("POST", loomPath(node.id, "delete"), {}))) === null) return;
    to(above);
    await reload();
    say("ok", `Deleted: ${count(below + 1, "node")}.`, () => void attempt(send("POST", loomPath(node.id, "restore"), {})).then(reload));
  };
  const off = isBusy ? "Branches grow" : undefined;
  return (
    <>
      <div class="block"><dl class="facts-list">
        <dt>Written by</dt><dd>{node.model ? shortModel(node.model) : "you"}{node.strategy ? ` · ${node.strategy}` : ""}</dd>
        {node.created_at ? <><dt>When</dt><dd>{ago(node.created_at, minute.value)}</dd></> : null}
        <dt>Cost</dt><dd>{node.model ? money(node.cost_usd ?? null) : "$0"}</dd>
        <dt>Below</dt><dd>{count(below, "node")}</dd>
        <dt>Rating</dt><dd><span class="rating" role="group" aria-label="Rating">{[1, 2, 3, 4, 5].map((star) => <button key={star} type="button" aria-label={`${star} of 5`} aria-pressed={(node.rating ?? 0) >= star} onClick={() => void act("rate", { rating: node.rating === star ? null : star })}>{(node.rating ?? 0) >= star ? "★" : "☆"}</button>)}</span></dd>
      </dl></div>
      <div class="block">
        {words.value === null ? (
          <div class="line wrap">
            <Button small icon="pen" off={off} onClick={() => { words.value = node.text; }}>Edit</Button>
            <Button small icon="mark" pressed={node.bookmarked ?? false} onClick={() => void attempt(send("POST", loomPath(node.id, "bookmark"), {})).then(reload)}>{node.bookmarked ? "Bookmarked" : "Bookmark"}</Button>
            {node.parent_id ? <><Button small off={off} onClick={() => void act("join", {})}>Join with parent</Button><Button kind="quiet" small off={off} onClick={() => void remove()}>Delete</Button></> : null}
          </div>
        ) : (
          <>
            <textarea class="field tall-field" rows={6} aria-label="Text of this node" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); words.value = null; } }} />
            <div class="line"><Button small kind="primary" onClick={() => void save(false)}>Save</Button>{node.parent_id ? <Button small onClick={() => void save(true)}>Save beside it</Button> : null}<Button small kind="quiet" onClick={() => { words.value = null; }}>Cancel</Button></div>
          </>
        )}
      </div>
      <PlanBlock state={state} reload={reload} />
    </>
  );
}

/** Which models go on from here the next time, and how. */
function PlanBlock({ state, reload }: { state: LoomState; reload: () => Promise<void> }): JSX.Element {
  const edits = useSignal(false);
  const name = useSignal("");
  const plan = state.model_plan ?? [];
  const put = (next: ModelPlanEntry[]): void => void attempt(send("PUT", loomPath(state.root_id, "settings"), { model_plan: next })).then(reload);
  const change = (entry: ModelPlanEntry, changes: Partial<ModelPlanEntry>): void => put(plan.map((each) => (each === entry ? { ...each, ...changes } : each)));
  const number = (entry: ModelPlanEntry, field: "n_branches" | "max_tokens" | "temperature", label: string): JSX.Element => (
    <label class="small-number">{label}<input class="field small" inputMode="decimal" aria-label={`${label} of ${entry.model}`} value={String(entry[field] ?? (field === "n_branches" ? 1 : state[field]))} onChange={(event) => { const value = Number(event.currentTarget.value); if (Number.isFinite(value)) change(entry, { [field]: value }); }} /></label>
  );
  return (
    <div class="block"><h3 class="line">Next time<span class="push" /><Button kind="quiet" small expanded={edits.value} onClick={() => { edits.value = !edits.value; }}>{edits.value ? "Done" : "Edit"}</Button></h3>
      {plan.map((entry) => (
        <div key={entry.model}>
          <div class="line"><Check on={entry.enabled ?? true} onChange={(on) => change(entry, { enabled: on })}>{shortModel(entry.model ?? "")}</Check><span class="push" />{edits.value ? <Button kind="quiet" small icon="cross" label={`Take ${entry.model} out`} onClick={() => put(plan.filter((each) => each !== entry))} /> : <span class="dim">× {entry.n_branches ?? 1} · {entry.max_tokens ?? state.max_tokens} tok · {entry.temperature ?? state.temperature}</span>}</div>
          {edits.value ? <div class="line">{number(entry, "n_branches", "Branches")}{number(entry, "max_tokens", "Tokens")}{number(entry, "temperature", "Heat")}</div> : null}
        </div>
      ))}
      {edits.value ? <form class="line" onSubmit={(event) => { event.preventDefault(); if (name.value.trim()) put([...plan, { ...(plan.at(-1) ?? {}), model: name.value.trim(), enabled: true }]); name.value = ""; }}><input class="field small" aria-label="Model to add" placeholder="provider:model" value={name.value} onInput={(event) => { name.value = event.currentTarget.value; }} /><Button small off={name.value.trim() ? undefined : "Name a model"} onClick={() => { if (name.value.trim()) put([...plan, { ...(plan.at(-1) ?? {}), model: name.value.trim(), enabled: true }]); name.value = ""; }}>Add</Button></form> : null}
    </div>
  );
}

function PromptTab({ node }: PanelProps): JSX.Element {
  const told = useSignal<string | null>(null);
  const text = useSignal<string | null>(null);
  const changed = useSignal(false);
  useEffect(() => {
    text.value = null;
    changed.value = false;
    void attempt(Promise.all([get<{ text: string }>(loomPath(node.id, "context")), get<{ text: string }>(loomPath(node.id, "text"))])).then((found) => { told.value = found?.[0].text ?? ""; text.value = found?.[1].text ?? ""; });
  }, [node.id]);
  if (text.value === null) return <Loading rows={4} />;
  const save = async (): Promise<void> => { if (await attempt(send("PUT", loomPath(node.id, "context"), { text: told.value ?? "" }))) { changed.value = false; say("ok", "Models are told this from here on."); } };
  return (
    <>
      <div class="block"><h3>Told besides the text, from here on</h3><textarea class="field tall-field" rows={4} aria-label="Told besides the text" value={told.value ?? ""} onInput={(event) => { told.value = event.currentTarget.value; changed.value = true; }} /><div class="line"><Button small off={changed.value ? undefined : "Nothing changed"} onClick={() => void save()}>Save</Button></div></div>
      <div class="block"><h3>The text they go on from</h3><pre class="beside-output" tabIndex={0} role="region" aria-label="The text they go on from">{text.value}</pre></div>
    </>
  );
}

/** Three strengths: what was likely has none. */
function strength(probability: number): string {
  return probability >= 0.8 ? "" : probability >= 0.5 ? "faint" : probability >= 0.25 ? "middle" : "strong";
}

function TokensTab({ state, node, reload, to }: PanelProps): JSX.Element {
  const tokens = useSignal<readonly TokenLogprob[] | null>(null);
  const asked = useSignal<number | null>(null);
  const at = useSignal(-1);
  useEffect(() => {
    tokens.value = null;
    at.value = -1;
    void attempt(get<LoomState>(loomPath(node.id))).then((found) => { tokens.value = found?.current_node.tokens ?? []; });
    get<TreeSettings>(loomPath(state.root_id, "settings")).then((found) => { asked.value = found.logprobs ?? 0; }, () => undefined);
  }, [node.id]);
  if (tokens.value === null) return <Loading rows={3} />;
  const chosen = tokens.value[at.value];
  const instead = async (alternative: string): Promise<void> => {
    const made = await attempt(send<LoomNode>("POST", loomPath(node.id, "branch-at-token"), { index: at.value, alternative }));
    await reload();
    if (made) to(made.id);
  };
  const ask = (on: boolean): void => void attempt(send<TreeSettings>("PUT", loomPath(state.root_id, "settings"), { logprobs: on ? 5 : 0 })).then((found) => { if (found) asked.value = found.logprobs ?? 0; });
  return (
    <>
      <div class="block"><h3>Probability of each token</h3>
        {tokens.value.length === 0 ? <Empty title="No tokens known">The model reported none, or was not asked.</Empty> : <p class="tokens" role="group" aria-label="Tokens">{tokens.value.map(([text, score], index) => <button key={index} type="button" class={`token ${strength(Math.exp(score))}`} aria-pressed={index === at.value} title={Math.exp(score).toFixed(2)} onClick={() => { at.value = index === at.value ? -1 : index; }}>{text}</button>)}</p>}
        {chosen ? <ul class="alternatives"><li><span>“{chosen[0].trim() || "space"}”</span><span class="number">{Math.exp(chosen[1]).toFixed(2)}</span><span class="dim">it stands here</span></li>{chosen[2].filter(([text]) => text !== chosen[0]).map(([text, score]) => <li key={text}><span>“{text.trim() || "space"}”</span><span class="number">{Math.exp(score).toFixed(2)}</span><Button kind="quiet" small onClick={() => void instead(text)}>Branch with “{text.trim()}”</Button></li>)}</ul> : null}
      </div>
      {asked.value === null ? null : <div class="block"><Check on={asked.value > 0} onChange={ask}>Ask models for probabilities</Check></div>}
    </>
  );
}

function RevisionsTab({ node, session, reload }: PanelProps): JSX.Element {
  const texts = useSignal<string[] | null>(null);
  const load = (): void => { if (session) get<string[]>(of(session, "revisions", node.id.split("/").at(-1) ?? node.id)).then((found) => { texts.value = found; }, () => { texts.value = []; }); };
  useEffect(() => { texts.value = null; load(); }, [node.id, node.revision, session]);
  if (texts.value === null) return <Loading rows={3} />;
  if (texts.value.length < 2) return <Empty title="One text">Earlier texts of a node appear here once it is edited.</Empty>;
  const now = node.revision ?? texts.value.length - 1;
  return (
    <ul class="revisions">{texts.value.map((text, at) => (
      <li key={at} class="block"><h3 class="line">Revision {at + 1}{text === node.text && at === now ? <span class="dim">shown</span> : null}<span class="push" />{text === node.text ? null : <Button small onClick={() => void attempt(send("POST", of(session, "revisions", node.id.split("/").at(-1) ?? node.id), { n: at })).then(() => reload()).then(load)}>Bring back</Button>}</h3><p class="clip">{text}</p></li>
    )).reverse()}</ul>
  );
}
