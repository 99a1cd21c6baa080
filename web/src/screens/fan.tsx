/** Candidates for one task: ranked, compared, and one of them kept. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { parseDiff } from "../diff/parse.ts";
import { DiffView } from "../diff/view.tsx";
import { letter } from "../state/changes.ts";
import { count, money, seconds, shortModel } from "../state/words.ts";
import { attempt, go, project, route, say, session } from "../store.ts";
import type { FanCandidate, FanSummary, FanView, KeepOutcome } from "../types.ts";
import { Button, Check, Chip, Empty, Filter, Loading, Menu, PathName, Segments, Stat } from "../ui/controls.tsx";
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
  const stopped = view.is_settled ? view.candidates.filter((each) => each.state === "interrupted") : [];
  const where = [...new Set(view.candidates.map((each) => each.isolation).filter(Boolean))].join(", ");
  return (
    <div class="fan">
      <div class="fan-main" tabIndex={-1}>
        <div class="fan-head"><div><h2>{view.prompt}</h2><p class="dim">{agent ? `Agent ${agent}, isolated` : count(view.planned, "candidate")}{view.verify_command ? <> · verify <code>{view.verify_command}</code></> : null}{where ? ` · ${where}` : ""} · {money(cost)}</p></div><span class="push" />{others.length > 1 ? <Menu label="Others" items={others} onChoose={(value) => go("fan", undefined, { fan: value })}>{count(others.length, "task")}<Icon name="down" size={12} /></Menu> : null}
          {stopped.length ? <Button onClick={() => void attempt(send<FanView>("POST", of(id, "fan", view.id, "resume"), {})).then((found) => { if (found) fan.value = found; })}>Resume {stopped.length}</Button> : null}
          {view.is_settled ? null : <Button icon="stop" onClick={() => void attempt(send("POST", of(id, "fan", view.id, "stop"), {}))}>Stop the rest</Button>}</div>
        <Table view={view} chosen={chosen?.index ?? 0} choose={(index) => { open.value = index; }} />
        {chosen ? <Compared id={id} view={view} chosen={chosen} choose={(index) => { open.value = index; }} /> : null}
      </div>
      {chosen ? <KeepPanel key={`${view.id}${chosen.index}`} id={id} fan={view} candidate={chosen} agent={agent} /> : null}
    </div>
  );
}

const COLUMNS = ["#", "Model", "State", "Verify", "Touches checks", "Changes", "Agrees", "Cost", "Time", ""];

/** Ranked, best first, the base last. Rows keep their places while the pointer or the focus is among them. */
function Table({ view, chosen, choose }: { view: FanView; chosen: number; choose: (index: number) => void }): JSX.Element {
  const order = useSignal<number[]>([]);
  const held = useRef(false);
  const ranked = view.candidates.map((each) => each.index);
  const place = (index: number): number => (order.value.includes(index) ? order.value.indexOf(index) : order.value.length + ranked.indexOf(index));
  const isOther = ranked.some((index, at) => order.value[at] !== index);
  useEffect(() => { if (!held.current) order.value = ranked; }, [ranked.join()]);
  const shown = [...view.candidates].sort((one, other) => place(one.index) - place(other.index));
  const base = view.candidates.find((each) => each.base_verify)?.base_verify ?? "";
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Candidates" onPointerEnter={() => { held.current = true; }} onPointerLeave={() => { held.current = false; }} onFocusIn={() => { held.current = true; }} onFocusOut={() => { held.current = false; }}>
      {isOther && order.value.length ? <p class="notice warn"><Icon name="swap" /><span class="words">The candidates rank otherwise now.</span><Button small onClick={() => { order.value = ranked; }}>Re-rank</Button></p> : null}
      <table class="plain rows"><thead><tr>{COLUMNS.map((name) => <th key={name} scope="col">{name || <span class="sr">Look</span>}</th>)}</tr></thead>
        <tbody>{shown.map((each) => (
          <tr key={each.index} class={each.index === chosen ? "chosen" : ""}>
            <td>{each.index} {each.is_best ? <span class="best" role="img" aria-label="ranked first"><Icon name="star" size={13} /></span> : null}</td><th scope="row"><button type="button" class="link plain-link" onClick={() => choose(each.index)}>{shortModel(each.model)}</button></th>
            <td><span class="line">{["working", "verifying"].includes(each.state) ? <Mark name="running" label="" /> : null}{each.state}</span></td><td><Verdict candidate={each} /></td><td class={each.touches_checks ? "warn" : ""}>{each.touches_checks ? <><Icon name="warn" size={13} /> edits tests{each.base_tests ? ` (base’s: ${each.base_tests})` : ""}</> : "no"}</td>
            <td>{count(each.files.length, "file")} <Stat added={each.added} removed={each.removed} /></td><td>{each.agree > 1 ? `with ${each.agree - 1}` : "alone"}</td><td>{each.cost_usd === null ? "unknown" : money(each.cost_usd)}</td><td>{seconds(each.seconds * 1000)}</td>
            <td><span class="line">{each.session ? <Button kind="quiet" small label={`Open candidate ${each.index}`} onClick={() => go("chat", each.session)}>Open</Button> : null}</span></td>
          </tr>
        ))}
        {view.verify_command ? <tr class="base"><td>–</td><th scope="row">base, untouched</th><td>{base ? "done" : "not run"}</td><td class={base === "passed" ? "ok" : base ? "bad" : ""}>{base ? <><Icon name={base === "passed" ? "check" : "cross"} size={13} /> {base}</> : ""}</td><td colSpan={6} class="dim">{base === "passed" ? "passes before: a pass says only that nothing broke" : base ? "fails before, so a pass says something" : ""}</td></tr> : null}
        </tbody></table></div>
  );
}

