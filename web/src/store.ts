/** What the whole page shares: the route, the open session, the list, notices, preferences. */

import { batch, computed, effect, signal } from "@preact/signals";
import { ApiError, asClient, forgetToken, get, of, send, token } from "./api.ts";
import { Link } from "./link.ts";
import { browserFrames, DrawPace } from "./pace.ts";
import { isAnsweredBy, type HunkClick, type SandboxNetwork } from "./state/asked.ts";
import { readAgain, withOutput } from "./state/background.ts";
import { singleFlight } from "./state/single-flight.ts";
import { begin, fold, stood, withEarlier, withPage, type Row, type SessionState } from "./state/fold.ts";
import { grownTree, turnTree, type TurnTree } from "./state/turns.ts";
import type { BackgroundWork, ChildInfo, HunkOutcome, McpOverview, McpQuestion, ModelAccess, NetChange, Node, Page, ProjectInfo, RewindPlan, SessionRow, SessionView, Todo, TouchedFile, TreeView, TrustAnswer, TrustQuestion, Event as WireEvent } from "./types.ts";

// --- route

export type Screen =
  | "chat" | "tree" | "changes" | "files" | "plan" | "decisions" | "loom" | "fan" | "compare" | "sessions" | "settings" | "start";

export interface Route {
  screen: Screen;
  session: string;
  query: Record<string, string>;
}

/** A part of an address; one that is no text in its codes stands as it is. */
function plainPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(plainPart);
  const found = Object.fromEntries(new URLSearchParams(query));
  if (parts[0] === "s" && parts[1]) return { session: parts[1], screen: (parts[2] as Screen) || "chat", query: found };
  return { session: "", screen: (parts[0] as Screen) || "sessions", query: found };
}

export const route = signal<Route>(readRoute(location.hash));

export function go(screen: Screen, session = route.value.session, query: Record<string, string> = {}): void {
  const text = new URLSearchParams(query).toString();
  const path = session && screen !== "sessions" && screen !== "settings" && screen !== "start" ? `s/${encodeURIComponent(session)}/${screen}` : screen;
  location.hash = `#/${path}${text ? `?${text}` : ""}`;
}

// --- preferences, kept in this browser

export function kept<T>(name: string, fallback: T): { value: T } & ReturnType<typeof signal<T>> {
  const key = `weft.${name}`;
  let first = fallback;
  try {
    const text = localStorage.getItem(key);
    if (text !== null) first = JSON.parse(text) as T;
  } catch {
    first = fallback;
  }
  const found = signal<T>(first);
  effect(() => localStorage.setItem(key, JSON.stringify(found.value)));
  return found as { value: T } & ReturnType<typeof signal<T>>;
}

export const look = kept<"system" | "light" | "dark">("look", "system");
export const sideWidth = kept<Record<string, boolean>>("side", {});
export const panelOpen = kept<boolean>("panel", true);
export const panelWidth = kept<number>("panelWidth", 392);
export const splitDiff = kept<boolean>("split", true);
export const drafts = kept<Record<string, string>>("drafts", {});

// --- time, for ages and countdowns

export const now = signal(Date.now() / 1000);
window.setInterval(() => {
  now.value = Date.now() / 1000;
}, 1000);
export const minute = computed(() => Math.floor(now.value / 15) * 15);

// --- notices

export interface Notice {
  id: number;
  tone: "ok" | "warn" | "bad";
  text: string;
  undo?: () => void;
}

export const notice = signal<Notice | null>(null);
let notices = 0;

export function say(tone: Notice["tone"], text: string, undo?: () => void): void {
  notices += 1;
  notice.value = { id: notices, tone, text, undo };
}

/** What happened, for screen readers: one polite line. */
export const spoken = signal("");

export async function attempt<T>(what: Promise<T>): Promise<T | null> {
  try {
    return await what;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) paired.value = false;
    else say("bad", error instanceof Error ? error.message : String(error));
    return null;
  }
}

// --- the server

export const paired = signal(token() !== "");
export const link = new Link(() => {
  forgetToken();
  paired.value = false;
});

// --- sessions

export const rows = signal<SessionRow[]>([]);
export const listReady = signal(false);
/** Status of sessions that are open somewhere, by id. */
export const live = signal<ReadonlyMap<string, string>>(new Map());

