/** A session as its screen shows it, brought on by events.
 *
 * Pure: the same events in the same order give the same state, and a fact that comes twice changes
 * nothing. Slices that an event does not touch keep their identity, so that only what shows them is
 * drawn again.
 */

import { append, EMPTY, flow, type Flow } from "./text.ts";
import type {
  Event,
  HistoryMessage,
  Node,
  Page,
  PlanProgress,
  QueueEntry,
  Request,
  Snapshot,
  Status,
  Todo,
  ToolExecuting,
  ToolResult,
  Usage,
} from "../types.ts";

export interface Row {
  id: string;
  role: "user" | "assistant" | "note";
  message: HistoryMessage;
}

export interface CallResult {
  text: string;
  isError: boolean;
  status: "done" | "denied" | "aborted" | "interrupted" | "invalid";
  diff: string;
  output: string;
  exitCode: number | null;
  durationMs: number;
  allowed: string;
  at: number;
}

export interface DraftCall {
  index: number;
  tool: string;
  args: Flow;
}

export interface Draft {
  node: string;
  text: Flow;
  thinking: Flow;
  calls: DraftCall[];
  /** When its first piece was seen, and when its reasoning ended; seconds. */
  began: number;
  thoughtUntil: number;
}

export interface Child {
  id: string;
  name: string;
  callUid: string | null;
  node: string | null;
  background: boolean;
  reason: string | null;
  cost: number | null;
  began: number;
  ended: number;
}

export interface Retry {
  attempt: number;
  tries: number;
  until: number;
  reason: string;
}

export interface SessionState {
  id: string;
  seq: number;
  status: Status;
  title: string;
  model: string;
  mode: string;
  permissionMode: string;
  thinking: string;
  error: string;
  rows: Row[];
  /** Where there are more rows before these. */
  before: string | null;
  results: ReadonlyMap<string, CallResult>;
  running: ReadonlyMap<string, ToolExecuting>;
  output: ReadonlyMap<string, string>;
  drafts: Draft[];
  requests: Request[];
  answered: ReadonlyMap<string, { by: string; action: string; reason: string }>;
  queue: QueueEntry[];
  todos: Todo[];
  children: ReadonlyMap<string, Child>;
  plan: PlanProgress | null;
  planId: string;
  retry: Retry | null;
  contextUsed: number;
  contextWindow: number;
  cost: number | null;
  /** The last fact whose cost is in it: what is told again after that is counted once. */
  countedUpTo: number;
  turnBegan: number;
  lastTurn: { reason: string; detail: string } | null;
  /** Bumped when the line is another one: its rows have to be read again. */
  lineVersion: number;
  /** Bumped when nodes, names or the head changed: the tree has to be read again. */
  treeVersion: number;
  /** Bumped when a file changed. */
  filesVersion: number;
  /** Bumped when something happened to the goal: it has to be read again. */
  goalVersion: number;
  hasGoal: boolean;
  /** Pieces of an answer were lost: what is in flight has to be asked for again. */
  hasGap: boolean;
  driver: string;
}

const OUTPUT_KEPT = 20_000;

export function begin(id: string, snapshot: Snapshot, page: Page, todos: Todo[] = []): SessionState {
  const draft: Draft[] =
    snapshot.draft_node === null || snapshot.draft_node === undefined
      ? []
      : [
          {
            node: snapshot.draft_node,
            text: flow(snapshot.draft),
            thinking: flow(snapshot.draft_thinking ?? ""),
            calls: (snapshot.draft_calls ?? []).map((each) => ({
              index: each.index,
              tool: each.tool,
              args: flow(each.arguments),
            })),
            began: 0,
            thoughtUntil: 0,
          },
        ];
  return withPage(
    {
      id,
      seq: Math.min(snapshot.seq, page.seq ?? snapshot.seq),
      status: snapshot.status,
      title: snapshot.title,
      model: snapshot.model,
      mode: snapshot.mode,
      permissionMode: snapshot.permission_mode,
      thinking: snapshot.thinking,
      error: snapshot.error,
      rows: [],
      before: null,
      results: new Map(),
      running: new Map((snapshot.running ?? []).map((each) => [each.call_uid, each])),
      output: new Map(),
      drafts: draft,
      requests: snapshot.requests,
      answered: new Map(),
      queue: snapshot.queue,
      todos,
      children: new Map(),
      plan: snapshot.plan ?? null,
      planId: "",
      retry: null,
      contextUsed: snapshot.context_used,
      contextWindow: snapshot.context_window ?? 0,
      cost: snapshot.cost_usd,
      countedUpTo: snapshot.seq,
      turnBegan: 0,
      lastTurn: null,
      lineVersion: 0,
      treeVersion: 0,
      filesVersion: 0,
      goalVersion: 0,
      hasGoal: snapshot.goal != null,
      hasGap: false,
      driver: "",
    },
    page,
  );
}

