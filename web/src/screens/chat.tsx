/** The conversation: turns on the thread, what is in flight, what waits for you. */

import { computed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { lazy } from "./lazy.tsx";
import { memo } from "./memo.ts";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Markdown } from "../md/markdown.tsx";
import type { Draft, Row } from "../state/fold.ts";
import { siblings, type TurnTree } from "../state/turns.ts";
import { count, money, seconds, shortModel } from "../state/words.ts";
import type { Part } from "../types.ts";
import { blobAddress } from "../api.ts";
import { attempt, branchAt, go, link, looking, mcpQuestions, now, past, project, readEarlier, readPast, session, setTrust, slice, switchBranch, tree, trust } from "../store.ts";
import { of, send } from "../api.ts";
import { addPictures, filesIn } from "../pictures.ts";
import { Button, Chip } from "../ui/controls.tsx";
import { Icon, Mark, type MarkName } from "../ui/icons.tsx";
import { busy, Composer, insert, models, textOf } from "./composer.tsx";
import { Receipts } from "./receipts.tsx";
import { Requests } from "./requests.tsx";
import { Calls, WritingCall } from "./tools.tsx";

const McpQuestions = lazy(() => import("./mcp.tsx"), "McpQuestions");
const NEAR_END = 40;
/** Turns in the document at first, and at most: sixty messages. More are read and drawn as you scroll. */
const DRAWN = 15;
const MOST_DRAWN = 30;
/** Turns that are drawn anew at once: few, so that a frame takes no longer for them. */
const STEP = 5;
/** How near an edge of what is drawn may come before more is drawn, in pixels. */
const NEAR_EDGE = 700;
const MOST_AHEAD = 40;

interface TurnRows {
  key: string;
  prompt: Row | null;
  rows: Row[];
}

let before: TurnRows[] = [];

function cut(rows: readonly Row[]): TurnRows[] {
  const found: TurnRows[] = [];
  for (const row of rows) {
    if (row.role === "user" || found.length === 0) found.push({ key: row.id, prompt: row.role === "user" ? row : null, rows: row.role === "user" ? [] : [row] });
    else found.at(-1)?.rows.push(row);
  }
  return found;
}

/** The rows cut at the user's messages; a turn whose rows are the same is the same object. */
const turns = computed<TurnRows[]>(() => {
  const found = cut(slice.rows.value ?? []);
  const known = new Map(before.map((turn) => [turn.key, turn]));
  before = found.map((turn) => {
    const old = known.get(turn.key);
    const same = old && old.prompt === turn.prompt && old.rows.length === turn.rows.length && old.rows.every((row, at) => row === turn.rows[at]);
    return same ? old : turn;
  });
  return before;
});

/** An answer that nobody's message asked for: an agent's, or one of a line that begins anew. */
const UNASKED: TurnRows[] = [{ key: "", prompt: null, rows: [] }];
const NO_DRAFTS: Draft[] = [];
const inFlight = computed(() => busy.value || slice.hasDrafts.value);

