/** Permission rules: those that count here, one more or one less, and what they say of a command. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, send } from "../api.ts";
import { visible } from "../state/text.ts";
import { count, sourceOf } from "../state/words.ts";
import { attempt, project, say, session } from "../store.ts";
import type { PermissionExplanation, RuleList, RuleSimulation, StandingRule, VerdictCount } from "../types.ts";
import { Button, Chip, Empty, Loading, Segments } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

type Verdict = StandingRule["verdict"];

const VERDICTS = [["allow", "Allow"], ["ask", "Ask"], ["deny", "Deny"]] as const;
const LOOKS = { allow: ["ok", "check", "allowed"], ask: ["warn", "warn", "asked"], deny: ["bad", "cross", "denied"] } as const;
const MODES = ["default", "accept_edits", "plan", "auto", "bypass"];
const MOST_CHANGED = 8;

const rulesPath = (...rest: string[]): string => `/projects/${encodeURIComponent(project.value.key)}/permissions${rest.map((each) => `/${each}`).join("")}`;

/** An answer, or the sentence that says why there is none, which stands below its field. */
async function told<T>(what: Promise<T>, trouble: (words: string) => void): Promise<T | null> {
  try {
    trouble("");
    return await what;
  } catch (error) {
    trouble(error instanceof Error ? error.message : String(error));
    return null;
  }
}

export function Permissions(): JSX.Element {
  const rules = useSignal<StandingRule[] | null>(null);
  const trouble = useSignal("");
  const load = (): void => { void told(get<RuleList>(rulesPath()), (words) => { trouble.value = words; }).then((found) => { if (found) rules.value = found.rules; }); };
  useEffect(load, [project.value.key]);
  return (
    <div class="rules">
      {trouble.value ? <Empty title="The rules could not be read">{trouble.value}</Empty> : rules.value === null ? <Loading rows={3} /> : <Rules rules={rules.value} changed={load} />}
      <NewRule added={load} />
      <Explain />
    </div>
  );
}

function VerdictMark({ verdict }: { verdict: Verdict }): JSX.Element {
  const [tone, icon, words] = LOOKS[verdict];
  return <span class={`verdict ${tone}`}><Icon name={icon} size={13} /> {words}</span>;
}

/** What the page has of others, with characters that do not show written as codes. */
function Exact({ text }: { text: string }): JSX.Element {
  return <code>{visible(text).map((each) => each.text).join("")}</code>;
}

function Rules({ rules, changed }: { rules: StandingRule[]; changed: () => void }): JSX.Element {
  if (rules.length === 0) return <Empty title="No rules yet">What no rule covers is judged by the permission mode. “Always” on a permission card adds a rule, and so does the form below.</Empty>;
  return (
    <table class="plain rows rule-table"><thead><tr><th scope="col">Rule</th><th scope="col">Is</th><th scope="col">From</th><th scope="col"><span class="sr">Change</span></th></tr></thead>
      <tbody>{rules.map((each) => <RuleRow key={`${each.verdict} ${each.rule} ${each.source}`} rule={each} changed={changed} />)}</tbody></table>
  );
}

function RuleRow({ rule, changed }: { rule: StandingRule; changed: () => void }): JSX.Element {
  const source = sourceOf(rule.source);
  const body = { verdict: rule.verdict, rule: rule.rule };
  const put = (): void => void attempt(send("POST", rulesPath(), body)).then(changed);
  const take = (): void => void attempt(send("DELETE", rulesPath(), body).then(() => true)).then((done) => { if (done) { say("ok", `${rule.rule} counts no more.`, put); changed(); } });
  return (
    <tr>
      <th scope="row"><Exact text={rule.rule} /></th><td><VerdictMark verdict={rule.verdict} /></td><td><span title={rule.source}><Chip>{source.words}</Chip></span></td>
      <td>{source.words === "you" ? <Button small kind="quiet" label={`Remove ${rule.rule}`} onClick={take}>Remove</Button> : null}</td>
    </tr>
  );
}

