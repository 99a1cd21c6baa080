/** The conversation: turns on the thread, what is in flight, what waits for you. */

import { computed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { memo } from "./memo.ts";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Markdown, StreamingMarkdown } from "../md/markdown.tsx";
import type { Draft, Row } from "../state/fold.ts";
import { siblings, type TurnTree } from "../state/turns.ts";
import { count, money, seconds, shortModel } from "../state/words.ts";
import { attempt, branchAt, go, link, looking, now, project, readEarlier, session, slice, switchBranch, tree } from "../store.ts";
import { of, send } from "../api.ts";
import { Button, Chip } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { busy, Composer, insert, models, textOf } from "./composer.tsx";
import { Requests } from "./requests.tsx";
import { Calls, WritingCall } from "./tools.tsx";

const NEAR_END = 40;
/** Turns in the document at once; more are read and drawn as you scroll. */
const DRAWN = 24;

interface TurnRows {
  key: string;
  prompt: Row | null;
  rows: Row[];
}

let before: TurnRows[] = [];

/** The rows cut at the user's messages; a turn whose rows are the same is the same object. */
const turns = computed<TurnRows[]>(() => {
  const found: TurnRows[] = [];
  for (const row of slice.rows.value ?? []) {
    if (row.role === "user" || found.length === 0) found.push({ key: row.id, prompt: row.role === "user" ? row : null, rows: row.role === "user" ? [] : [row] });
    else found.at(-1)?.rows.push(row);
  }
  const known = new Map(before.map((turn) => [turn.key, turn]));
  before = found.map((turn) => {
    const old = known.get(turn.key);
    const same = old && old.prompt === turn.prompt && old.rows.length === turn.rows.length && old.rows.every((row, at) => row === turn.rows[at]);
    return same ? old : turn;
  });
  return before;
});

export function Chat(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  const isBelow = useSignal(false);
  const drawn = useSignal(DRAWN);
  const state = session.value;
  const all = turns.value;
  const past = looking.value === null ? -1 : all.findIndex((turn) => isTurn(turn, looking.value ?? "", tree.value));
  const end = past >= 0 ? past + 1 : all.length;
  const shown = all.slice(Math.max(0, end - drawn.value), end);
  const ahead = past >= 0 ? all.slice(past + 1) : [];

  // The end stays in view only for someone who is there.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && sticks.current) box.scrollTop = box.scrollHeight;
    else if (box) isBelow.value = box.scrollHeight - box.scrollTop - box.clientHeight > NEAR_END * 2;
  });
  useEffect(() => {
    sticks.current = true;
    drawn.value = DRAWN;
  }, [state?.id]);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    sticks.current = looking.value === null;
    if (looking.value !== null) box.querySelector(".turn.looked")?.scrollIntoView({ block: "start" });
  }, [looking.value]);
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    // Pictures, fonts and opened cards change heights without a new drawing.
    const observer = new ResizeObserver(() => { if (sticks.current) box.scrollTop = box.scrollHeight; });
    observer.observe(box);
    if (box.firstElementChild) observer.observe(box.firstElementChild);
    return () => observer.disconnect();
  }, [state?.id]);
  const earlier = async (): Promise<void> => {
    const box = scroller.current;
    if (!box || (end - drawn.value <= 0 && state?.before === null)) return;
    const height = box.scrollHeight - box.scrollTop;
    if (end - drawn.value > 0) drawn.value += DRAWN;
    else if (await readEarlier()) drawn.value += DRAWN;
    requestAnimationFrame(() => { box.scrollTop = box.scrollHeight - height; });
  };
  const scrolled = (): void => {
    const box = scroller.current;
    if (!box) return;
    sticks.current = looking.value === null && box.scrollHeight - box.scrollTop - box.clientHeight <= NEAR_END;
    if (sticks.current) { isBelow.value = false; if (drawn.value > DRAWN * 2) drawn.value = DRAWN; }
    if (box.scrollTop < 300) void earlier();
  };
  if (state === null) return <div class="chat" />;
  const isEmpty = all.length === 0 && state.drafts.length === 0;
  return (
    <div class="chat">
      <div class="scroll" ref={scroller} onScroll={scrolled} tabIndex={-1}>
        <div class="column" aria-live="off">
          {isEmpty ? <Blank /> : null}
          {shown.map((turn, at) => <TurnView key={turn.key} turn={turn} isLast={looking.value === null && at === shown.length - 1} isLooked={past >= 0 && at === shown.length - 1} />)}
          {past < 0 ? <InFlight /> : null}
          {ahead.length > 0 ? <Ahead turns={ahead} /> : null}
          {past < 0 ? <Ends /> : null}
          <div class="foot" />
        </div>
      </div>
      <div class="dock">
        {isBelow.value && looking.value === null ? <button type="button" class="pill" onClick={() => { const box = scroller.current; if (box) { sticks.current = true; box.scrollTop = box.scrollHeight; isBelow.value = false; } }}><Icon name="down" size={14} />New below</button> : null}
        {past < 0 && state.requests.length > 0 ? <span class="gutter-mark"><Mark name="here" label="" /></span> : null}
        {past < 0 ? <Requests composerEmpty={() => textOf(state.id) === ""} /> : null}
        <Composer />
      </div>
    </div>
  );
}