export async function loadSessions(): Promise<void> {
  const found = await attempt(get<{ rows: SessionRow[]; next?: string | null; working?: string[] }>("/sessions", { limit: 100 }));
  const active = await get<{ id: string; status: string }[] | { sessions: { id: string; status: string }[] }>("/sessions/active").catch(() => []);
  if (found === null) return;
  const open = Array.isArray(active) ? active : (active.sessions ?? []);
  batch(() => {
    rows.value = found.rows;
    live.value = new Map(open.map((each) => [each.id, each.status]));
    listReady.value = true;
  });
}

// --- the open session

export const session = signal<SessionState | null>(null);
export const opening = signal<{ id: string; error: string } | null>(null);
export const tree = signal<TurnTree | null>(null);
export const treeView = signal<TreeView | null>(null);
export const touched = signal<TouchedFile[]>([]);
export const children = signal<ChildInfo[]>([]);
export const background = signal<BackgroundWork[]>([]);
/** The turn that is looked at; null: now. */
export const looking = signal<string | null>(null);

/** The open session's project: its name in paths, and its folder. */
export const project = signal<{ key: string; path: string }>({ key: "main", path: "" });

/** What to call the project on screens that show no session. */
export const projectName = computed(() => (project.value.path || rows.value[0]?.project_path || "").split("/").filter(Boolean).at(-1) ?? "");

/** What could answer here; null until it is known. */
export const access = signal<ModelAccess | null>(null);

export async function readAccess(): Promise<void> {
  void readFolder();
  access.value = await get<ModelAccess>(`/projects/${encodeURIComponent(project.value.key)}/model-access`).catch(() => null);
}

/** The folder that the server was started in, where no session has said another. */
async function readFolder(): Promise<void> {
  if (project.value.path) return;
  const main = (await get<ProjectInfo[]>("/projects").catch(() => [])).find((each) => each.is_main);
  if (main && !project.value.path) project.value = { ...project.value, path: main.path };
}

/** What commands in the sandbox have of the network; null until it is known. */
export const network = signal<SandboxNetwork>(null);
let networkOf = "";

export function readNetwork(): void {
  const key = project.value.key;
  if (networkOf === key) return;
  networkOf = key;
  network.value = null;
  get<Record<string, { value: unknown }>>(`/projects/${encodeURIComponent(key)}/config`).then((found) => {
    if (networkOf !== key) return;
    const allows = found["permissions.allow"]?.value;
    const hosts = Array.isArray(allows) && allows.some((each) => String(each).includes("(domain:"));
    network.value = found["sandbox.network"]?.value === true || (hosts && "hosts");
  }, () => { networkOf = ""; });
}

let opened = "";
let lineSeen = 0;
let treeSeen = 0;
let filesSeen = 0;

export async function openSession(id: string): Promise<void> {
  if (opened === id) return;
  if (opened) link.drop(opened);
  detach();
  opened = id;
  lineSeen = treeSeen = filesSeen = 0;
  batch(() => {
    session.value = null;
    tree.value = null;
    treeView.value = null;
    touched.value = [];
    children.value = [];
    background.value = [];
    looking.value = null;
    past.value = null;
    net.value = null;
    netScope.value = WHOLE;
    putBack.value = [];
    mcpQuestions.value = [];
    askedAbout = "";
    opening.value = id ? { id, error: "" } : null;
  });
  if (!id) return;
  try {
    // At once, in whatever order they are answered: the state goes on from the earlier of the two.
    const [view, page, todos] = await Promise.all([
      get<SessionView>(of(id)),
      get<Page>(of(id, "messages"), { limit: 60 }),
      get<Todo[] | { items: Todo[] }>(of(id, "todos")).catch(() => []),
    ]);
    if (opened !== id) return;
    const state = begin(id, view.snapshot, page, Array.isArray(todos) ? todos : (todos.items ?? []));
    batch(() => {
      session.value = state;
      project.value = { key: view.project, path: view.project_path };
      opening.value = null;
    });
    await attach();
    if (opened !== id) return;
    link.follow(id, state.seq, take);
    void readTree();
    void readFiles();
    void readChildren();
    void readTrust();
  } catch (error) {
    if (opened !== id) return;
    if (error instanceof ApiError && error.status === 401) paired.value = false;
    opening.value = { id, error: error instanceof Error ? error.message : String(error) };
  }
}

/** Events that came since the last frame: they are folded together, and drawn once. */
let waiting: Parameters<typeof fold>[1][number][] = [];
const pace = new DrawPace(drain, browserFrames());
document.addEventListener("visibilitychange", () => { if (document.hidden) pace.now(); });

