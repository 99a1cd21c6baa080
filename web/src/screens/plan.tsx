/** Architect mode: the plan as a thread of steps, approved or edited before anything runs. */

import { signal, useSignal } from "@preact/signals";
import { Fragment, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { of, send } from "../api.ts";
import { shortModel } from "../state/words.ts";
import { attempt, session } from "../store.ts";
import { Button, Chip, Empty } from "../ui/controls.tsx";
import { Icon, Mark, type MarkName } from "../ui/icons.tsx";
import { endsAfterStep, stop, stopAfterStep } from "./composer.tsx";
import { ToolLine } from "./tools.tsx";

interface Step { action: string; file?: string; description: string; details?: string; check?: string; boundary?: { first: number; last: number } | null }
interface WorkPlan { summary?: string; steps?: Step[] }

const MARKS: Record<string, MarkName> = { passed: "checked", started: "running", failed: "failed", skipped: "partial", replanned: "partial" };
const WORDS: Record<string, string> = { passed: "passed", started: "running", failed: "failed", skipped: "skipped", replanned: "went back to the planner" };

export function Plan(): JSX.Element {
  const state = session.value;
  const says = useSignal<string | null>(null);
  const first = useRef<{ of: string; steps: Step[] } | null>(null);
  useEffect(() => {
    const down = (event: KeyboardEvent): void => {
      const now = session.value;
      if (event.key !== "Enter" || !event.ctrlKey || now?.plan?.approved !== null) return;
      event.preventDefault();
      void attempt(send("POST", of(now.id, "plan", "approve"), {}));
    };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  }, []);
  const progress = state?.plan;
  const plan = progress?.plan as WorkPlan | undefined;
  if (!state || !progress || !plan) return <Empty title="No plan">In architect mode one model plans and another carries out the steps. <ModeButton /></Empty>;
  const steps = plan.steps ?? [];
  const waits = progress.approved === null;
  const name = `${state.id} ${state.planId}`;
  if (first.current?.of !== name) first.current = { of: name, steps };
  const passed = steps.filter((_, at) => progress.steps?.[String(at)] === "passed").length;
  const approve = (): void => void attempt(send("POST", of(state.id, "plan", "approve"), {}));
  const reject = (reason: string): void => { says.value = null; void attempt(send("POST", of(state.id, "plan", "reject"), { reason })); };
  const edit = (next: Step[]): void => void attempt(send("PUT", of(state.id, "plan"), { plan: { ...plan, steps: next } }));
  return (
    <div class="plan-screen">
      <div class="plan-main">
        <div class="plan-scroll" tabIndex={-1}>
          <div class="plan-head"><h2>{plan.summary ?? "Plan"}</h2><span class="dim">{waits ? `${steps.length} steps` : progress.approved ? `${passed} of ${steps.length} done` : "rejected"}</span></div>
          <ol class="steps">{steps.map((step, at) => <StepView key={at} step={step} at={at} status={progress.steps?.[String(at)] ?? ""} waits={waits} steps={steps} edit={edit} />)}</ol>
          {waits ? <div class="plan-add"><Button kind="quiet" icon="plus" onClick={() => edit([...steps, { action: "edit", file: steps.at(-1)?.file ?? "", description: "A new step.", details: "" }])}>Add a step</Button></div> : null}
        </div>
        {waits ? (
          <div class="plan-ask" role="group" aria-label="Run this plan?">
            <Mark name="needs" size={18} /><strong>Run this plan?</strong><span class="dim">nothing is changed yet</span><span class="push" />
            {says.value === null ? (
              <><Button kind="quiet" onClick={() => { says.value = ""; }}>Reject, and say why…</Button><Button kind="primary" keys="Ctrl Enter" onClick={approve}>Run {steps.length} steps</Button></>
            ) : (
              <form class="say" onSubmit={(event) => { event.preventDefault(); reject(says.value ?? ""); }}><input class="field small" aria-label="Why not" placeholder="Why not? The planner reads it" value={says.value} ref={(element) => { if (element && !says.value) element.focus(); }} onInput={(event) => { says.value = event.currentTarget.value; }} /><Button small onClick={() => reject(says.value ?? "")}>Reject</Button></form>
            )}
          </div>
        ) : null}
      </div>
      <aside class="panel desktop-panel" aria-label="Plan">
        <div class="panel-body">
          <div class="block"><dl class="facts-list"><dt>State</dt><dd>{waits ? "waits for you" : progress.approved ? "approved" : "rejected"}</dd><dt>Model</dt><dd>{shortModel(state.model)}</dd><dt>Checks</dt><dd>{passed} passed, {steps.length - passed} to go</dd></dl>
            <div class="progress" role="progressbar" aria-label="Steps done" aria-valuemin={0} aria-valuemax={steps.length} aria-valuenow={passed}><span style={{ width: `${steps.length ? (passed / steps.length) * 100 : 0}%` }} /></div></div>
          <div class="block"><h3>It may touch</h3>{[...new Set(steps.map((step) => step.file).filter(Boolean))].map((file) => <div key={file} class="line"><code>{file}</code><span class="push" /><span class="dim">{lines(steps.find((step) => step.file === file)?.boundary)}</span></div>)}</div>
          {waits ? <Edits before={first.current.steps} after={steps} /> : null}
          <div class="block"><h3>If the page or the process ends now</h3><p>{waits ? "The plan waits, and nothing runs before you approve it." : "Steps that are done are kept and not run again. The one that runs starts over from its own beginning."}</p></div>
        </div>
        {state.status !== "idle" && !waits ? <div class="panel-foot"><Button icon="stop" pressed={endsAfterStep.value} onClick={() => void stopAfterStep(state.id)}>{endsAfterStep.value ? "Stops" : "Stop"} after step {Math.min(passed + 1, steps.length)}</Button><span class="push" /><Button kind="quiet" onClick={() => void stop(state.id)}>Stop now</Button></div> : null}
      </aside>
    </div>
  );
}

function ModeButton(): JSX.Element | null {
  const state = session.value;
  if (!state) return null;
  const on = state.mode === "architect";
  return <Button small onClick={() => void attempt(send("PUT", of(state.id, "mode"), { mode: on ? "normal" : "architect" }))}>{on ? "Turn architect mode off" : "Turn architect mode on"}</Button>;
}

function lines(boundary: Step["boundary"]): string {
  return boundary ? `lines ${boundary.first + 1}–${boundary.last + 1}` : "whole file";
}

const FIELDS = ["action", "file", "description", "details", "check"] as const;
type Field = (typeof FIELDS)[number];
const LABELS: Record<Field, string> = { action: "Action", file: "File", description: "What the step does", details: "Details", check: "Check" };

/** What was edited here since the planner wrote it. */
function Edits({ before, after }: { before: readonly Step[]; after: readonly Step[] }): JSX.Element | null {
  const found = after.flatMap((step, at) => FIELDS.filter((field) => (before[at]?.[field] ?? "") !== (step[field] ?? "")).map((field) => ({ at, field, old: before[at]?.[field] ?? "", new: step[field] ?? "" })));
  const gone = before.length - after.length;
  if (found.length === 0 && gone <= 0) return null;
  return (
    <div class="block"><h3>Your edits</h3>
      <div class="diff"><table class="unified" aria-label="Your edits"><tbody>{found.map((each) => <Fragment key={`${each.at}${each.field}`}>{each.old ? <tr class="del"><th scope="row">{each.at + 1}</th><td class="sign">−</td><td class="text">{each.old}</td></tr> : null}{each.new ? <tr class="add"><th scope="row">{each.at + 1}</th><td class="sign">+</td><td class="text">{each.new}</td></tr> : null}</Fragment>)}</tbody></table></div>
      {gone > 0 ? <p class="dim">{gone === 1 ? "One step" : `${gone} steps`} fewer.</p> : null}
    </div>
  );
}

/** A field of a step that is edited in place: a click or Enter opens it, Enter saves, Escape leaves it. */
function Editable({ step, at, field, waits, change, class: look = "" }: { step: Step; at: number; field: Field; waits: boolean; change: (field: Field, text: string) => void; class?: string }): JSX.Element {
  const words = useSignal<string | null>(null);
  const text = step[field] ?? "";
  const shown = text || (field === "check" ? "no check: you read it" : field === "file" ? "the project" : field === "details" ? "no details" : "");
  const name = `${LABELS[field]} of step ${at + 1}`;
  const code = field === "file" || (field === "check" && text !== "");
  if (!waits) return code ? <code class={look}>{shown}</code> : <span class={look}>{shown}</span>;
  const save = (): void => {
    const given = words.value;
    words.value = null;
    if (given !== null && given !== text) change(field, given);
  };
  if (words.value === null) return <button type="button" class={`edit ${code ? "mono" : ""} ${look}`} title="Edit" onClick={() => { words.value = text; }}><span class="sr">Edit: {name}: </span>{shown}</button>;
  return (
    <form class="say" onSubmit={(event) => { event.preventDefault(); save(); }}>
      {field === "action"
        ? <select class="field small" aria-label={name} value={words.value} ref={(element) => element?.focus()} onChange={(event) => { words.value = event.currentTarget.value; save(); }} onBlur={save}>{["create", "edit", "delete", "run"].map((each) => <option key={each} value={each}>{each}</option>)}</select>
        : <input class="field small" aria-label={name} value={words.value} ref={(element) => { if (element && document.activeElement !== element) element.focus(); }} onInput={(event) => { words.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); words.value = null; } }} />}
      {field === "action" ? null : <Button small onClick={save}>Save</Button>}
    </form>
  );
}

