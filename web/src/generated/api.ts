/**
 * The types and the client of Weft's HTTP API.
 *
 * Written by `python -m scripts.page_types` from the table of operations; edit that, and write it
 * again. Fields that the server leaves out at their default are optional.
 */

/** An abort. */
export interface AbortBody {
  input_id?: string | null;
  reason?: string;
}
/** What an abort stopped, and what is still waiting. */
export interface AbortReceipt {
  turn_id?: string | null;
  surviving?: QueueEntry[];
}
/** Why it counts. */
export interface AcceptBody {
  input_id?: string | null;
  reason?: string;
}
/** What was said is durable. */
export interface Accepted {
  status: "follow_up" | "started" | "steering";
  turn_id?: string | null;
  entry_id?: string | null;
  seq?: number;
}
/** A file or a folder of architecture decision records. */
export interface AdrBody {
  input_id?: string | null;
  path: string;
}
/** One kind of agent. */
export interface AgentDefinition {
  name: string;
  description?: string;
  prompt?: string;
  tools?: string[] | null;
  disallowed?: string[];
  model?: string;
  permission_mode?: "accept_edits" | "auto" | "bypass" | "default" | "plan" | null;
  max_turns?: number | null;
  isolation?: "" | "worktree";
  background?: boolean;
  path?: string;
  is_project?: boolean;
}
/** What there is of another agent, and what was made of it. */
export interface AgentImport {
  agent: string;
  is_preview: boolean;
  sessions?: ForeignSessionRow[];
  setup?: SetupItem[];
}
/** What a model answered. */
export interface Answer {
  text: string;
  value?: unknown;
  model?: string;
  finish_reason?: "content_filter" | "length" | "malformed_call" | "other" | "pause" | "refusal" | "safety" | "stop" | "tool_calls";
  thinking?: string;
  usage?: Usage;
  cost_usd?: number | null;
  duration_ms?: number;
  repairs?: number;
}
/** The answer to a request: to a permission request with `action` (or `decision`), to a question with `answer`. */
export interface AnswerBody {
  input_id?: string | null;
  action?: "allow_always" | "allow_once" | "allow_turn" | "deny" | null;
  decision?: "approve" | "approve_all" | "reject" | null;
  reason?: string | null;
  save?: boolean;
  answer?: string | null;
}
/** A question beside the line. */
export interface AsideBody {
  input_id?: string | null;
  content: string;
}
/** A client of a session; send its id in the header `Weft-Client`. */
export interface AttachedClient {
  client: string;
  role: "driver" | "viewer";
  driver?: string;
}
/** One effect, or one that was refused. */
export interface AuditEntry {
  session: string;
  seq: number;
  at: number;
  what: string;
  target?: string;
  effect?: string;
  outcome?: string;
  by?: string;
  why?: string;
  files?: string[];
}
/** A background agent or command; `kill_background` takes its id. */
export interface BackgroundWork {
  id: string;
  kind: "agent" | "shell";
  title: string;
  status: "awaiting_permission" | "error" | "executing_tool" | "idle" | "interrupted" | "thinking" | "waiting" | "exited" | "running";
  exit_code?: number | null;
  output?: string;
  printed?: number;
}
/** A file as a base has it. */
export type BaseFile = [number, string];
/** A check, and the turns between which it began to fail. */
export interface BisectBody {
  input_id?: string | null;
  check: string;
  good?: string | number | null;
  bad?: string | number | null;
  jobs?: number;
  timeout_seconds?: number;
  in_copies?: boolean;
}
/** One run of the check. */
export interface BisectCheck {
  state: number;
  name: string;
  verdict: "bad" | "good" | "none";
  exit_code?: number | null;
  seconds?: number;
  detail?: string;
  output?: string;
  is_again?: boolean;
  call?: string | null;
}
/** The project's files at one moment of a session's line. */
export interface BisectState {
  index: number;
  kind: string;
  turn: number;
  name: string;
  node?: string | null;
  made_by?: string;
  why?: string;
}
/** What a bisection found. */
export interface Bisection {
  check: string;
  outcome: string;
  sentence: string;
  good?: BisectState | null;
  bad?: BisectState | null;
  paths?: string[];
  calls?: BreakingCall[];
  decisions?: BreakingDecision[];
  branch_at?: string | null;
  checks?: BisectCheck[];
  states?: BisectState[];
  notes?: string[];
}
/** Who or what wrote a line, and why. */
export interface Blame {
  path: string;
  line: number;
  text: string;
  made_by: "session" | "unknown" | "user";
  sentence: string;
  turn?: LineTurn | null;
  call?: BlamedCall | null;
  candidate?: number | null;
  check?: BlamedCheck | null;
  commit?: LineCommit | null;
  committed_by?: LineTurn | null;
  git_error?: string;
  decisions?: BlamedDecision[];
  since?: number | null;
  until?: number | null;
  steps?: string[];
  notes?: string[];
  open_session?: string | null;
  open_node?: string | null;
}
/** A file, and a line of it, counted from 1. */
export interface BlameQuery {
  path: string;
  line: number;
}
/** The call of a tool that wrote a line. */
export interface BlamedCall {
  tool_name: string;
  target?: string;
  call_uid?: string | null;
  node?: string | null;
  reason?: string;
  allowed_by?: string;
  allowed_why?: string;
}
/** The first test, build or check that a session ran after a line was written. It says nothing of whether that command looks at the line. */
export interface BlamedCheck {
  command: string;
  exit_code: number | null;
  tree: string;
  at: number;
  session_id: string;
}
/** What was decided where a line was written, with what was rejected. */
export interface BlamedDecision {
  id: string;
  title: string;
  reason?: string;
  status?: string;
  rejected?: string[];
}
/** A named line of the conversation. */
export interface Branch {
  name: string;
  node: string | null;
  is_current?: boolean;
  length?: number;
  left?: string | null;
}
/** Where a branch begins: a message's id or its number. */
export interface BranchBody {
  input_id?: string | null;
  at: string | number;
  name?: string | null;
}
/** A command that a branch ran, as it ended the last time. */
export interface BranchCommand {
  command: string;
  exit_code?: number | null;
  last_line?: string;
}
/** What two branches share, and how they differ. */
export interface BranchComparison {
  ancestor: string | null;
  first: string;
  second: string;
  shared: string;
  parts: DiffPart[];
}
/** One branch, from the message where it parts. */
export interface BranchFacts {
  files?: number;
  added?: number;
  removed?: number;
  seconds?: number;
  model?: string;
  commands?: BranchCommand[];
}
/** A file that is not the same at the ends of two branches and where they part. */
export interface BranchFile {
  path: string;
  origin: "conflict" | "first" | "merged" | "same" | "second";
  diff?: string;
  why?: string;
  hunks?: FileHunk[];
}
/** The ends of two branches. */
export interface BranchesQuery {
  first: string;
  second: string;
}
/** A call of the turn that was found, with what it changed. */
export interface BreakingCall {
  tool_name: string;
  target: string;
  paths: string[];
  call_uid?: string | null;
  node?: string | null;
  reason?: string;
  is_by_user?: boolean;
}
/** A decision on record that was taken in the turn that was found. */
export interface BreakingDecision {
  id: string;
  title: string;
  reason?: string;
}
/** What a session may cost. */
export interface BudgetBody {
  input_id?: string | null;
  usd?: number | null;
  tokens?: number | null;
}
/** One thing that kept a request from being read from the cache. */
export interface CacheCause {
  kind: "compaction" | "effort" | "history" | "instructions" | "mode" | "model" | "pause" | "short" | "system" | "tools" | "vendor";
  text: string;
}
/** What the vendor read of a request from its cache, and why not more. */
export interface CacheReport {
  state: "first" | "hit" | "miss" | "partial" | "unknown";
  read_tokens?: number;
  written_tokens?: number;
  prompt_tokens?: number;
  could_read_tokens?: number;
  causes?: CacheCause[];
}
/** A tool call that the model is writing. */
export interface CallInFlight {
  index: number;
  tool: string;
  arguments: string;
}
/** Who or what allowed a call. */
export interface CallPermission {
  by: string;
  text?: string;
  request?: string | null;
}
/** Whether what was paid for is kept. */
export interface CancelBody {
  input_id?: string | null;
  keep_partial?: boolean;
}
/** What a list shows of a tree, read without opening it. */
export interface CatalogueEntry {
  root_id: string;
  name: string;
  model: string;
  nodes: number;
  created: number;
  updated: number;
  cost_usd: number | null;
  archived: boolean;
  project_path: string;
  models?: string[];
  metadata?: Record<string, unknown>;
}
/** Which trees. */
export interface CatalogueQuery {
  q?: string | null;
  sort?: "created" | "name" | "nodes" | "updated";
  offset?: number;
  limit?: number;
}
/** What the body of every changing call may have. */
export interface ChangeBody {
  input_id?: string | null;
}
/** The messages between which files were changed; without them the whole session. */
export interface ChangesQuery {
  since?: string | null;
  until?: string | null;
}
/** A command showed it. */
export interface CheckEvidence {
  kind: "check";
  command: string;
  exit: number;
}
/** A named place. */
export interface CheckpointInfo {
  name: string;
  node: string | null;
}
/** A node below this one. */
export interface ChildBody {
  input_id?: string | null;
  text: string;
  model?: string;
  metadata?: Record<string, unknown>;
}
/** A session that works for another, at a glance. */
export interface ChildInfo {
  id: string;
  name: string;
  purpose: string;
  background?: boolean;
  reason?: string | null;
  call_uid?: string | null;
  node?: string | null;
  title?: string;
  model?: string;
  cost_usd?: number | null;
  status?: "awaiting_permission" | "error" | "executing_tool" | "idle" | "interrupted" | "thinking" | "waiting";
}
/** A client that comes. */
export interface ClientBody {
  input_id?: string | null;
  role?: "driver" | "viewer";
  name?: string;
}
/** A code for one pairing, good for a minute. */
export interface CodeAnswer {
  code: string;
}
/** For what a code is made. */
export interface CodeBody {
  input_id?: string | null;
  role?: "driver" | "viewer";
}
/** The tool calls of one message, or (without it) of all. */
export interface CollapseBody {
  input_id?: string | null;
  message_id?: string | null;
}
/** How a session stands to a turn that a crash has cut off. */
export interface ComingBack {
  resume?: string;
  is_interrupted?: boolean;
  restarts?: number;
  parked?: string;
  tokens?: number;
  max_cost_usd?: number | null;
}
/** A line `/name arguments`. */
export interface CommandBody {
  input_id?: string | null;
  text: string;
}
/** The command that an append came from. Kept on the first fact of the append, so that a repeat is recognised for ever. */
export interface CommandCause {
  input_id: string;
  digest: string;
  answer?: unknown;
}
/** The slash commands of a session. */
export interface CommandList {
  names: string[];
  markdown: MarkdownCommand[];
}
/** It is part of a commit. */
export interface CommitEvidence {
  kind: "commit";
  commit: string;
}
/** A compaction. */
export interface CompactBody {
  input_id?: string | null;
  focus?: string | null;
  queue?: boolean;
}
/** What a compaction did. */
export interface CompactionReport {
  summary: string;
  upto: string;
  tokens_before: number;
  tokens_after: number;
}
/** Another node. */
export interface CompareNodesQuery {
  other: string;
}
/** Two candidates. */
export interface CompareQuery {
  first: number;
  second: number;
}
/** A message without options of its own. */
export interface ContentBody {
  input_id?: string | null;
  content: string | (Text | Image | File)[];
}
/** A part of a request, and how much of the context it takes. */
export interface ContextZone {
  name: string;
  tokens: number;
  budget?: number;
  is_cut?: boolean;
}
/** Where to go on: the `id` of the last event that was taken in; without it, from now on. */
export interface CursorQuery {
  after?: number | null;
}
/** What one model used in one project on one day. */
export interface DailyUsage {
  day: string;
  project_path?: string;
  model?: string;
  calls?: number;
  usage?: Usage;
}
/** What was decided. */
export interface DecisionBody {
  input_id?: string | null;
  title: string;
  kind?: string;
  why?: string;
  scope?: string[];
  options?: (string | DecisionOption)[];
  supersedes?: string | null;
  parent?: string | null;
  confidence?: number | null;
  tags?: string[];
  review_after?: number | null;
  status?: string;
  session?: string | null;
}
/** What is to be changed of a node; what is left out stays. */
export interface DecisionChange {
  input_id?: string | null;
  status?: string | null;
  title?: string | null;
  why?: string | null;
  confidence?: number | null;
  scope?: string[] | null;
  tags?: string[] | null;
  review_after?: number | null;
  reason?: string;
}
/** An edge of the graph. */
export interface DecisionEdge {
  source: string;
  target: string;
  kind: string;
  rationale?: string;
  weight?: number;
}
/** The form of the export. */
export interface DecisionExportQuery {
  format?: "adr" | "dot" | "json" | "mermaid";
}
/** Nodes, and the edges between them. */
export interface DecisionList {
  nodes: DecisionNode[];
  edges: DecisionEdge[];
}
/** A node of the graph: a goal, a decision, an option, … */
export interface DecisionNode {
  id: string;
  kind: string;
  title: string;
  why?: string;
  status?: string;
  confidence?: number | null;
  by?: string;
  author?: string;
  scope?: string[];
  evidence?: (TurnEvidence | FileEvidence | CommitEvidence | CheckEvidence)[];
  tags?: string[];
  review_after?: number | null;
  at?: number;
}
/** Something that could be chosen, and what became of it. */
export interface DecisionOption {
  title: string;
  verdict?: string;
  why?: string;
}
/** Words or a file to look for; otherwise all nodes, of a kind or a status. */
export interface DecisionQuery {
  text?: string | null;
  path?: string | null;
  kind?: string | null;
  status?: string | null;
  session?: string | null;
  limit?: number;
}
/** Something with a name that a file defines; lines count from 1. */
export type Definition = [string, string, number, number, string];
/** A piece of two texts: the same in both, or what each has in its place. */
export interface DiffPart {
  kind: "changed" | "same";
  first: string;
  second: string;
}
/** The text of this node alone, or (with `original`) of the whole line down to it. */
export interface EditBody {
  input_id?: string | null;
  text: string;
  original?: string | null;
  fork?: boolean;
}
/** Lines `first` to `last` of a file, from 0, both included. Empty when `last` is `first - 1`. */
export interface EditBoundary {
  path: string;
  first: number;
  last: number;
  base?: string | null;
  name?: number;
}
/** All that a screen needs to draw itself; events after `seq` bring it on from there. */
export interface EditorSnapshot {
  seq: number;
  status: "awaiting_permission" | "error" | "executing_tool" | "idle" | "interrupted" | "thinking" | "waiting";
  model: string;
  mode: string;
  permission_mode: string;
  thinking: string;
  draft_node: string | null;
  draft: string;
  draft_thinking?: string;
  draft_calls?: CallInFlight[];
  running?: ToolExecuting[];
  queue: QueueEntry[];
  steering_length: number;
  follow_up_length: number;
  requests: (PermissionRequest | QuestionAsked)[];
  pending_approval: PermissionRequest | null;
  pending_plan: Record<string, unknown> | null;
  plan?: PlanProgress | null;
  error: string;
  wait?: TurnWaiting | null;
  goal?: GoalRow | null;
  context_used: number;
  context_window?: number;
  context_zones?: ContextZone[];
  cost_usd: number | null;
  title: string;
}
/** The body of every answer that is no success. */
export interface ErrorAnswer {
  error: ErrorBody;
}
/** What went wrong. */
export interface ErrorBody {
  kind: string;
  message: string;
  details?: Record<string, unknown>;
}
/** Words that were said in sessions. */
export interface ExcerptQuery {
  q: string;
  limit?: number;
}
/** What a command comes to: `send_message(expanded.content, **expanded.options)`. */
export interface ExpandedCommand {
  content: (Text | Image | File)[];
  options?: Record<string, unknown>;
  name?: string;
  agent?: string;
  missing?: string[];
}
/** What is to be judged: a command, or what another tool is given. */
export interface ExplainQuery {
  text: string;
  tool?: string;
  mode?: "accept_edits" | "auto" | "bypass" | "default" | "plan";
}
/** The form of an export. */
export interface ExportQuery {
  format?: "html" | "json" | "jsonl" | "md";
  files?: boolean;
}
/** A task for several candidates at once. */
export interface FanBody {
  input_id?: string | null;
  prompt: string;
  n?: number;
  models?: string[];
  verify?: string | null;
  verify_runs?: number;
  base?: "head" | "now";
  stop?: "all" | "verified";
  budget_usd?: number | null;
}
/** One candidate, as tables show it; they come ranked, the best first. */
export interface FanCandidate {
  index: number;
  model: string;
  session: string;
  state: "done" | "failed" | "interrupted" | "kept" | "pruned" | "stopped" | "verifying" | "working";
  verify?: string;
  verify_passed?: number;
  verify_runs?: number;
  base_verify?: string;
  touches_checks?: boolean;
  base_tests?: string;
  files?: string[];
  added?: number;
  removed?: number;
  judged?: number;
  agree?: number;
  of?: number;
  cost_usd?: number | null;
  seconds?: number;
  reason?: string;
  text?: string;
  detail?: string;
  isolation?: string;
  is_best?: boolean;
}
/** One fan-out in a list. */
export interface FanSummary {
  id: string;
  session: string;
  prompt: string;
  at: number;
  planned: number;
  ended: number;
  passed: number;
  kept?: number[];
  is_closed?: boolean;
  agent?: string;
}
/** The verify command was run once. */
export interface FanVerified {
  kind: "fan_verified";
  fan_id: string;
  index?: number;
  run?: number;
  on?: "base" | "base_tests" | "candidate" | "merged";
  command?: string;
  exit_code?: number | null;
  seconds?: number;
  output?: string | null;
  passed?: boolean;
  session_id?: string;
  seq?: number;
  at?: number;
  cause?: CommandCause | null;
}
/** A fan-out as it is now. */
export interface FanView {
  id: string;
  session_id: string;
  prompt: string;
  planned: number;
  verify_command: string;
  is_settled: boolean;
  candidates: FanCandidate[];
}
/** A file that the user attached, as text or as a blob. */
export interface File {
  type: "file";
  name: string;
  media_type?: string;
  text?: string;
  blob?: string | null;
}
/** The files of two branches side by side. */
export interface FileComparison {
  ancestor: string;
  first: string;
  second: string;
  files: BranchFile[];
  is_exact?: boolean;
  why?: string;
  sides?: BranchFacts[];
}
/** A path that is not what the log tells of. */
export interface FileDifference {
  path: string;
  kind: "created" | "deleted" | "modified";
  by: string;
  since?: number | null;
}
/** It was about a file as that was then. */
export interface FileEvidence {
  kind: "file";
  path: string;
  blob?: string | null;
  sample?: string;
}
/** One hunk of a difference. */
export interface FileHunk {
  id: string;
  before: number;
  before_count: number;
  after: number;
  after_count: number;
  added: number;
  removed: number;
  text: string;
}
/** A file, now or as it was when a message was done. */
export interface FileQuery {
  path: string;
  at?: string | null;
}
/** Files of two branches put together. */
export interface FileWeave {
  ancestor: string;
  parents: [string, string];
  node?: string | null;
  files?: BranchFile[];
  written?: string[];
  removed?: string[];
  conflicts?: string[];
  left?: string[];
}
/** Two branches whose files are put together. */
export interface FileWeaveBody {
  input_id?: string | null;
  first: string;
  second: string;
  picks?: Record<string, "first" | "second">;
  overwrite?: string[];
  preview?: boolean;
}
/** Letters of a path; all files without them. */
export interface FindQuery {
  text?: string | null;
}
/** A folder of this machine. */
export interface FolderBody {
  input_id?: string | null;
  path: string;
}
/** A session of another agent, and what becomes of it here. */
export interface ForeignSessionRow {
  agent: string;
  path: string;
  id?: string;
  title?: string;
  state?: "left out" | "made" | "new" | "there";
  session?: string;
  messages?: number;
  branches?: number;
  calls?: number;
  interrupted?: number;
  usage?: Usage | null;
  folder?: string;
  version?: string;
  problems?: string[];
}
/** Where a fork begins: a message's id or its number, or the end. */
export interface ForkBody {
  input_id?: string | null;
  at?: string | number | null;
  title?: string | null;
}
/** How branches are made. */
export interface GenerateBody {
  input_id?: string | null;
  max_context_tokens?: number | null;
  stop_when?: string;
}
/** What a session works for, turn after turn. */
export interface Goal {
  id: string;
  session_id: string;
  text: string;
  check: string;
  judge: string;
  status: "active" | "checking" | "done" | "ended" | "paused";
  reason?: string;
  detail?: string;
  asks?: boolean;
  round?: number;
  max_rounds: number;
  cost_usd?: number;
  max_budget_usd?: number | null;
  seconds?: number;
  max_seconds?: number | null;
  mode?: string;
  is_sealed?: boolean;
  revision?: number;
  checks?: GoalRound[];
}
/** What is worked for turn after turn. */
export interface GoalBody {
  input_id?: string | null;
  text: string;
  check?: string | null;
  judge?: string | null;
  max_budget_usd?: number | null;
  max_seconds?: number | null;
  max_rounds?: number | null;
  outside_sandbox?: boolean;
}
/** What of a goal is another from now on; what is not given stays. */
export interface GoalEditBody {
  input_id?: string | null;
  text?: string | null;
  check?: string | null;
  judge?: string | null;
  max_budget_usd?: number | null;
  max_seconds?: number | null;
  max_rounds?: number | null;
  outside_sandbox?: boolean;
}
/** That a goal goes on. */
export interface GoalResumeBody {
  input_id?: string | null;
  outside_sandbox?: boolean;
}
/** What the check of one round came to. */
export interface GoalRound {
  round: number;
  by: string;
  done: boolean;
  exit_code: number | null;
  progress: boolean;
  detail: string;
  at: number;
}
/** A goal that has not ended, as far as a line tells of it. */
export interface GoalRow {
  goal_id: string;
  text: string;
  round?: number;
  max_rounds?: number;
  max_budget_usd?: number | null;
  cost_before?: number;
  paused?: string;
}
/** The server lives; it says nothing else to those without a token. */
export interface HealthAnswer {
  status?: "ok";
}
/** One message of the conversation, as programs like to read it. */
export interface HistoryMessage {
  role: string;
  content: string;
  tool_calls?: (Record<string, unknown>)[];
  tool_call_id?: string | null;
  is_error?: boolean;
  is_partial?: boolean;
  is_excluded?: boolean;
  diff?: string;
  output?: string;
  typed?: string;
  attached?: string[];
  thinking?: string;
  duration_ms?: number;
  allowed?: "" | "call" | "session" | "turn";
  parts?: (Text | Thinking | ToolCall | Image | File)[];
  model?: string;
  usage?: Usage | null;
  at?: number;
}
/** A hunk of what was changed between two messages. */
export interface HunkBody {
  input_id?: string | null;
  path: string;
  hunk: string;
  since?: string | null;
  until?: string | null;
}
/** What came of a hunk that was to be put back or taken. */
export interface HunkOutcome {
  path: string;
  is_done: boolean;
  node?: string | null;
  why?: string;
}
/** A picture or a PDF, by content (base64) or by the blob that holds it. */
export interface Image {
  type: "image";
  media_type: string;
  data?: string;
  blob?: string | null;
  name?: string;
  pages?: number;
  text_beside?: boolean;
}
/** An export as text (json or jsonl). */
export interface ImportBody {
  input_id?: string | null;
  content: string;
}
/** Whose sessions and set-up are taken over, and whether that is only shown. */
export interface ImportFromBody {
  input_id?: string | null;
  agent: "claude" | "codex" | "opencode" | "pi";
  id?: string | null;
  preview?: boolean;
  setup?: boolean | null;
}
/** What came of an import. */
export interface ImportedSession {
  session: SessionView;
  dropped: Record<string, number>;
}
/** A candidate. */
export interface IndexBody {
  input_id?: string | null;
  index: number;
}
/** What an index holds. */
export interface IndexStatus {
  files?: number;
  sources?: number;
  languages?: Record<string, number>;
  commits?: number;
  is_there?: boolean;
}
/** Which candidate. */
export interface KeepBody {
  input_id?: string | null;
  index: number;
  preview?: boolean;
  force?: boolean;
  conflicts?: "markers" | "mine";
}
/** What keeping a candidate did, or would do. */
export interface KeepOutcome {
  plan: KeepPlan;
  is_kept?: boolean;
  verified?: FanVerified | null;
  output?: string;
  aside?: string;
  remarks?: string[];
  left?: string[];
  node?: string | null;
}
/** What keeping a candidate would do. */
export interface KeepPlan {
  files?: KeptFile[];
  left_out?: string[];
}
/** The file contents of a project. */
export interface KeptContents {
  project_path: string;
  sessions: number;
  contents: number;
  bytes: number;
  quota: number;
  room: number;
  next?: NextContent[];
  more?: number;
}
/** One file of a candidate, and what keeping does with it. */
export interface KeptFile {
  path: string;
  action: "conflict" | "marked" | "merge" | "put" | "remove" | "same";
  why?: string;
  result?: BaseFile | null;
  theirs?: BaseFile | null;
  ours?: BaseFile | null;
}
/** A key; it is kept in a file that only the user can read. */
export interface KeyBody {
  input_id?: string | null;
  key: string;
}
/** What the provider's server says of a key. */
export interface KeyCheck {
  state: "refused" | "unknown" | "works";
  why?: string;
}
/** A key that is tested; without one, that which the provider has here. */
export interface KeyCheckBody {
  input_id?: string | null;
  key?: string;
}
/** A provider that takes a key. */
export interface KeyProvider {
  name: string;
  title: string;
  is_usable: boolean;
  shown?: string;
  source?: string;
}
/** A kind of a program's own. */
export interface KindBody {
  input_id?: string | null;
  kind: string;
  about?: string;
}
/** What a checkpoint is called. */
export interface LabelBody {
  input_id?: string | null;
  label?: string | null;
}
/** A prompt that is sent later. */
export interface LaterBody {
  input_id?: string | null;
  at: string;
  prompt: string;
  every?: string | null;
  max_rounds?: number | null;
  until?: string | null;
}
/** A thinking level. */
export interface LevelBody {
  input_id?: string | null;
  level: string;
}
/** The commit that a line, or a file, was last changed in. */
export interface LineCommit {
  commit: string;
  author?: string;
  at?: number;
  summary?: string;
}
/** The turn that changed a file. */
export interface LineTurn {
  session_id: string;
  turn_id: string;
  node?: string | null;
  at?: number;
  prompt?: string;
}
/** An edge from this node to another. */
export interface LinkBody {
  input_id?: string | null;
  target: string;
  kind?: string;
  rationale?: string;
  weight?: number;
}
/** What models are told besides the text; empty clears it. */
export interface LoomContextBody {
  input_id?: string | null;
  text: string;
}
/** A node that a search found. */
export interface LoomHit {
  node: LoomNode;
  root: string;
  score: number;
  snippet: string;
}
/** A name; null takes it away. */
export interface LoomLabelBody {
  input_id?: string | null;
  text: string | null;
}
/** One segment of text, and where it stands. */
export interface LoomNode {
  id: string;
  parent_id: string | null;
  root_id: string;
  text: string;
  revision?: number;
  parent_revision?: number;
  kind?: "message" | "root" | "text";
  role?: string | null;
  model?: string | null;
  strategy?: string | null;
  max_tokens?: number | null;
  temperature?: number | null;
  created_at?: number;
  partial?: boolean;
  bookmarked?: boolean;
  hidden?: boolean;
  rating?: number | null;
  usage?: Usage | null;
  cost_usd?: number | null;
  metadata?: Record<string, unknown>;
  tokens?: TokenLogprob[] | null;
}
/** Words to look for; lists have commas between their parts. */
export interface LoomSearchQuery {
  q: string;
  roots?: string | null;
  models?: string | null;
  bookmarked?: boolean | null;
  after?: number | null;
  limit?: number;
}
/** Settings of a tree; what is left out stays. */
export interface LoomSettingsBody {
  input_id?: string | null;
  name?: string | null;
  model_plan?: (Record<string, unknown>)[] | null;
  show_model_names?: boolean | null;
  logprobs?: number | null;
  archived?: boolean | null;
}
/** Everything that a screen needs to draw one view. */
export interface LoomState {
  current_node_id: string;
  current_node: LoomNode;
  full_text: string;
  children: LoomNode[];
  selected_child_idx: number;
  descendant_counts: Record<string, number>;
  continuation_text: string;
  model: string;
  max_tokens: number;
  temperature: number;
  n_branches: number;
  context: string;
  root_id: string;
  view_mode?: "branch" | "tree";
  hoisted_node_id?: string | null;
  tree_nodes?: LoomNode[] | null;
  show_model_names?: boolean;
  model_plan?: ModelPlanEntry[];
  usage?: Usage;
  cost?: number | null;
  pricing_complete?: boolean;
  name?: string;
  lineage_segments?: TextSegment[];
  continuation_segments?: TextSegment[];
  render_chat_headers?: boolean;
  can_undo?: boolean;
  is_generating?: boolean;
  is_blind?: boolean;
}
/** A message of which a file can not be had any more when a content is gone. */
export interface LostState {
  session: string;
  title: string;
  message: string | null;
  path: string;
  loses?: string[];
}
/** What the map is for. */
export interface MapQuery {
  request?: string;
  focus?: string;
  tokens?: number;
}
/** One command. */
export interface MarkdownCommand {
  name: string;
  body: string;
  path: string;
  source: "project" | "user";
  description?: string;
  argument_hint?: string;
  model?: string;
  agent?: string;
}
/** Whether a server that the project names may be used. */
export interface McpAnswerBody {
  input_id?: string | null;
  allowed: boolean;
  digest?: string;
}
/** An MCP server as it is written in a file. */
export interface McpEntryBody {
  input_id?: string | null;
  entry: Record<string, unknown>;
  scope?: "local" | "project" | "user";
}
/** The MCP servers of a project, and what is to be said about them first. */
export interface McpOverview {
  servers: McpServerRow[];
  questions?: McpQuestion[];
  problems?: string[];
}
/** What the user is asked about an MCP server that the project names. */
export interface McpQuestion {
  name: string;
  shown: string;
  variables?: string[];
  environ?: string[];
  headers?: string[];
  is_remote?: boolean;
  network?: boolean;
  is_sandboxed?: boolean;
  had_answer?: boolean;
  digest?: string;
}
/** From which file; null: the first that has it. */
export interface McpScopeBody {
  input_id?: string | null;
  scope?: "local" | "project" | "user" | null;
}
/** All that is known of an MCP server; names alone where values may be secrets. */
export interface McpServerDetails {
  name: string;
  scope: string;
  source: string;
  state: string;
  why?: string;
  runs?: string;
  transport?: string;
  sandbox?: boolean;
  network?: boolean;
  environment?: string[];
  headers?: string[];
  protocol?: string;
  title?: string;
  tools?: string[];
  changed?: Record<string, string>;
  left_out?: string[];
}
/** An MCP server in a list. */
export interface McpServerRow {
  name: string;
  scope: string;
  state: string;
  why?: string;
  shown?: string;
  tools?: number;
  changed?: string[];
  left_out?: string[];
  era?: string;
  title?: string;
}
/** Something to remember. */
export interface MemoryBody {
  input_id?: string | null;
  text: string;
  scope?: "project" | "user";
}
/** The file as it was read, and as it is to be. */
export interface MemoryFileBody {
  input_id?: string | null;
  before: string;
  after: string;
  scope?: "project" | "user";
}
/** One thing that is remembered. */
export interface MemoryNote {
  id: string;
  scope: "project" | "user";
  text: string;
  path: string;
}
/** A message whose turn is waited for. */
export interface MessageBody {
  input_id?: string | null;
  model?: string | null;
  tools?: string | string[] | null;
  max_turns?: number | null;
  max_seconds?: number | null;
  max_tool_calls?: number | null;
  max_budget_usd?: number | null;
  max_tokens?: number | null;
  thinking?: "default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh" | null;
  schema?: Record<string, unknown> | null;
  mode?: "architect" | "normal" | null;
  plan_model?: string | null;
  edit_model?: string | null;
  retries?: number | null;
  content: string | (Text | Image | File)[];
  queue?: boolean;
}
/** A message that no request has any more, and what that means. */
export interface MessageExclusion {
  message: string;
  tokens: number;
  calls: number;
  summarized: boolean;
}
/** A part of the present line, oldest first. */
export interface MessagePage {
  messages: MessageRow[];
  previous: string | null;
  next: string | null;
  seq: number;
  asides?: SideQuestion[];
}
/** A message with its id. */
export interface MessageRow {
  id: string;
  message: HistoryMessage;
}
/** What a program keeps with a node; null takes a key out. */
export interface MetadataBody {
  input_id?: string | null;
  changes: Record<string, unknown>;
}
/** A mode. */
export interface ModeBody {
  input_id?: string | null;
  mode: string;
}
/** What could answer here. */
export interface ModelAccess {
  default_model: string;
  has_default: boolean;
  providers: KeyProvider[];
  local_models?: string[];
}
/** A model by its name. */
export interface ModelBody {
  input_id?: string | null;
  model: string;
}
/** What is known of a model. Prices are US dollars for a million tokens; None is unknown. */
export interface ModelInfo {
  provider: string;
  name: string;
  context_window?: number;
  max_output_tokens?: number;
  price_input?: number | null;
  price_output?: number | null;
  price_cache_read?: number | null;
  price_cache_write?: number | null;
  long_prompt?: number | null;
  long_prices?: number[];
  thinks?: boolean;
  levels?: ("default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh")[];
  default_level?: "default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh" | null;
  sees_images?: boolean;
  reads_pdf?: boolean;
  calls_tools?: boolean;
  edits_by_patch?: boolean;
}
/** One model of a plan. */
export interface ModelPlanEntry {
  model?: string;
  n_branches?: number;
  max_tokens?: number;
  temperature?: number;
  enabled?: boolean;
  strategy?: string;
}
/** What became of one model's nodes. */
export interface ModelStats {
  model: string;
  nodes: number;
  expanded: number;
  bookmarked: number;
  hidden: number;
  win_rate: number | null;
  peer_score: number | null;
  kept_rate: number;
  utility: number;
  cost_usd: number | null;
  output_tokens: number;
}
/** A new name. */
export interface NameBody {
  input_id?: string | null;
  name: string;
}
/** A name. */
export interface NameQuery {
  name: string;
}
/** Of which session, or of which goal. */
export interface NarrativeQuery {
  session?: string | null;
  goal?: string | null;
}
/** All changes of one file together. */
export interface NetChange {
  path: string;
  action: "created" | "deleted" | "modified";
  hunks?: FileHunk[];
  added?: number;
  removed?: number;
  calls?: string[];
  why?: string;
  is_masked?: boolean;
}
/** A content that goes as soon as the room is needed. */
export interface NextContent {
  content: string;
  bytes: number;
  states?: LostState[];
}
/** One position of the tree: what was said, by whom, after what. */
export interface Node {
  id: string;
  role: "assistant" | "system" | "user";
  parts?: (Text | Thinking | ToolCall | Image | File)[];
  parent?: string | null;
  parent_revision?: number;
  model?: string;
  usage?: Usage | null;
  revision?: number;
  metadata?: Record<string, unknown>;
}
/** A message. */
export interface NodeBody {
  input_id?: string | null;
  node: string;
}
/** Messages by their ids, with commas between them. */
export interface NodesQuery {
  ids: string;
}
/** A note that is shown and kept. */
export interface NoteBody {
  input_id?: string | null;
  text: string;
  level?: "error" | "info" | "warning";
  to_model?: boolean;
}
/** The ids of queued messages, in their new order. */
export interface OrderBody {
  input_id?: string | null;
  ids: string[];
}
/** Which part of a line. */
export interface PageQuery {
  before?: string | null;
  after?: string | null;
  limit?: number;
}
/** The token of a page. */
export interface PairAnswer {
  token: string;
}
/** The code from the address that `weft web` opens, or the password of a public server. */
export interface PairBody {
  input_id?: string | null;
  code: string;
}
/** What is said of one command of a line. */
export interface PartJudgement {
  text: string;
  argv: string[];
  decision: "allow" | "ask" | "deny";
  reason: string;
  rule?: string;
  only_reads?: boolean;
}
/** The files of the project as they were at a message. */
export interface PastFiles {
  paths: string[];
  tree: string;
  is_exact: boolean;
  why?: string;
}
/** A message, by its id. */
export interface PastQuery {
  at: string;
}
/** A file of the project. */
export interface PathQuery {
  path: string;
}
/** What would be decided of an action, and why. */
export interface PermissionExplanation {
  decision: "allow" | "ask" | "deny";
  parts?: PartJudgement[];
  rule?: string;
  why?: string;
  mode?: "accept_edits" | "auto" | "bypass" | "default" | "plan";
  sandboxed?: boolean;
}
/** A tool call waits for permission. */
export interface PermissionRequest {
  kind: "permission_request";
  request_id: string;
  call_uid: string;
  node: string;
  tool_name: string;
  tool_path?: string;
  preview?: string;
  shown_hash?: string;
  always_pattern?: string;
  reason?: string;
  child?: string | null;
  outlives_turn?: boolean;
  args?: Record<string, unknown> | null;
  session_id?: string;
  seq?: number;
  at?: number;
  cause?: CommandCause | null;
}
/** A plan in the place of the one that waits. */
export interface PlanBody {
  input_id?: string | null;
  plan: Record<string, unknown>;
}
/** A plan of architect mode, and how far it has come. */
export interface PlanProgress {
  plan: Record<string, unknown>;
  approved: boolean | null;
  steps?: Record<string, string>;
}
/** A place in the node's text, in characters. */
export interface PositionBody {
  input_id?: string | null;
  position: number;
}
/** A file, as it may be shown. */
export interface ProjectFile {
  path: string;
  text: string | null;
  data?: string;
  media_type?: string;
  size?: number;
  is_exact?: boolean;
}
/** A project that the server knows. */
export interface ProjectInfo {
  id: string;
  path: string;
  name: string;
  is_main?: boolean;
  is_open?: boolean;
}
/** A message to a session. */
export interface PromptBody {
  input_id?: string | null;
  model?: string | null;
  tools?: string | string[] | null;
  max_turns?: number | null;
  max_seconds?: number | null;
  max_tool_calls?: number | null;
  max_budget_usd?: number | null;
  max_tokens?: number | null;
  thinking?: "default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh" | null;
  schema?: Record<string, unknown> | null;
  mode?: "architect" | "normal" | null;
  plan_model?: string | null;
  edit_model?: string | null;
  retries?: number | null;
  content: string | (Text | Image | File)[];
}
/** A problem that a check found. */
export interface PulseFinding {
  check: string;
  id: string;
  text: string;
}
/** How the graph is. */
export interface PulseReport {
  score: number;
  findings: PulseFinding[];
  nodes: number;
  active_goals: number;
  proposed: number;
}
/** A question for one model. */
export interface QueryBody {
  input_id?: string | null;
  prompt: string | (Text | Image | File)[];
  model?: string | null;
  system?: string | null;
  schema?: Record<string, unknown> | null;
  max_output_tokens?: number | null;
  temperature?: number | null;
  thinking?: "default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh" | null;
  stop?: string[] | null;
  retries?: number | null;
}
/** The model asks the user a question. */
export interface QuestionAsked {
  kind: "question_asked";
  request_id: string;
  call_uid: string;
  node: string;
  question: string;
  options?: string[];
  child?: string | null;
  outlives_turn?: boolean;
  session_id?: string;
  seq?: number;
  at?: number;
  cause?: CommandCause | null;
}
/** One queued input. */
export interface QueueEntry {
  entry_id: string;
  delivery: "follow_up" | "steering";
  parts: (Text | Thinking | ToolCall | Image | File)[];
  options?: Record<string, unknown>;
}
/** Both queues, next one first. */
export interface QueuedPair {
  steering: QueueEntry[];
  follow_up: QueueEntry[];
}
/** The lines of a file that may be edited, counted from 0, the last one included. */
export interface RangeBody {
  input_id?: string | null;
  first: number;
  last: number;
}
/** A tree in which something was found: its best node, and that node's score. */
export interface RankedTree {
  root_id: string;
  best_id: string;
  score: number;
  hits: number;
}
/** A rating; null takes it away. */
export interface RatingBody {
  input_id?: string | null;
  rating: number | null;
}
/** A reason. */
export interface ReasonBody {
  input_id?: string | null;
  reason?: string;
}
/** A claim and what is on record about it. */
export interface Receipt {
  claim: string;
  kind: "all" | "build" | "format" | "lint" | "other" | "search" | "test" | "types";
  color: "amber" | "green" | "grey" | "none";
  why: string;
  command?: string;
  exit_code?: number | null;
  tree?: string;
  call?: string;
}
/** How a request differs from the one before. */
export interface RequestChange {
  kept_messages: number;
  removed_messages: number;
  added_messages: number;
  tokens: number;
}
/** All pieces of one kind. */
export interface RequestPart {
  name: string;
  tokens: number;
  cached_tokens?: number;
  cost_usd?: number | null;
  before_tokens?: number;
}
/** How a turn (or a whole run) ended. */
export interface Result {
  text: string;
  finish_reason: "aborted" | "auth_error" | "content_filter" | "context_overflow" | "halted" | "length" | "malformed_call" | "max_budget" | "max_time" | "max_tool_calls" | "max_turns" | "mistakes" | "no_progress" | "paused" | "provider_error" | "refusal" | "safety" | "schema_failed" | "stop" | "submitted";
  session_id: string;
  model?: string;
  usage?: Usage;
  cost_usd?: number | null;
  duration_ms?: number;
  iterations?: number;
  tool_calls_made?: number;
  messages?: HistoryMessage[];
  deliverable?: unknown;
  detail?: string;
  turn_id?: string | null;
  receipts?: Receipt[];
}
/** Which candidates; all without it. */
export interface ResumeBody {
  input_id?: string | null;
  indices?: number[] | null;
}
/** What happens to a turn that a crash cuts off. */
export interface ResumeChoiceBody {
  input_id?: string | null;
  choice: "ask" | "auto" | "never";
}
/** Which of a message's texts, counted from 0. */
export interface RevisionBody {
  input_id?: string | null;
  n: number;
}
/** Where to rewind to: a message's id or number, a checkpoint, or (null) the start. */
export interface RewindBody {
  input_id?: string | null;
  to: string | number | null;
  files?: boolean;
  conversation?: boolean;
  preview?: boolean;
  overwrite?: string[];
}
/** What a rewind does with one file, link or folder. */
export interface RewindItem {
  path: string;
  action: "conflict" | "delete" | "recreate" | "restore" | "unavailable" | "unchanged";
  reason?: string;
}
/** What a rewind does, or did. */
export interface RewindPlan {
  to: string | null;
  conversation: boolean;
  files?: RewindItem[];
  left_out?: string[];
  is_done?: boolean;
  left?: string | null;
}
/** A new tree. */
export interface RootBody {
  input_id?: string | null;
  text?: string;
  title?: string;
  metadata?: Record<string, unknown>;
}
/** A rule of the user's settings. */
export interface RuleBody {
  input_id?: string | null;
  verdict: "allow" | "ask" | "deny";
  rule: string;
  match?: string[];
  not_match?: string[];
}
/** The rules that count in a project. */
export interface RuleList {
  rules: StandingRule[];
}
/** A rule that is taken out of the user's settings. */
export interface RuleRemovalBody {
  input_id?: string | null;
  verdict: "allow" | "ask" | "deny";
  rule: string;
}
/** What a rule would have changed. */
export interface RuleSimulation {
  verdict: "allow" | "ask" | "deny";
  rule: string;
  sessions: number;
  calls: number;
  covered: number;
  before: VerdictCount;
  after: VerdictCount;
  changed?: SimulatedCall[];
}
/** A task for one run, which is not kept. */
export interface RunBody {
  input_id?: string | null;
  prompt: string | (Text | Image | File)[];
  project?: string | null;
  model?: string | null;
  tools?: string | string[] | null;
  permission_mode?: string | null;
  system_prompt?: string | null;
  max_turns?: number | null;
  max_seconds?: number | null;
  max_tool_calls?: number | null;
  max_budget_usd?: number | null;
  schema?: Record<string, unknown> | null;
}
/** Where sessions have the words of a search. */
export interface SaidExcerpts {
  excerpts: Record<string, string>;
}
/** A prompt that is sent later, in a new session or in one that there is. */
export interface ScheduleBody {
  input_id?: string | null;
  at: string;
  prompt: string;
  every?: string | null;
  max_rounds?: number | null;
  until?: string | null;
  session_id?: string | null;
}
/** Of which file. */
export interface ScopeQuery {
  scope?: "project" | "user";
}
/** A call of a turn; without a turn, the last one of the line. */
export interface SentQuery {
  turn?: string | null;
  call?: number;
  diff?: boolean;
}
/** The request of one call. */
export interface SentRequest {
  session: string;
  turn: string;
  call: number;
  calls: number;
  node: string;
  at: number;
  model: string;
  thinking: string;
  match: "differs" | "equal" | "same_words" | "unknown";
  said: string;
  is_wire: boolean;
  body: string;
  size: number;
  digest: string;
  parts: RequestPart[];
  usage: Usage | null;
  cache: CacheReport;
  change: RequestChange | null;
  excluded?: string[];
  diff?: string;
}
/** A language server that is there for a project, or runs somewhere. */
export interface ServerStatus {
  name: string;
  project?: string;
  program?: string;
  suffixes?: string[];
  state?: string;
  why?: string;
  pid?: number;
  memory?: number;
}
/** What may be changed of a stored session. */
export interface SessionChange {
  input_id?: string | null;
  title?: string | null;
  archived?: boolean | null;
}
/** A running session at a glance. */
export interface SessionInfo {
  id: string;
  status: "awaiting_permission" | "error" | "executing_tool" | "idle" | "interrupted" | "thinking" | "waiting";
  title: string;
  model: string;
  mode: string;
  project_path: string;
  last_active: number;
}
/** A page of the list of stored sessions, last active first. */
export interface SessionList {
  rows: SessionRow[];
  next: string | null;
  working: string[];
}
/** Which stored sessions. */
export interface SessionListQuery {
  q?: string | null;
  project?: string | null;
  archived?: boolean;
  after?: string | null;
  limit?: number;
}
/** What there is to say about a session in one line. */
export interface SessionMetadata {
  id: string;
  title: string;
  model: string;
  provider: string;
  created: number;
  last_message: number;
  message_count: number;
  turn_count: number;
  first_prompt: string;
  cost_usd: number | null;
  status: "awaiting_permission" | "error" | "executing_tool" | "idle" | "interrupted" | "thinking" | "waiting";
  project_path: string;
  parent_id?: string | null;
}
/** A stored session, read without starting anything. */
export interface SessionRecord {
  row: SessionRow;
  messages: HistoryMessage[];
  ids: string[];
}
/** What a list shows of a session, kept up to date by its appends. Read without decoding a single fact. While a turn runs, counts, cost and times may be a minute behind. */
export interface SessionRow {
  id: string;
  title?: string;
  project_path?: string;
  project_id?: string;
  model?: string;
  mode?: string;
  created?: number;
  last_active?: number;
  message_count?: number;
  turn_count?: number;
  first_prompt?: string;
  branch?: string;
  cost_usd?: number | null;
  parent_id?: string | null;
  is_child?: boolean;
  archived?: boolean;
  turn_open?: boolean;
  wake_at?: number | null;
  round_at?: number | null;
  asleep?: boolean;
  min_reader?: number;
  damaged?: string;
  last_seq?: number;
  root?: string;
}
/** A session as a screen draws it; events after `snapshot.seq` bring it on. */
export interface SessionView {
  id: string;
  project: string;
  project_path: string;
  snapshot: EditorSnapshot;
}
/** Something that a session waits for: the wait of its turn, or a prompt that is to be sent. */
export interface SessionWait {
  id: string;
  session_id: string;
  kind: string;
  text: string;
  since: number;
  until?: number | null;
  every?: number | null;
  rounds?: number;
  max_rounds?: number | null;
  ends?: number | null;
  is_sealed?: boolean;
}
/** A setting as the user types it; null takes it out. */
export interface SettingBody {
  input_id?: string | null;
  name: string;
  value: string | null;
}
/** A part of another agent's set-up. */
export interface SetupItem {
  kind: "command" | "hook" | "instructions" | "key" | "model" | "rule" | "server" | "skill";
  name: string;
  state?: "left out" | "made" | "new" | "there";
  why?: string;
}
/** A question beside the line, and its answer. */
export interface SideQuestion {
  seq: number;
  node: string | null;
  question: string;
  answer: string;
  model: string;
  at: number;
}
/** The rule that is tried on past calls, and whether on those of every project. */
export interface SimulateQuery {
  rule: string;
  verdict?: "allow" | "ask" | "deny";
  mode?: "accept_edits" | "auto" | "bypass" | "default" | "plan";
  everywhere?: boolean;
}
/** A call that the rule would have decided otherwise. */
export interface SimulatedCall {
  tool: string;
  text: string;
  times: number;
  before: "allow" | "ask" | "deny";
  after: "allow" | "ask" | "deny";
}
/** One skill. */
export interface SkillFile {
  name: string;
  description: string;
  path: string;
  body: string;
  for_model?: boolean;
  is_project?: boolean;
}
/** The skills of a session. */
export interface SkillList {
  all: SkillFile[];
  active: string[];
}
/** A rule that counts in this project. */
export interface StandingRule {
  verdict: "allow" | "ask" | "deny";
  rule: string;
  source: string;
}
/** What a session is started with; all of it may be left out. */
export interface StartBody {
  input_id?: string | null;
  session_id?: string | null;
  model?: string | null;
  project_path?: string | null;
  title?: string | null;
  tools?: string | string[] | null;
  auto_approve?: boolean | null;
  system_prompt?: string | null;
  append_system_prompt?: string | null;
  permission_mode?: string | null;
  messages?: (Record<string, unknown>)[] | null;
  resume?: "ask" | "auto" | "never" | null;
  max_turns?: number | null;
  max_seconds?: number | null;
  max_tool_calls?: number | null;
  thinking?: "default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh" | null;
  budget?: Record<string, number> | null;
  mode?: "architect" | "normal" | null;
  plan_model?: string | null;
  edit_model?: string | null;
}
/** A word, and what it is of. */
export interface StatusAnswer {
  value: string;
}
/** Whether the turn that runs is to end after its present step. */
export interface StopAfterStepBody {
  input_id?: string | null;
  is_wanted?: boolean;
}
/** The node that stands in the place of this one. */
export interface SupersedeBody {
  input_id?: string | null;
  new: string;
  rationale?: string;
}
/** A definition and where it is. */
export type Symbol = [string, Definition];
/** A hunk of the second branch that the first is to have. */
export interface TakenHunkBody {
  input_id?: string | null;
  path: string;
  hunk: string;
  first: string;
  second: string;
}
/** Plain text. Very long text is kept as a blob, and `text` is only its beginning. */
export interface Text {
  type: "text";
  text: string;
  blob?: string | null;
  signature?: string;
  typed?: string;
}
/** A text. */
export interface TextAnswer {
  text: string;
  path?: string;
}
/** A part of a longer text, and the node that has it. */
export interface TextSegment {
  text: string;
  role: string | null;
  node_id: string;
}
/** A model's reasoning, with whatever proof the vendor wants to see again. */
export interface Thinking {
  type: "thinking";
  text?: string;
  signature?: string;
  provider?: string;
  model?: string;
  redacted?: string;
}
/** One task of the model's to-do list. */
export interface Todo {
  id: string;
  text: string;
  status?: "cancelled" | "done" | "in_progress" | "pending";
}
/** How something stands after it was switched. */
export interface ToggleAnswer {
  value: boolean;
}
/** A token by its place, and what stands there instead. */
export interface TokenBody {
  input_id?: string | null;
  index: number;
  alternative?: string | null;
}
/** One token of an answer: its text, its natural logarithm of probability, and what else could have stood there, the likeliest first. */
export type TokenLogprob = [string, number, ([string, number])[]];
/** The model asks for a tool. */
export interface ToolCall {
  type: "tool_call";
  call_uid: string;
  name: string;
  args?: Record<string, unknown>;
  provider_id?: string;
  provider?: string;
  raw_args?: string;
  signature?: string;
}
/** The intent record: this call is about to take effect. */
export interface ToolExecuting {
  kind: "tool_executing";
  call_uid: string;
  node: string;
  tool_name: string;
  target?: string;
  args?: Record<string, unknown>;
  effect?: "checkable" | "pure" | "unknown";
  attempt?: number;
  pre_hashes?: Record<string, string>;
  post_hashes?: Record<string, string>;
  pre_modes?: Record<string, number>;
  permission?: CallPermission | null;
  session_id?: string;
  seq?: number;
  at?: number;
  cause?: CommandCause | null;
}
/** What a tool answered. `text` is what the model reads. */
export interface ToolResult {
  call_uid: string;
  text?: string;
  images?: Image[];
  is_error?: boolean;
  status?: "aborted" | "denied" | "done" | "interrupted" | "invalid";
  full_text?: string | null;
  data?: Record<string, unknown>;
}
/** What to follow. */
export interface TopicQuery {
  topic?: "repo:updates" | "sessions";
}
/** One changed file, as `touched_files()` shows it. */
export interface TouchedFile {
  path: string;
  action: "created" | "deleted" | "modified";
  at: number;
}
/** A page of a list of trees. */
export interface TreeCatalogue {
  entries: CatalogueEntry[];
  total: number;
  facets: Record<string, Record<string, number>>;
}
/** A tree as a file has it. */
export interface TreeFileBody {
  input_id?: string | null;
  content: string;
}
/** The form of the file. */
export interface TreeFormatQuery {
  format?: "basemode" | "html" | "json" | "md";
}
/** What came of an import. */
export interface TreeImport {
  roots: string[];
  added: number;
  known: number;
  source: string;
}
/** One message of the tree. */
export interface TreeMessage {
  id: string;
  parent: string | null;
  role: "assistant" | "system" | "user";
  text?: string;
  calls?: number;
  is_partial?: boolean;
  is_pinned?: boolean;
  revision?: number;
  at?: number;
  cost_usd?: number | null;
}
/** The settings of a tree, which all its views share. */
export interface TreeSettings {
  name?: string;
  model_plan?: ModelPlanEntry[];
  show_model_names?: boolean;
  logprobs?: number;
  archived?: boolean;
  metadata?: Record<string, unknown>;
}
/** How a subtree has grown. */
export interface TreeShape {
  size: number;
  depth: number;
  width: number;
  leaves: number;
  forks: number;
  branching: number;
  branchiness: number;
}
/** A tree in numbers. */
export interface TreeStats {
  root_id: string;
  nodes: number;
  bookmarked: number;
  partial: number;
  characters: number;
  shape: TreeShape;
  models: ModelStats[];
}
/** All messages of a session, parents before their children, and the names in it. */
export interface TreeView {
  messages: TreeMessage[];
  head: string | null;
  branches: Branch[];
  checkpoints?: CheckpointInfo[];
  summarized_to?: string | null;
  can_undo_compaction?: boolean;
}
/** Whether the user trusts a folder, and what to ask where something of it is withheld. */
export interface TrustAnswer {
  is_trusted: boolean;
  question: TrustQuestion | null;
}
/** What the user decided. */
export interface TrustBody {
  input_id?: string | null;
  trusted: boolean;
}
/** What the user must know to say whether they trust a folder. */
export interface TrustQuestion {
  path: string;
  files: string[];
  settings: string[];
  values?: string[];
  commands: string[];
  changed?: string[];
}
/** It was said or done in a turn. */
export interface TurnEvidence {
  kind: "turn";
  session_id: string;
  turn_id?: string | null;
  node?: string | null;
}
/** What may be set for one turn. */
export interface TurnOptions {
  input_id?: string | null;
  model?: string | null;
  tools?: string | string[] | null;
  max_turns?: number | null;
  max_seconds?: number | null;
  max_tool_calls?: number | null;
  max_budget_usd?: number | null;
  max_tokens?: number | null;
  thinking?: "default" | "high" | "low" | "max" | "medium" | "minimal" | "off" | "xhigh" | null;
  schema?: Record<string, unknown> | null;
  mode?: "architect" | "normal" | null;
  plan_model?: string | null;
  edit_model?: string | null;
  retries?: number | null;
}
/** A turn, by one of its messages; without it, the last. */
export interface TurnQuery {
  turn?: string | null;
}
/** The turn waits, and no model is asked before it is woken. */
export interface TurnWaiting {
  kind: "turn_waiting";
  wait_id: string;
  turn_id: string;
  on: WaitSubject;
  until?: number | null;
  node?: string | null;
  call_uid?: string | null;
  permission?: CallPermission | null;
  unattended?: UnattendedPermission | null;
  session_id?: string;
  seq?: number;
  at?: number;
  cause?: CommandCause | null;
}
/** What the user gave to one schedule, and to nothing else: a round that begins when no user is there has this mode and these grants. */
export interface UnattendedPermission {
  mode?: string;
  grants?: string[];
  seal?: string;
}
/** The last rewind, undone. */
export interface UndoRewindBody {
  input_id?: string | null;
  preview?: boolean;
  overwrite?: string[];
}
/** What one or more model calls used. `cost_usd` is None when the price is unknown, never 0 by default. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  long_cache_tokens?: number;
  cost_usd?: number | null;
}
/** How many days, today included; and whether one project alone. */
export interface UsageQuery {
  days?: number;
  project?: string | null;
}
/** What the session used: in all, and cut in several ways. */
export interface UsageReport {
  total: Usage;
  by_model: Record<string, Usage>;
  by_turn: Record<string, Usage>;
  branch: Usage;
  by_branch?: Record<string, Usage>;
  by_purpose?: Record<string, Usage>;
}
/** How many calls get which verdict. */
export interface VerdictCount {
  allow?: number;
  ask?: number;
  deny?: number;
}
/** What a session waits for. */
export interface WaitBody {
  input_id?: string | null;
  on: WaitSubject;
  until?: string | null;
}
/** What a turn waits for. */
export interface WaitSubject {
  kind: string;
  name?: string;
  text?: string;
  place?: string;
  seen?: string;
}
/** Two branches, and which parts of each are taken. */
export interface WeaveBody {
  input_id?: string | null;
  first: string;
  second: string;
  picks?: ([number, number])[] | null;
}
/** A file, and perhaps a line of it, counted from 1. */
export interface WhyQuery {
  path: string;
  line?: number | null;
}
/** Why a file, or a line of it, is as it is. */
export interface WhyReport {
  path: string;
  line?: number | null;
  commit?: LineCommit | null;
  git_error?: string;
  turn?: LineTurn | null;
  decisions?: DecisionNode[];
  rejected?: DecisionNode[];
}