/** The state as it stands after a lost connection: signals that were missed do not come again. */
export function stood(state: SessionState, snapshot: Snapshot): SessionState {
  const isOver = ["idle", "interrupted", "error"].includes(snapshot.status);
  return {
    ...state,
    status: snapshot.status,
    error: snapshot.error,
    running: new Map((snapshot.running ?? []).map((each) => [each.call_uid, each])),
    requests: snapshot.requests,
    queue: snapshot.queue,
    retry: null,
    drafts: isOver && snapshot.draft_node == null && snapshot.status !== "interrupted" ? [] : state.drafts,
  };
}

/** The state with the rows of a page in the place of its own. */
export function withPage(state: SessionState, page: Page): SessionState {
  const { rows, results } = readPage(page);
  return { ...state, rows, results, before: page.previous ?? null };
}

/** The state with an earlier page before its rows. */
export function withEarlier(state: SessionState, page: Page): SessionState {
  const { rows, results } = readPage(page);
  const known = new Set(state.rows.map((row) => row.id));
  const fresh = rows.filter((row) => !known.has(row.id));
  return {
    ...state,
    rows: [...fresh, ...state.rows],
    results: new Map([...results, ...state.results]),
    before: page.previous ?? null,
  };
}

/** What the model is told of its environment (date, branch, sandbox) is no part of the conversation. */
function isForModelAlone(text: string): boolean {
  return text.startsWith("<environment>");
}

function readPage(page: Page): { rows: Row[]; results: Map<string, CallResult> } {
  const rows: Row[] = [];
  const results = new Map<string, CallResult>();
  for (const { id, message } of page.messages) {
    if (message.role === "tool") results.set(message.tool_call_id ?? id, pageResult(message));
    else if (message.role === "system") {
      if (!isForModelAlone(message.content)) rows.push({ id, role: "note", message });
    }
    else rows.push({ id, role: message.role === "user" ? "user" : "assistant", message });
  }
  for (const each of page.asides ?? []) {
    const content = `Side question: ${each.question}\n${each.answer}`;
    const message: HistoryMessage = { role: "system", content, at: each.at };
    const row: Row = { id: `note_${each.seq}`, role: "note", message };
    let place = rows.findIndex((known) => known.id === each.node) + 1;
    while (place > 0 && rows[place]?.role === "note") place++;
    if (place > 0) rows.splice(place, 0, row);
  }
  return { rows, results };
}

function pageResult(message: HistoryMessage): CallResult {
  return {
    text: message.content,
    isError: message.is_error ?? false,
    status: message.is_error ? statusOf(message) : "done",
    diff: message.diff ?? "",
    output: message.output ?? "",
    exitCode: exitCode(message.content),
    durationMs: message.duration_ms ?? 0,
    allowed: message.allowed ?? "",
    at: message.at ?? 0,
  };
}

/** What a page does not say apart: how a call ended that is an error. */
function statusOf(message: HistoryMessage): CallResult["status"] {
  const text = message.content;
  if (message.output) return "aborted";
  if (/effect is unknown|was interrupted/i.test(text)) return "interrupted";
  if (/^(the user (denied|refused|said no)|denied|permission denied by)/i.test(text)) return "denied";
  return "done";
}