function take(events: Parameters<typeof fold>[1][number][]): void {
  waiting.push(...events);
  pace.ask();
}

function drain(): void {
  const events = waiting;
  waiting = [];
  const before = session.value;
  if (before === null) return;
  const next = fold(before, events);
  session.value = next;
  if (next.driver !== before.driver) driver.value = next.driver;
  tell(before, next);
  if (next.hasGap) {
    session.value = { ...next, hasGap: false };
    link.again(next.id);
  }
  if (next.lineVersion !== lineSeen) {
    lineSeen = next.lineVersion;
    void readLine();
  }
  if (next.treeVersion !== treeSeen) {
    treeSeen = next.treeVersion;
    if (!grow(events)) void readTree();
  }
  if (next.filesVersion !== filesSeen) {
    filesSeen = next.filesVersion;
    void readFiles();
  }
  if (events.some(tellsOfBackground)) void readChildren();
  for (const event of events.filter((each) => each.kind === "background_output")) {
    const next = withOutput(background.value, event);
    if (next) background.value = next;
    else void readChildren();
  }
}

const SHAPES = new Set(["head_moved", "rewound", "node_edited", "compacted", "ref_moved", "ref_deleted", "node_marked", "subtree_deleted", "subtree_restored"]);

/** Adds messages to the tree that is known; false where it is to be read again. */
function grow(events: readonly WireEvent[]): boolean {
  let next = tree.value;
  for (const event of events) {
    if (SHAPES.has(event.kind)) return false;
    if (event.kind !== "new_message") continue;
    next = next && event.advance !== false ? grownTree(next, event.node as Node, event.at ?? 0) : null;
    if (next === null) return false;
  }
  const head = next?.turns.get(next.head ?? "")?.nodes.at(-1) ?? null;
  batch(() => {
    tree.value = next;
    if (treeView.value && head !== null) treeView.value = { ...treeView.value, head };
  });
  return next !== null;
}

function tell(before: SessionState, next: SessionState): void {
  const asked = next.requests.find((each) => !before.requests.includes(each));
  if (asked) notify(`${next.title || "Weft"} needs you`, asked.kind === "permission_request" ? `${asked.tool_name} ${asked.preview ?? ""}` : asked.question);
  else if (before.status !== "idle" && next.status === "idle") notify(next.title || "Weft", "The answer is there.");
  if (asked) spoken.value = asked.kind === "permission_request" ? `Weft asks: ${asked.tool_name} ${asked.preview ?? ""}`.slice(0, 300) : `Weft asks: ${asked.question}`;
  else if (before.status !== "idle" && next.status === "idle") spoken.value = "Answer finished.";
  for (const gone of before.requests.filter((each) => !next.requests.includes(each))) {
    const by = whoIs(next.answered.get(gone.call_uid ?? "")?.by ?? "");
    if (by !== "you") say("ok", `Answered in ${by === "another window" ? by : `the ${by}`}.`);
  }
}

async function readLine(): Promise<void> {
  const id = opened;
  const page = await attempt(get<Page>(of(id, "messages"), { limit: 60 }));
  if (page === null || opened !== id || session.value === null) return;
  session.value = withPage(session.value, page);
}

/** The messages before those that are shown. */
export async function readEarlier(): Promise<boolean> {
  const state = session.value;
  if (state === null || state.before === null) return false;
  const page = await attempt(get<Page>(of(state.id, "messages"), { before: state.before, limit: 60 }));
  const now = session.value;
  if (page === null || now === null || now.id !== state.id || now.before !== state.before) return false;
  session.value = withEarlier(now, page);
  return true;
}

export async function readTree(): Promise<void> {
  const id = opened;
  const seen = treeSeen;
  const view = await get<TreeView>(of(id, "tree")).catch(() => null);
  if (view === null || opened !== id) return;
  // Messages that came meanwhile may be missing in what was read.
  if (seen !== treeSeen) return readTree();
  batch(() => {
    treeView.value = view;
    tree.value = turnTree(view);
  });
}

export async function readFiles(): Promise<void> {
  const id = opened;
  const found = await get<TouchedFile[] | { files: TouchedFile[] }>(of(id, "touched")).catch(() => []);
  if (opened === id) touched.value = Array.isArray(found) ? found : (found.files ?? []);
}