function Verdict({ candidate }: { candidate: FanCandidate }): JSX.Element | null {
  if (!candidate.verify) return null;
  const good = candidate.verify === "passed" && candidate.base_tests !== "failed";
  const words = candidate.verify === "passed" && !good ? "fails base’s tests" : `${candidate.verify_passed} of ${candidate.verify_runs}`;
  return <span class={good ? "ok" : "bad"}><Icon name={good ? "check" : "cross"} size={13} /> {words}</span>;
}

/** The chosen candidate beside another one: as cards, or as the difference between them. */
function Compared({ id, view, chosen, choose }: { id: string; view: FanView; chosen: FanCandidate; choose: (index: number) => void }): JSX.Element {
  const other = useSignal(0);
  const as = useSignal<"cards" | "diff">("cards");
  const second = view.candidates.find((each) => each.index === other.value && each !== chosen) ?? view.candidates.find((each) => each !== chosen);
  const pair = second ? [chosen, second] : [chosen];
  return (
    <>
      {second ? (
        <div class="filters tall"><span class="dim">Comparing</span>
          <Filter chosen onClick={() => choose(chosen.index)}>{chosen.index} {shortModel(chosen.model)}</Filter>
          <Menu label="Compare with" items={view.candidates.filter((each) => each !== chosen).map((each) => ({ value: String(each.index), label: `${each.index} ${shortModel(each.model)}`, chosen: each === second }))} onChoose={(value) => { other.value = Number(value); }}>{second.index} {shortModel(second.model)}<Icon name="down" size={12} /></Menu>
          <span class="push" /><Segments name="Compared as" value={as.value} options={[["cards", "Cards"], ["diff", `Diff ${chosen.index} to ${second.index}`]] as const} onChange={(value) => { as.value = value; }} />
        </div>
      ) : null}
      {as.value === "diff" && second ? <Difference key={`${chosen.index}-${second.index}`} path={of(id, "fan", view.id, "compare")} first={chosen.index} second={second.index} /> : <div class="cards">{pair.map((each) => <Card key={each.index} id={id} fan={view} candidate={each} isChosen={each === chosen} choose={choose} />)}</div>}
    </>
  );
}

function Difference({ path, first, second }: { path: string; first: number; second: number }): JSX.Element {
  const text = useSignal<string | null>(null);
  const trouble = useSignal("");
  useEffect(() => { get<string>(path, { first, second }).then((found) => { text.value = found; }, (error: Error) => { trouble.value = error.message; }); }, []);
  if (trouble.value) return <Empty title="They cannot be compared">{trouble.value}</Empty>;
  if (text.value === null) return <Loading rows={3} />;
  if (!text.value.trim()) return <Empty title="No difference">Both came to the same files.</Empty>;
  return <div>{parseDiff(text.value).map((file) => <div key={file.path}><div class="hunk-head"><PathName path={file.path} /><span class="push" /><Stat added={file.added} removed={file.removed} /></div><DiffView file={file} split={false} /></div>)}</div>;
}