export function exitCode(text: string): number | null {
  const found = /(?:^|\n)[[(]?(?:exit (?:code|status):?|exited with) (-?\d+)/i.exec(text.slice(-400));
  return found ? Number(found[1]) : null;
}

export function fold(state: SessionState, events: readonly Event[]): SessionState {
  let next = state;
  for (const event of events) next = take(next, event);
  return next;
}

/** The state after one event; a fact that it has already is passed over. */
export function take(state: SessionState, event: Event): SessionState {
  if (event.seq !== undefined && event.seq > 0) {
    if (event.seq <= state.seq) return state;
    return { ...fact(state, event), seq: event.seq };
  }
  return signal(state, event);
}

function fact(state: SessionState, event: Event): SessionState {
  switch (event.kind) {
    case "new_message":
      return message(state, event.node as Node, event);
    case "tool_executing": {
      const running = new Map(state.running);
      running.set(event.call_uid as string, event as unknown as ToolExecuting);
      return { ...state, running, status: "executing_tool" };
    }
    case "tool_complete":
      return completed(state, event);
    case "permission_request":
    case "question_asked": {
      const others = state.requests.filter((each) => each.request_id !== event.request_id);
      return { ...state, requests: [...others, event as unknown as Request] };
    }
    case "permission_resolved":
    case "question_answered": {
      const answered = new Map(state.answered);
      const open = state.requests.find((each) => each.request_id === event.request_id);
      if (open)
        answered.set(open.call_uid, {
          by: (event.by as string) ?? "",
          action: (event.action as string) ?? "answer",
          reason: (event.reason as string) ?? (event.answer as string) ?? "",
        });
      return {
        ...state,
        answered,
        requests: state.requests.filter((each) => each.request_id !== event.request_id),
      };
    }
    case "turn_started":
      return {
        ...state,
        status: "thinking",
        turnBegan: event.at ?? 0,
        retry: null,
        lastTurn: null,
        error: "",
      };
    case "turn_finished":
      return {
        ...state,
        status: "idle",
        drafts: [],
        running: new Map(),
        retry: null,
        turnBegan: 0,
        requests: state.requests.filter((each) => (each as { outlives_turn?: boolean }).outlives_turn),
        lastTurn: {
          reason: ((event.exact as string) || (event.reason as string)) ?? "stop",
          detail: (event.detail as string) ?? "",
        },
        treeVersion: state.treeVersion + 1,
      };
    case "usage_recorded":
      return counted(state, event);
    case "todo_changed":
      return { ...state, todos: (event.items as Todo[]) ?? [] };
    case "setting_changed":
      return setting(state, event.name as string, event.value);
    case "mode_changed":
      return { ...state, mode: event.mode as string };
    case "system_note":
      return note(state, event);
    case "aside_answered":
      return note(state, { ...event, text: aside(event), level: "info" });
    case "error_raised":
      return { ...state, error: event.message as string };
    case "file_touched":
    case "workspace_snapshot":
      return { ...state, filesVersion: state.filesVersion + 1 };
    case "head_moved":
    case "rewound":
    case "node_edited":
    case "compacted":
      return {
        ...state,
        lineVersion: state.lineVersion + 1,
        treeVersion: state.treeVersion + 1,
        filesVersion: state.filesVersion + (event.kind === "rewound" ? 1 : 0),
      };
    case "node_marked":
      return { ...(event.mark === "excluded" ? excluded(state, event) : state), treeVersion: state.treeVersion + 1 };
    case "ref_moved":
    case "ref_deleted":
    case "subtree_deleted":
    case "subtree_restored":
      return { ...state, treeVersion: state.treeVersion + 1 };
    case "goal_set":
    case "goal_paused":
    case "goal_checked":
    case "goal_ended":
      return { ...state, goalVersion: state.goalVersion + 1, hasGoal: event.kind !== "goal_ended" };
    case "child_started":
    case "child_finished":
      return child(state, event);
    default:
      return queued(planned(state, event), event);
  }
}

function planned(state: SessionState, event: Event): SessionState {
  switch (event.kind) {
    case "architect_plan":
    case "plan_edited":
      return {
        ...state,
        planId: event.plan_id as string,
        plan: {
          plan: event.plan as Record<string, unknown>,
          approved: null,
          steps: event.kind === "plan_edited" ? (state.plan?.steps ?? {}) : {},
        },
      };
    case "plan_decided":
      return state.plan
        ? { ...state, plan: { ...state.plan, approved: event.approved as boolean } }
        : state;
    case "architect_step":
      return state.plan
        ? {
            ...state,
            plan: {
              ...state.plan,
              steps: { ...state.plan.steps, [String(event.index)]: event.status as string },
            },
          }
        : state;
    default:
      return state;
  }
}

function queued(state: SessionState, event: Event): SessionState {
  switch (event.kind) {
    case "input_queued": {
      const entry = event as unknown as QueueEntry;
      const others = state.queue.filter((each) => each.entry_id !== entry.entry_id);
      return { ...state, queue: [...others, { ...entry, parts: entry.parts ?? [] }] };
    }
    case "input_promoted":
    case "queues_recalled": {
      const gone = new Set(event.entries as string[]);
      return { ...state, queue: state.queue.filter((each) => !gone.has(each.entry_id)) };
    }
    case "input_removed":
      return { ...state, queue: state.queue.filter((each) => each.entry_id !== event.entry_id) };
    case "input_edited":
      return {
        ...state,
        queue: state.queue.map((each) =>
          each.entry_id === event.entry_id
            ? { ...each, parts: (event.parts as QueueEntry["parts"]) ?? [] }
            : each,
        ),
      };
    case "inputs_reordered": {
      const order = event.entries as string[];
      const place = (entry: QueueEntry): number => {
        const at = order.indexOf(entry.entry_id);
        return at < 0 ? order.length : at;
      };
      return { ...state, queue: [...state.queue].sort((a, b) => place(a) - place(b)) };
    }
    default:
      return state;
  }
}

function message(state: SessionState, node: Node, event: Event): SessionState {
  const treeVersion = state.treeVersion + 1;
  const drafts = state.drafts.filter((each) => each.node !== node.id);
  if (event.advance === false) return { ...state, drafts, treeVersion };
  if (state.rows.some((row) => row.id === node.id)) return { ...state, drafts };
  const last = state.rows.findLast((row) => row.role !== "note");
  const draft = state.drafts.find((each) => each.node === node.id);
  const row: Row = {
    id: node.id,
    role: node.role === "system" ? "note" : node.role,
    message: historyOf(node, event.at ?? 0, draft),
  };
  // It grew from another place than where these rows end: the line is another one.
  const isElsewhere = last !== undefined && (node.parent ?? null) !== last.id;
  return {
    ...state,
    drafts,
    rows: [...state.rows, row],
    treeVersion,
    lineVersion: state.lineVersion + (isElsewhere ? 1 : 0),
  };
}

function historyOf(node: Node, at: number, draft: Draft | undefined): HistoryMessage {
  const parts = node.parts ?? [];
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.typed || part.text] : []));
  const thoughts = parts.flatMap((part) => (part.type === "thinking" ? [part.text ?? ""] : []));
  const calls = parts.flatMap((part) =>
    part.type === "tool_call" ? [{ id: part.call_uid, name: part.name, args: part.args ?? {} }] : [],
  );
  const names = parts.flatMap((part) =>
    part.type === "image" || part.type === "file" ? [part.name || part.type] : [],
  );
  return {
    role: node.role,
    content: texts.join(""),
    thinking: thoughts.join(""),
    tool_calls: calls,
    attached: names,
    is_partial: Boolean(node.metadata?.partial),
    model: node.model ?? "",
    usage: node.usage ?? null,
    parts,
    at,
    duration_ms: draft && draft.thoughtUntil > draft.began ? (draft.thoughtUntil - draft.began) * 1000 : 0,
  };
}

