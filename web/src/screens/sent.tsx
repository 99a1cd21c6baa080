/** What was sent, in the tree's panel: the request of a turn part by part, its cache, and messages that are taken out. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { get, of, send } from "../api.ts";
import type { MessageExclusion, SentRequest } from "../generated/api.ts";
import type { Row } from "../state/fold.ts";
import { attempt, say, session, slice } from "../store.ts";
import { Button } from "../ui/controls.tsx";

const PARTS: Record<string, string> = { system: "system prompt", instructions: "AGENTS.md", map: "map of the project", summary: "summary", user: "your messages", files: "files, pictures", notes: "notes of Weft", calls: "tool calls", results: "tool results" };
const STATES = { first: "The first request", hit: "Cache hit", partial: "Cache partly missed", miss: "Cache missed", unknown: "Cache not reported" } as const;

/** Parts cost little: a sum that is not nothing is not shown as nothing. */
function cents(cost: number): string {
  return cost < 0.0001 ? "< $0.0001" : `$${cost.toFixed(4)}`;
}

export function Sent({ nodes }: { nodes: readonly string[] }): JSX.Element {
  const found = useSignal<SentRequest | null>(null);
  const diff = useSignal(false);
  const id = session.value?.id ?? "";
  const rows = (slice.rows.value ?? []).filter((row) => row.role !== "note" && nodes.includes(row.id));
  const look = async (withDiff: boolean): Promise<void> => {
    const answer = await attempt(get<SentRequest>(of(id, "sent"), { turn: nodes.at(-1), diff: withDiff }));
    if (answer) { found.value = answer; diff.value = withDiff; }
  };
  if (found.value === null) return <div class="block"><Button small onClick={() => void look(false)}>What was sent</Button></div>;
  const request = found.value;
  return (
    <section class="block sent" aria-label="What was sent">
      <h3>What was sent</h3>
      <p class="dim">{`Call ${request.call + 1} of ${request.calls} · ${request.size.toLocaleString("en")} bytes · ${request.said}`}</p>
      <table>
        <thead><tr><th scope="col">Part</th><th scope="col">Tokens</th><th scope="col">Change</th><th scope="col">Cost</th></tr></thead>
        <tbody>
          {request.parts.map((part) => {
            const more = part.tokens - (part.before_tokens ?? 0);
            return <tr key={part.name}><th scope="row">{PARTS[part.name] ?? part.name}</th><td>{part.tokens.toLocaleString("en")}</td><td>{request.change && more ? `${more > 0 ? "+" : "−"}${Math.abs(more).toLocaleString("en")}` : ""}</td><td>{part.cost_usd ? cents(part.cost_usd) : ""}</td></tr>;
          })}
        </tbody>
      </table>
      <p>{STATES[request.cache.state]}{request.cache.prompt_tokens && request.cache.state !== "unknown" ? `: ${(request.cache.read_tokens ?? 0).toLocaleString("en")} of ${request.cache.prompt_tokens.toLocaleString("en")} tokens read` : ""}</p>
      {request.cache.causes?.length ? <ul>{request.cache.causes.map((cause) => <li key={cause.kind}><strong>{cause.kind}</strong> {cause.text}</li>)}</ul> : null}
      {diff.value ? <pre class="sent-diff" tabIndex={0}>{request.diff || "The same request as before."}</pre> : request.change ? <Button kind="quiet" small onClick={() => void look(true)}>What changed</Button> : null}
      <ul class="sent-messages">{rows.map((row) => <Message key={row.id} id={id} row={row} />)}</ul>
    </section>
  );
}

function Message({ id, row }: { id: string; row: Row }): JSX.Element {
  const isOut = row.message.is_excluded ?? false;
  const text = row.message.typed || row.message.content || (row.message.tool_calls ?? []).map((call) => String(call.name)).join(", ");
  const change = async (): Promise<void> => {
    const said = await attempt(send<MessageExclusion | null>(isOut ? "DELETE" : "PUT", of(id, "nodes", row.id, "excluded")));
    if (said?.summarized) say("warn", "It was compacted: the summary may still tell of it.");
  };
  return <li class={isOut ? "line excluded" : "line"}><span class="words">{text.slice(0, 80) || "…"}</span><span class="push" /><Button kind="quiet" small label={`${isOut ? "Put back" : "Take out"}: ${text.slice(0, 40)}`} onClick={() => void change()}>{isOut ? "Put back" : "Take out"}</Button></li>;
}
