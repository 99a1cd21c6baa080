/** Where you write: what is typed is kept for each session, whatever happens. */

import { computed, effect, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get, of, send } from "../api.ts";
import { firstLine, shortModel } from "../state/words.ts";
import { attempt, branchAt, clientName, drafts, drive, driver, isViewer, go, helpOpen, looking, project, rewind, say, session, slice, startSession, tree, undoRewind } from "../store.ts";
import type { ModelInfo, Part, QueueEntry, RewindPlan } from "../types.ts";
import { addPictures, filesIn, picturesOf, removePicture, setPictures } from "../pictures.ts";
import { Button, Check, Menu, type MenuItem } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";
import { lazy } from "./lazy.tsx";

export const models = signal<ModelInfo[]>([]);
let modelsOf = "";

const MODES: [string, string, string][] = [
  ["default", "Ask first", "reads run; everything else asks"],
  ["accept_edits", "Edits run", "edits of the project run; commands ask"],
  ["auto", "Sandbox runs", "edits and commands in the sandbox run"],
  ["plan", "Only plan", "nothing is changed"],
  ["bypass", "Ask nothing", "deny rules still hold"],
];
const LEVELS = ["default", "off", "minimal", "low", "medium", "high", "xhigh", "max"];

export const busy = computed(() => !["idle", "interrupted", "error"].includes(slice.status.value));

export function textOf(session: string): string {
  return drafts.value[session] ?? "";
}

export function setText(session: string, text: string): void {
  const { [session]: _, ...rest } = drafts.value;
  drafts.value = text ? { ...rest, [session]: text } : rest;
}

/** Text put into the message from elsewhere: a quoted hunk, a file's name. */
export function insert(text: string): void {
  const id = session.value?.id;
  if (!id) return;
  const before = textOf(id);
  setText(id, before && !/\s$/.test(before) ? `${before} ${text}` : before + text);
  requestAnimationFrame(() => document.querySelector<HTMLTextAreaElement>("#message")?.focus());
}

export function Composer(): JSX.Element | null {
  const id = slice.id.value;
  if (!id) return null;
  if (isViewer.value) return <ViewerBar />;
  return looking.value === null ? <NowComposer id={id} /> : <PastComposer key={looking.value} />;
}

/** In the place of the message, where another client drives. */
function ViewerBar(): JSX.Element {
  const name = clientName(driver.value);
  return (
    <div class="composer-wrap viewer" role="status">
      <Icon name="eye" /><span class="words">{name === "page" ? "Another window drives this session." : `${name[0]?.toUpperCase()}${name.slice(1)} drives this session.`} <span class="dim">You see all of it, and can answer what it asks.</span></span>
      <Button onClick={() => void drive()}>Take over</Button>
    </div>
  );
}

