/** What is imported: a file of ours, or what another agent has here; shown first, then taken over. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { send } from "../api.ts";
import type { AgentImport } from "../generated/api.ts";
import { count } from "../state/words.ts";
import { attempt, go, loadSessions, project, say } from "../store.ts";
import { Button, Segments } from "../ui/controls.tsx";

const AGENTS = { claude: "Claude Code", codex: "codex", pi: "pi", opencode: "opencode" } as const;
type Agent = keyof typeof AGENTS;
const CHOICES: [Agent | "", string][] = [["claude", AGENTS.claude], ["codex", AGENTS.codex], ["pi", AGENTS.pi], ["opencode", AGENTS.opencode]];
const STATES: Record<string, string> = { new: "to take over", made: "taken over", there: "here already", "left out": "left out" };

export function Imports(): JSX.Element {
  const agent = useSignal<Agent | null>(null);
  const shown = useSignal<AgentImport | null>(null);
  const isAsking = useSignal(false);
  const file = useRef<HTMLInputElement>(null);
  const ask = async (name: Agent, preview: boolean): Promise<void> => {
    agent.value = name;
    isAsking.value = true;
    if (preview) shown.value = null;
    const found = await attempt(send<AgentImport>("POST", `/projects/${encodeURIComponent(project.value.key)}/import-from`, { agent: name, preview }));
    isAsking.value = false;
    if (!found || agent.value !== name) return;
    shown.value = found;
    if (!preview) { say("ok", `${count((found.sessions ?? []).filter((each) => each.state === "made").length, "session")} taken over.`); void loadSessions(); }
  };
  const importFile = async (): Promise<void> => {
    const given = file.current?.files?.[0];
    if (!given) return;
    const made = await attempt(send<{ session: { id: string } }>("POST", "/sessions/import", { content: await given.text() }));
    if (made) { say("ok", "Imported."); void loadSessions(); go("chat", made.session.id); }
  };
  const sessions = shown.value?.sessions ?? [];
  const setup = shown.value?.setup ?? [];
  const fresh = [...sessions, ...setup].filter((each) => (each.state ?? "new") === "new").length;
  return (
    <section class="imports" aria-label="Import">
      <div class="from"><input ref={file} type="file" class="sr" tabIndex={-1} aria-label="File to import" accept=".json,.jsonl" onChange={() => void importFile()} /><Button onClick={() => file.current?.click()}>A file of Weft…</Button>
        <Segments name="Another agent" value={agent.value ?? ""} options={CHOICES} onChange={(name) => { if (name) void ask(name, true); }} /></div>
      {isAsking.value ? <p class="dim">Looking…</p> : null}
      {shown.value && sessions.length + setup.length === 0 ? <p>Nothing of {AGENTS[shown.value.agent as Agent]} belongs to this folder.</p> : null}
      <ul class="file-list">
        {sessions.map((each) => <li key={each.path + (each.id ?? "")} class="line"><span class="name">{each.title || each.path}</span><span class="dim">{count(each.messages ?? 0, "message")}, {count(each.branches ?? 0, "branch", "branches")} · {STATES[each.state ?? "new"]}{(each.problems ?? []).map((problem) => ` · ${problem}`)}</span>{each.session ? <Button kind="quiet" small onClick={() => go("chat", each.session ?? "")}>Open</Button> : null}</li>)}
        {setup.map((each, at) => <li key={at} class="line"><span class="name">{each.kind}: {each.name}</span><span class="dim">{STATES[each.state ?? "new"]}{each.why ? ` · ${each.why}` : ""}</span></li>)}
      </ul>
      {fresh > 0 && agent.value ? <Button kind="primary" onClick={() => { if (agent.value) void ask(agent.value, false); }}>Take over what is new</Button> : null}
    </section>
  );
}