/** The step that is being dragged. */
const dragged = signal(-1);

function StepView({ step, at, status, waits, steps, edit }: { step: Step; at: number; status: string; waits: boolean; steps: Step[]; edit: (next: Step[]) => void }): JSX.Element {
  const running = status === "started";
  const state = session.value;
  const change = (field: Field, text: string): void => edit(steps.map((each, index) => (index === at ? { ...each, [field]: text } : each)));
  const put = (from: number, to: number): void => {
    const next = [...steps];
    const [taken] = next.splice(from, 1);
    if (taken) next.splice(to, 0, taken);
    edit(next);
  };
  const field = (name: Field, look = ""): JSX.Element => <Editable step={step} at={at} field={name} waits={waits} change={change} class={look} />;
  const calls = running && state ? [...state.running.values()].map((each) => ({ id: each.call_uid, name: each.tool_name, args: each.args ?? {} })) : [];
  return (
    <li class={["step", status, waits && dragged.value === at ? "dragged" : ""].join(" ")} onDragOver={(event) => { if (waits && dragged.value >= 0) event.preventDefault(); }} onDrop={(event) => { event.preventDefault(); if (dragged.value >= 0 && dragged.value !== at) put(dragged.value, at); dragged.value = -1; }}>
      <span class="step-mark"><Mark name={MARKS[status] ?? "coming"} size={20} label={WORDS[status] ?? "to come"} /></span>
      <div class="step-card">
        <div class="step-body">
          <span class="step-number">{at + 1}</span>
          <div class="step-words">
            <div class="line">{waits ? field("action", "chip") : <Chip>{step.action}</Chip>}{field("file")}<span class="push" /><span class="dim">{lines(step.boundary)}</span>
              {waits ? <><Button kind="quiet" small icon="up" label={`Step ${at + 1} earlier`} off={at === 0 ? "It is the first" : undefined} onClick={() => put(at, at - 1)} /><Button kind="quiet" small icon="down" label={`Step ${at + 1} later`} off={at === steps.length - 1 ? "It is the last" : undefined} onClick={() => put(at, at + 1)} /><Button kind="quiet" small icon="cross" label={`Take step ${at + 1} out`} off={steps.length === 1 ? "A plan has a step" : undefined} onClick={() => edit(steps.filter((_, index) => index !== at))} /><span class="step-grip" draggable title="Drag to another place" aria-hidden="true" onDragStart={() => { dragged.value = at; }} onDragEnd={() => { dragged.value = -1; }}><Icon name="drag" /></span></> : null}</div>
            {field("description", "text")}
            {waits ? field("details", "text dim") : null}
            <div class="line">{step.check || waits ? <span class="dim">check</span> : null}{field("check", step.check ? "" : "dim")}{waits ? null : status ? <span class={status === "passed" ? "ok" : status === "failed" ? "bad" : "dim"}>{status === "passed" ? <Icon name="check" size={13} /> : null} {WORDS[status]}</span> : <span class="dim">{step.check ? "not run yet" : ""}</span>}</div>
          </div>
        </div>
        {calls.length ? <div class="step-tools">{calls.map((call) => <ToolLine key={call.id} call={call} />)}</div> : null}
        {status === "replanned" ? <div class="notice warn"><Icon name="undo" /><span class="words">Went back to the planner: the check failed.</span></div> : null}
      </div>
    </li>
  );
}