function NowComposer({ id }: { id: string }): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const offers = useSignal<{ kind: "/" | "@"; from: number; items: string[]; at: number } | null>(null);
  const text = textOf(id);
  useGrowth(field, text);
  useEffect(() => { if (window.innerWidth >= 768 && !slice.requests.value?.length) field.current?.focus({ preventScroll: true }); }, [id]);
  const isBusy = busy.value;
  const asks = (slice.requests.value?.length ?? 0) > 0;
  const submit = async (later: boolean): Promise<void> => {
    const raw = textOf(id);
    const content = raw.trim();
    const shots = picturesOf(id);
    if (!content && shots.length === 0) { field.current?.focus(); return; }
    if (/^\/[a-z-]+(\s|$)/.test(raw)) {
      if (command(id, content)) setText(id, "");
      return;
    }
    setText(id, "");
    setPictures(id, []);
    const way = later && isBusy ? "follow-up" : isBusy ? "steer" : "prompt";
    const parts = [...(content ? [{ type: "text", text: content }] : []), ...shots.map((each) => ({ type: "image", media_type: each.type, data: each.data, name: each.name }))];
    const done = await attempt(send("POST", of(id, way), { content: shots.length ? parts : content }));
    // What was not taken goes back to where it was written.
    if (done === null) {
      setText(id, [content, textOf(id)].filter(Boolean).join("\n"));
      setPictures(id, [...shots, ...picturesOf(id)]);
    }
  };
  const key = (event: KeyboardEvent): void => {
    const open = offers.value;
    if (open && ["ArrowDown", "ArrowUp", "Tab", "Enter", "Escape"].includes(event.key)) {
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Escape") offers.value = null;
      else if (event.key === "ArrowDown") offers.value = { ...open, at: (open.at + 1) % open.items.length };
      else if (event.key === "ArrowUp") offers.value = { ...open, at: (open.at - 1 + open.items.length) % open.items.length };
      else choose(open.items[open.at] ?? "");
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && window.innerWidth >= 768) {
      event.preventDefault();
      void submit(event.altKey);
    } else if (event.key === "ArrowUp" && event.altKey) {
      event.preventDefault();
      void recall(id);
    } else if (event.key === "Tab" && event.shiftKey) {
      event.preventDefault();
      const at = MODES.findIndex(([name]) => name === slice.permissionMode.value);
      setMode(id, MODES[(at + 1) % MODES.length]?.[0] ?? "default");
    }
  };
  const choose = (item: string): void => {
    const open = offers.value;
    if (!open) return;
    const value = textOf(id);
    const end = field.current?.selectionStart ?? value.length;
    setText(id, `${value.slice(0, open.from)}${open.kind === "@" ? `@${item}` : item} ${value.slice(end)}`);
    offers.value = null;
    field.current?.focus();
  };
  const typed = (value: string, caret: number): void => {
    setText(id, value);
    const found = /(^|\s)([@/])([^\s@]*)$/.exec(value.slice(0, caret));
    if (!found || (found[2] === "/" && found.index + (found[1]?.length ?? 0) > 0)) { offers.value = null; return; }
    void offer(found[2] as "@" | "/", found[3] ?? "").then((items) => {
      offers.value = items.length ? { kind: found[2] as "@" | "/", from: found.index + (found[1]?.length ?? 0), items, at: 0 } : null;
    });
  };
  const hint = asks ? "Answer above with 1–4, or write to steer this turn" : isBusy ? "Steer this turn, or Alt+Enter to queue for after it" : slice.status.value === "interrupted" ? "Write to go on differently" : "Ask for a change, or ask about the code";
  return (
    <div class="composer-wrap">
      {session.value?.hasGoal ? <GoalRow /> : null}
      <Queue id={id} />
      <div class="composer" onClick={(event) => { if (event.target === event.currentTarget) field.current?.focus(); }}>
        <Shots id={id} />
        <textarea id="message" onPaste={(event) => { const files = filesIn(event.clipboardData); if (files.length) { event.preventDefault(); void addPictures(id, files); } }} ref={field} rows={1} value={text} placeholder={hint} aria-label="Message" aria-autocomplete="list" aria-controls={offers.value ? "offers" : undefined} onInput={(event) => typed(event.currentTarget.value, event.currentTarget.selectionStart)} onKeyDown={key} onBlur={() => window.setTimeout(() => { offers.value = null; }, 150)} />
        {offers.value ? (
          <div id="offers" class="offers" role="listbox" aria-label={offers.value.kind === "@" ? "Files" : "Commands"}>
            {offers.value.items.map((item, at) => (
              <div key={item} role="option" aria-selected={at === offers.value?.at} class="offer" onPointerDown={(event) => { event.preventDefault(); choose(item); }}>{item}</div>
            ))}
          </div>
        ) : null}
        <div class="controls">
          <input ref={chooser} type="file" class="sr" tabIndex={-1} multiple accept="image/png,image/jpeg,image/gif,image/webp,application/pdf" aria-label="Pictures to attach" onChange={(event) => { void addPictures(id, event.currentTarget.files ?? []); event.currentTarget.value = ""; }} />
          <Button kind="quiet" icon="clip" label="Attach pictures" onClick={() => chooser.current?.click()} />
          <button type="button" class="button quiet bare desktop" aria-label="Name a file" title="Name a file" onClick={() => insert("@")}>@</button>
          <button type="button" class="button quiet bare desktop" aria-label="Commands" title="Commands" onClick={() => { setText(id, "/"); typed("/", 1); field.current?.focus(); }}>/</button>
          <span class="bar" />
          <ModelMenu />
          <LevelMenu />
          <Menu up class="desktop" label="Permission mode" items={MODES.map(([value, label, note]) => ({ value, label, note, chosen: value === slice.permissionMode.value }))} onChoose={(value) => setMode(id, value)}>
            <Icon name="shield" size={14} />{MODES.find(([name]) => name === slice.permissionMode.value)?.[1] ?? slice.permissionMode.value}<Icon name="down" size={12} />
          </Menu>
          <span class="push" />
          {isBusy ? <StopButtons id={id} /> : null}
          <Button kind={asks ? "plain" : "primary"} class="send" onClick={() => void submit(false)}>{isBusy ? "Steer" : "Send"} <Icon name="send" /></Button>
        </div>
      </div>
    </div>
  );
}