/** A message that no model is sent any more, or is sent again. */
function excluded(state: SessionState, event: Event): SessionState {
  const rows = state.rows.map((row) =>
    row.id === event.node ? { ...row, message: { ...row.message, is_excluded: Boolean(event.value) } } : row,
  );
  return { ...state, rows };
}

function completed(state: SessionState, event: Event): SessionState {
  const uid = event.call_uid as string;
  const result = event.result as ToolResult;
  const data = result.data ?? {};
  const code = data.exit_code;
  const results = new Map(state.results);
  results.set(uid, {
    text: result.text ?? "",
    isError: Boolean(event.is_error ?? result.is_error),
    status: result.status ?? "done",
    diff: typeof data.diff === "string" ? data.diff : "",
    output: typeof data.output === "string" ? data.output : "",
    exitCode: typeof code === "number" ? code : exitCode(result.text ?? ""),
    durationMs: (event.duration_ms as number) ?? 0,
    allowed: "",
    at: event.at ?? 0,
  });
  const running = new Map(state.running);
  running.delete(uid);
  const output = new Map(state.output);
  output.delete(uid);
  return { ...state, results, running, output };
}

function note(state: SessionState, event: Event): SessionState {
  const id = `note_${event.seq}`;
  if (isForModelAlone(event.text as string)) return state;
  if (state.rows.some((row) => row.id === id)) return state;
  const message: HistoryMessage = {
    role: "system",
    content: event.text as string,
    is_error: event.level === "error",
    at: event.at ?? 0,
  };
  return { ...state, rows: [...state.rows, { id, role: "note", message }] };
}

function setting(state: SessionState, name: string, value: unknown): SessionState {
  const text = typeof value === "string" ? value : "";
  switch (name) {
    case "model":
      return { ...state, model: text };
    case "thinking":
      return { ...state, thinking: text };
    case "permission_mode":
      return { ...state, permissionMode: text };
    case "title":
    case "auto_title":
      return text ? { ...state, title: text } : state;
    default:
      return state;
  }
}