export function Chat(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  const reading = useRef(false);
  const isBelow = useSignal(false);
  const isOver = useSignal(false);
  const drawn = useSignal(DRAWN);
  const left = useSignal(0);
  const anchor = useRef<{ element: Element; top: number } | undefined>(undefined);
  const id = slice.id.value;
  const key = looking.value;
  const isNow = key === null;
  const place = isNow ? -1 : turns.value.findIndex((turn) => isTurn(turn, key, tree.value));
  const far = !isNow && place < 0;
  const all = far ? (past.value?.key === key ? cut(past.value.rows) : []) : turns.value.length === 0 && inFlight.value ? UNASKED : turns.value;
  const end = isNow || far ? all.length : place + 1;
  const shown = all.slice(Math.max(0, end - drawn.value), Math.max(0, end - left.value));

  // The end stays in view only for someone who is there; what is read keeps its place on the screen.
  useLayoutEffect(() => {
    const box = scroller.current;
    const held = anchor.current;
    if (!box) return;
    if (held) {
      anchor.current = undefined;
      box.scrollTop += held.element.getBoundingClientRect().top - held.top;
    } else if (sticks.current) box.scrollTop = box.scrollHeight;
    else isBelow.value = left.value > 0 || box.scrollHeight - box.scrollTop - box.clientHeight > NEAR_END * 2;
  });
  useEffect(() => {
    sticks.current = true;
    drawn.value = DRAWN;
    left.value = 0;
  }, [id]);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    sticks.current = isNow;
    drawn.value = DRAWN;
    left.value = 0;
    if (!isNow) box.querySelector(".turn.looked")?.scrollIntoView({ block: "start" });
  }, [key, past.value?.key]);
  useEffect(() => {
    if (!far || key === null) return;
    const timer = window.setTimeout(() => void readPast(key), 120);
    return () => window.clearTimeout(timer);
  }, [far, key]);
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    // Pictures, fonts and opened cards change heights without a new drawing.
    const observer = new ResizeObserver(() => { if (sticks.current) box.scrollTop = box.scrollHeight; });
    observer.observe(box);
    if (box.firstElementChild) observer.observe(box.firstElementChild);
    return () => observer.disconnect();
  }, [id]);
  const hold = (): void => {
    const box = scroller.current;
    const edge = box?.getBoundingClientRect().top ?? 0;
    const element = [...(box?.querySelectorAll(".turn") ?? [])].find((each) => each.getBoundingClientRect().bottom > edge);
    if (element) anchor.current = { element, top: element.getBoundingClientRect().top };
  };
  const earlier = async (): Promise<void> => {
    if (reading.current || far || (end - drawn.value <= 0 && session.value?.before === null)) return;
    reading.current = true;
    try {
      if (end - drawn.value <= 0 && !(await readEarlier())) return;
      hold();
      // No more than there are: what is left out at the end is counted from there.
      drawn.value = Math.min(drawn.value + STEP, isNow ? turns.value.length : end + STEP);
      left.value = Math.max(0, drawn.value - MOST_DRAWN);
    } finally {
      reading.current = false;
    }
  };
  const scrolled = (): void => {
    const box = scroller.current;
    if (!box) return;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    sticks.current = isNow && left.value === 0 && below <= NEAR_END;
    if (sticks.current) isBelow.value = false;
    if (box.scrollTop < NEAR_EDGE) void earlier();
    else if (below < NEAR_EDGE && left.value > 0) {
      hold();
      left.value = Math.max(0, left.value - STEP);
      drawn.value = left.value + MOST_DRAWN;
    }
  };
  const toEnd = (): void => {
    sticks.current = true;
    isBelow.value = false;
    drawn.value = DRAWN;
    left.value = 0;
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  if (!id) return <div class="chat" />;
  return (
    <div class={isOver.value ? "chat dropping" : "chat"} onDragOver={(event) => { if (event.dataTransfer?.types.includes("Files")) { event.preventDefault(); isOver.value = true; } }} onDragLeave={(event) => { if (event.target === event.currentTarget) isOver.value = false; }} onDrop={(event) => { isOver.value = false; const files = filesIn(event.dataTransfer); if (files.length) { event.preventDefault(); void addPictures(id, files); } }}>
      <div class="scroll" ref={scroller} onScroll={scrolled} tabIndex={-1}>
        <div class="column" aria-live="off">
          <TrustNotice />
          {mcpQuestions.value.length ? <McpQuestions /> : null}
          {isNow && all.length === 0 ? <Blank /> : null}
          {shown.map((turn, at) => <TurnView key={turn.key} turn={turn} isLast={isNow && left.value === 0 && at === shown.length - 1} isLooked={!isNow && left.value === 0 && at === shown.length - 1} />)}
          {isNow ? null : <Ahead from={key} />}
          {isNow && left.value === 0 ? <Ends /> : null}
          <div class="foot" />
        </div>
      </div>
      <div class="dock">
        {isBelow.value && isNow ? <button type="button" class="pill" onClick={toEnd}><Icon name="down" size={14} />New below</button> : null}
        {isNow ? <Asked /> : null}
        <Composer />
      </div>
    </div>
  );
}

function Asked(): JSX.Element {
  const open = slice.requests.value?.length ?? 0;
  return <>{open > 0 ? <span class="gutter-mark"><Mark name="here" label="" /></span> : null}<Requests composerEmpty={() => textOf(slice.id.value) === ""} /></>;
}

function isTurn(turn: TurnRows, key: string, known: TurnTree | null): boolean {
  return turn.key === key || known?.turnOf.get(turn.key) === key || known?.turnOf.get(turn.rows[0]?.id ?? "") === key;
}