/** Pictures that go with the message, each with a way out. */
function Shots({ id }: { id: string }): JSX.Element | null {
  const shots = picturesOf(id);
  if (shots.length === 0) return null;
  return (
    <ul class="shots" aria-label="Pictures">{shots.map((each) => (
      <li key={each.address}>{each.type.startsWith("image/") ? <img src={each.address} alt={each.name} /> : <span class="chip">{each.name}</span>}<Button kind="quiet" small icon="cross" label={`Remove ${each.name}`} onClick={() => removePicture(id, each)} /></li>
    ))}</ul>
  );
}

function useGrowth(field: { current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [text]);
}

/** The session whose turn was asked to end after its present step; it ends with that turn. */
const stopsAfterStep = signal("");
effect(() => { if (!busy.value) stopsAfterStep.value = ""; });

export const endsAfterStep = computed(() => stopsAfterStep.value !== "" && stopsAfterStep.value === session.value?.id);

/** Stop now, or let the step that runs come to its end. */
function StopButtons({ id }: { id: string }): JSX.Element {
  const ends = endsAfterStep.value;
  return (
    <span class="stops">
      <Button icon="stop" keys="Esc" class="stop" onClick={() => void stop(id)}>Stop</Button>
      <Menu up class="stop-more" label={ends ? "Ends after this step" : "When to end"} items={[{ value: "step", label: "Stop after this step", note: ends ? "asked for; choose again to go on" : "its tool calls still run", chosen: ends }]} onChoose={() => void stopAfterStep(id)}>{ends ? <span class="ends desktop">after step</span> : null}<Icon name="down" size={12} /></Menu>
      <span class="sr" role="status">{ends ? "The turn ends after this step" : ""}</span>
    </span>
  );
}

/** Let the turn end after its present step; asked for again, it goes on. */
export async function stopAfterStep(id: string): Promise<void> {
  const wanted = !endsAfterStep.value;
  const done = await attempt(send<boolean>("POST", of(id, "stop-after-step"), { is_wanted: wanted }));
  if (done !== null) stopsAfterStep.value = wanted && done ? id : "";
}

export async function stop(id: string): Promise<void> {
  await attempt(send("POST", of(id, "abort"), {}));
}

function setMode(id: string, mode: string): void {
  void attempt(send("PUT", of(id, "permission-mode"), { mode }));
}

async function recall(id: string): Promise<void> {
  const queued = await attempt(send<{ steering: QueueEntry[]; follow_up: QueueEntry[] }>("POST", of(id, "queue", "recall"), {}));
  if (queued === null) return;
  const texts = [...queued.steering, ...queued.follow_up].map((entry) => partsText(entry.parts));
  setText(id, [...texts, textOf(id)].filter(Boolean).join("\n"));
}

export function partsText(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === "text" ? part.typed || part.text : part.type === "file" || part.type === "image" ? `@${part.name ?? part.type}` : "")).join("");
}

/** Few sessions have a goal. */
const GoalRow = lazy(() => import("./goal.tsx"), "GoalRow");

/** What a line that begins with a slash does here. */
const COMMANDS: Record<string, (id: string, rest: string) => void> = {
  "/architect": (id) => void attempt(send("PUT", of(id, "mode"), { mode: session.value?.mode === "architect" ? "normal" : "architect" })),
  "/changes": () => go("changes"),
  "/checkpoint": (id, label) => void attempt(send("POST", of(id, "checkpoints"), label ? { label } : {})).then((done) => { if (done !== null) say("ok", "This place has a name now."); }),
  "/compact": (id, focus) => void attempt(send("POST", of(id, "compact"), { queue: true, ...(focus ? { focus } : {}) })).then((done) => { if (done !== null) say("ok", "The older part is a summary for the model from now on."); }),
  "/config": () => go("settings", ""),
  "/decisions": () => go("decisions"),
  "/fan": () => go("fan"),
  "/files": () => go("files"),
  "/goal": (id, words) => void import("./goal.tsx").then((late) => late.goalCommand(id, words)),
  "/help": () => { helpOpen.value = true; },
  "/loom": () => go("loom"),
  "/new": () => void startSession(),
  "/plan": () => go("plan"),
  "/rename": (id, title) => { if (title) void attempt(send("PATCH", of(id), { title })); },
  "/resume": () => go("sessions", ""),
  "/rewind": () => go("tree"),
  "/tree": () => go("tree"),
  "/undo": () => void undoRewind(),
};