function child(state: SessionState, event: Event): SessionState {
  const children = new Map(state.children);
  const id = event.child as string;
  const known = children.get(id);
  if (event.kind === "child_started")
    children.set(id, {
      id,
      name: (event.name as string) ?? "",
      callUid: (event.call_uid as string) ?? null,
      node: (event.node as string) ?? null,
      background: Boolean(event.background),
      reason: null,
      cost: null,
      began: event.at ?? 0,
      ended: 0,
    });
  else if (known)
    children.set(id, {
      ...known,
      reason: (event.reason as string) ?? "stop",
      cost: (event.usage as Usage | undefined)?.cost_usd ?? null,
      ended: event.at ?? 0,
    });
  return counted({ ...state, children }, event);
}

function counted(state: SessionState, event: Event): SessionState {
  const usage = event.usage as Usage | undefined;
  return usage && (event.seq ?? 0) > state.countedUpTo ? { ...state, cost: plus(state.cost, usage) } : state;
}

function plus(cost: number | null, usage: Usage): number | null {
  return cost === null || usage.cost_usd === undefined || usage.cost_usd === null
    ? null
    : cost + usage.cost_usd;
}

// --- signals: what is in flight

function signal(state: SessionState, event: Event): SessionState {
  switch (event.kind) {
    case "session_status":
      return { ...state, status: event.status as Status, retry: event.status === "idle" ? null : state.retry };
    case "draft":
      return { ...state, drafts: [...others(state, event.node_id as string), whole(event)], hasGap: false };
    case "text_delta":
    case "thinking_delta":
    case "tool_args_delta":
      return delta(state, event);
    case "answer_restarted":
      return { ...state, drafts: others(state, event.node_id as string) };
    case "tool_output": {
      const output = new Map(state.output);
      const uid = event.call_uid as string;
      output.set(uid, ((output.get(uid) ?? "") + (event.chunk as string)).slice(-OUTPUT_KEPT));
      return { ...state, output };
    }
    case "request_offered": {
      const offered = event.request as Request;
      const isKnown = state.requests.some((each) => each.request_id === offered.request_id);
      return isKnown ? state : { ...state, requests: [...state.requests, offered] };
    }
    case "llm_retry":
      return {
        ...state,
        retry: {
          attempt: event.attempt as number,
          tries: (event.tries as number) ?? 0,
          until: (event.at ?? 0) + (event.wait_ms as number) / 1000,
          reason: event.reason as string,
        },
      };
    case "context_usage":
      return { ...state, contextUsed: event.used as number, contextWindow: event.window as number };
    case "driver_changed":
      return { ...state, driver: (event.client as string) ?? "" };
    default:
      return state;
  }
}

function others(state: SessionState, node: string): Draft[] {
  return state.drafts.filter((each) => each.node !== node);
}

function whole(event: Event): Draft {
  const calls = (event.calls as { index: number; tool: string; arguments: string }[] | undefined) ?? [];
  return {
    node: event.node_id as string,
    text: flow((event.text as string) ?? ""),
    thinking: flow((event.thinking as string) ?? ""),
    calls: calls.map((each) => ({ index: each.index, tool: each.tool, args: flow(each.arguments) })),
    began: event.at ?? 0,
    thoughtUntil: event.at ?? 0,
  };
}

function delta(state: SessionState, event: Event): SessionState {
  const node = event.node_id as string;
  // What is a message already gets no more pieces: this one is late.
  if (state.rows.some((row) => row.id === node)) return state;
  const at = event.at ?? 0;
  const before: Draft = state.drafts.find((each) => each.node === node) ?? {
    node,
    text: EMPTY,
    thinking: EMPTY,
    calls: [],
    began: at,
    thoughtUntil: at,
  };
  const offset = (event.offset as number) ?? 0;
  const piece = event.text as string;
  const next = { ...before };
  if (event.kind === "tool_args_delta") {
    const index = event.index as number;
    const call = before.calls.find((each) => each.index === index) ?? {
      index,
      tool: event.tool_name as string,
      args: EMPTY,
    };
    const args = append(call.args, offset, piece);
    if (args === null) return { ...state, hasGap: true };
    next.calls = [...before.calls.filter((each) => each.index !== index), { ...call, args }];
  } else {
    const name = event.kind === "text_delta" ? "text" : "thinking";
    const grown = append(before[name], offset, piece);
    if (grown === null) return { ...state, hasGap: true };
    next[name] = grown;
    if (name === "thinking") next.thoughtUntil = at;
  }
  return { ...state, drafts: [...others(state, node), next], retry: null };
}

/** A side question with its answer: no message, it is shown beside the line. */
function aside(event: Event): string {
  const asked = ((event.question as { text?: string }[]) ?? []).map((part) => part.text ?? "").join(" ");
  return `Side question: ${asked}\n${String(event.answer)}`;
}