function tellsOfBackground(event: WireEvent): boolean {
  if (event.kind.startsWith("child_") || event.kind === "system_note") return true;
  return event.kind === "tool_complete" && (event.result as { data?: { background?: unknown } } | undefined)?.data?.background != null;
}

export async function readChildren(): Promise<void> {
  const id = opened;
  const [kids, work] = await Promise.all([
    get<ChildInfo[]>(of(id, "children")).catch(() => []),
    get<BackgroundWork[]>(of(id, "background")).catch(() => []),
  ]);
  if (opened !== id) return;
  batch(() => {
    children.value = Array.isArray(kids) ? kids : [];
    background.value = Array.isArray(work) ? readAgain(background.value, work) : [];
  });
}

// --- what the person does

export async function startSession(settings: Record<string, unknown> = {}): Promise<void> {
  const folder = session.value ? project.value.path : "";
  const made = await attempt(send<SessionView>("POST", "/sessions", { ...(folder ? { project_path: folder } : {}), ...settings }));
  if (made === null) return;
  void loadSessions();
  go("chat", made.id);
}

export async function rewind(to: string | null, files: boolean, conversation: boolean, overwrite: string[] = []): Promise<boolean> {
  const id = opened;
  const done = await attempt(send<RewindPlan>("POST", of(id, "rewind"), { to, files, conversation, preview: false, overwrite }));
  if (done === null) return false;
  const put = (done.files ?? []).filter((each) => ["restore", "delete", "recreate"].includes(each.action)).length;
  looking.value = null;
  const words = conversation ? "Rewound." : "Files put back.";
  say("ok", put ? `${words} ${put === 1 ? "1 file" : `${put} files`} put back.` : words, () => void undoRewind());
  return true;
}

export async function undoRewind(): Promise<void> {
  const done = await attempt(send<RewindPlan>("POST", of(opened, "rewind", "undo"), {}));
  if (done !== null) say("ok", "The rewind is taken back.");
}

export async function branchAt(node: string, name = ""): Promise<boolean> {
  const done = await attempt(send("POST", of(opened, "branches"), { at: node, ...(name ? { name } : {}) }));
  if (done !== null) looking.value = null;
  return done !== null;
}

export async function switchBranch(name: string): Promise<void> {
  if ((await attempt(send("POST", of(opened, "branches", name, "switch"), {}))) !== null) looking.value = null;
}

// --- trust

/** What to ask about the open session's folder; null where nothing of it is withheld. */
export const trust = signal<TrustQuestion | null>(null);
/** MCP servers that the project names and nobody has answered for. */
export const mcpQuestions = signal<McpQuestion[]>([]);
let askedAbout = "";

async function readTrust(): Promise<void> {
  const key = project.value.key;
  if (askedAbout === key) return;
  askedAbout = key;
  const found = await get<TrustAnswer>(`/projects/${encodeURIComponent(key)}/trust`).catch(() => null);
  if (project.value.key === key) trust.value = found?.question ?? null;
  const servers = await get<McpOverview>(`/projects/${encodeURIComponent(key)}/mcp`).catch(() => null);
  if (project.value.key === key) mcpQuestions.value = servers?.questions ?? [];
}

export async function setTrust(trusted: boolean): Promise<void> {
  const done = await attempt(send("PUT", `/projects/${encodeURIComponent(project.value.key)}/trust`, { trusted }));
  if (done === null) return;
  trust.value = null;
  askedAbout = "";
  say("ok", trusted ? "This folder is trusted as it is now." : "This folder is trusted no more.", trusted ? () => void setTrust(false) : undefined);
}

// --- notifications

export const notifies = kept<boolean>("notifies", false);

/** Asks the browser once; what it says is kept by the browser. */
export async function wantNotifications(on: boolean): Promise<void> {
  if (on && "Notification" in window && Notification.permission !== "granted") on = (await Notification.requestPermission()) === "granted";
  if (!on && notifies.value === on) say("warn", "The browser does not let this page notify you.");
  notifies.value = on;
}

/** Tells someone who looks elsewhere; the tab's title says it in any case. */
export const needsYou = signal(false);
document.addEventListener("visibilitychange", () => { if (!document.hidden) needsYou.value = false; });