/** Carries out a command; false where there is none of this name. */
function command(id: string, line: string): boolean {
  const [name = "", ...rest] = line.split(" ");
  const run = COMMANDS[name];
  if (run) run(id, rest.join(" ").trim());
  else say("warn", `There is no ${name} here; a space before the slash sends it as a message.`);
  return run !== undefined;
}

async function offer(kind: "@" | "/", words: string): Promise<string[]> {
  const low = words.toLowerCase();
  if (kind === "/") {
    return Object.keys(COMMANDS).filter((each) => each.startsWith(`/${low}`)).slice(0, 10);
  }
  const files = await projectFiles();
  return files.filter((each) => each.toLowerCase().includes(low)).sort((a, b) => rank(a, low) - rank(b, low)).slice(0, 8);
}

function rank(path: string, words: string): number {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  return name.startsWith(words) ? 0 : name.includes(words) ? 1 : 2;
}

/** Why the project's files cannot be listed; empty where they can. */
export const filesTrouble = signal("");
let filesOf = "";
let files: string[] = [];

/** The project's files, read once for each project. */
export async function projectFiles(): Promise<string[]> {
  const key = project.value.key;
  if (filesOf === key) return files;
  const found = await get<string[] | { files: string[] | { path: string }[] }>(`/projects/${encodeURIComponent(key)}/files`).catch((error: Error) => { filesTrouble.value = error.message; return null; });
  if (found === null) return [];
  filesTrouble.value = "";
  const list = Array.isArray(found) ? found : (found.files ?? []);
  const paths = list.map((each) => (typeof each === "string" ? each : each.path));
  // Another project may have been chosen since: its files are not these.
  if (project.value.key === key) { files = paths; filesOf = key; }
  return paths;
}

async function loadModels(id: string): Promise<void> {
  if (modelsOf === id) return;
  modelsOf = id;
  models.value = await get<ModelInfo[]>(of(id, "models")).catch(() => []);
}

function ModelMenu(): JSX.Element {
  const id = slice.id.value;
  const model = slice.model.value;
  useEffect(() => { if (id) void loadModels(id); }, [id]);
  const all = models.value.map((each): MenuItem => {
    const name = `${each.provider}:${each.name}`;
    return { value: name, label: name, chosen: name === model, note: each.price_input === null || each.price_input === undefined ? "" : `$${each.price_input} / $${each.price_output}` };
  });
  const items = all.some((each) => each.chosen) ? all : [{ value: model, label: model, chosen: true }, ...all];
  return (
    <Menu up label="Model" items={items} onChoose={(value) => void attempt(send("PUT", of(id, "model"), { model: value }))}>
      <span class="cut">{shortModel(model) || "choose a model"}</span><Icon name="down" size={12} />
    </Menu>
  );
}

function LevelMenu(): JSX.Element | null {
  const id = slice.id.value;
  const level = slice.thinking.value || "default";
  const info = models.value.find((each) => `${each.provider}:${each.name}` === slice.model.value);
  if (info && !info.thinks) return null;
  const levels = info?.levels?.length ? ["default", ...info.levels] : LEVELS;
  return (
    <Menu up class="desktop" label="Thinking" items={[...new Set(levels)].map((value) => ({ value, label: value, chosen: value === level }))} onChoose={(value) => void attempt(send("PUT", of(id, "thinking"), { level: value }))}>
      thinking: {level}<Icon name="down" size={12} />
    </Menu>
  );
}

