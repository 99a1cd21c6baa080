/**
 * The JSON of Weft's API under the names that the page uses. Its fields are written down once, in
 * the server: `generated/api.ts` is made from there. What is here says only which of them are
 * always sent, and what the schema leaves open.
 */

import type * as api from "./generated/api.ts";

export type { BackgroundWork, BranchCommand, BranchComparison, BranchFacts, FileWeave, ModelPlanEntry, TokenLogprob, TreeSettings, BranchFile, CatalogueEntry, ChildInfo, DailyUsage, DecisionEdge, DecisionList, DecisionNode, EditBoundary, FileComparison, KeepOutcome, KeyCheck, LoomNode, LoomState, McpOverview, McpQuestion, McpServerDetails, McpServerRow, ModelAccess, ProjectFile, PulseReport, TrustAnswer, TrustQuestion, WhyReport, HunkOutcome, ModelInfo, NetChange, Node, PermissionExplanation, PermissionRequest, PlanProgress, QuestionAsked, QueueEntry, RewindItem, ProjectInfo, RewindPlan, RuleList, RuleSimulation, StandingRule, VerdictCount, Todo, ToolExecuting, ToolResult, TouchedFile, TreeMessage, TreeView, Usage } from "./generated/api.ts";

export type Status = api.EditorSnapshot["status"];
export type Part = NonNullable<api.Node["parts"]>[number];
export type Snapshot = api.EditorSnapshot;
export type SessionView = api.SessionView;
export type Request = Snapshot["requests"][number];
export type NetHunk = NonNullable<api.NetChange["hunks"]>[number];

/** Of these every field is sent, whatever its default. */
export type SessionRow = Required<api.SessionRow>;
export type FanCandidate = Required<api.FanCandidate>;
export type FanSummary = Required<api.FanSummary>;
export type FanView = Omit<api.FanView, "candidates"> & { candidates: FanCandidate[] };
export type Branch = api.Branch;

export type HistoryMessage = Omit<api.HistoryMessage, "tool_calls"> & {
  tool_calls?: { id: string; name: string; args: Record<string, unknown> }[];
};

/** A part of the present line, oldest first. */
export type Page = Omit<Partial<api.MessagePage>, "messages"> & {
  messages: { id: string; message: HistoryMessage }[];
};

/** A fact or a signal; which one is told by `kind`, and a fact has a `seq`. */
export interface Event {
  kind: string;
  seq?: number;
  after_seq?: number;
  at?: number;
  [field: string]: unknown;
}
