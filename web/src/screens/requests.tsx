/** What waits for you: permissions, questions, and going on after a restart. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { DiffView } from "../diff/view.tsx";
import { answersOf, askedChange, askedFacts } from "../state/asked.ts";
import { visible, written } from "../state/text.ts";
import { seconds } from "../state/words.ts";
import { attempt, lastKey, network, now, readNetwork, rewind, say, session } from "../store.ts";
import type { ComingBack } from "../generated/api.ts";
import type { PermissionRequest, QuestionAsked, Request, SessionView } from "../types.ts";
import { Button, Key, PathName, Stat } from "../ui/controls.tsx";
import { Icon, Mark } from "../ui/icons.tsx";

/** Answers count only when the card has been seen for a moment: a key for something else is not one. */
const SEEN_MS = 400;
const QUIET_MS = 800;

export function Requests({ composerEmpty }: { composerEmpty: () => boolean }): JSX.Element | null {
  const state = session.value;
  const ids = state?.requests.map((each) => each.request_id).join(" ") ?? "";
  // The focus goes with the card that was answered; without this, keys would go nowhere.
  useEffect(() => {
    if (answeredHere && document.activeElement === document.body && window.innerWidth >= 768) document.querySelector<HTMLElement>(".request, #message")?.focus();
    answeredHere = false;
  }, [ids]);
  if (state === null) return null;
  const open = state.requests;
  const interrupted = state.status === "interrupted";
  if (open.length === 0 && !interrupted) return null;
  return (
    <div class="requests">
      {interrupted && open.length === 0 ? <GoOn /> : null}
      {open.map((each, at) => <RequestCard key={each.request_id} request={each} place={open.length > 1 ? `${at + 1} of ${open.length}` : ""} isLast={at === open.length - 1} composerEmpty={composerEmpty} />)}
    </div>
  );
}

function RequestCard({ request, place, isLast, composerEmpty }: { request: Request; place: string; isLast: boolean; composerEmpty: () => boolean }): JSX.Element {
  const card = useRef<HTMLDivElement>(null);
  const isReady = useSignal(false);
  useEffect(() => {
    isReady.value = false;
    const timer = window.setTimeout(() => { isReady.value = true; }, SEEN_MS);
    const quiet = performance.now() - lastKey.at > QUIET_MS;
    if (isLast && composerEmpty() && quiet && window.innerWidth >= 768) card.current?.focus();
    return () => window.clearTimeout(timer);
  }, [request.request_id]);
  const ready = (): boolean => isReady.value;
  const props = { request, place, ready, card };
  return request.kind === "permission_request" ? <Permission {...props} request={request} active={isLast} /> : <Question {...props} request={request} active={isLast} />;
}