function NewRule({ added }: { added: () => void }): JSX.Element {
  const verdict = useSignal<Verdict>("allow");
  const rule = useSignal("");
  const trouble = useSignal("");
  const tried = useSignal<RuleSimulation | null>(null);
  const text = rule.value.trim();
  const fails = (words: string): void => { trouble.value = words; };
  const add = async (): Promise<void> => {
    const made = await told(send<StandingRule>("POST", rulesPath(), { verdict: verdict.value, rule: text }), fails);
    if (!made) return;
    rule.value = "";
    tried.value = null;
    say("ok", `${made.rule} counts from now on, in open sessions too.`);
    added();
  };
  const test = async (): Promise<void> => {
    const asked = { rule: text, verdict: verdict.value };
    const found = await told(get<RuleSimulation>(rulesPath("simulate"), asked), fails);
    // Of a rule that was written on meanwhile it says nothing.
    if (rule.value.trim() === asked.rule && verdict.value === asked.verdict) tried.value = found;
  };
  const off = text ? undefined : "Write a rule";
  return (
    <form class="rule-form" aria-label="Add a rule" onSubmit={(event) => { event.preventDefault(); if (text) void add(); }}>
      <h3 class="keys-head">Add a rule</h3>
      <div class="line wrap">
        <Segments name="What it does" value={verdict.value} options={VERDICTS} onChange={(value) => { verdict.value = value; tried.value = null; }} />
        <input class="field mono" aria-label="Rule" placeholder="shell(git diff *)" value={rule.value} aria-invalid={trouble.value !== ""} onInput={(event) => { rule.value = event.currentTarget.value; tried.value = null; }} />
        <Button off={off} title="What it would have changed; nothing is kept" onClick={() => void test()}>Try on past sessions</Button>
        <Button kind="primary" off={off} onClick={() => void add()}>Add</Button>
      </div>
      {trouble.value ? <p class="bad" role="alert">{trouble.value}</p> : <p class="dim">It is kept in your own file, and counts in every project.</p>}
      {tried.value ? <Tried found={tried.value} /> : null}
    </form>
  );
}

function Tried({ found }: { found: RuleSimulation }): JSX.Element {
  const words = (each: VerdictCount): string => `${each.allow ?? 0} allowed, ${each.ask ?? 0} asked, ${each.deny ?? 0} denied`;
  const changed = found.changed ?? [];
  return (
    <section class="tried" aria-label="On past sessions" role="status">
      <p>{count(found.calls, "call")} of {count(found.sessions, "session")}: it covers {found.covered}. Before: {words(found.before)}. With it: {words(found.after)}.</p>
      {changed.length ? <ul>{changed.slice(0, MOST_CHANGED).map((each) => <li key={each.tool + each.text}><VerdictMark verdict={each.before} /> → <VerdictMark verdict={each.after} /> <Exact text={`${each.tool} ${each.text}`} />{each.times > 1 ? <span class="dim"> {each.times} times</span> : null}</li>)}</ul> : <p class="dim">Nothing would have been decided otherwise.</p>}
      {changed.length > MOST_CHANGED ? <p class="dim">and {changed.length - MOST_CHANGED} more</p> : null}
    </section>
  );
}

function Explain(): JSX.Element {
  const text = useSignal("");
  const mode = useSignal(session.value?.permissionMode || "default");
  const trouble = useSignal("");
  const found = useSignal<PermissionExplanation | null>(null);
  const off = text.value.trim() ? undefined : "Write a command";
  const ask = async (): Promise<void> => {
    const asked = { text: text.value, mode: mode.value };
    const answer = await told(get<PermissionExplanation>(rulesPath("explain"), asked), (words) => { trouble.value = words; });
    if (text.value === asked.text && mode.value === asked.mode) found.value = answer;
  };
  return (
    <form class="rule-form" aria-label="Explain a command" onSubmit={(event) => { event.preventDefault(); if (!off) void ask(); }}>
      <h3 class="keys-head">What would be decided</h3>
      <div class="line wrap">
        <input class="field mono" aria-label="Command" placeholder="git fetch && git push origin main" value={text.value} onInput={(event) => { text.value = event.currentTarget.value; found.value = null; }} />
        <select class="field" aria-label="Permission mode" value={mode.value} onChange={(event) => { mode.value = event.currentTarget.value; found.value = null; }}>{MODES.map((each) => <option key={each} value={each}>{each.replaceAll("_", " ")}</option>)}</select>
        <Button off={off} onClick={() => void ask()}>Explain</Button>
      </div>
      {trouble.value ? <p class="bad" role="alert">{trouble.value}</p> : <p class="dim">Nothing is run.</p>}
      {found.value ? <Explained found={found.value} /> : null}
    </form>
  );
}

function Explained({ found }: { found: PermissionExplanation }): JSX.Element {
  const parts = found.parts ?? [];
  return (
    <section class="explained" aria-label="Decision" role="status">
      <p><VerdictMark verdict={found.decision} />{found.rule ? <> by <Exact text={found.rule} /></> : null}{found.why ? `: ${found.why}` : ""} <span class="dim">{found.sandboxed ? "It would run in the sandbox." : "It would run without a sandbox."}</span></p>
      {parts.length ? (
        <table class="plain rows rule-table"><thead><tr><th scope="col">Part</th><th scope="col">Is</th><th scope="col">Why</th></tr></thead>
          <tbody>{parts.map((each, at) => <tr key={at}><th scope="row"><Exact text={each.text} /></th><td><VerdictMark verdict={each.decision} /></td><td>{each.rule ? <Exact text={each.rule} /> : null} {each.reason}</td></tr>)}</tbody></table>
      ) : null}
    </section>
  );
}