/** Every operation: what it is given, and what it answers with. */
export interface Operations {
  /** Whether the server lives. */
  health: { answer: HealthAnswer };
  /** Numbers of the server, in the text format of Prometheus. */
  metrics: { answer: string };
  /** Tokens and cost of all stored sessions by day, project and model, newest day first. */
  usage_by_day: { query?: { days?: number; project?: string | null }; answer: DailyUsage[] };
  /** Exchange a code for a token. */
  pair: { body: PairBody; answer: PairAnswer };
  /** Make a code for another page, which may drive or only read. */
  new_code: { body?: CodeBody; answer: CodeAnswer };
  /** This API as an OpenAPI 3.1 document. */
  openapi: { answer: Record<string, unknown> };
  /** Stored sessions, last active first; `q` searches titles and messages. */
  list_saved: { query?: { q?: string | null; project?: string | null; archived?: boolean; after?: string | null; limit?: number }; answer: SessionList };
  /** Around which words stored sessions say those of `q`. */
  said_excerpts: { query: { q: string; limit?: number }; answer: SaidExcerpts };
  /** The sessions that run in this server. */
  list_active: { answer: SessionInfo[] };
  /** Start a session, or resume the one with `session_id`. */
  start_session: { body?: StartBody; answer: SessionView };
  /** Make a session of an export; only its conversation is taken over. */
  import_session: { body: ImportBody; answer: ImportedSession };
  /** All that a screen needs to draw a session; it is started, and no model is called. */
  editor_snapshot: { path: { id: string }; answer: SessionView };
  /** Messages and metadata of a stored session; nothing is started. */
  read_session: { path: { id: string }; answer: SessionRecord };
  /** Rename a session, archive it, or put it back. */
  change_session: { path: { id: string }; body?: SessionChange; answer: null };
  /** Delete a session for good. */
  delete_session: { path: { id: string }; body?: ChangeBody; answer: null };
  /** Stop a session; its record stays. */
  stop_session: { path: { id: string }; body?: ChangeBody; answer: null };
  /** A new session that shares the history up to and including `at`. */
  fork_session: { path: { id: string }; body?: ForkBody; answer: SessionView };
  /** The whole conversation as text. */
  export_session: { path: { id: string }; query?: { format?: "html" | "json" | "jsonl" | "md"; files?: boolean }; answer: string };
  /** A page of the present line, oldest first: the end of it, or before or after an id. */
  messages: { path: { id: string }; query?: { before?: string | null; after?: string | null; limit?: number }; answer: MessagePage };
  /** What the session does. */
  get_status: { path: { id: string }; answer: StatusAnswer };
  /** The provider of the session's model. */
  get_provider: { path: { id: string }; answer: StatusAnswer };
  /** Both queues. */
  get_queued_messages: { path: { id: string }; answer: QueuedPair };
  /** The slash commands: all names, and those from Markdown files. */
  get_commands: { path: { id: string }; answer: CommandList };
  /** What a command from a Markdown file stands for; send its content with its options. */
  expand_command: { path: { id: string }; body: CommandBody; answer: ExpandedCommand };
  /** Title, model, counts, cost and status. */
  metadata: { path: { id: string }; answer: SessionMetadata };
  /** Tokens and cost. */
  usage: { path: { id: string }; answer: UsageReport };
  /** The files that tools changed, newest first. */
  touched_files: { path: { id: string }; answer: TouchedFile[] };
  /** The files that are not what the log tells of, and whose change that is. */
  differences: { path: { id: string }; answer: FileDifference[] };
  /** Whether a crash has cut off a turn, what goes on by choice, and what that costs. */
  coming_back: { path: { id: string }; answer: ComingBack };
  /** The to-do list. */
  todos: { path: { id: string }; answer: Todo[] };
  /** Background agents and commands. */
  background_commands: { path: { id: string }; answer: BackgroundWork[] };
  /** The sessions that work for it. */
  children: { path: { id: string }; answer: ChildInfo[] };
  /** The kinds of agents that it can start. */
  list_agents: { path: { id: string }; answer: AgentDefinition[] };
  /** Every model that could be used. */
  get_available_models: { path: { id: string }; answer: ModelInfo[] };
  /** What the model was sent in a turn, its cost by part, and why the cache was missed. */
  sent: { path: { id: string }; query?: { turn?: string | null; call?: number; diff?: boolean }; answer: SentRequest };
  /** Send a message to no model any more, with the results of its calls. */
  exclude: { path: { id: string; node: string }; body?: ChangeBody; answer: MessageExclusion };
  /** Send a message again that was excluded. */
  include: { path: { id: string; node: string }; body?: ChangeBody; answer: null };
  /** What the answer of a turn claims, beside what is on record. */
  receipts: { path: { id: string }; query?: { turn?: string | null }; answer: Receipt[] };
  /** The files of the session's project as they were at a message. */
  files_at: { path: { id: string }; query: { at: string }; answer: PastFiles };
  /** What wrote a line of a file, and why. */
  blame: { path: { project: string }; query: { path: string; line: number }; answer: Blame };
  /** The turn at which a check began to fail; as events where those are accepted. */
  bisect: { path: { id: string }; body: BisectBody; answer: Bisection };
  /** Send a message and wait for the end of its turn. */
  send_message: { path: { id: string }; body: MessageBody; answer: Result };
  /** Send a message; the answer comes as soon as it is durable. */
  send_prompt: { path: { id: string }; body: PromptBody; answer: Accepted };
  /** Send a message that the turn which runs takes up after its tool calls. */
  queue_steering: { path: { id: string }; body: ContentBody; answer: Accepted };
  /** Send a message for when the turn which runs has ended. */
  queue_follow_up: { path: { id: string }; body: PromptBody; answer: Accepted };
  /** Take all queued messages back. */
  recall_queues: { path: { id: string }; body?: ChangeBody; answer: QueuedPair };
  /** Take the steering messages back. */
  dequeue_steering: { path: { id: string }; body?: ChangeBody; answer: QueueEntry[] };
  /** Put queued messages in order. */
  reorder_queue: { path: { id: string }; body: OrderBody; answer: null };
  /** Put other words in the place of a queued message. */
  edit_queued: { path: { id: string; entry: string }; body: ContentBody; answer: null };
  /** Take a queued message out. */
  remove_queued: { path: { id: string; entry: string }; body?: ChangeBody; answer: null };
  /** Empty both queues. */
  clear_queues: { path: { id: string }; body?: ChangeBody; answer: null };
  /** Stop the turn that runs. */
  abort: { path: { id: string }; body?: AbortBody; answer: AbortReceipt };
  /** Let the turn end after its present step; true when there is one that will. */
  stop_after_step: { path: { id: string }; body?: StopAfterStepBody; answer: boolean };
  /** Continue a turn from exactly what is stored. */
  continue_turn: { path: { id: string }; body?: TurnOptions; answer: Accepted };
  /** Attach as one of several clients; a viewer's changing calls are refused. */
  attach: { path: { id: string }; body?: ClientBody; answer: AttachedClient };
  /** Detach a client. */
  detach: { path: { id: string; client: string }; body?: ChangeBody; answer: null };
  /** Let a client drive; the driver before becomes a viewer. */
  claim_driver: { path: { id: string; client: string }; body?: ChangeBody; answer: AttachedClient };
  /** Answer a permission request or a question; a second answer is refused. */
  respond: { path: { id: string; request: string }; body?: AnswerBody; answer: null };
  /** Approve the plan that waits. */
  approve_plan: { path: { id: string }; body?: ChangeBody; answer: null };
  /** Reject the plan that waits. */
  reject_plan: { path: { id: string }; body?: ReasonBody; answer: null };
  /** Put another plan in its place; it waits. */
  edit_plan: { path: { id: string }; body: PlanBody; answer: null };
  /** Add a note that is shown and kept. */
  add_system_message: { path: { id: string }; body: NoteBody; answer: null };
  /** Stop a background agent or command. */
  kill_background: { path: { id: string; background: string }; body?: ChangeBody; answer: null };
  /** Set what the session may cost. */
  set_budget: { path: { id: string }; body?: BudgetBody; answer: null };
  /** Pin a message: it is kept through compactions. */
  mark: { path: { id: string; node: string; mark: string }; body?: ChangeBody; answer: null };
  /** Unpin a message. */
  unmark: { path: { id: string; node: string; mark: string }; body?: ChangeBody; answer: null };
  /** Use another model from the next call on. */
  set_model: { path: { id: string }; body: ModelBody; answer: null };
  /** Use the next model of the configured rotation. */
  cycle_model: { path: { id: string }; body?: ChangeBody; answer: StatusAnswer };
  /** Set the thinking level. */
  set_thinking_level: { path: { id: string }; body: LevelBody; answer: null };
  /** Use the next thinking level. */
  cycle_thinking_level: { path: { id: string }; body?: ChangeBody; answer: StatusAnswer };
  /** The mode: normal or architect. */
  get_mode: { path: { id: string }; answer: StatusAnswer };
  /** Set the mode: normal or architect. */
  set_mode: { path: { id: string }; body: ModeBody; answer: null };
  /** Set the permission mode: plan, default, accept_edits, auto or bypass. */
  set_permission_mode: { path: { id: string }; body: ModeBody; answer: null };
  /** Choose what happens to a turn that a crash cuts off: ask, auto or never. */
  set_resume: { path: { id: string }; body: ResumeChoiceBody; answer: null };
  /** Summarize older messages. */
  compact: { path: { id: string }; body?: CompactBody; answer: CompactionReport };
  /** Undo the last compaction. */
  undo_compaction: { path: { id: string }; body?: ChangeBody; answer: null };
  /** Write a handover document for a later session. */
  summarize: { path: { id: string }; body?: ChangeBody; answer: TextAnswer };
  /** The skills that there are, and the names of those that are active. */
  list_skills: { path: { id: string }; answer: SkillList };
  /** Activate a skill. */
  activate_skill: { path: { id: string; name: string }; body?: ChangeBody; answer: null };
  /** Deactivate a skill. */
  deactivate_skill: { path: { id: string; name: string }; body?: ChangeBody; answer: null };
  /** The lines of a file that may be edited; null when all may. */
  boundary_for: { path: { id: string; path: string }; answer: EditBoundary | null };
  /** Let only these lines of a file be edited. */
  set_boundary: { path: { id: string; path: string }; body: RangeBody; answer: null };
  /** Let all of a file be edited. */
  clear_boundary: { path: { id: string; path: string }; body?: ChangeBody; answer: null };
  /** Let all lines of all files be edited. */
  clear_all_boundaries: { path: { id: string }; body?: ChangeBody; answer: null };
  /** Collapse or unfold the tool calls of a message, or of all. */
  toggle_tool_collapse: { path: { id: string }; body?: CollapseBody; answer: ToggleAnswer };
  /** Every message of every branch. */
  tree: { path: { id: string }; answer: TreeView };
  /** Some messages of the tree, each with its beginning. */
  nodes: { path: { id: string }; query: { ids: string }; answer: TreeMessage[] };
  /** The branches. */
  list_branches: { path: { id: string }; answer: Branch[] };
  /** Let the line end at a message, and go on from there; nothing is lost. */
  branch_at: { path: { id: string }; body: BranchBody; answer: Branch };
  /** Switch to a branch, by its name or number. */
  switch_branch: { path: { id: string; branch: string }; body?: ChangeBody; answer: Branch };
  /** Rename a branch. */
  rename_branch: { path: { id: string; branch: string }; body: NameBody; answer: null };
  /** Delete a branch. */
  delete_branch: { path: { id: string; branch: string }; body?: ChangeBody; answer: null };
  /** Save a checkpoint; the answer is its name. */
  checkpoint: { path: { id: string }; body?: LabelBody; answer: TextAnswer };
  /** Put files, the conversation or both back to what they were at a message. */
  rewind: { path: { id: string }; body: RewindBody; answer: RewindPlan };
  /** Undo the last rewind. */
  undo_rewind: { path: { id: string }; body?: UndoRewindBody; answer: RewindPlan };
  /** What was changed in files between two messages, one difference for each file. */
  net_changes: { path: { id: string }; query?: { since?: string | null; until?: string | null }; answer: NetChange[] };
  /** Put back one hunk of a file, by an edit under the session's rules. */
  revert_hunk: { path: { id: string }; body: HunkBody; answer: HunkOutcome };
  /** The files at the ends of two branches, and their differences. */
  compare_files: { path: { id: string }; query: { first: string; second: string }; answer: FileComparison };
  /** Take one hunk of a file from another branch, by an edit under the session's rules. */
  take_hunk: { path: { id: string }; body: TakenHunkBody; answer: HunkOutcome };
  /** Put the files of two branches together, below the message where they part. */
  weave_files: { path: { id: string }; body: FileWeaveBody; answer: FileWeave };
  /** The texts that a message has had, oldest first. */
  revisions: { path: { id: string; node: string }; answer: string[] };
  /** Bring an earlier text of a message back. */
  restore_revision: { path: { id: string; node: string }; body: RevisionBody; answer: null };
  /** Carry what was learned on another branch to this one. */
  summarize_branch: { path: { id: string }; body: NodeBody; answer: TextAnswer };
  /** Have several candidates do a task at once, each in a copy of its own. */
  generate_branches: { path: { id: string }; body: FanBody; answer: FanView };
  /** The fan-outs of a project, newest first. */
  fans: { path: { project: string }; answer: FanSummary[] };
  /** A fan-out with its candidates, the best first. */
  fan: { path: { id: string; fan: string }; answer: FanView };
  /** The facts of a fan-out as server-sent events, until it is settled. */
  fan_events: { path: { id: string; fan: string }; query?: { after?: number | null }; answer: string };
  /** What a candidate changed. */
  fan_diff: { path: { id: string; fan: string; index: string }; answer: string };
  /** What the last run of the check printed for a candidate; 0 is the base. */
  fan_output: { path: { id: string; fan: string; index: string }; answer: string };
  /** How two candidates differ. */
  fan_compare: { path: { id: string; fan: string }; query: { first: number; second: number }; answer: string };
  /** Put a candidate's changes into the project, or look what that would do. */
  fan_keep: { path: { id: string; fan: string }; body: KeepBody; answer: KeepOutcome };
  /** Give a candidate up. */
  fan_prune: { path: { id: string; fan: string }; body: IndexBody; answer: null };
  /** Resume candidates that were interrupted. */
  fan_resume: { path: { id: string; fan: string }; body?: ResumeBody; answer: FanView };
  /** Stop what is at work. */
  fan_stop: { path: { id: string; fan: string }; body?: ChangeBody; answer: FanView };
  /** What a session waits for: the wait of its turn, and prompts that are to be sent. */
  waits: { path: { id: string }; answer: SessionWait[] };
  /** Begin a turn that is asleep until something has come. */
  wait_for: { path: { id: string }; body: WaitBody; answer: SessionWait };
  /** End a wait of the turn, or a schedule; true when it had not ended. */
  cancel_wait: { path: { id: string; wait: string }; body?: ChangeBody; answer: boolean };
  /** Send a prompt to a session at a time, once or again and again. */
  schedule: { path: { id: string }; body: LaterBody; answer: SessionWait };
  /** Ask a side question; it is in no later request. */
  ask_aside: { path: { id: string }; body: AsideBody; answer: Answer };
  /** The side questions of the present line, with their answers. */
  asides: { path: { id: string }; answer: SideQuestion[] };
  /** The goal of a session, and what its checks came to; null without one. */
  goal: { path: { id: string }; answer: Goal | null };
  /** Work turn after turn until a check passes, or a judge says so. */
  set_goal: { path: { id: string }; body: GoalBody; answer: Goal };
  /** End the goal; true when there was one. */
  clear_goal: { path: { id: string }; body?: ChangeBody; answer: boolean };
  /** Change the goal from its next round on. */
  edit_goal: { path: { id: string }; body?: GoalEditBody; answer: Goal };
  /** Let the present step end, and begin nothing more for the goal. */
  pause_goal: { path: { id: string }; body?: ChangeBody; answer: Goal };
  /** Continue a goal that is paused, or that no process works for. */
  resume_goal: { path: { id: string }; body?: GoalResumeBody; answer: Goal };
  /** Send a prompt at a time, in a new session of the project or in one that there is. */
  schedule_in_project: { path: { project: string }; body: ScheduleBody; answer: SessionWait };
  /** The events of a session as server-sent events, from a cursor on. */
  subscribe: { path: { id: string }; query?: { after?: number | null }; answer: string };
  /** What changes in the list of sessions, or in the project's files. */
  subscribe_topic: { query?: { topic?: "repo:updates" | "sessions" }; answer: string };
  /** The projects that are known; `main` is the one that the server was started in. */
  projects: { answer: ProjectInfo[] };
  /** Open a folder of this machine as a project. */
  open_project: { body: FolderBody; answer: ProjectInfo };
  /** A file of the session's project, now or at a message; secrets are masked. */
  read_file: { path: { id: string }; query: { path: string; at?: string | null }; answer: ProjectFile };
  /** The files of a project, or those whose path is like `text`. */
  files: { path: { project: string }; query?: { text?: string | null }; answer: string[] };
  /** A file of a project; secrets are masked. */
  project_file: { path: { project: string }; query: { path: string }; answer: ProjectFile };
  /** The definitions of a name. */
  symbols: { path: { project: string }; query: { name: string }; answer: Symbol[] };
  /** What a file defines. */
  outline: { path: { project: string }; query: { path: string }; answer: Definition[] };
  /** Files and definitions, those first that a request is about. */
  map: { path: { project: string }; query?: { request?: string; focus?: string; tokens?: number }; answer: TextAnswer };
  /** What the index holds. */
  index_status: { path: { project: string }; answer: IndexStatus };
  /** Whether the user trusts the folder, and what it would do if they did. */
  trust_question: { path: { project: string }; answer: TrustAnswer };
  /** Say that the user trusts the folder as it is now, or no longer does. */
  trust: { path: { project: string }; body: TrustBody; answer: TrustAnswer };
  /** Every setting, its value and where that comes from; secrets are masked. */
  settings: { path: { project: string }; answer: Record<string, unknown> };
  /** Set a setting in the user's own file. */
  change_setting: { path: { project: string }; body: SettingBody; answer: TextAnswer };
  /** What the user asked to be remembered. */
  memory: { path: { project: string }; answer: MemoryNote[] };
  /** Remember something. */
  remember: { path: { project: string }; body: MemoryBody; answer: MemoryNote };
  /** Forget something. */
  forget: { path: { project: string; note: string }; body?: ChangeBody; answer: MemoryNote };
  /** The file of what is remembered, as it is. */
  memory_file: { path: { project: string }; query?: { scope?: "project" | "user" }; answer: TextAnswer };
  /** Put another text in its place, if it is still as it was read. */
  rewrite_memory: { path: { project: string }; body: MemoryFileBody; answer: TextAnswer };
  /** What the project brings along that is left out, and why. */
  project_problems: { path: { project: string }; answer: string[] };
  /** Stop all language servers; they start again when they are needed. */
  restart_language_servers: { path: { project: string }; body?: ChangeBody; answer: null };
  /** The language servers for a project. */
  language_servers: { path: { project: string }; answer: ServerStatus[] };
  /** The content that a fact or a part names by its SHA-256. */
  read_blob: { path: { project: string; blob: string }; answer: string };
  /** Sessions and set-up of another agent of this machine: shown, or taken over. */
  import_from: { path: { project: string }; body: ImportFromBody; answer: AgentImport };
  /** The file contents of a project, which go next, and what is lost with them. */
  kept_contents: { path: { project: string }; answer: KeptContents };
  /** The MCP servers of a project, how they stand, and what is to be answered first. */
  mcp_servers: { path: { project: string }; answer: McpOverview };
  /** All that is known of an MCP server: its tools, and how those differ from what was agreed. */
  mcp_server: { path: { project: string; server: string }; answer: McpServerDetails };
  /** Write an MCP server down; it is started with the next conversation. */
  add_mcp_server: { path: { project: string; server: string }; body: McpEntryBody; answer: McpOverview };
  /** Take an MCP server out of the file that it stands in. */
  remove_mcp_server: { path: { project: string; server: string }; body?: McpScopeBody; answer: McpOverview };
  /** Say whether an MCP server that the project names may be used, as it is now. */
  answer_mcp_server: { path: { project: string; server: string }; body: McpAnswerBody; answer: McpOverview };
  /** Stop an MCP server, so that its next use starts it. */
  restart_mcp_server: { path: { project: string; server: string }; body?: ChangeBody; answer: McpOverview };
  /** Forget the login to an MCP server. */
  logout_mcp_server: { path: { project: string; server: string }; body?: ChangeBody; answer: McpOverview };
  /** What could answer here: keys that there are, and models on this machine. */
  model_access: { path: { project: string }; answer: ModelAccess };
  /** Save a provider's key for this user; `any` finds the provider by the key. */
  save_key: { path: { project: string; provider: string }; body: KeyBody; answer: ModelAccess };
  /** Ask a provider's server whether it takes a key, before it is saved or later. */
  test_key: { path: { project: string; provider: string }; body?: KeyCheckBody; answer: KeyCheck };
  /** The permission rules that count in a project, those that deny first. */
  list_rules: { path: { project: string }; answer: RuleList };
  /** Keep a permission rule in the user's settings; open sessions heed it at once. */
  add_rule: { path: { project: string }; body: RuleBody; answer: StandingRule };
  /** Take a permission rule out of the user's settings. */
  remove_rule: { path: { project: string }; body: RuleRemovalBody; answer: null };
  /** What would be decided of a command, a path or an address, and why; nothing is run. */
  explain_action: { path: { project: string }; query: { text: string; tool?: string; mode?: "accept_edits" | "auto" | "bypass" | "default" | "plan" }; answer: PermissionExplanation };
  /** What a rule would have changed in past sessions; it is not kept. */
  simulate_rule: { path: { project: string }; query: { rule: string; verdict?: "allow" | "ask" | "deny"; mode?: "accept_edits" | "auto" | "bypass" | "default" | "plan"; everywhere?: boolean }; answer: RuleSimulation };
  /** Every effect of a session and of its agents, with who allowed it and why. */
  audit_session: { path: { id: string }; answer: AuditEntry[] };
  /** What was decided: about some words, about a file, or all of it. */
  decisions: { path: { project: string }; query?: { text?: string | null; path?: string | null; kind?: string | null; status?: string | null; session?: string | null; limit?: number }; answer: DecisionList };
  /** Log a decision. */
  log_decision: { path: { project: string }; body: DecisionBody; answer: DecisionNode };
  /** How the graph is: what is missing, stale or at odds. */
  decision_pulse: { path: { project: string }; answer: PulseReport };
  /** What was decided, as text. */
  decision_narrative: { path: { project: string }; query?: { session?: string | null; goal?: string | null }; answer: TextAnswer };
  /** Why a file, or a line of it, is as it is. */
  decision_why: { path: { project: string }; query: { path: string; line?: number | null }; answer: WhyReport };
  /** The graph as JSON, DOT, Mermaid or Markdown records. */
  export_decisions: { path: { project: string }; query?: { format?: "adr" | "dot" | "json" | "mermaid" }; answer: string };
  /** Log the decision records of a file or a folder of this machine. */
  import_adr: { path: { project: string }; body: AdrBody; answer: DecisionNode[] };
  /** The kinds of nodes that can be logged. */
  decision_kinds: { path: { project: string }; answer: Record<string, string> };
  /** Let nodes of a kind of your own be logged. */
  register_kind: { path: { project: string }; body: KindBody; answer: Record<string, string> };
  /** A node with its edges. */
  decision: { path: { project: string; decision: string }; answer: DecisionList };
  /** Change a node. */
  change_decision: { path: { project: string; decision: string }; body?: DecisionChange; answer: DecisionNode };
  /** Take a node out for good, such as a secret that was logged by mistake. */
  purge_decision: { path: { project: string; decision: string }; body?: ChangeBody; answer: null };
  /** Let another node stand in the place of this one. */
  supersede_decision: { path: { project: string; decision: string }; body: SupersedeBody; answer: DecisionNode };
  /** Make what was proposed count. */
  accept_decision: { path: { project: string; decision: string }; body?: AcceptBody; answer: DecisionNode };
  /** Link this node to another. */
  link_decision: { path: { project: string; decision: string }; body: LinkBody; answer: DecisionEdge };
  /** One model call, without tools and history; as events where those are accepted. */
  query: { body: QueryBody; answer: Answer };
  /** One agent run to its end, which is not kept; as events where those are accepted. */
  run: { body: RunBody; answer: Result };
  /** All trees of text. */
  loom_catalogue: { query?: { q?: string | null; sort?: "created" | "name" | "nodes" | "updated"; offset?: number; limit?: number }; answer: TreeCatalogue };
  /** Begin a tree. */
  loom_create_root: { body?: RootBody; answer: LoomNode };
  /** Nodes that have some words. */
  loom_search: { query: { q: string; roots?: string | null; models?: string | null; bookmarked?: boolean | null; after?: number | null; limit?: number }; answer: LoomHit[] };
  /** Trees that have some words. */
  loom_search_trees: { query: { q: string; roots?: string | null; models?: string | null; bookmarked?: boolean | null; after?: number | null; limit?: number }; answer: RankedTree[] };
  /** Add the trees of a file: ours, or one of other looms and chats. */
  loom_import: { body: TreeFileBody; answer: TreeImport };
  /** A view of the tree at a node. */
  loom_state: { path: { id: string }; answer: LoomState };
  /** One node. */
  loom_node: { path: { id: string }; answer: LoomNode };
  /** A node and all below it. */
  loom_tree: { path: { id: string }; answer: LoomNode[] };
  /** The line from the root to a node. */
  loom_lineage: { path: { id: string }; answer: LoomNode[] };
  /** The nodes right below. */
  loom_children: { path: { id: string }; answer: LoomNode[] };
  /** Add a node. */
  loom_add_child: { path: { id: string }; body: ChildBody; answer: LoomNode };
  /** The whole text down to a node. */
  loom_full_text: { path: { id: string }; answer: TextAnswer };
  /** A tree in numbers. */
  loom_stats: { path: { id: string }; answer: TreeStats };
  /** How a subtree has grown. */
  loom_shape: { path: { id: string }; answer: TreeShape };
  /** The session that keeps a tree: follow its events. */
  loom_session: { path: { id: string }; answer: StatusAnswer };
  /** A tree as a file. */
  loom_export: { path: { id: string }; query?: { format?: "basemode" | "html" | "json" | "md" }; answer: string };
  /** How two branches differ. */
  loom_compare: { path: { id: string }; query: { other: string }; answer: BranchComparison };
  /** What models are told at a node. */
  loom_context: { path: { id: string }; answer: TextAnswer };
  /** Tell models something besides the text. */
  loom_set_context: { path: { id: string }; body: LoomContextBody; answer: LoomNode };
  /** Change what a program keeps with a node. */
  loom_update_metadata: { path: { id: string }; body: MetadataBody; answer: LoomNode };
  /** Delete a whole tree for good. */
  loom_delete_tree: { path: { id: string }; body?: ChangeBody; answer: Record<string, number> };
  /** The settings of a tree. */
  loom_tree_settings: { path: { id: string }; answer: TreeSettings };
  /** Change the settings of a tree. */
  loom_update_tree_settings: { path: { id: string }; body?: LoomSettingsBody; answer: TreeSettings };
  /** Branches of a node by all models of the plan; as events where those are accepted. */
  loom_generate: { path: { id: string }; body?: GenerateBody; answer: Record<string, unknown> };
  /** Stop generating in a tree. */
  loom_cancel: { path: { id: string }; body?: CancelBody; answer: ToggleAnswer };
  /** Remember a node as where the tree was left. */
  loom_checkout: { path: { id: string }; body?: ChangeBody; answer: LoomState };
  /** Edit a node, or the whole text down to it. */
  loom_edit: { path: { id: string }; body: EditBody; answer: LoomNode | null };
  /** A node beside this one with its beginning alone. */
  loom_truncate: { path: { id: string }; body: PositionBody; answer: LoomNode | null };
  /** Delete a node and all below it; it can be restored. */
  loom_delete: { path: { id: string }; body?: ChangeBody; answer: Record<string, number> };
  /** Bring back what was deleted. */
  loom_restore: { path: { id: string }; body?: ChangeBody; answer: Record<string, number> };
  /** Bookmark a node, or take the bookmark away. */
  loom_bookmark: { path: { id: string }; body?: ChangeBody; answer: ToggleAnswer };
  /** Make two nodes of one. */
  loom_split: { path: { id: string }; body: PositionBody; answer: LoomNode[] };
  /** Join a node with the one above it. */
  loom_join: { path: { id: string }; body?: ChangeBody; answer: LoomNode };
  /** A branch made of parts of two others. */
  loom_weave: { path: { id: string }; body: WeaveBody; answer: LoomNode };
  /** Rate a node. */
  loom_rate: { path: { id: string }; body: RatingBody; answer: LoomNode };
  /** Name a node. */
  loom_label: { path: { id: string }; body: LoomLabelBody; answer: LoomNode };
  /** A node beside this one that goes another way at a token. */
  loom_branch_at_token: { path: { id: string }; body: TokenBody; answer: LoomNode };
  /** Undo the last change of the tree. */
  loom_undo: { path: { id: string }; body?: ChangeBody; answer: LoomState };
}