function Queue({ id }: { id: string }): JSX.Element | null {
  const editing = useSignal("");
  const words = useSignal("");
  const dragged = useSignal("");
  const queue = slice.queue.value ?? [];
  if (queue.length === 0) return null;
  const save = (entry: string): void => {
    editing.value = "";
    if (words.value.trim()) void attempt(send("PUT", of(id, "queue", entry), { content: words.value.trim() }));
  };
  const order = (entry: string, before: string): void => {
    const ids = queue.map((each) => each.entry_id).filter((each) => each !== entry);
    ids.splice(ids.indexOf(before), 0, entry);
    void attempt(send("POST", of(id, "queue", "order"), { ids }));
  };
  return (
    <ul class="queue" aria-label="Queued messages">
      {queue.map((entry, at) => (
        <li key={entry.entry_id} draggable={queue.length > 1} onDragStart={() => { dragged.value = entry.entry_id; }} onDragOver={(event) => event.preventDefault()} onDrop={() => dragged.value !== entry.entry_id && order(dragged.value, entry.entry_id)}>
          <Icon name="clock" size={14} />
          <span class="when">{entry.delivery === "steering" ? "At the next step" : "After this turn"}</span>
          {editing.value === entry.entry_id
            ? <input class="field small" aria-label="Queued message" value={words.value} ref={(element) => element?.focus()} onInput={(event) => { words.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Enter") save(entry.entry_id); if (event.key === "Escape") { event.stopPropagation(); editing.value = ""; } }} onBlur={() => { if (editing.value === entry.entry_id) save(entry.entry_id); }} />
            : <span class="words">{firstLine(partsText(entry.parts))}</span>}
          {at > 0 ? <Button kind="quiet" small icon="up" label="Earlier" onClick={() => order(entry.entry_id, queue[at - 1]?.entry_id ?? "")} /> : null}
          <Button kind="quiet" small icon="pen" label="Edit" onClick={() => { words.value = partsText(entry.parts); editing.value = entry.entry_id; }} />
          <Button kind="quiet" small icon="cross" label="Remove" onClick={() => void attempt(send("DELETE", of(id, "queue", entry.entry_id), {}))} />
        </li>
      ))}
    </ul>
  );
}

/** In the past: sending starts a new branch there. */
function PastComposer(): JSX.Element | null {
  const state = session.value;
  const known = tree.value;
  const field = useRef<HTMLTextAreaElement>(null);
  const files = useSignal(true);
  const plan = useSignal<RewindPlan | null>(null);
  const key = looking.value ?? "";
  const turn = known?.turns.get(key);
  const node = turn?.nodes.at(-1) ?? "";
  const id = state?.id ?? "";
  const text = textOf(id);
  useGrowth(field, text);
  const working = busy.value;
  useEffect(() => {
    plan.value = null;
    if (working) return;
    const timer = window.setTimeout(() => {
      void send<RewindPlan>("POST", of(id, "rewind"), { to: node, files: true, conversation: true, preview: true }).then((found) => { plan.value = found; }, () => { plan.value = null; });
    }, 250);
    return () => window.clearTimeout(timer);
  }, [node, working]);
  if (!state || !turn || !known) return null;
  const number = known.line.indexOf(key) + 1;
  const change = (plan.value?.files ?? []).filter((each) => ["restore", "delete", "recreate"].includes(each.action)).length;
  const asks = (plan.value?.files ?? []).filter((each) => each.action === "conflict").length;
  const branch = async (): Promise<void> => {
    const content = text.trim();
    if (!content) { field.current?.focus(); return; }
    const went = files.value && change > 0 ? await rewind(node, true, true) : await branchAt(node);
    if (!went) return;
    setText(id, "");
    if ((await attempt(send("POST", of(id, "prompt"), { content }))) === null) setText(id, content);
  };
  return (
    <div class="composer-wrap past">
      <div class="composer">
        <textarea id="message" ref={field} rows={1} value={text} aria-label="Message" placeholder={`Go on from turn ${number}: this starts a new branch`} onInput={(event) => setText(id, event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); void branch(); } }} />
        <div class="controls">
          <Button icon="undo" onClick={() => go("tree", id, { at: key })}>Rewind here…</Button>
          <Check on={files.value} onChange={(on) => { files.value = on; }}>Files go back too</Check>
          <span class="dim">{plan.value ? [change ? `${change} change` : "none changes", asks ? `${asks} asks` : ""].filter(Boolean).join(", ") : ""}</span>
          <span class="push" />
          <Button kind="primary" icon="branch" onClick={() => void branch()}>Branch and send</Button>
        </div>
      </div>
    </div>
  );
}
