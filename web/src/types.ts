/** The JSON of Weft's API, as far as the page reads it. Fields at their default are left out. */

export type Status =
  | "idle"
  | "thinking"
  | "executing_tool"
  | "awaiting_permission"
  | "waiting"
  | "interrupted"
  | "error";

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  cost_usd?: number | null;
}

export type Part =
  | { type: "text"; text: string; typed?: string; blob?: string }
  | { type: "thinking"; text?: string; redacted?: string }
  | { type: "tool_call"; call_uid: string; name: string; args?: Record<string, unknown> }
  | { type: "image"; media_type: string; data?: string; name?: string; blob?: string }
  | { type: "file"; name: string; media_type?: string; text?: string };

export interface Node {
  id: string;
  role: "user" | "assistant" | "system";
  parts?: Part[];
  parent?: string | null;
  model?: string;
  usage?: Usage | null;
  metadata?: Record<string, unknown>;
}

export interface ToolResult {
  call_uid: string;
  text?: string;
  is_error?: boolean;
  status?: "done" | "denied" | "aborted" | "interrupted" | "invalid";
  data?: Record<string, unknown>;
}

export interface HistoryMessage {
  role: "user" | "assistant" | "tool" | "system";
  content: string;
  tool_calls?: { id: string; name: string; args: Record<string, unknown> }[];
  tool_call_id?: string | null;
  is_error?: boolean;
  is_partial?: boolean;
  diff?: string;
  output?: string;
  typed?: string;
  attached?: string[];
  thinking?: string;
  duration_ms?: number;
  allowed?: "" | "call" | "turn" | "session";
  parts?: Part[];
  model?: string;
  usage?: Usage | null;
  at?: number;
}

/** A part of the present line, oldest first. */
export interface Page {
  messages: { id: string; message: HistoryMessage }[];
  /** Handed over as `before` for the messages before. */
  previous?: string | null;
  next?: string | null;
  seq?: number;
}

/** A session as a screen draws it. */
export interface SessionView {
  id: string;
  /** The name of its project in paths. */
  project: string;
  project_path: string;
  snapshot: Snapshot;
}

export interface QueueEntry {
  entry_id: string;
  delivery: "steering" | "follow_up";
  parts: Part[];
}

export interface PermissionRequest {
  kind: "permission_request";
  request_id: string;
  call_uid: string;
  node: string;
  tool_name: string;
  tool_path?: string;
  preview?: string;
  always_pattern?: string;
  reason?: string;
  child?: string | null;
  at?: number;
  args?: Record<string, unknown> | null;
}

export interface QuestionAsked {
  kind: "question_asked";
  request_id: string;
  call_uid: string;
  node: string;
  question: string;
  options?: string[];
  child?: string | null;
  at?: number;
}

export type Request = PermissionRequest | QuestionAsked;

export interface ToolExecuting {
  call_uid: string;
  node: string;
  tool_name: string;
  target?: string;
  args?: Record<string, unknown>;
  at?: number;
}

export interface PlanStep {
  action?: string;
  path?: string;
  description?: string;
  verify?: string;
  [key: string]: unknown;
}

export interface PlanProgress {
  plan: Record<string, unknown>;
  approved: boolean | null;
  steps?: Record<string, string>;
}

export interface Snapshot {
  seq: number;
  status: Status;
  model: string;
  mode: string;
  permission_mode: string;
  thinking: string;
  draft_node: string | null;
  draft: string;
  draft_thinking?: string;
  draft_calls?: { index: number; tool: string; arguments: string }[];
  running?: ToolExecuting[];
  queue: QueueEntry[];
  requests: Request[];
  plan?: PlanProgress | null;
  error: string;
  wait?: { until?: number | null; on: { kind: string; text?: string } } | null;
  context_used: number;
  context_window?: number;
  cost_usd: number | null;
  title: string;
}

export interface SessionRow {
  id: string;
  title: string;
  project_path: string;
  project_id: string;
  model: string;
  mode: string;
  created: number;
  last_active: number;
  message_count: number;
  turn_count: number;
  first_prompt: string;
  branch: string;
  cost_usd: number | null;
  parent_id: string | null;
  is_child: boolean;
  archived: boolean;
  turn_open: boolean;
  damaged: string;
}

export interface TreeMessage {
  id: string;
  parent: string | null;
  role: "user" | "assistant" | "system";
  text: string;
  calls: number;
  is_partial: boolean;
  is_pinned: boolean;
  revision: number;
  at?: number;
  cost_usd?: number | null;
}

export interface Branch {
  name: string;
  node: string | null;
  is_current?: boolean;
  length?: number;
}

export interface TreeView {
  messages: TreeMessage[];
  head: string | null;
  branches: Branch[];
  checkpoints: { name: string; node: string | null }[];
  summarized_to: string | null;
  can_undo_compaction: boolean;
}

export interface TouchedFile {
  path: string;
  action: "created" | "modified" | "deleted";
  at: number;
}

export interface Todo {
  id: string;
  text: string;
  status?: "pending" | "in_progress" | "done" | "cancelled";
}

export interface RewindItem {
  path: string;
  action: "restore" | "delete" | "recreate" | "conflict" | "unavailable" | "unchanged";
  reason?: string;
}

export interface RewindPlan {
  to: string | null;
  conversation: boolean;
  files?: RewindItem[];
  left_out?: string[];
  is_done?: boolean;
}

export interface ModelInfo {
  provider: string;
  name: string;
  context_window: number;
  price_input: number | null;
  price_output: number | null;
  thinks: boolean;
  levels: string[];
}

export interface ChildInfo {
  id: string;
  name: string;
  purpose: string;
  background: boolean;
  reason: string | null;
  call_uid: string | null;
  node: string | null;
  title: string;
  model: string;
  cost_usd: number | null;
  status: Status;
}

export interface BackgroundWork {
  id: string;
  kind: "agent" | "shell";
  title: string;
  status: string;
  exit_code: number | null;
  output?: string;
  printed?: number;
}

/** A fact or a signal; which one is told by `kind`, and a fact has a `seq`. */
export interface Event {
  kind: string;
  seq?: number;
  after_seq?: number;
  at?: number;
  [field: string]: unknown;
}

/** One file as a stretch of the session changed it, all changes together. */
export interface NetChange {
  path: string;
  action: "created" | "modified" | "deleted";
  hunks?: NetHunk[];
  added?: number;
  removed?: number;
  calls?: string[];
  why?: string;
  is_masked?: boolean;
}

export interface NetHunk {
  id: string;
  before: number;
  before_count: number;
  after: number;
  after_count: number;
  added: number;
  removed: number;
  text: string;
}

export interface HunkOutcome {
  path: string;
  is_done: boolean;
  node?: string | null;
  why?: string;
}

export interface BranchFile {
  path: string;
  origin: "first" | "second" | "same" | "merged" | "conflict";
  diff?: string;
  why?: string;
  hunks?: NetHunk[];
}

export interface FileComparison {
  ancestor: string;
  first: string;
  second: string;
  files: BranchFile[];
  is_exact?: boolean;
  why?: string;
}