function notify(title: string, body: string): void {
  if (!document.hidden) return;
  needsYou.value = true;
  if (!notifies.value || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(title, { body: body.slice(0, 200), tag: opened });
  shown.onclick = () => { window.focus(); shown.close(); };
}

// --- who drives

/** This page among the clients of the open session, and who of them drives; empty: nobody. */
export const client = signal("");
export const driver = signal("");
export const isViewer = computed(() => client.value !== "" && driver.value !== "" && driver.value !== client.value);

/** A client's name, as it gave it: `page`, `chat`, `attach`. */
export function clientName(id: string): string {
  return id.includes("~") ? id.slice(id.indexOf("~") + 1) : "another program";
}

/** Who answered or drives, in a few words. */
export function whoIs(id: string): string {
  if (!id.includes("~") || id === client.value) return "you";
  const name = clientName(id);
  return name === "page" ? "another window" : name;
}

/** Attaches to the open session: drives where nobody does, and else watches. Of two at once, the second would watch the first for ever. */
const attach = singleFlight(() => opened, attachOnce);

async function attachOnce(id: string): Promise<void> {
  const made = await send<{ client: string; driver?: string }>("POST", of(id, "clients"), { role: "viewer", name: "page" }).catch(() => null);
  if (made === null || opened !== id) return;
  Object.assign(asClient, { session: id, id: made.client, again: attach });
  batch(() => { client.value = made.client; driver.value = made.driver ?? ""; });
  link.as(made.client);
  if (!made.driver) await drive();
}

/** After a lost connection: the server has detached this page, or knows nobody any more. */
export function attachAgain(): void {
  const id = opened;
  if (!id || !session.value) return;
  void attach();
  void get<SessionView>(of(id)).then((view) => {
    if (opened === id && session.value) session.value = stood(session.value, view.snapshot);
  }, () => undefined);
}

export async function drive(): Promise<void> {
  const made = await attempt(send<{ client: string }>("POST", of(opened, "clients", client.value, "drive"), {}));
  if (made !== null && client.value === made.client) driver.value = made.client;
}

/** Says that this page goes: who watches sees it, and the next to come drives. */
function detach(): void {
  if (!client.value) return;
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token()}` };
  void fetch(`/api${of(asClient.session, "clients", client.value)}`, { method: "DELETE", headers, body: "{}", keepalive: true }).catch(() => undefined);
  asClient.id = "";
  batch(() => { client.value = ""; driver.value = ""; });
}

window.addEventListener("pagehide", detach);
// A page that comes out of the browser's memory is there again.
window.addEventListener("pageshow", (event) => { if (event.persisted && opened) void attach(); });

// --- what was changed, all changes together

/** Between which messages; empty strings: the beginning, and now. */
export interface Stretch { since: string; until: string }

export const WHOLE: Stretch = { since: "", until: "" };
export const netScope = signal<Stretch>(WHOLE);
/** What was changed between them; null until it is known. */
export const net = signal<NetChange[] | null>(null);
/** Hunks that were put back here: they stay, struck, until the next turn. */
export const putBack = signal<{ path: string; hunk: string; text: string; from: string; node: string }[]>([]);

/** Where the turn that is looked at ends. */
function lookedAt(): string {
  const known = tree.value;
  return known?.turns.get(looking.value ?? "")?.nodes.at(-1) ?? "";
}

export async function readNet(): Promise<void> {
  const id = opened;
  if (!id) return;
  const scope = looking.value === null ? netScope.value : { since: lookedAt(), until: "" };
  const found = await get<NetChange[]>(of(id, "changes"), { since: scope.since, until: scope.until }).catch(() => null);
  if (opened === id && found !== null) net.value = found;
}

let netTimer = 0;

/** Read again soon after files, the place or the scope changed. */
effect(() => {
  void [touched.value, looking.value, netScope.value, tree.value?.head];
  window.clearTimeout(netTimer);
  netTimer = window.setTimeout(() => void readNet(), 60);
});

/** The file that a click here changes just now: that click is the answer to what its edit asks. */
let clicked: HunkClick | null = null;

async function changing<T>(path: string, what: Promise<T>): Promise<T> {
  clicked = { path, open: new Set(session.value?.requests.map((each) => each.request_id)) };
  try {
    return await what;
  } finally {
    clicked = null;
  }
}

/** Takes the second branch's version of a hunk into the file as it is now. */
export async function takeHunk(path: string, hunk: string, first: string, second: string): Promise<boolean> {
  const id = opened;
  const from = treeView.value?.head ?? "";
  const done = await attempt(changing(path, send<HunkOutcome>("POST", of(id, "branch-files", "take"), { path, hunk, first, second })));
  if (done === null || opened !== id) return false;
  if (done.is_done) say("ok", `Taken into ${path}.`, () => void rewind(from, true, true));
  else say("warn", `${path}: ${done.why ?? "it was not taken"}`);
  return done.is_done;
}

/** Takes one hunk back, by an edit of the session; it asks where edits ask. */
export async function revertHunk(path: string, hunk: string, text: string): Promise<void> {
  const id = opened;
  const from = treeView.value?.head ?? "";
  const scope = looking.value === null ? netScope.value : { since: lookedAt(), until: "" };
  const body = { path, hunk, ...(scope.since ? { since: scope.since } : {}), ...(scope.until ? { until: scope.until } : {}) };
  const done = await attempt(changing(path, send<HunkOutcome>("POST", of(id, "changes", "revert"), body)));
  if (done === null || opened !== id) return;
  if (!done.is_done) { say("warn", `${path}: ${done.why ?? "it was not put back"}`); return; }
  putBack.value = [...putBack.value, { path, hunk, text, from, node: done.node ?? "" }];
  say("ok", `Put back in ${path}.`, () => void undoPutBack(hunk));
}

export async function undoPutBack(hunk: string): Promise<void> {
  const held = putBack.value.find((each) => each.hunk === hunk);
  if (held && (await rewind(held.from, true, true))) putBack.value = putBack.value.filter((each) => each.hunk !== hunk);
}

/** Ctrl+O: every tool line is open. */
export const unfolded = signal(false);

/** When a key was last pressed: nothing takes the focus from someone who types. */
export const lastKey = { at: -1e9 };
window.addEventListener("keydown", () => { lastKey.at = performance.now(); }, true);

/** Slices of the open session: what shows one is drawn again only when that one changes. */
export const slice = {
  rows: computed(() => session.value?.rows ?? null),
  results: computed(() => session.value?.results ?? null),
  running: computed(() => session.value?.running ?? null),
  output: computed(() => session.value?.output ?? null),
  requests: computed(() => session.value?.requests ?? null),
  answered: computed(() => session.value?.answered ?? null),
  kids: computed(() => session.value?.children ?? null),
  status: computed(() => session.value?.status ?? "idle"),
  queue: computed(() => session.value?.queue ?? null),
  todos: computed(() => session.value?.todos ?? null),
  id: computed(() => session.value?.id ?? ""),
  title: computed(() => session.value?.title ?? ""),
  model: computed(() => session.value?.model ?? ""),
  thinking: computed(() => session.value?.thinking ?? ""),
  permissionMode: computed(() => session.value?.permissionMode ?? ""),
  plan: computed(() => session.value?.plan ?? null),
  cost: computed(() => session.value?.cost ?? null),
  used: computed(() => session.value?.contextUsed ?? 0),
  window: computed(() => session.value?.contextWindow ?? 0),
  drafts: computed(() => session.value?.drafts ?? null),
  hasDrafts: computed(() => (session.value?.drafts.length ?? 0) > 0),
  retry: computed(() => session.value?.retry ?? null),
  turnBegan: computed(() => session.value?.turnBegan ?? 0),
  isWriting: computed(() => session.value?.drafts.some((each) => each.text.length > 0) ?? false),
};

/** The part of the line around a turn that is looked at and lies before what was read. */
export const past = signal<{ key: string; rows: Row[] } | null>(null);

/** Reads the messages that end with a turn of the line; what they called is known from then on. */
export async function readPast(key: string): Promise<void> {
  const known = tree.value;
  const state = session.value;
  const next = known?.line[known.line.indexOf(key) + 1];
  if (!known || !state || next === undefined || past.value?.key === key) return;
  const page = await attempt(get<Page>(of(state.id, "messages"), { before: next, limit: 60 }));
  const now = session.value;
  if (page === null || now?.id !== state.id || looking.value !== key) return;
  const found = withPage(now, page);
  batch(() => {
    past.value = { key, rows: found.rows };
    session.value = { ...now, results: new Map([...found.results, ...now.results]) };
  });
}

export const paletteOpen = signal(false);
export const helpOpen = signal(false);

effect(() => {
  for (const each of slice.requests.value ?? [])
    if (clicked && each.kind === "permission_request" && isAnsweredBy(clicked, each))
      void attempt(send("POST", of(opened, "requests", each.request_id), { action: "allow_once" }));
});