function Frame({ title, side, card, children, onKey, ready }: { title: string; side: ComponentChildren; card: { current: HTMLDivElement | null }; children: ComponentChildren; onKey?: (key: string) => boolean; ready?: () => boolean }): JSX.Element {
  const down = (event: KeyboardEvent): void => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (onKey?.(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  return (
    <div class="request" role="group" aria-label={title} data-ready={ready?.() ?? true} tabIndex={-1} ref={card} onKeyDown={down}>
      <div class="title"><Mark name="needs" size={18} /><strong>{title}</strong><span class="facts-side">{side}</span></div>
      {children}
    </div>
  );
}

let answeredHere = false;

/** Answers a request. Where its turn was cut off with its server, the answer lets it go on. */
async function respond(id: string, request: string, answer: Record<string, string>): Promise<void> {
  answeredHere = true;
  const done = await attempt(send("POST", of(id, "requests", request), answer).then(() => get<SessionView>(of(id))));
  if (done?.snapshot.status === "interrupted") await attempt(send("POST", of(id, "continue"), {}));
}

const TITLES: Record<string, string> = { shell: "Run this command?", edit: "Change this file?", multi_edit: "Change this file?", write: "Write this file?", apply_patch: "Change these files?", read: "Read this file?" };

function Permission({ request, place, ready, card, active }: { request: PermissionRequest; place: string; ready: () => boolean; card: { current: HTMLDivElement | null }; active: boolean }): JSX.Element {
  const saysNo = useSignal(false);
  const reason = useSignal("");
  const busy = useSignal("");
  useEffect(readNetwork, []);
  const change = askedChange(request);
  const { files } = change;
  const text = files.length > 0 ? change.text : change.text || JSON.stringify(request.args ?? {}, null, 1);
  const pieces = visible(text);
  const path = written(request.tool_path ?? "");
  const isHiding = change.isHiding || pieces.some((piece) => piece.hidden) || (files.length > 0 && path.isHiding);
  const answer = async (action: string): Promise<void> => {
    if (!ready() || busy.value) return;
    busy.value = action;
    const id = session.value?.id ?? "";
    await respond(id, request.request_id, { action, ...(reason.value ? { reason: reason.value } : {}) });
    busy.value = "";
  };
  const key = (pressed: string): boolean => {
    const action = answersOf(request, isHiding)[["1", "2", "3", "4"].indexOf(pressed)];
    if (!action) return false;
    if (action === "deny") saysNo.value = true;
    else void answer(action);
    return true;
  };
  useEffect(() => {
    if (!active) return;
    const down = (event: KeyboardEvent): void => {
      if (event.altKey && !event.ctrlKey && !event.metaKey && key(event.key)) event.preventDefault();
    };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  }, [active, request.request_id, isHiding]);
  const title = TITLES[request.tool_name] ?? `Allow ${written(request.tool_name.replaceAll("_", " ")).text}?`;
  const waited = request.at ? `asked ${now.value - request.at < 2 ? "now" : `${seconds(Math.max(0, now.value - request.at) * 1000)} ago`} · nothing runs until you answer` : "";
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  const side = isHiding ? "something in it does not show" : files.length > 0 && !text ? <>{path.text} <Stat added={added} removed={removed} /></> : place || waited;
  return (
    <Frame title={title} side={side} card={card} onKey={key} ready={ready}>
      {text ? <pre class="command" tabIndex={0}>{pieces.map((piece, at) => piece.hidden ? <span key={at} class="code-point">{piece.text}</span> : piece.text)}</pre> : null}
      {files.length > 0 ? <div class="boxed">{files.map((file, at) => <div key={at}>{files.length > 1 || (text && !request.tool_name.startsWith("mcp__")) ? <div class="hunk-head"><PathName path={file.path} /><span class="push" /><Stat added={file.added} removed={file.removed} /></div> : null}<DiffView file={file} split={false} /></div>)}</div> : null}
      {isHiding ? <p class="fact warn"><Icon name="warn" />A character that turns the text around, or does not show, is in it; it is shown as a code</p> : null}
      <div class="facts">
        {askedFacts(request, network.value).map((each) => <span key={each.text} class={each.warns ? "fact warn" : "fact"}><Icon name={each.icon} size={14} />{written(each.text).text}{each.code ? <> <code>{written(each.code).text}</code></> : null}</span>)}
      </div>
      {saysNo.value ? (
        <form class="say" onSubmit={(event) => { event.preventDefault(); void answer("deny"); }}>
          <input class="field" aria-label="Why not" placeholder="Why not? Weft reads it (Enter to send, empty is fine)" value={reason.value} ref={(element) => { if (element && !reason.value) element.focus(); }} onInput={(event) => { reason.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); saysNo.value = false; card.current?.focus(); } }} />
          <Button kind="primary" busy={busy.value === "deny"} onClick={() => void answer("deny")}>Say no</Button>
        </form>
      ) : (
        <div class="answers">
          <Button kind={isHiding ? "plain" : "primary"} keys="1" keyFirst busy={busy.value === "allow_once"} onClick={() => void answer("allow_once")}>Once</Button>
          {isHiding ? null : <Button keys="2" keyFirst busy={busy.value === "allow_turn"} onClick={() => void answer("allow_turn")}>This turn</Button>}
          {isHiding || !request.always_pattern ? null : <Button keys="3" keyFirst class="always" busy={busy.value === "allow_always"} onClick={() => void answer("allow_always")}>Always <code title={request.always_pattern}>{written(request.always_pattern.replace(/^\w+\((.*)\)$/s, "$1")).text}</code></Button>}
          <span class="push" />
          <Button kind={isHiding ? "primary" : "quiet"} keys="4" keyFirst onClick={() => { saysNo.value = true; }}>No, and say why…</Button>
        </div>
      )}
    </Frame>
  );
}