function Card({ id, fan, candidate, isChosen, choose }: { id: string; fan: FanView; candidate: FanCandidate; isChosen: boolean; choose: (index: number) => void }): JSX.Element {
  const diff = useSignal<string | null>(null);
  const log = useSignal("");
  useEffect(() => {
    void get<string>(of(id, "fan", fan.id, "diff", String(candidate.index))).then((found) => { diff.value = found; }, () => { diff.value = ""; });
    if (candidate.verify) void get<string>(of(id, "fan", fan.id, "output", String(candidate.index))).then((found) => { log.value = found; }, () => undefined);
  }, [candidate.index, candidate.state, candidate.verify_runs]);
  const files = diff.value === null ? [] : parseDiff(diff.value);
  return (
    <section class={isChosen ? "candidate chosen" : "candidate"} aria-label={`Candidate ${candidate.index}`}>
      <div class="candidate-head"><strong>{candidate.index}</strong>{shortModel(candidate.model)}<span class="push" />{candidate.is_best ? <Chip tone="accent">ranked first</Chip> : null}{isChosen ? null : <Button small onClick={() => choose(candidate.index)}>Keep…</Button>}</div>
      {diff.value === null ? <Loading rows={3} /> : files.map((file) => <details key={file.path} open={file === files[0]}><summary class="file-row"><span class={`letter ${file.action}`}>{letter(file.action)}</span><PathName path={file.path} /><span class="push" /><Stat added={file.added} removed={file.removed} /></summary><DiffView file={file} split={false} /></details>)}
      {diff.value !== null && files.length === 0 ? <p class="dim pad">It changed no file.</p> : null}
      <div class="candidate-log">
        {candidate.verify ? <p class={candidate.verify === "passed" ? "ok" : "bad"}>{candidate.verify_passed} of {count(candidate.verify_runs, "run")} passed{candidate.base_tests ? `; with the base’s tests: ${candidate.base_tests}` : ""}</p> : null}
        {log.value ? <pre tabIndex={0} role="region" aria-label={`What the check printed for candidate ${candidate.index}`}>$ {fan.verify_command}{"\n"}{log.value.slice(-6000)}</pre> : null}
        {candidate.detail ? <p class="bad">{candidate.detail}</p> : null}
        {candidate.text ? <><p class="dim">its own words</p><p>{candidate.text}</p></> : null}
      </div>
    </section>
  );
}

const DONE: Record<string, string> = { put: "put into the project", remove: "removed", merge: "merged with yours", marked: "both, between conflict markers", conflict: "stays yours", same: "the same already" };

/** What keeping would do to each file; where both changed the same lines, the person says how. */
function KeepPanel({ id, fan: view, candidate, agent }: { id: string; fan: FanView; candidate: FanCandidate; agent: string }): JSX.Element {
  const preview = useSignal<KeepOutcome | null>(null);
  const trouble = useSignal("");
  const prune = useSignal(false);
  const refused = useSignal(false);
  const fan = view.id;
  const rest = view.candidates.filter((each) => each !== candidate);
  const how = useSignal<"mine" | "markers">("mine");
  const ready = ["done", "kept"].includes(candidate.state);
  const body = { index: candidate.index, conflicts: how.value };
  useEffect(() => {
    if (ready) send<KeepOutcome>("POST", of(id, "fan", fan, "keep"), { ...body, preview: true }).then((found) => { preview.value = found; trouble.value = ""; }, (error: Error) => { trouble.value = error.message; });
  }, [candidate.index, ready, how.value]);
  const keep = async (force: boolean): Promise<void> => {
    const done = await attempt(send<KeepOutcome>("POST", of(id, "fan", fan, "keep"), { ...body, force }));
    if (!done?.is_kept) { if (done) { preview.value = done; refused.value = done.verified?.passed === false; } if (done) say("warn", `Nothing was kept. ${done.remarks?.join(" ") ?? ""}`); return; }
    // The kept one's copy goes with them: what it changed is in the project.
    if (prune.value) for (const each of [candidate, ...rest].filter((each) => each.state !== "pruned")) await attempt(send("POST", of(id, "fan", fan, "prune"), { index: each.index }));
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
          {failed && preview.value?.output ? <pre class="beside-output" tabIndex={0} role="region" aria-label="What the check printed">{preview.value.output.slice(-4000)}</pre> : null}
          {(preview.value?.remarks ?? []).map((each) => <p key={each} class="dim">{each}</p>)}{trouble.value ? <p class="bad">{trouble.value}</p> : null}
        </div>
        <div class="block"><h3>Afterwards</h3><p class="line"><Icon name="check" />The choice is noted as a decision</p><div class="line"><Check on={prune.value} onChange={(on) => { prune.value = on; }}>{rest.length ? "Prune the working copies" : "Prune its working copy"}</Check><span class="push" /><span class="dim">diffs stay</span></div></div></div>
      <div class="panel-foot column"><div class="line"><Button kind="primary" icon="check" off={off} onClick={() => void keep(false)}>{agent ? "Keep it" : `Keep ${candidate.index}`}</Button>{refused.value ? <Button onClick={() => void keep(true)}>Keep all the same</Button> : null}</div><p class="dim">Rewind undoes a keep.</p></div>
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
