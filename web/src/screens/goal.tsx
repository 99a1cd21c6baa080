/** What the session works for, turn after turn: one row above the composer. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of, send } from "../api.ts";
import type { Goal } from "../generated/api.ts";
import { goalWords } from "../state/goal-words.ts";
import { attempt, say, session } from "../store.ts";
import { Button } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

export function GoalRow(): JSX.Element | null {
  const found = useSignal<Goal | null>(null);
  const editing = useSignal(false);
  const state = session.value;
  const id = state?.id ?? "";
  // Each fact about it, and what the session does, may say something else of it.
  const moment = `${id} ${state?.goalVersion ?? 0} ${state?.status ?? ""} ${state?.cost ?? ""}`;
  useEffect(() => {
    if (!id) return;
    let isOld = false;
    void get<Goal | null>(of(id, "goal")).then((answer) => { if (!isOld) found.value = answer; }, () => undefined);
    return () => { isOld = true; };
  }, [moment]);
  const goal = found.value;
  if (goal === null || goal.session_id !== id || goal.status === "done" || goal.status === "ended") return null;
  const call = (...parts: string[]): void => void attempt(send<Goal>("POST", of(id, "goal", ...parts), {})).then((now) => { if (now !== null) found.value = now; });
  const isPaused = goal.status === "paused";
  if (editing.value) return <GoalForm id={id} goal={goal} onDone={(now) => { editing.value = false; if (now !== null) found.value = now; }} />;
  return (
    <section class={`goal ${goal.status}`} aria-label="Goal">
      <Icon name={isPaused ? "stop" : "mark"} size={14} />
      <span class="when">{isPaused ? "Paused" : goal.status === "checking" ? "Checking" : "Goal"}</span>
      <span class="words" title={goal.check ? `${goal.text}\n${goal.check}` : goal.text}>{goal.text}</span>
      <span class="dim">{facts(goal)}</span>
      {isPaused
        ? <Button kind="quiet" small onClick={() => call("resume")}>Resume</Button>
        : <Button kind="quiet" small onClick={() => call("pause")}>Pause</Button>}
      <Button kind="quiet" small icon="pen" label="Edit the goal" onClick={() => { editing.value = true; }} />
      <Button kind="quiet" small icon="cross" label="Clear the goal" onClick={() => void attempt(send("DELETE", of(id, "goal"), {}))} />
    </section>
  );
}

function facts(goal: Goal): string {
  if (goal.status === "paused") return goal.detail ?? "";
  const parts = [`round ${goal.round ?? 0} of ${goal.max_rounds}`];
  const spent = goal.cost_usd ?? 0;
  if (spent > 0 || goal.max_budget_usd != null) parts.push(`$${spent.toFixed(2)}${goal.max_budget_usd == null ? "" : ` of $${goal.max_budget_usd}`}`);
  return parts.join(" · ");
}

function GoalForm({ id, goal, onDone }: { id: string; goal: Goal; onDone: (now: Goal | null) => void }): JSX.Element {
  const text = useSignal(goal.text);
  const check = useSignal(goal.check);
  const save = (): void => {
    const body = { ...(text.value.trim() !== goal.text ? { text: text.value.trim() } : {}), ...(check.value.trim() !== goal.check ? { check: check.value.trim() } : {}) };
    if (Object.keys(body).length === 0) { onDone(null); return; }
    void attempt(send<Goal>("POST", of(id, "goal", "edit"), body)).then((now) => { if (now !== null) onDone(now); });
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "Enter") { event.preventDefault(); save(); }
    if (event.key === "Escape") { event.stopPropagation(); onDone(null); }
  };
  return (
    <section class="goal form" aria-label="Goal">
      <input class="field small" aria-label="What is to be reached" value={text.value} ref={(element) => { if (element && document.activeElement?.closest(".goal.form") === null) element.focus(); }} onInput={(event) => { text.value = event.currentTarget.value; }} onKeyDown={keys} />
      <input class="field small mono" aria-label="The check" value={check.value} placeholder="make test" onInput={(event) => { check.value = event.currentTarget.value; }} onKeyDown={keys} />
      <Button kind="quiet" small onClick={save}>Save</Button>
      <Button kind="quiet" small icon="cross" label="Cancel" onClick={() => onDone(null)} />
    </section>
  );
}

const USAGE = "/goal TEXT --check CMD; or pause, resume, edit, clear";

/** `/goal TEXT --check CMD`, and what else is said of a goal there. */
export function goalCommand(id: string, words: string): void {
  if (["pause", "resume"].includes(words)) { void attempt(send("POST", of(id, "goal", words), {})); return; }
  if (words === "clear") { void attempt(send("DELETE", of(id, "goal"), {})); return; }
  const edit = /^edit(?:\s+|$)/.exec(words);
  const read = goalWords(edit ? words.slice(edit[0].length) : words);
  if ("trouble" in read) say("bad", `${read.trouble}: ${USAGE}`);
  else if (edit) void attempt(send("POST", of(id, "goal", "edit"), read.given));
  else if (!read.given.text) say("bad", `a goal needs a text and a check: ${USAGE}`);
  else void attempt(send("PUT", of(id, "goal"), read.given));
}
