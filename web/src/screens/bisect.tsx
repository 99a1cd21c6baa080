/** Bisect, in the tree's panel: a check on the files of earlier turns, its verdicts as marks, and what began to fail. */

import { signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { ApiError } from "../api.ts";
import type { BisectCheck, Bisection } from "../generated/api.ts";
import { go, session } from "../store.ts";
import { follow } from "../stream.ts";
import { Button } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";

interface BisectRun { session: string; check: string; stop: AbortController | null; checks: BisectCheck[]; found: Bisection | null; trouble: string }

const NO_OVERLAY = "there is no overlay for the checks here";

const run = signal<BisectRun | null>(null);

function present(): BisectRun | null {
  return run.value?.session === session.value?.id ? run.value : null;
}

/** What the check said of a turn of the present line, by its number. */
export function Verdict({ turn }: { turn: number }): JSX.Element | null {
  const last = present()?.checks.findLast((each) => each.name === `turn ${turn}` && !each.call);
  if (!last || last.verdict === "none") return null;
  const passes = last.verdict === "good";
  return <span class="verdict"><Mark name={passes ? "checked" : "failed"} size={14} label="" />{passes ? "passes" : "fails"}</span>;
}

async function begin(id: string, check: string, inCopies = false): Promise<void> {
  const stop = new AbortController();
  const change = (fields: Partial<BisectRun>): void => { if (run.value?.session === id) run.value = { ...run.value, ...fields }; };
  run.value = { session: id, check, stop, checks: [], found: null, trouble: "" };
  try {
    await follow(`/sessions/${encodeURIComponent(id)}/bisect`, { check, in_copies: inCopies }, stop.signal, (event, value) => {
      if (event === "check") change({ checks: [...(run.value?.checks ?? []), value as BisectCheck] });
      else if (event === "bisection") change({ found: value as Bisection });
      else if (event === "error") change({ trouble: (value as { error: { message: string } }).error.message });
    });
  } catch (error) {
    change({ trouble: stop.signal.aborted ? "Stopped. Nothing of it is left." : error instanceof ApiError ? error.message : "The server does not answer." });
  }
  change({ stop: null });
}

/** `choose` looks at a turn by the id of a message of it. */
export function Bisect({ choose }: { choose: (node: string) => void }): JSX.Element {
  const check = useSignal<string | null>(null);
  const now = present();
  const id = session.value?.id ?? "";
  const start = (): void => {
    const words = check.value?.trim();
    if (words && id) { check.value = null; void begin(id, words); }
  };
  if (now?.stop) return <div class="line"><span class="dim" role="status">Checking: {now.checks.length} done</span><span class="push" /><Button small kind="quiet" onClick={() => now.stop?.abort()}>Stop</Button></div>;
  if (check.value !== null) {
    return (
      <form class="line" onSubmit={(event) => { event.preventDefault(); start(); }}>
        <input class="field small" aria-label="Check" placeholder="A command that fails now, as: make test" value={check.value} ref={(element) => { if (element && !check.value) element.focus(); }} onInput={(event) => { check.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); check.value = null; } }} />
        <Button small onClick={start}>Bisect</Button>
      </form>
    );
  }
  return (
    <>
      {now ? <Found run={now} choose={choose} /> : null}
      <div class="line"><Button kind="quiet" small title="Find the turn at which a check began to fail" onClick={() => { check.value = ""; }}>Bisect…</Button></div>
    </>
  );
}

function Found({ run: now, choose }: { run: BisectRun; choose: (node: string) => void }): JSX.Element | null {
  const found = now.found;
  if (!found && now.trouble.startsWith(NO_OVERLAY)) {
    const why = now.trouble.split(". ")[0] ?? "";
    return <div class="bisection" role="status"><p>{why}.</p><Button small onClick={() => void begin(now.session, now.check, true)}>Run in copies, outside the sandbox</Button></div>;
  }
  if (!found) return now.trouble ? <p class="trouble" role="status">{now.trouble}</p> : null;
  const before = found.branch_at;
  const canBranch = found.outcome === "found" && found.bad?.made_by === "session" && !found.calls?.every((call) => call.is_by_user);
  const reason = found.calls?.find((call) => call.reason)?.reason;
  return (
    <div class="bisection" role="status">
      <p><Icon name={found.outcome === "found" ? "warn" : "clock"} size={14} /> {found.sentence}</p>
      {reason ? <p class="quote">“{reason}”</p> : null}
      {found.decisions?.map((each) => <p key={each.id} class="dim">Decided then: {each.title} <Button kind="quiet" small onClick={() => go("decisions", undefined, { node: each.id })}>Show</Button></p>)}
      {found.notes?.map((note) => <p key={note} class="dim">{note}</p>)}
      {canBranch && before ? <Button small onClick={() => choose(before)}>Look at the turn before</Button> : null}
    </div>
  );
}
