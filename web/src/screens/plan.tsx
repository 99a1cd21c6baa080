/** Architect mode: the plan as a thread of steps, approved or edited before anything runs. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
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

function StepView({ step, at, status, waits, steps, edit }: { step: Step; at: number; status: string; waits: boolean; steps: Step[]; edit: (next: Step[]) => void }): JSX.Element {
  const field = useSignal<"" | "check" | "description">("");
  const words = useSignal("");
  const running = status === "started";
  const state = session.value;
  const save = (): void => {
    const name = field.value;
    field.value = "";
    if (name && words.value !== (step[name] ?? "")) edit(steps.map((each, index) => (index === at ? { ...each, [name]: words.value } : each)));
  };
  const move = (by: number): void => {
    const next = [...steps];
    const [taken] = next.splice(at, 1);
    if (taken) next.splice(at + by, 0, taken);
    edit(next);
  };
  const editor = (label: string): JSX.Element => (
    <form class="say" onSubmit={(event) => { event.preventDefault(); save(); }}><input class="field small" aria-label={label} value={words.value} ref={(element) => { if (element && document.activeElement !== element) element.focus(); }} onInput={(event) => { words.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); field.value = ""; } }} /><Button small onClick={save}>Save</Button></form>
  );
  const open = (name: "check" | "description"): void => { if (waits) { words.value = step[name] ?? ""; field.value = name; } };
  const calls = running && state ? [...state.running.values()].map((each) => ({ id: each.call_uid, name: each.tool_name, args: each.args ?? {} })) : [];
  return (
    <li class={["step", status, field.value ? "editing" : ""].join(" ")}>
      <span class="step-mark"><Mark name={MARKS[status] ?? "coming"} size={20} label={WORDS[status] ?? "to come"} /></span>
      <div class="step-card">
        <div class="step-body">
          <span class="step-number">{at + 1}</span>
          <div class="step-words">
            <div class="line"><Chip>{step.action}</Chip><code>{step.file || "the project"}</code><span class="push" /><span class="dim">{lines(step.boundary)}</span>
              {waits ? <><Button kind="quiet" small icon="up" label={`Step ${at + 1} earlier`} off={at === 0 ? "It is the first" : undefined} onClick={() => move(-1)} /><Button kind="quiet" small icon="down" label={`Step ${at + 1} later`} off={at === steps.length - 1 ? "It is the last" : undefined} onClick={() => move(1)} /></> : null}</div>
            {field.value === "description" ? editor("What the step does") : waits ? <button type="button" class="text edit" onClick={() => open("description")} title="Edit">{step.description}</button> : <p class="text">{step.description}</p>}
            {field.value === "check" ? <div class="line"><span class="dim">check</span>{editor("Check")}</div> : (
              <div class="line"><span class="dim">{step.check ? "check" : "no check: you read it"}</span>{step.check ? <code>{step.check}</code> : null}{waits ? <Button kind="quiet" small icon="pen" label={`Edit the check of step ${at + 1}`} onClick={() => open("check")} /> : status ? <span class={status === "passed" ? "ok" : status === "failed" ? "bad" : "dim"}>{status === "passed" ? <Icon name="check" size={13} /> : null} {WORDS[status]}</span> : <span class="dim">{step.check ? "not run yet" : ""}</span>}</div>
            )}
          </div>
        </div>
        {calls.length ? <div class="step-tools">{calls.map((call) => <ToolLine key={call.id} call={call} />)}</div> : null}
        {status === "replanned" ? <div class="notice warn"><Icon name="undo" /><span class="words">Went back to the planner: the check failed.</span></div> : null}
      </div>
    </li>
  );
}
