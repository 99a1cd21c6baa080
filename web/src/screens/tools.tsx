/** Tool calls in the chat: one quiet line each, which opens in place. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { DiffView } from "../diff/view.tsx";
import { parseDiff } from "../diff/parse.ts";
import { callEnd, callLine, LOOKUPS, type CallEnd, type CallState } from "../state/calls.ts";
import type { CallResult, Child, DraftCall } from "../state/fold.ts";
import { written } from "../state/text.ts";
import { count, firstLine, money, seconds } from "../state/words.ts";
import { children as childInfos, go, now, slice, unfolded, whoIs } from "../store.ts";
import type { ToolExecuting } from "../types.ts";
import { Stat } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";

export interface Call {
  id: string;
  name: string;
  args: Record<string, unknown>;
}

const SHOWN_LINES = 12;

export function ToolState({ state }: { state: CallState }): JSX.Element {
  switch (state) {
    case "done":
      return <span class="state ok" role="img" aria-label="done"><Icon name="check" /></span>;
    case "failed":
      return <span class="state bad" role="img" aria-label="failed"><Icon name="cross" /></span>;
    case "refused":
      return <span class="state bad" role="img" aria-label="refused"><Icon name="cross" /></span>;
    case "denied":
      return <span class="state" role="img" aria-label="denied"><Icon name="no" /></span>;
    case "stopped":
      return <span class="state" role="img" aria-label="stopped"><Icon name="stop" size={13} /></span>;
    case "interrupted":
      return <Mark name="partial" />;
    case "running":
      return <Mark name="running" />;
    case "waits":
      return <Mark name="needs" label="waits for you" />;
    case "queued":
      return <Mark name="coming" label="queued" />;
  }
}

/** Calls of an answer: reads and searches in a row of more than four are one line. */
export function Calls({ calls }: { calls: readonly Call[] }): JSX.Element {
  const results = slice.results.value;
  const groups: Call[][] = [];
  const quiet = (call: Call): boolean => LOOKUPS.has(call.name) && results?.get(call.id)?.isError === false;
  const isAgent = (call: Call): boolean => call.name === "agent" && kidsOf(call.id).length > 0;
  for (const call of calls) {
    const last = groups.at(-1);
    if (last?.[0] && ((quiet(call) && quiet(last[0])) || (isAgent(call) && isAgent(last[0])))) last.push(call);
    else groups.push([call]);
  }
  return (
    <div class="tools">
      {groups.map((group) => group[0] && isAgent(group[0]) ? <Agents key={group[0].id} calls={group} /> : group.length > 4
        ? <Folded key={group[0]?.id} calls={group} />
        : group.map((call) => <ToolLine key={call.id} call={call} />))}
    </div>
  );
}

function Folded({ calls }: { calls: Call[] }): JSX.Element {
  const open = useSignal(false);
  const reads = calls.filter((call) => call.name === "read").length;
  const rest = calls.length - reads;
  const words = [reads ? `${count(reads, "file")}` : "", rest ? `${count(rest, "search", "searches")}` : ""].filter(Boolean).join(", ");
  return (
    <>
      <button type="button" class="tool" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>
        <Icon name={open.value ? "down" : "right"} />
        <span class="verb">{reads ? "read" : "looked"}</span>
        <span class="target sans">{words}</span>
        <span class="end" />
        <ToolState state="done" />
      </button>
      {open.value ? calls.map((call) => <ToolLine key={call.id} call={call} />) : null}
    </>
  );
}

