/** MCP servers: how they stand, what of their tools has changed, and which may be used. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, send } from "../api.ts";
import { commandWords, count } from "../state/words.ts";
import { attempt, mcpQuestions, project, say } from "../store.ts";
import type { McpOverview, McpQuestion, McpServerDetails, McpServerRow } from "../types.ts";
import { Button, CopyButton, Empty, Loading, Segments } from "../ui/controls.tsx";
import { Icon, Mark, type MarkName } from "../ui/icons.tsx";

const STATES: Record<string, [MarkName, string]> = {
  needs_trust: ["needs", "needs your word"], needs_login: ["needs", "needs a login"], changed: ["needs", "changed"], ready: ["checked", "ready"],
  starting: ["running", "starting"], late: ["running", "late"], failed: ["failed", "failed"], off: ["rest", "off"], "not started": ["rest", "not started"],
};

export const mcpPath = (...rest: string[]): string => ["/projects", project.value.key, "mcp", ...rest].map((part, at) => (at === 0 ? part : encodeURIComponent(part))).join("/");

export function McpServers(): JSX.Element {
  const all = useSignal<McpOverview | null>(null);
  const trouble = useSignal("");
  const open = useSignal("");
  const adds = useSignal(false);
  const load = (): void => { get<McpOverview>(mcpPath()).then((found) => { all.value = found; }, (error: Error) => { trouble.value = error.message; }); };
  useEffect(load, [project.value.key]);
  if (trouble.value) return <Empty title="The MCP servers could not be read">{trouble.value}</Empty>;
  if (all.value === null) return <Loading rows={3} />;
  const take = (found: McpOverview | null): void => { if (found) all.value = found; };
  return (
    <div class="mcp">
      {(all.value.problems ?? []).map((each) => <p key={each} class="notice warn"><Icon name="warn" /><span class="words">{each}</span></p>)}
      {(all.value.questions ?? []).map((each) => <McpAsked key={each.name} question={each} done={take} />)}
      {all.value.servers.length === 0 ? <Empty title="No MCP servers yet">Programs that bring tools of their own appear here, with what each may do.</Empty> : (
        <ul class="mcp-list">{all.value.servers.map((row) => <ServerLine key={row.name} row={row} isOpen={open.value === row.name} flip={() => { open.value = open.value === row.name ? "" : row.name; }} take={take} />)}</ul>
      )}
      {adds.value ? <AddServer done={(found) => { adds.value = false; take(found); }} /> : <Button icon="plus" onClick={() => { adds.value = true; }}>Add a server…</Button>}
    </div>
  );
}

function ServerLine({ row, isOpen, flip, take }: { row: McpServerRow; isOpen: boolean; flip: () => void; take: (found: McpOverview | null) => void }): JSX.Element {
  const [mark, words] = STATES[row.state] ?? ["rest", row.state];
  const changed = row.changed?.length ?? 0;
  return (
    <li class={isOpen ? "mcp-server open" : "mcp-server"}>
      <button type="button" class="mcp-head" aria-expanded={isOpen} onClick={flip}>
        <Mark name={changed && mark === "checked" ? "needs" : mark} label="" />
        <span class="words"><span class="name">{row.name}</span><code class="dim">{row.shown}</code></span>
        <span class={row.state === "failed" ? "state bad" : "state"}>{words}{row.why ? `: ${row.why}` : ""}</span>
        <span class="cell">{row.tools ? count(row.tools, "tool") : ""}</span><span class="cell">{row.scope}</span>
        <Icon name={isOpen ? "up" : "down"} size={14} />
      </button>
      {changed && !isOpen ? <p class="mcp-note warn"><Icon name="warn" size={14} />{count(changed, "tool")} not as you know {changed === 1 ? "it" : "them"}: a call asks first</p> : null}
      {isOpen ? <ServerDetails row={row} take={take} /> : null}
    </li>
  );
}

function ServerDetails({ row, take }: { row: McpServerRow; take: (found: McpOverview | null) => void }): JSX.Element {
  const about = useSignal<McpServerDetails | null>(null);
  useEffect(() => { void attempt(get<McpServerDetails>(mcpPath(row.name))).then((found) => { about.value = found; }); }, [row]);
  const act = (...rest: string[]) => (): void => void attempt(send<McpOverview>("POST", mcpPath(row.name, ...rest), {})).then((found) => { take(found); if (found) say("ok", rest[0] === "restart" ? `${row.name} is started again when it is next used.` : `The login to ${row.name} is forgotten.`); });
  const remove = async (): Promise<void> => {
    const found = await attempt(send<McpOverview>("DELETE", mcpPath(row.name), {}));
    take(found);
    if (found) say("ok", `${row.name} was taken out of its file.`);
  };
  const all = about.value;
  if (!all) return <Loading rows={2} />;
  const facts: [string, string][] = [["File", all.source], ["Protocol", all.protocol ?? ""], ["Calls itself", all.title ?? ""], [all.transport === "stdio" ? "Environment" : "Headers", (all.transport === "stdio" ? all.environment : all.headers)?.join(", ") ?? ""]];
  if (all.transport === "stdio") facts.push(["Runs", `${all.sandbox === false ? "without the sandbox" : "in the sandbox"}, ${all.network ? "with" : "without"} the network`]);
  return (
    <div class="mcp-body">
      {row.state === "needs_login" ? <p class="notice warn"><Icon name="key" /><span class="words">Log in from a terminal: <code>weft mcp login {row.name}</code></span><CopyButton text={`weft mcp login ${row.name}`} /></p> : null}
      <dl class="facts-list">{facts.filter(([, value]) => value).map(([name, value]) => <><dt key={name}>{name}</dt><dd>{value}</dd></>)}</dl>
      {Object.entries(all.changed ?? {}).map(([tool, diff]) => <section key={tool} class="mcp-changed" aria-label={`${tool} has changed`}><p class="warn"><Icon name="warn" size={14} /><code>{tool}</code> is not as you know it; a call of it asks first</p><PinDiff text={diff} /></section>)}
      {all.tools?.length ? <p class="mcp-tools">{all.tools.map((name) => <code key={name}>{name}</code>)}</p> : <p class="dim">Its tools are known once it has been started.</p>}
      {(all.left_out ?? []).map((each) => <p key={each} class="dim">Left out: {each}</p>)}
      <div class="line"><Button small onClick={act("restart")}>Restart</Button>{all.transport === "stdio" ? null : <Button small onClick={act("logout")}>Log out</Button>}<span class="push" /><Button small kind="quiet" onClick={() => void remove()}>Remove</Button></div>
    </div>
  );
}

/** What a tool says of itself now, against what was agreed. */
function PinDiff({ text }: { text: string }): JSX.Element {
  return <pre class="pin-diff" tabIndex={0} role="region" aria-label="Difference">{text.split("\n").map((line, at) => <span key={at} class={/^\+(?!\+\+)/.test(line) ? "add" : /^-(?!--)/.test(line) ? "del" : ""}>{line}{"\n"}</span>)}</pre>;
}