function isTurn(turn: TurnRows, key: string, known: TurnTree | null): boolean {
  return turn.key === key || known?.turnOf.get(turn.key) === key || known?.turnOf.get(turn.rows[0]?.id ?? "") === key;
}

const TurnView = memo(function TurnView({ turn, isLast, isLooked }: { turn: TurnRows; isLast: boolean; isLooked: boolean }): JSX.Element {
  const known = tree.value;
  const key = known?.turnOf.get(turn.key) ?? turn.key;
  return (
    <article class={isLooked ? "turn looked" : "turn"} aria-label={`Turn: ${turn.prompt?.message.typed || turn.prompt?.message.content || ""}`.slice(0, 120)}>
      {turn.prompt ? (
        <div class="said">
          <button type="button" class="gutter-mark" aria-label="Look at this turn" title="Look at this turn" onClick={() => { looking.value = known && known.line.at(-1) !== key ? key : null; }}><Mark name="you" label="" /></button>
          <div class="you">
            <Markdown text={turn.prompt.message.typed || turn.prompt.message.content} />
            {turn.prompt.message.attached?.length ? <p class="attached">{turn.prompt.message.attached.map((name) => <Chip key={name} icon="clip">{name}</Chip>)}</p> : null}
          </div>
        </div>
      ) : null}
      {turn.rows.length > 0 ? (
        <div class="said">
          <span class="gutter-mark"><Mark name={isLooked ? "looking" : turn.rows.at(-1)?.message.is_partial ? "partial" : "weft"} label="" /></span>
          <div class="weft">
            <Meta turn={turn} turnKey={key} isLast={isLast} />
            {turn.rows.map((row) => <Answer key={row.id} row={row} />)}
          </div>
        </div>
      ) : null}
    </article>
  );
});

function Meta({ turn, turnKey, isLast }: { turn: TurnRows; turnKey: string; isLast: boolean }): JSX.Element {
  const answers = turn.rows.filter((row) => row.role === "assistant");
  const model = answers.at(-1)?.message.model ?? "";
  const costs = answers.map((row) => row.message.usage?.cost_usd ?? null);
  const cost = costs.some((each) => each === null) ? null : costs.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const began = turn.prompt?.message.at ?? 0;
  const ended = Math.max(turn.rows.at(-1)?.message.at ?? 0, ...answers.flatMap((row) => (row.message.tool_calls ?? []).map((call) => slice.results.value?.get(call.id)?.at ?? 0)));
  const words = [shortModel(model), began && ended > began ? seconds((ended - began) * 1000) : "", cost === null || answers.length === 0 ? "" : money(cost)].filter(Boolean);
  const node = turn.rows.findLast((row) => row.role === "assistant")?.id ?? turn.key;
  return (
    <div class={isLast ? "meta newest" : "meta"}>
      <span>{words.join(" · ")}</span>
      <Siblings turnKey={turnKey} />
      <span class="push" />
      <span class="acts">
        <Button kind="quiet" small icon="branch" onClick={() => void branchAt(node).then((done) => done && insert(""))}>Branch</Button>
        <Button kind="quiet" small icon="undo" onClick={() => go("tree", undefined, { at: turnKey })}>Rewind</Button>
      </span>
    </div>
  );
}