export function ToolLine({ call }: { call: Call }): JSX.Element {
  const result = slice.results.value?.get(call.id);
  const running = slice.running.value?.get(call.id);
  const asked = slice.requests.value?.some((each) => each.call_uid === call.id) ?? false;
  const touchedOpen = useSignal<boolean | null>(null);
  const failed = result !== undefined && result.isError && result.status === "done";
  const isShell = call.name === "shell";
  const open = touchedOpen.value ?? (unfolded.value || (failed && isShell));
  const { icon, verb, target } = callLine(call.name, call.args, running?.target);
  const line = (
    <button type="button" class="tool" aria-expanded={open} onClick={() => { touchedOpen.value = !open; }}>
      <Icon name={icon} />
      <span class="verb">{verb}</span>
      <span class="target">{written(target).text}</span>
      {result ? <End end={withAnswer(callEnd(call.name, result), call.id)} /> : asked ? <><span class="end">waits for you</span><ToolState state="waits" /></> : running ? <Running running={running} /> : <><span class="end">queued</span><ToolState state="queued" /></>}
    </button>
  );
  if (!open) return line;
  return <div class="card">{line}<Output call={call} result={result} live={result ? "" : (slice.output.value?.get(call.id) ?? "")} /></div>;
}

function withAnswer(end: CallEnd, uid: string): CallEnd {
  const answer = slice.answered.value?.get(uid);
  if (!answer || end.words.some((word) => word.includes("by you"))) return end;
  const who = whoIs(answer.by);
  const words = { allow_once: `once, by ${who}`, allow_turn: `this turn, by ${who}`, allow_always: `always, by ${who}`, deny: answer.reason ? `${who} said no: “${answer.reason}”` : `${who} said no` }[answer.action];
  if (!words) return end;
  if (answer.action === "deny") return { ...end, words: [words], state: "denied", tone: "" };
  return { ...end, words: end.words.includes(words) ? end.words : end.tone ? [...end.words, words] : [words, ...end.words] };
}

function End({ end }: { end: CallEnd }): JSX.Element {
  const parts: ComponentChildren[] = end.words.map((word, at) => <span key={word} class={at === 0 && end.tone ? end.tone : undefined}>{word}</span>);
  return (
    <>
      <span class="end"><Stat added={end.added} removed={end.removed} />{parts}</span>
      <ToolState state={end.state} />
    </>
  );
}

function Running({ running }: { running: ToolExecuting }): JSX.Element {
  const began = running.at ?? 0;
  const last = (slice.output.value?.get(running.call_uid) ?? "").trimEnd().split("\n").at(-1) ?? "";
  return (
    <>
      <span class="end">
        {began > 0 && now.value - began >= 1 ? <span>{seconds((now.value - began) * 1000)}</span> : <span>running</span>}
        {last ? <span class="last">{last.slice(0, 60)}</span> : null}
      </span>
      <ToolState state="running" />
    </>
  );
}

function Output({ call, result, live }: { call: Call; result: CallResult | undefined; live: string }): JSX.Element {
  const all = useSignal(false);
  if (result?.diff) return <div class="body flush">{parseDiff(result.diff).map((file) => <DiffView key={file.path} file={file} split={false} />)}</div>;
  const command = call.name === "shell" && typeof call.args.command === "string" && call.args.command.includes("\n") ? `$ ${call.args.command}\n` : "";
  const text = command + (result ? result.output || result.text : live);
  const lines = text.trimEnd().split("\n");
  const shown = all.value ? lines : call.name === "shell" || result?.isError ? lines.slice(-SHOWN_LINES) : lines.slice(0, SHOWN_LINES);
  return (
    <div class="body">
      {lines.length > SHOWN_LINES ? <button type="button" class="link more" onClick={() => { all.value = !all.value; }}>{all.value ? "Fewer lines" : `All ${lines.length} lines`}</button> : null}
      <pre tabIndex={0}>{text.trim() ? shown.map((line, at) => <OutputLine key={at} line={line} />) : <span class="dim">no output</span>}</pre>
    </div>
  );
}