/** What is to be answered about servers of the project, above the conversation. */
export function McpQuestions(): JSX.Element {
  return <>{mcpQuestions.value.map((each) => <McpAsked key={each.name} question={each} done={(found) => { if (found) mcpQuestions.value = found.questions ?? []; }} />)}</>;
}

/** A server that the project names runs nothing before the person has said so. */
export function McpAsked({ question, done }: { question: McpQuestion; done: (found: McpOverview | null) => void }): JSX.Element {
  const answer = (allowed: boolean) => (): void => void attempt(send<McpOverview>("POST", mcpPath(question.name, "answer"), { allowed, digest: question.digest })).then((found) => { done(found); if (found) say("ok", `${question.name} ${allowed ? "may be used here, as it is now" : "is not used here"}.`); });
  const facts = [question.is_remote ? "" : `${question.is_sandboxed === false ? "without the sandbox" : "in the sandbox"}, ${question.network ? "with" : "without"} the network`, question.variables?.length ? `gets your variables ${question.variables.join(", ")}` : "", ...(question.environ ?? []).map((each) => `sets ${each}`), ...(question.headers ?? []).map((each) => `sends ${each}`)].filter(Boolean);
  return (
    <section class="notice warn mcp-asked" aria-label={`MCP server ${question.name}`}>
      <Icon name="shield" />
      <div class="words">The MCP server <strong>{question.name}</strong> {question.had_answer ? "has changed since you answered" : "is named by this project"}. It {question.is_remote ? "reaches" : "runs"} <code>{question.shown}</code>{facts.length ? ` (${facts.join("; ")})` : ""}. It is not used before you allow it.</div>
      <Button small onClick={answer(true)}>Allow</Button><Button small kind="quiet" onClick={answer(false)}>No</Button>
    </section>
  );
}

function AddServer({ done }: { done: (found: McpOverview | null) => void }): JSX.Element {
  const name = useSignal("");
  const runs = useSignal("");
  const scope = useSignal<"local" | "project" | "user">("local");
  const isAddress = /^https?:\/\//.test(runs.value.trim());
  const add = async (): Promise<void> => {
    const [command = "", ...args] = commandWords(runs.value.trim());
    const entry = isAddress ? { type: "http", url: runs.value.trim() } : { type: "stdio", command, args };
    const found = await attempt(send<McpOverview>("PUT", mcpPath(name.value.trim()), { entry, scope: scope.value }));
    if (found) { say("ok", `${name.value.trim()} is started with the next conversation.`); done(found); }
  };
  return (
    <form class="mcp-add" aria-label="Add a server" onSubmit={(event) => { event.preventDefault(); void add(); }}>
      <label>Name<input class="field" value={name.value} ref={(element) => { if (element && !name.value && !runs.value) element.focus(); }} onInput={(event) => { name.value = event.currentTarget.value; }} /></label>
      <label>Command or address<input class="field" placeholder="npx -y @modelcontextprotocol/server-memory" value={runs.value} onInput={(event) => { runs.value = event.currentTarget.value; }} /></label>
      <Segments name="For whom" value={scope.value} options={[["local", "You, here"], ["project", "This project"], ["user", "You, everywhere"]] as const} onChange={(value) => { scope.value = value; }} />
      <div class="line"><Button off={name.value.trim() && runs.value.trim() ? undefined : "Give it a name and a command"} onClick={() => void add()}>Add</Button><Button kind="quiet" onClick={() => done(null)}>Cancel</Button></div>
      <input type="submit" class="sr" tabIndex={-1} aria-hidden="true" />
    </form>
  );
}