export type OperationName = keyof Operations;

export const PATHS: Record<OperationName, readonly [string, string]> = {
  health: ["GET", "/api/health"],
  metrics: ["GET", "/api/metrics"],
  usage_by_day: ["GET", "/api/usage"],
  pair: ["POST", "/api/pair"],
  new_code: ["POST", "/api/pair/codes"],
  openapi: ["GET", "/api/openapi.json"],
  list_saved: ["GET", "/api/sessions"],
  said_excerpts: ["GET", "/api/sessions/excerpts"],
  list_active: ["GET", "/api/sessions/active"],
  start_session: ["POST", "/api/sessions"],
  import_session: ["POST", "/api/sessions/import"],
  editor_snapshot: ["GET", "/api/sessions/{id}"],
  read_session: ["GET", "/api/sessions/{id}/record"],
  change_session: ["PATCH", "/api/sessions/{id}"],
  delete_session: ["DELETE", "/api/sessions/{id}"],
  stop_session: ["POST", "/api/sessions/{id}/stop"],
  fork_session: ["POST", "/api/sessions/{id}/fork"],
  export_session: ["GET", "/api/sessions/{id}/export"],
  messages: ["GET", "/api/sessions/{id}/messages"],
  get_status: ["GET", "/api/sessions/{id}/status"],
  get_provider: ["GET", "/api/sessions/{id}/provider"],
  get_queued_messages: ["GET", "/api/sessions/{id}/queue"],
  get_commands: ["GET", "/api/sessions/{id}/commands"],
  expand_command: ["POST", "/api/sessions/{id}/commands"],
  metadata: ["GET", "/api/sessions/{id}/metadata"],
  usage: ["GET", "/api/sessions/{id}/usage"],
  touched_files: ["GET", "/api/sessions/{id}/touched"],
  differences: ["GET", "/api/sessions/{id}/differences"],
  coming_back: ["GET", "/api/sessions/{id}/coming-back"],
  todos: ["GET", "/api/sessions/{id}/todos"],
  background_commands: ["GET", "/api/sessions/{id}/background"],
  children: ["GET", "/api/sessions/{id}/children"],
  list_agents: ["GET", "/api/sessions/{id}/agents"],
  get_available_models: ["GET", "/api/sessions/{id}/models"],
  sent: ["GET", "/api/sessions/{id}/sent"],
  exclude: ["PUT", "/api/sessions/{id}/nodes/{node}/excluded"],
  include: ["DELETE", "/api/sessions/{id}/nodes/{node}/excluded"],
  receipts: ["GET", "/api/sessions/{id}/receipts"],
  files_at: ["GET", "/api/sessions/{id}/files"],
  blame: ["GET", "/api/projects/{project}/blame"],
  bisect: ["POST", "/api/sessions/{id}/bisect"],
  send_message: ["POST", "/api/sessions/{id}/message"],
  send_prompt: ["POST", "/api/sessions/{id}/prompt"],
  queue_steering: ["POST", "/api/sessions/{id}/steer"],
  queue_follow_up: ["POST", "/api/sessions/{id}/follow-up"],
  recall_queues: ["POST", "/api/sessions/{id}/queue/recall"],
  dequeue_steering: ["POST", "/api/sessions/{id}/queue/dequeue"],
  reorder_queue: ["POST", "/api/sessions/{id}/queue/order"],
  edit_queued: ["PUT", "/api/sessions/{id}/queue/{entry}"],
  remove_queued: ["DELETE", "/api/sessions/{id}/queue/{entry}"],
  clear_queues: ["DELETE", "/api/sessions/{id}/queue"],
  abort: ["POST", "/api/sessions/{id}/abort"],
  stop_after_step: ["POST", "/api/sessions/{id}/stop-after-step"],
  continue_turn: ["POST", "/api/sessions/{id}/continue"],
  attach: ["POST", "/api/sessions/{id}/clients"],
  detach: ["DELETE", "/api/sessions/{id}/clients/{client}"],
  claim_driver: ["POST", "/api/sessions/{id}/clients/{client}/drive"],
  respond: ["POST", "/api/sessions/{id}/requests/{request}"],
  approve_plan: ["POST", "/api/sessions/{id}/plan/approve"],
  reject_plan: ["POST", "/api/sessions/{id}/plan/reject"],
  edit_plan: ["PUT", "/api/sessions/{id}/plan"],
  add_system_message: ["POST", "/api/sessions/{id}/notes"],
  kill_background: ["DELETE", "/api/sessions/{id}/background/{background}"],
  set_budget: ["PUT", "/api/sessions/{id}/budget"],
  mark: ["PUT", "/api/sessions/{id}/nodes/{node}/marks/{mark}"],
  unmark: ["DELETE", "/api/sessions/{id}/nodes/{node}/marks/{mark}"],
  set_model: ["PUT", "/api/sessions/{id}/model"],
  cycle_model: ["POST", "/api/sessions/{id}/model/cycle"],
  set_thinking_level: ["PUT", "/api/sessions/{id}/thinking"],
  cycle_thinking_level: ["POST", "/api/sessions/{id}/thinking/cycle"],
  get_mode: ["GET", "/api/sessions/{id}/mode"],
  set_mode: ["PUT", "/api/sessions/{id}/mode"],
  set_permission_mode: ["PUT", "/api/sessions/{id}/permission-mode"],
  set_resume: ["PUT", "/api/sessions/{id}/resume"],
  compact: ["POST", "/api/sessions/{id}/compact"],
  undo_compaction: ["POST", "/api/sessions/{id}/compact/undo"],
  summarize: ["POST", "/api/sessions/{id}/summarize"],
  list_skills: ["GET", "/api/sessions/{id}/skills"],
  activate_skill: ["PUT", "/api/sessions/{id}/skills/{name}"],
  deactivate_skill: ["DELETE", "/api/sessions/{id}/skills/{name}"],
  boundary_for: ["GET", "/api/sessions/{id}/boundaries/{path}"],
  set_boundary: ["PUT", "/api/sessions/{id}/boundaries/{path}"],
  clear_boundary: ["DELETE", "/api/sessions/{id}/boundaries/{path}"],
  clear_all_boundaries: ["DELETE", "/api/sessions/{id}/boundaries"],
  toggle_tool_collapse: ["PUT", "/api/sessions/{id}/view/collapse"],
  tree: ["GET", "/api/sessions/{id}/tree"],
  nodes: ["GET", "/api/sessions/{id}/nodes"],
  list_branches: ["GET", "/api/sessions/{id}/branches"],
  branch_at: ["POST", "/api/sessions/{id}/branches"],
  switch_branch: ["POST", "/api/sessions/{id}/branches/{branch}/switch"],
  rename_branch: ["PATCH", "/api/sessions/{id}/branches/{branch}"],
  delete_branch: ["DELETE", "/api/sessions/{id}/branches/{branch}"],
  checkpoint: ["POST", "/api/sessions/{id}/checkpoints"],
  rewind: ["POST", "/api/sessions/{id}/rewind"],
  undo_rewind: ["POST", "/api/sessions/{id}/rewind/undo"],
  net_changes: ["GET", "/api/sessions/{id}/changes"],
  revert_hunk: ["POST", "/api/sessions/{id}/changes/revert"],
  compare_files: ["GET", "/api/sessions/{id}/branch-files"],
  take_hunk: ["POST", "/api/sessions/{id}/branch-files/take"],
  weave_files: ["POST", "/api/sessions/{id}/branch-files/weave"],
  revisions: ["GET", "/api/sessions/{id}/revisions/{node}"],
  restore_revision: ["POST", "/api/sessions/{id}/revisions/{node}"],
  summarize_branch: ["POST", "/api/sessions/{id}/summarize-branch"],
  generate_branches: ["POST", "/api/sessions/{id}/fan"],
  fans: ["GET", "/api/projects/{project}/fans"],
  fan: ["GET", "/api/sessions/{id}/fan/{fan}"],
  fan_events: ["GET", "/api/sessions/{id}/fan/{fan}/events"],
  fan_diff: ["GET", "/api/sessions/{id}/fan/{fan}/diff/{index}"],
  fan_output: ["GET", "/api/sessions/{id}/fan/{fan}/output/{index}"],
  fan_compare: ["GET", "/api/sessions/{id}/fan/{fan}/compare"],
  fan_keep: ["POST", "/api/sessions/{id}/fan/{fan}/keep"],
  fan_prune: ["POST", "/api/sessions/{id}/fan/{fan}/prune"],
  fan_resume: ["POST", "/api/sessions/{id}/fan/{fan}/resume"],
  fan_stop: ["POST", "/api/sessions/{id}/fan/{fan}/stop"],
  waits: ["GET", "/api/sessions/{id}/waits"],
  wait_for: ["POST", "/api/sessions/{id}/waits"],
  cancel_wait: ["DELETE", "/api/sessions/{id}/waits/{wait}"],
  schedule: ["POST", "/api/sessions/{id}/schedules"],
  ask_aside: ["POST", "/api/sessions/{id}/aside"],
  asides: ["GET", "/api/sessions/{id}/asides"],
  goal: ["GET", "/api/sessions/{id}/goal"],
  set_goal: ["PUT", "/api/sessions/{id}/goal"],
  clear_goal: ["DELETE", "/api/sessions/{id}/goal"],
  edit_goal: ["POST", "/api/sessions/{id}/goal/edit"],
  pause_goal: ["POST", "/api/sessions/{id}/goal/pause"],
  resume_goal: ["POST", "/api/sessions/{id}/goal/resume"],
  schedule_in_project: ["POST", "/api/projects/{project}/schedules"],
  subscribe: ["GET", "/api/sessions/{id}/events"],
  subscribe_topic: ["GET", "/api/events"],
  projects: ["GET", "/api/projects"],
  open_project: ["POST", "/api/projects"],
  read_file: ["GET", "/api/sessions/{id}/file"],
  files: ["GET", "/api/projects/{project}/files"],
  project_file: ["GET", "/api/projects/{project}/file"],
  symbols: ["GET", "/api/projects/{project}/symbols"],
  outline: ["GET", "/api/projects/{project}/outline"],
  map: ["GET", "/api/projects/{project}/map"],
  index_status: ["GET", "/api/projects/{project}/index"],
  trust_question: ["GET", "/api/projects/{project}/trust"],
  trust: ["PUT", "/api/projects/{project}/trust"],
  settings: ["GET", "/api/projects/{project}/config"],
  change_setting: ["PUT", "/api/projects/{project}/config"],
  memory: ["GET", "/api/projects/{project}/memory"],
  remember: ["POST", "/api/projects/{project}/memory"],
  forget: ["DELETE", "/api/projects/{project}/memory/{note}"],
  memory_file: ["GET", "/api/projects/{project}/memory/file"],
  rewrite_memory: ["PUT", "/api/projects/{project}/memory/file"],
  project_problems: ["GET", "/api/projects/{project}/problems"],
  restart_language_servers: ["POST", "/api/projects/{project}/lsp/restart"],
  language_servers: ["GET", "/api/projects/{project}/lsp"],
  read_blob: ["GET", "/api/projects/{project}/blobs/{blob}"],
  import_from: ["POST", "/api/projects/{project}/import-from"],
  kept_contents: ["GET", "/api/projects/{project}/store"],
  mcp_servers: ["GET", "/api/projects/{project}/mcp"],
  mcp_server: ["GET", "/api/projects/{project}/mcp/{server}"],
  add_mcp_server: ["PUT", "/api/projects/{project}/mcp/{server}"],
  remove_mcp_server: ["DELETE", "/api/projects/{project}/mcp/{server}"],
  answer_mcp_server: ["POST", "/api/projects/{project}/mcp/{server}/answer"],
  restart_mcp_server: ["POST", "/api/projects/{project}/mcp/{server}/restart"],
  logout_mcp_server: ["POST", "/api/projects/{project}/mcp/{server}/logout"],
  model_access: ["GET", "/api/projects/{project}/model-access"],
  save_key: ["PUT", "/api/projects/{project}/keys/{provider}"],
  test_key: ["POST", "/api/projects/{project}/keys/{provider}/test"],
  list_rules: ["GET", "/api/projects/{project}/permissions"],
  add_rule: ["POST", "/api/projects/{project}/permissions"],
  remove_rule: ["DELETE", "/api/projects/{project}/permissions"],
  explain_action: ["GET", "/api/projects/{project}/permissions/explain"],
  simulate_rule: ["GET", "/api/projects/{project}/permissions/simulate"],
  audit_session: ["GET", "/api/sessions/{id}/audit"],
  decisions: ["GET", "/api/projects/{project}/decisions"],
  log_decision: ["POST", "/api/projects/{project}/decisions"],
  decision_pulse: ["GET", "/api/projects/{project}/decisions/pulse"],
  decision_narrative: ["GET", "/api/projects/{project}/decisions/narrative"],
  decision_why: ["GET", "/api/projects/{project}/decisions/why"],
  export_decisions: ["GET", "/api/projects/{project}/decisions/export"],
  import_adr: ["POST", "/api/projects/{project}/decisions/import"],
  decision_kinds: ["GET", "/api/projects/{project}/decisions/kinds"],
  register_kind: ["POST", "/api/projects/{project}/decisions/kinds"],
  decision: ["GET", "/api/projects/{project}/decisions/{decision}"],
  change_decision: ["PATCH", "/api/projects/{project}/decisions/{decision}"],
  purge_decision: ["DELETE", "/api/projects/{project}/decisions/{decision}"],
  supersede_decision: ["POST", "/api/projects/{project}/decisions/{decision}/supersede"],
  accept_decision: ["POST", "/api/projects/{project}/decisions/{decision}/accept"],
  link_decision: ["POST", "/api/projects/{project}/decisions/{decision}/link"],
  query: ["POST", "/api/query"],
  run: ["POST", "/api/run"],
  loom_catalogue: ["GET", "/api/looms"],
  loom_create_root: ["POST", "/api/looms"],
  loom_search: ["GET", "/api/looms/search"],
  loom_search_trees: ["GET", "/api/looms/search/trees"],
  loom_import: ["POST", "/api/looms/import"],
  loom_state: ["GET", "/api/looms/{id}"],
  loom_node: ["GET", "/api/looms/{id}/node"],
  loom_tree: ["GET", "/api/looms/{id}/tree"],
  loom_lineage: ["GET", "/api/looms/{id}/lineage"],
  loom_children: ["GET", "/api/looms/{id}/children"],
  loom_add_child: ["POST", "/api/looms/{id}/children"],
  loom_full_text: ["GET", "/api/looms/{id}/text"],
  loom_stats: ["GET", "/api/looms/{id}/stats"],
  loom_shape: ["GET", "/api/looms/{id}/shape"],
  loom_session: ["GET", "/api/looms/{id}/session"],
  loom_export: ["GET", "/api/looms/{id}/export"],
  loom_compare: ["GET", "/api/looms/{id}/compare"],
  loom_context: ["GET", "/api/looms/{id}/context"],
  loom_set_context: ["PUT", "/api/looms/{id}/context"],
  loom_update_metadata: ["PATCH", "/api/looms/{id}/metadata"],
  loom_delete_tree: ["DELETE", "/api/looms/{id}"],
  loom_tree_settings: ["GET", "/api/looms/{id}/settings"],
  loom_update_tree_settings: ["PUT", "/api/looms/{id}/settings"],
  loom_generate: ["POST", "/api/looms/{id}/generate"],
  loom_cancel: ["POST", "/api/looms/{id}/cancel"],
  loom_checkout: ["POST", "/api/looms/{id}/checkout"],
  loom_edit: ["POST", "/api/looms/{id}/edit"],
  loom_truncate: ["POST", "/api/looms/{id}/truncate"],
  loom_delete: ["POST", "/api/looms/{id}/delete"],
  loom_restore: ["POST", "/api/looms/{id}/restore"],
  loom_bookmark: ["POST", "/api/looms/{id}/bookmark"],
  loom_split: ["POST", "/api/looms/{id}/split"],
  loom_join: ["POST", "/api/looms/{id}/join"],
  loom_weave: ["POST", "/api/looms/{id}/weave"],
  loom_rate: ["POST", "/api/looms/{id}/rate"],
  loom_label: ["POST", "/api/looms/{id}/label"],
  loom_branch_at_token: ["POST", "/api/looms/{id}/branch-at-token"],
  loom_undo: ["POST", "/api/looms/{id}/undo"],
};