function Question({ request, place, ready, card, active }: { request: QuestionAsked; place: string; ready: () => boolean; card: { current: HTMLDivElement | null }; active: boolean }): JSX.Element {
  const words = useSignal("");
  const options = request.options ?? [];
  const answer = (text: string): void => {
    if (ready() && text.trim()) void respond(session.value?.id ?? "", request.request_id, { answer: text });
  };
  const key = (pressed: string): boolean => {
    const option = options[Number(pressed) - 1];
    if (option === undefined) return false;
    answer(option);
    return true;
  };
  useEffect(() => {
    if (!active) return;
    const down = (event: KeyboardEvent): void => { if (event.altKey && key(event.key)) event.preventDefault(); };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  }, [active, request.request_id]);
  return (
    <Frame title={request.question} side={place || "Weft asks"} card={card} onKey={key} ready={ready}>
      {options.map((option, at) => {
        const [head = "", ...rest] = option.split("\n");
        return (
          <button key={option} type="button" class="option" onClick={() => answer(option)}>
            <Key>{at + 1}</Key><span><span class="label">{head}</span>{rest.length ? <span class="note">{rest.join(" ")}</span> : null}</span>
          </button>
        );
      })}
      <form class="say" onSubmit={(event) => { event.preventDefault(); answer(words.value); }}>
        <input class="field" aria-label="Your own answer" placeholder="Or say it in your own words" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} />
        <Button kind="primary" off={words.value.trim() ? undefined : "Write an answer first"} onClick={() => answer(words.value)}>Answer</Button>
      </form>
    </Frame>
  );
}

function GoOn(): JSX.Element {
  const card = useRef<HTMLDivElement>(null);
  const state = session.value;
  const unknown = [...(state?.results.entries() ?? [])].filter(([, result]) => result.status === "interrupted").map(([uid]) => uid);
  const calls = state?.rows.flatMap((row) => row.message.tool_calls ?? []).filter((call) => unknown.includes(call.id)).slice(-1) ?? [];
  const prompt = state?.rows.findLast((row) => row.role === "user");
  const shown = useSignal<ComingBack | null>(null);
  const offer = shown.value;
  useEffect(() => {
    void attempt(get<ComingBack>(of(state?.id ?? "", "coming-back")).then((found) => { shown.value = found; }));
  }, [state?.id]);
  return (
    <Frame title="Resume this session?" side="found after a restart" card={card}>
      <p class="text">The process ended during this turn. The text so far is kept.{calls.length ? " One command was running and its effect is not known:" : ""}</p>
      {calls.map((call) => <pre key={call.id} class="command">{String(call.args.command ?? call.args.path ?? call.name)}</pre>)}
      {offer?.parked ? <p class="text">It is {offer.parked}.</p> : null}
      {offer?.tokens ? <p class="text">The next model call sends about {offer.tokens.toLocaleString("en")} tokens: {offer.max_cost_usd == null ? "its price is not known" : `at most $${offer.max_cost_usd.toFixed(offer.max_cost_usd < 0.01 ? 4 : 2)}`}.</p> : null}
      <div class="answers">
        <Button kind="primary" onClick={() => void attempt(send("POST", of(state?.id ?? "", "continue"), {}))}>Go on from here</Button>
        <Button onClick={() => say("ok", "Nothing runs until you go on or write something.")}>Look first</Button>
        <span class="push" />
        {prompt ? <Button kind="quiet" icon="undo" onClick={() => void rewind(prompt.id, true, true)}>Before this turn</Button> : null}
      </div>
    </Frame>
  );
}