const TurnView = memo(function TurnView({ turn, isLast, isLooked }: { turn: TurnRows; isLast: boolean; isLooked: boolean }): JSX.Element {
  const known = tree.value;
  const key = known?.turnOf.get(turn.key) ?? turn.key;
  const isLive = isLast && inFlight.value;
  return (
    <article class={isLooked ? "turn looked" : "turn"} aria-label={`Turn: ${turn.prompt?.message.typed || turn.prompt?.message.content || ""}`.slice(0, 120)}>
      {turn.prompt ? (
        <div class="said">
          <button type="button" class="gutter-mark" aria-label="Look at this turn" title="Look at this turn" onClick={() => { looking.value = known && known.line.at(-1) !== key ? key : null; }}><Mark name="you" label="" /></button>
          <div class={turn.prompt.message.is_excluded ? "you excluded" : "you"}>
            <Markdown text={turn.prompt.message.typed || turn.prompt.message.content} />
            <Pictures parts={turn.prompt.message.parts ?? []} />
            {turn.prompt.message.attached?.length ? <p class="attached">{turn.prompt.message.attached.map((name) => <Chip key={name} icon="clip">{name}</Chip>)}</p> : null}
          </div>
        </div>
      ) : null}
      {turn.rows.length > 0 || isLive ? (
        <div class="said">
          <span class="gutter-mark"><Mark name={isLive ? liveMark() : isLooked ? "looking" : turn.rows.at(-1)?.message.is_partial ? "partial" : "weft"} label="" /></span>
          <div class="weft">
            <Meta turn={turn} turnKey={key} isLast={isLast} isLive={isLive} />
            <Answers rows={turn.rows} isLast={isLast} />
            {isLive ? <InFlight /> : null}
          </div>
        </div>
      ) : null}
    </article>
  );
});

/** How the answer in flight stands; what waits for the user has a mark of its own, beside its card. */
function liveMark(): MarkName {
  if (slice.requests.value?.length) return "weft";
  return busy.value ? "running" : "partial";
}

/** What a turn's answers say, the one in flight last: finished, it keeps its elements. */
function Answers({ rows, isLast }: { rows: readonly Row[]; isLast: boolean }): JSX.Element {
  const drafts = isLast ? (slice.drafts.value ?? NO_DRAFTS) : NO_DRAFTS;
  // One list: a draft's element is found again, by its key, as that of its message.
  return <>{[...rows.map((row) => <Answer key={row.id} row={row} />), ...drafts.map((draft) => <Answer key={draft.node} draft={draft} />)]}</>;
}

/** Pictures of a message; those that the server holds are fetched with the page's token. */
function Pictures({ parts }: { parts: readonly Part[] }): JSX.Element | null {
  const shown = parts.filter((part) => part.type === "image" && part.media_type.startsWith("image/"));
  if (shown.length === 0) return null;
  return <p class="pictures">{shown.map((part, at) => part.type === "image" ? <Picture key={part.blob ?? at} part={part} /> : null)}</p>;
}

function Picture({ part }: { part: Part & { type: "image" } }): JSX.Element | null {
  const address = useSignal(part.data ? `data:${part.media_type};base64,${part.data}` : "");
  useEffect(() => {
    if (part.data || !part.blob) return;
    let made = "";
    void blobAddress(project.value.key, part.blob, part.media_type).then((found) => { made = found; address.value = found; });
    return () => { if (made) URL.revokeObjectURL(made); };
  }, [part.blob]);
  return address.value ? <img src={address.value} alt={part.name || "Picture"} /> : null;
}

