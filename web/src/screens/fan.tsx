/** Candidates for one task: ranked, compared, and one of them kept. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { parseDiff } from "../diff/parse.ts";
import { DiffView } from "../diff/view.tsx";
import { count, money, seconds, shortModel } from "../state/words.ts";
import { attempt, go, project, route, say, session } from "../store.ts";
import type { FanCandidate, FanSummary, FanView, KeepOutcome } from "../types.ts";
import { Button, Check, Empty, Loading, Menu, PathName, Segments, Stat } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";


export function Fan(): JSX.Element {
  const id = session.value?.id ?? "";
  const all = useSignal<FanSummary[] | null>(null);
  const fan = useSignal<FanView | null>(null);
  const open = useSignal(0);
  const trouble = useSignal("");
  const wanted = route.value.query.fan ?? "";
  useEffect(() => { get<FanSummary[]>(`/projects/${encodeURIComponent(project.value.key)}/fans`).then((found) => { all.value = found.filter((each) => each.session === id); }, (error: Error) => { trouble.value = error.message; }); }, [id]);
  const fanId = wanted || all.value?.[0]?.id || "";
  useEffect(() => {
    if (!fanId) return;
    const load = (): void => void get<FanView>(of(id, "fan", fanId)).then((found) => { fan.value = found; }, (error: Error) => { trouble.value = error.message; });
    load();
    const timer = window.setInterval(() => { if (!fan.value?.is_settled) load(); }, 1500);
    return () => window.clearInterval(timer);
  }, [fanId]);
  if (trouble.value && !fan.value) return <Empty title="Candidates could not be read">{trouble.value}</Empty>;
  if (all.value === null) return <Loading rows={4} />;
  if (!fanId) return <NewFan id={id} />;
  if (!fan.value) return <Loading rows={4} />;
  const view = fan.value;
  const chosen = view.candidates.find((each) => each.index === open.value) ?? view.candidates.find((each) => each.is_best) ?? view.candidates[0];
  const agent = all.value.find((each) => each.id === fanId)?.agent ?? "";
  const others = all.value.map((each) => ({ value: each.id, label: `${each.agent ? `Agent ${each.agent}: ` : ""}${each.prompt.slice(0, 60)}`, chosen: each.id === fanId }));
  const cost = view.candidates.reduce((sum, each) => sum + (each.cost_usd ?? 0), 0);
  return (
    <div class="fan">
      <div class="fan-main" tabIndex={-1}>
        <div class="fan-head"><div><h2>{view.prompt}</h2><p class="dim">{agent ? `Agent ${agent}, isolated` : `${view.planned} candidates`}{view.verify_command ? <> · verify <code>{view.verify_command}</code></> : null} · {money(cost)}</p></div><span class="push" />{others.length > 1 ? <Menu label="Others" items={others} onChoose={(value) => go("fan", undefined, { fan: value })}>{count(others.length, "task")}<Icon name="down" size={12} /></Menu> : null}{view.is_settled ? null : <Button icon="stop" onClick={() => void attempt(send("POST", of(id, "fan", view.id, "stop"), {}))}>Stop the rest</Button>}</div>
        <div class="wide" tabIndex={0} role="region" aria-label="Candidates"><table class="plain rows"><thead><tr>{["#", "Model", "State", "Verify", "Touches checks", "Changes", "Agrees", "Cost", "Time"].map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
          <tbody>{view.candidates.map((each) => (
            <tr key={each.index} class={each === chosen ? "chosen" : ""}>
              <td>{each.index} {each.is_best ? <span class="best" role="img" aria-label="ranked first"><Icon name="star" size={13} /></span> : null}</td><th scope="row"><button type="button" class="link plain-link" onClick={() => { open.value = each.index; }}>{shortModel(each.model)}</button></th>
              <td><span class="line">{["working", "verifying"].includes(each.state) ? <Mark name="running" label="" /> : null}{each.state}</span></td><td class={each.verify === "passed" ? "ok" : each.verify ? "bad" : ""}>{each.verify ? `${each.verify_passed} of ${each.verify_runs}` : ""}</td><td class={each.touches_checks ? "warn" : ""}>{each.touches_checks ? `edits tests${each.base_tests ? ` (base’s: ${each.base_tests})` : ""}` : "no"}</td>
              <td>{each.files.length} files <Stat added={each.added} removed={each.removed} /></td><td>{each.agree > 1 ? `with ${each.agree - 1}` : "alone"}</td><td>{each.cost_usd === null ? "unknown" : money(each.cost_usd)}</td><td>{seconds(each.seconds * 1000)}</td>
            </tr>
          ))}</tbody></table></div>
        {chosen ? <CandidateView key={chosen.index} id={id} fan={view.id} candidate={chosen} /> : null}
      </div>
      {chosen ? <KeepPanel key={`${view.id}${chosen.index}`} id={id} fan={view.id} candidate={chosen} agent={agent} /> : null}
    </div>
  );
}

function CandidateView({ id, fan, candidate }: { id: string; fan: string; candidate: FanCandidate }): JSX.Element {
  const diff = useSignal<string | null>(null);
  useEffect(() => { void get<string>(of(id, "fan", fan, "diff", String(candidate.index))).then((found) => { diff.value = found; }, () => { diff.value = ""; }); }, [candidate.index]);
  return (
    <section class="candidate" aria-label={`Candidate ${candidate.index}`}>
      <div class="file-head"><strong>{candidate.index} {shortModel(candidate.model)}</strong><span class="push" /><Button small onClick={() => go("chat", candidate.session)}>Open</Button></div>
      {candidate.text ? <p class="pad">{candidate.text}</p> : null}
      {diff.value === null ? <Loading rows={3} /> : parseDiff(diff.value).map((file) => <div key={file.path}><div class="hunk-head"><PathName path={file.path} /><span class="push" /><Stat added={file.added} removed={file.removed} /></div><DiffView file={file} split={false} /></div>)}
    </section>
  );
}

const DONE: Record<string, string> = { put: "put into the project", remove: "removed", merge: "merged with yours", marked: "both, between conflict markers", conflict: "stays yours", same: "the same already" };

/** What keeping would do to each file; where both changed the same lines, the person says how. */
function KeepPanel({ id, fan, candidate, agent }: { id: string; fan: string; candidate: FanCandidate; agent: string }): JSX.Element {
  const preview = useSignal<KeepOutcome | null>(null);
  const trouble = useSignal("");
  const prune = useSignal(false);
  const how = useSignal<"mine" | "markers">("mine");
  const ready = ["done", "kept"].includes(candidate.state);
  const body = { index: candidate.index, conflicts: how.value };
  useEffect(() => {
    if (ready) send<KeepOutcome>("POST", of(id, "fan", fan, "keep"), { ...body, preview: true }).then((found) => { preview.value = found; trouble.value = ""; }, (error: Error) => { trouble.value = error.message; });
  }, [candidate.index, ready, how.value]);
  const keep = async (): Promise<void> => {
    const done = await attempt(send<KeepOutcome>("POST", of(id, "fan", fan, "keep"), body));
    if (!done?.is_kept) { if (done) say("warn", `Nothing was kept. ${done.remarks?.join(" ") ?? ""}`); return; }
    if (prune.value) await attempt(send("POST", of(id, "fan", fan, "prune"), { index: candidate.index }));
    say(done.left?.length ? "warn" : "ok", `Kept. ${done.left?.length ? `${count(done.left.length, "file")} stayed as you have ${done.left.length === 1 ? "it" : "them"}: ${done.left.join(", ")}.` : "Rewind undoes it."}`);
    go("chat");
  };
  const files = preview.value?.plan.files ?? [];
  const meets = files.filter((each) => ["conflict", "marked"].includes(each.action));
  const failed = preview.value?.verified?.passed === false;
  const off = !ready ? "It is still at work" : trouble.value ? trouble.value : !preview.value ? "The check on the merged state has not run yet" : undefined;
  const what = agent ? "agent" : "candidate";
  return (
    <aside class="panel" aria-label="Keep preview">
      <div class="panel-body"><div class="block"><p class="dim">{agent ? `Agent ${agent}` : `Candidate ${candidate.index}`} · {shortModel(candidate.model)}</p><h3 class="big">{agent ? "Keep what it changed" : "Keep this one"}</h3></div>
        {meets.length ? (
          <div class="block"><h3>You and the {what} changed the same</h3>
            <p class="dim">{meets.length === 1 ? "One file conflicts" : `${meets.length} files conflict`} with what you have now. The rest is merged.</p>
            <Segments name="Where both changed the same lines" value={how.value} options={[["mine", "Keep mine"], ["markers", "Put both, marked"]] as const} onChange={(value) => { how.value = value; }} />
          </div>
        ) : null}
        <div class="block"><h3>Into the project as it is now</h3>
          {files.map((each) => <div key={each.path} class="rewind-item"><span class={`letter ${each.action === "remove" ? "deleted" : each.action === "conflict" || each.action === "marked" ? "warn" : "created"}`}>{{ put: "A", remove: "D", merge: "M", marked: "!", conflict: "!", same: "·" }[each.action]}</span><span class="words"><PathName path={each.path} /><span class={each.action === "conflict" || each.action === "marked" ? "warn" : "dim"}>{DONE[each.action]}{each.why ? `: ${each.why}` : ""}</span></span></div>)}
          {files.length === 0 ? candidate.files.map((path) => <div key={path} class="line"><PathName path={path} /></div>) : null}
          {(preview.value?.plan.left_out ?? []).map((path) => <p key={path} class="dim">{path}: left out</p>)}
        </div>
        <div class="block"><h3>Checks before anything is written</h3>
          <p class="line">{meets.length ? <span class="warn">{count(meets.length, "conflict")}</span> : <><span class="ok"><Icon name="check" /></span>No conflicts</>}</p>
          {preview.value?.verified ? <p class="line"><span class={failed ? "bad" : "ok"}><Icon name={failed ? "cross" : "check"} /></span>Verify on the merged state {failed ? "failed" : "passed"}</p> : null}
          {(preview.value?.remarks ?? []).map((each) => <p key={each} class="dim">{each}</p>)}{trouble.value ? <p class="bad">{trouble.value}</p> : null}
        </div>
        <div class="block"><h3>Afterwards</h3><Check on={prune.value} onChange={(on) => { prune.value = on; }}>Prune its working copy</Check></div></div>
      <div class="panel-foot column"><div class="line"><Button kind="primary" icon="check" off={off} onClick={() => void keep()}>{agent ? "Keep it" : `Keep ${candidate.index}`}</Button></div><p class="dim">Rewind undoes a keep.</p></div>
    </aside>
  );
}