/** ‹ 2/3 ›: the other lines that leave from the same place. */
function Siblings({ turnKey }: { turnKey: string }): JSX.Element | null {
  const known = tree.value;
  if (known === null) return null;
  const all = siblings(known, turnKey);
  if (all.length < 2) return null;
  const at = all.indexOf(turnKey);
  const goTo = (step: number): void => {
    const key = all[(at + step + all.length) % all.length] ?? "";
    const lane = known.lanes.find((each) => each.keys.includes(key));
    if (lane?.name) void switchBranch(lane.name);
    else go("tree", undefined, { at: key });
  };
  return (
    <span class="siblings">
      <button type="button" aria-label="Previous line" disabled={busy.value} onClick={() => goTo(-1)}><Icon name="left" size={11} /></button>
      {at + 1}/{all.length}
      <button type="button" aria-label="Next line" disabled={busy.value} onClick={() => goTo(1)}><Icon name="right" size={11} /></button>
    </span>
  );
}

const Answer = memo(function Answer({ row }: { row: Row }): JSX.Element | null {
  const { message } = row;
  if (row.role === "note") return <p class={message.is_error ? "note bad" : "note"}>{message.content}</p>;
  return (
    <>
      {message.thinking ? <Thought text={message.thinking} ms={message.duration_ms ?? 0} /> : null}
      {message.content.trim() ? <Markdown text={message.content} /> : null}
      {message.tool_calls?.length ? <Calls calls={message.tool_calls} /> : null}
      {message.is_partial ? <p class="note">Interrupted here; what came is kept.</p> : null}
    </>
  );
});

const thoughtsOpened = new Set<string>();

function Thought({ text, ms, live = false, id = "" }: { text: string; ms: number; live?: boolean; id?: string }): JSX.Element {
  const open = useSignal(live || thoughtsOpened.has(text.slice(0, 80)));
  const title = live ? "Thinking" : ms > 900 ? `Thought for ${seconds(ms)}` : "Thought";
  return (
    <div class="thought">
      <button type="button" aria-expanded={open.value} onClick={() => { open.value = !open.value; if (open.value) thoughtsOpened.add(text.slice(0, 80)); else thoughtsOpened.delete(text.slice(0, 80)); }} data-node={id}>
        <Icon name={open.value ? "down" : "right"} size={14} />{title}
      </button>
      {open.value ? <div class="text">{text}</div> : null}
    </div>
  );
}

/** The answer in flight. */
function InFlight(): JSX.Element | null {
  const state = session.value;
  if (state === null) return null;
  const hasPrompt = turns.value.at(-1)?.rows.length === 0;
  const isWorking = busy.value;
  if (state.drafts.length === 0 && !isWorking) return null;
  return (
    <div class={hasPrompt ? "said flight" : "said flight more"}>
      {hasPrompt || state.drafts.length > 0 ? <span class="gutter-mark"><Mark name={state.requests.length ? "here" : "running"} label="" /></span> : null}
      <div class="weft">
        {hasPrompt ? <div class="meta"><span>{[shortModel(state.model), state.turnBegan ? seconds((now.value - state.turnBegan) * 1000) : ""].filter(Boolean).join(" · ")}</span></div> : null}
        {state.drafts.map((draft) => <DraftView key={draft.node} draft={draft} />)}
        <Trouble />
        {state.drafts.length === 0 && isWorking && state.running.size === 0 && state.requests.length === 0 && !state.retry ? <p class="note working">{state.status === "waiting" ? "Waiting" : "Thinking"}…</p> : null}
      </div>
    </div>
  );
}