function Meta({ turn, turnKey, isLast, isLive }: { turn: TurnRows; turnKey: string; isLast: boolean; isLive: boolean }): JSX.Element {
  const answers = turn.rows.filter((row) => row.role === "assistant");
  const model = answers.at(-1)?.message.model ?? "";
  const costs = answers.map((row) => row.message.usage?.cost_usd ?? null);
  const cost = costs.some((each) => each === null) ? null : costs.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const began = turn.prompt?.message.at ?? 0;
  const ended = Math.max(turn.rows.at(-1)?.message.at ?? 0, ...answers.flatMap((row) => (row.message.tool_calls ?? []).map((call) => slice.results.value?.get(call.id)?.at ?? 0)));
  const time = isLive && slice.turnBegan.value ? now.value - slice.turnBegan.value : began ? ended - began : 0;
  const words = [shortModel(model), time > 0 ? seconds(time * 1000) : "", cost === null || answers.length === 0 ? "" : money(cost)].filter(Boolean);
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

const Answer = memo(function Answer({ row, draft }: { row?: Row; draft?: Draft }): JSX.Element | null {
  const message = row?.message;
  if (message && row.role === "note") return <p class={message.is_error ? "note bad" : "note"}>{message.content}</p>;
  const text = draft?.text.text ?? message?.content ?? "";
  const isWriting = draft !== undefined && draft.text.length > 0;
  const shown = (
    <>
      {draft ? <DraftThought draft={draft} isLive={!isWriting} /> : message?.thinking ? <Thought key="done" text={message.thinking} ms={message.duration_ms ?? 0} /> : null}
      {isWriting || text.trim() ? <Markdown key="text" text={text} isLive={isWriting} /> : null}
      {draft?.calls.length ? <div key="writing" class="tools">{draft.calls.map((call) => <WritingCall key={call.index} call={call} />)}</div> : null}
      {message?.tool_calls?.length ? <Calls key="calls" calls={message.tool_calls} /> : null}
      {message?.is_partial ? <p class="note">Interrupted here; what came is kept.</p> : null}
    </>
  );
  return message?.is_excluded ? <div class="excluded">{shown}</div> : shown;
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

function DraftThought({ draft, isLive }: { draft: Draft; isLive: boolean }): JSX.Element | null {
  if (draft.thinking.length === 0) return null;
  return <Thought key={isLive ? "live" : "done"} text={draft.thinking.text} ms={(draft.thoughtUntil - draft.began) * 1000} live={isLive} />;
}

/** What stands below an answer in flight: what hinders it, or that nothing of it has come yet. */
function InFlight(): JSX.Element {
  const isSilent = busy.value && !slice.hasDrafts.value && slice.running.value?.size === 0 && slice.requests.value?.length === 0 && !slice.retry.value;
  return <><Trouble />{isSilent ? <p class="note working">{slice.status.value === "waiting" ? "Waiting" : "Thinking"}…</p> : null}</>;
}

/** Notices in the line: a retry that is counted down. */
function Trouble(): JSX.Element | null {
  const retry = slice.retry.value;
  if (!retry) return null;
  const left = Math.max(0, Math.ceil(retry.until - now.value));
  const other = models.value.find((each) => `${each.provider}:${each.name}` !== slice.model.value);
  return (
    <div class="notice warn" role="status">
      <Icon name="warn" /><span class="words">{retry.reason}. Trying again{left > 0 ? ` in ${left} s` : ""}. <span class="dim">attempt {retry.attempt}{retry.tries ? ` of ${retry.tries}` : ""}</span></span>
      {other ? <Button kind="quiet" small onClick={() => void attempt(send("PUT", of(slice.id.value, "model"), { model: `${other.provider}:${other.name}` }))}>Other model…</Button> : null}
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
      <Receipts />
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

/** Turns of the line behind the one that is looked at, folded to their prompts. */
function Ahead({ from }: { from: string }): JSX.Element | null {
  const known = tree.value;
  const rest = known?.line.slice(known.line.indexOf(from) + 1) ?? [];
  const head = rest.at(-1);
  if (!known || head === undefined) return null;
  const shown = rest.length > MOST_AHEAD ? [...rest.slice(0, MOST_AHEAD - 1), head] : rest;
  return (
    <div class="ahead">
      <p class="rule"><span>{count(rest.length, "turn")} ahead, kept</span></p>
      {shown.map((each) => (
        <button key={each} type="button" class="folded-turn" onClick={() => { looking.value = each === head ? null : each; }}>
          <Mark name={each === head ? "here" : "you"} label="" /><span class="words">{known.turns.get(each)?.prompt || "…"}</span>
          {each === head ? <Chip tone="accent">{known.headBranch}</Chip> : null}
        </button>
      ))}
    </div>
  );
}

/** What the folder brings along and does not act before the person says so. */
function TrustNotice(): JSX.Element | null {
  const question = trust.value;
  const open = useSignal(false);
  if (!question) return null;
  const what = [question.files.length ? count(question.files.length, "file") : "", question.settings.length ? count(question.settings.length, "setting") : "", question.commands.length ? count(question.commands.length, "command") : ""].filter(Boolean).join(", ");
  return (
    <section class="trust notice warn" aria-label="Trust">
      <Icon name="shield" />
      <div class="words">{question.changed?.length ? "What you trusted in this folder has changed" : "This folder brings settings that could act"}: {what}. They are ignored until you trust it.
        {open.value ? <ul>{[...question.files.map((each) => `file ${each}`), ...question.settings.map((each, at) => `${each} = ${question.values?.[at] ?? ""}`), ...question.commands.map((each) => `runs: ${each}`)].map((each) => <li key={each}><code>{each}</code></li>)}</ul> : null}
      </div>
      <Button kind="quiet" small onClick={() => { open.value = !open.value; }}>{open.value ? "Less" : "Look"}</Button>
      <Button small off={open.value ? undefined : "Look at it first"} onClick={() => void setTrust(true)}>Trust this folder</Button>
      <Button kind="quiet" small icon="cross" label="Not now" onClick={() => { trust.value = null; }} />
    </section>
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