function NewFan({ id }: { id: string }): JSX.Element {
  const prompt = useSignal("");
  const number = useSignal("4");
  const verify = useSignal("");
  const start = async (): Promise<void> => {
    const made = await attempt(send<FanView>("POST", of(id, "fan"), { prompt: prompt.value, n: Number(number.value) || 4, ...(verify.value ? { verify: verify.value } : {}) }));
    if (made) go("fan", undefined, { fan: made.id });
  };
  return (
    <form class="new-form" onSubmit={(event) => { event.preventDefault(); void start(); }}>
      <h2>Several candidates for one task</h2><p class="dim">Each works in a copy of the project; nothing reaches it before you keep one.</p>
      <label>Task<input class="field" value={prompt.value} onInput={(event) => { prompt.value = event.currentTarget.value; }} /></label>
      <label>How many<input class="field" inputMode="numeric" value={number.value} onInput={(event) => { number.value = event.currentTarget.value; }} /></label>
      <label>Check, if there is one<input class="field" placeholder="pytest -q" value={verify.value} onInput={(event) => { verify.value = event.currentTarget.value; }} /></label>
      <div><Button kind="primary" off={prompt.value.trim() ? undefined : "Say what is to be done"} onClick={() => void start()}>Start</Button></div>
    </form>
  );
}