function DraftView({ draft }: { draft: Draft }): JSX.Element {
  const hasText = draft.text.length > 0;
  return (
    <>
      {draft.thinking.length > 0 ? <Thought key={hasText ? "done" : "live"} text={draft.thinking.text} ms={(draft.thoughtUntil - draft.began) * 1000} live={!hasText} /> : null}
      {hasText ? <StreamingMarkdown text={draft.text.text} /> : null}
      {draft.calls.length > 0 ? <div class="tools">{draft.calls.map((call) => <WritingCall key={call.index} call={call} />)}</div> : null}
    </>
  );
}

/** Notices in the line: a retry that is counted down. */
function Trouble(): JSX.Element | null {
  const state = session.value;
  const retry = state?.retry;
  if (!state || !retry) return null;
  const left = Math.max(0, Math.ceil(retry.until - now.value));
  const other = models.value.find((each) => `${each.provider}:${each.name}` !== state.model);
  return (
    <div class="notice warn" role="status">
      <Icon name="warn" /><span class="words">{retry.reason}. Trying again{left > 0 ? ` in ${left} s` : ""}. <span class="dim">attempt {retry.attempt}{retry.tries ? ` of ${retry.tries}` : ""}</span></span>
      {other ? <Button kind="quiet" small onClick={() => void attempt(send("PUT", of(state.id, "model"), { model: `${other.provider}:${other.name}` }))}>Other model…</Button> : null}
    </div>
  );
}

/** What stands at the end of the line: how the last turn ended, and a lost connection. */
function Ends(): JSX.Element {
  const state = session.value;
  const at = link.state.value;
  const last = state?.lastTurn;
  const odd = last && !["stop", "submitted"].includes(last.reason);
  return (
    <>
      {odd && state?.status === "idle" ? (
        <div class={last.reason === "aborted" ? "notice" : "notice bad"}>
          <Icon name={last.reason === "aborted" ? "stop" : "cross"} />
          <span class="words">{last.detail || (last.reason === "aborted" ? "Stopped by you. What came is kept." : `The turn ended: ${last.reason.replaceAll("_", " ")}. It is kept as it is.`)}</span>
          <Button small onClick={() => void attempt(send("POST", of(state.id, "continue"), {}))}>Go on</Button>
        </div>
      ) : null}
      {state?.error && state.status === "error" ? <div class="notice bad" role="alert"><Icon name="cross" /><span class="words">{state.error}</span></div> : null}
      {at.at === "lost" ? (
        <div class="notice warn" role="status">
          <Icon name="warn" /><span class="words">Connection lost. Trying again in {Math.max(0, Math.ceil((at.until - now.value * 1000) / 1000))} s; nothing typed is lost.</span>
          <Button kind="quiet" small onClick={() => link.now()}>Now</Button>
        </div>
      ) : null}
    </>
  );
}

function Ahead({ turns: rest }: { turns: TurnRows[] }): JSX.Element {
  const known = tree.value;
  return (
    <div class="ahead">
      <p class="rule"><span>{count(rest.length, "turn")} ahead, kept</span></p>
      {rest.map((turn, at) => {
        const isHead = at === rest.length - 1;
        return (
          <button key={turn.key} type="button" class="folded-turn" onClick={() => { looking.value = isHead ? null : (known?.turnOf.get(turn.key) ?? turn.key); }}>
            <Mark name={isHead ? "here" : "you"} label="" /><span class="words">{turn.prompt?.message.typed || turn.prompt?.message.content || "…"}</span>
            {isHead ? <Chip tone="accent">{known?.headBranch ?? "main"}</Chip> : null}
          </button>
        );
      })}
    </div>
  );
}

function Blank(): JSX.Element {
  const name = project.value.path.split("/").filter(Boolean).at(-1) ?? "";
  return (
    <div class="blank">
      <p class="title">{name || "New session"}</p>
      <p class="dim">Everything you and the model do here is kept as a tree. You can go back to any turn, files included.</p>
      {["What is in this project, and where does it start?", "Run the tests and say what fails.", "What changed since the last commit?"].map((text) => (
        <button key={text} type="button" class="option" onClick={() => insert(text)}><span class="label">{text}</span></button>
      ))}
    </div>
  );
}
