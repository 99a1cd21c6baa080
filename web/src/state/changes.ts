/** What the session changed, file by file, with the turn of each hunk. Pure. */

import { parseDiff, type Hunk } from "../diff/parse.ts";
import type { NetChange, TouchedFile } from "../types.ts";
import type { CallResult, Row } from "./fold.ts";

export interface ChangedHunk {
  id: string;
  hunk: Hunk;
  /** The user's message that its turn began with. */
  turn: string;
  call: string;
}

export interface ChangedFile {
  path: string;
  action: "created" | "modified" | "deleted";
  hunks: ChangedHunk[];
  added: number;
  removed: number;
  /** No tool says what changed in it: a command did it. */
  isByShell: boolean;
}

const WRITERS = new Set(["edit", "multi_edit", "write", "apply_patch"]);

export function changedFiles(rows: readonly Row[], results: ReadonlyMap<string, CallResult>, touched: readonly TouchedFile[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const each of [...touched].reverse())
    files.set(each.path, { path: each.path, action: each.action, hunks: [], added: 0, removed: 0, isByShell: true });
  let turn = "";
  for (const row of rows) {
    if (row.role === "user") turn = row.id;
    for (const call of row.message.tool_calls ?? []) {
      const result = results.get(call.id);
      if (!result || !result.diff || result.isError) continue;
      const named = typeof call.args.path === "string" ? call.args.path : "";
      for (const diff of parseDiff(result.diff, named)) {
        const path = files.has(diff.path) ? diff.path : ([...files.keys()].find((each) => diff.path.endsWith(`/${each}`) || each.endsWith(`/${diff.path}`)) ?? diff.path);
        const file = files.get(path) ?? { path, action: diff.action, hunks: [], added: 0, removed: 0, isByShell: false };
        if (WRITERS.has(call.name)) file.isByShell = false;
        diff.hunks.forEach((hunk, at) => file.hunks.push({ id: `${call.id}:${diff.path}:${at}`, hunk, turn, call: call.id }));
        file.added += diff.added;
        file.removed += diff.removed;
        files.set(path, file);
      }
    }
  }
  return [...files.values()].sort((a, b) => a.path.localeCompare(b.path));
}

/** A file as all changes of a stretch left it, hunk by hunk. */
export interface NetFile {
  path: string;
  action: "created" | "modified" | "deleted";
  hunks: NetPiece[];
  added: number;
  removed: number;
  isByShell: boolean;
  /** Why it has no hunks, or why none can be put back; empty where they can. */
  why: string;
}

export interface NetPiece {
  id: string;
  hunk: Hunk;
  /** The user's messages that the turns began with which changed these lines, or the file. */
  turns: string[];
}

/** Net changes as the screens show them; which turns a hunk is of is told by the calls' own diffs. */
export function netFiles(changes: readonly NetChange[], rows: readonly Row[], results: ReadonlyMap<string, CallResult>): NetFile[] {
  const calls = new Map<string, { turn: string; name: string }>();
  let turn = "";
  for (const row of rows) {
    if (row.role === "user") turn = row.id;
    for (const call of row.message.tool_calls ?? []) calls.set(call.id, { turn, name: call.name });
  }
  return changes.map((change) => {
    const known = (change.calls ?? []).filter((each) => calls.has(each));
    const hunks = (change.hunks ?? []).flatMap((each): NetPiece[] => {
      const hunk = parseDiff(each.text, change.path)[0]?.hunks[0];
      if (!hunk) return [];
      const fresh = new Set(hunk.lines.filter((line) => line.kind === "add").map((line) => line.text));
      const made = known.filter((call) => addedBy(results.get(call), fresh));
      const turns = [...new Set((made.length ? made : known).map((call) => calls.get(call)?.turn ?? ""))].filter(Boolean);
      return [{ id: each.id, hunk, turns }];
    });
    const isByShell = known.length > 0 && known.every((each) => !WRITERS.has(calls.get(each)?.name ?? ""));
    const why = change.why || (change.is_masked ? "a secret in it is not shown, so no part of it can be put back" : "");
    return { path: change.path, action: change.action, hunks, added: change.added ?? 0, removed: change.removed ?? 0, isByShell, why };
  });
}

function addedBy(result: CallResult | undefined, lines: ReadonlySet<string>): boolean {
  return (result?.diff ?? "").split("\n").some((line) => line.startsWith("+") && line.trim().length > 2 && lines.has(line.slice(1)));
}

export function letter(action: ChangedFile["action"]): string {
  return { created: "A", modified: "M", deleted: "D" }[action];
}

/** Where a hunk stands, in words. */
export function placeOf(hunk: Hunk, isNew: boolean): string {
  const lines = hunk.lines.filter((line) => line.kind !== "del");
  const first = hunk.after;
  const last = hunk.after + Math.max(0, lines.length - 1);
  const name = hunk.place || (hunk.lines.map((line) => /^\s*(?:async )?(?:def|class|function|fn|func)\s+(\w+)/.exec(line.text)?.[1]).find(Boolean) ?? "");
  const range = first === last ? `line ${first}` : `lines ${first}–${last}`;
  return isNew ? `Whole file, ${range}` : name ? `${name.replace(/^(async )?(def|class|function) /, "").replace(/[:({].*$/, "")}${/^\w+$/.test(name) ? "()" : ""}, ${range}` : `${range[0]?.toUpperCase()}${range.slice(1)}`;
}