function OutputLine({ line }: { line: string }): JSX.Element {
  const clean = line.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
  const found = /\b(\d+ (?:passed|ok)|PASSED|FAILED|\d+ (?:failed|errors?)|ERROR)\b/.exec(clean);
  if (!found) return <span>{clean}{"\n"}</span>;
  const tone = /pass|ok/i.test(found[0]) ? "ok" : "bad";
  return <span>{clean.slice(0, found.index)}<span class={tone}>{found[0]}</span>{clean.slice(found.index + found[0].length)}{"\n"}</span>;
}

/** The agents of some calls: one card, one line each. */
function Agents({ calls }: { calls: readonly Call[] }): JSX.Element {
  const lines = calls.flatMap((call) => kidsOf(call.id).map((kid) => ({ kid, call })));
  const cost = lines.reduce((sum, each) => sum + (each.kid.cost ?? 0), 0);
  return (
    <div class="card agents">
      <div class="tool head"><Icon name="agent" /><span class="target sans">{count(lines.length, "sub-agent")}</span><span class="end">{cost > 0 ? money(cost) : ""}</span><span class="state" /></div>
      {lines.map(({ kid, call }) => <AgentLine key={kid.id} kid={kid} call={call} />)}
    </div>
  );
}

function AgentLine({ kid, call }: { kid: Child; call: Call }): JSX.Element {
  const result = slice.results.value?.get(call.id);
  const info = childInfos.value.find((each) => each.id === kid.id);
  const ms = kid.began ? ((kid.ended || now.value) - kid.began) * 1000 : (result?.durationMs ?? 0);
  const what = String(call.args.description ?? call.args.prompt ?? call.args.task ?? "") || info?.title || "";
  const ended = result && (result.isError ? "failed" : "done");
  const state = kid.reason === null ? (ended ?? "running") : ["stop", "submitted"].includes(kid.reason) ? "done" : "failed";
  // What an isolated one changed waits to be kept, under this name.
  const held = /keep="(fan_\w+)"/.exec(result?.text ?? "")?.[1];
  return (
    <>
      <button type="button" class="tool" onClick={() => go("chat", kid.id)}>
        <Icon name="file" /><span class="verb wide">{kid.name || "agent"}</span><span class="target sans">{firstLine(what)}</span>
        <span class="end">{ms > 0 ? <span>{seconds(ms)}</span> : null}{kid.cost ? <span>{money(kid.cost)}</span> : null}</span>
        <ToolState state={state} />
      </button>
      {held ? <button type="button" class="tool held" onClick={() => go("fan", undefined, { fan: held })}><Icon name="changes" /><span class="verb wide">changes</span><span class="target sans link">Look at what it changed, and keep it</span><span class="end">not in the project yet</span><Mark name="needs" label="" /></button> : null}
    </>
  );
}

/** The agents that a call has started: seen as they began, or read later. */
function kidsOf(call: string): Child[] {
  const seen = [...(slice.kids.value?.values() ?? [])].filter((each) => each.callUid === call);
  const known = new Set(seen.map((each) => each.id));
  const read = childInfos.value.filter((each) => each.call_uid === call && !known.has(each.id));
  return [...seen, ...read.map((each) => ({ id: each.id, name: each.name, callUid: call, node: each.node ?? null, background: each.background ?? false, reason: each.reason ?? null, cost: each.cost_usd ?? null, began: 0, ended: 0 }))];
}

/** A call that the model is still writing. */
export function WritingCall({ call }: { call: DraftCall }): JSX.Element {
  const target = /"(?:path|command|pattern|file_path)"\s*:\s*"((?:[^"\\]|\\.)*)/.exec(call.args.text)?.[1]?.replace(/\\(.)/g, "$1") ?? "";
  const { icon, verb } = callLine(call.tool, {});
  const lines = call.args.text.split("\\n").length;
  return (
    <div class="tool still">
      <Icon name={icon} /><span class="verb">{verb}</span><span class="target">{written(target).text}</span>
      <span class="end">{lines > 2 ? `writing ${lines} lines` : "writing"}</span><ToolState state="running" />
    </div>
  );
}