/** Operations whose answer is text and no JSON. */
const TEXTS: ReadonlySet<OperationName> = new Set<OperationName>([
  "metrics",
  "export_session",
  "fan_events",
  "fan_diff",
  "fan_output",
  "fan_compare",
  "subscribe",
  "subscribe_topic",
  "read_blob",
  "export_decisions",
  "loom_export",
]);

/** What sends a request; `fetch` of a browser or of Node is one. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string },
) => Promise<{ ok: boolean; status: number; text(): Promise<string> }>;

/** An operation that was refused, as the server says why. */
export class WeftError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly details: unknown = null,
  ) {
    super(message);
  }
}

type Given<N extends OperationName> = Omit<Operations[N], "answer">;

/** Calls operations by their names. */
export class WeftClient {
  constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly send: Fetch,
  ) {}

  async call<N extends OperationName>(name: N, given: Given<N>): Promise<Operations[N]["answer"]> {
    const { path, query, body } = given as {
      path?: Record<string, string>;
      query?: Record<string, unknown>;
      body?: unknown;
    };
    const [method, template] = PATHS[name];
    const filled = template.replace(/\{(\w+)\}/g, (_, part: string) =>
      encodeURIComponent(path?.[part] ?? ""),
    );
    const asked = Object.entries(query ?? {})
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`)
      .join("&");
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    if (method !== "GET") headers["Content-Type"] = "application/json";
    const answer = await this.send(`${this.url}${filled}${asked ? `?${asked}` : ""}`, {
      method,
      headers,
      ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw refused(answer.status, text);
    return (TEXTS.has(name) ? text : text ? JSON.parse(text) : null) as Operations[N]["answer"];
  }
}

function refused(status: number, text: string): WeftError {
  let error: { kind?: string; message?: string; details?: unknown } = {};
  try {
    error = (JSON.parse(text) as { error?: typeof error }).error ?? {};
  } catch {
    // Not ours: a proxy, perhaps.
  }
  const said = error.message ?? `status ${status}`;
  return new WeftError(status, error.kind ?? "", said, error.details);
}
