/** Unified diffs as rows: what the diff view draws. Pure. */

import { diffWordsWithSpace, structuredPatch } from "diff";

export interface DiffLine {
  kind: "same" | "add" | "del";
  before: number;
  after: number;
  text: string;
  /** Parts that differ from the line it replaced; empty where most of it does. */
  words: [from: number, to: number][];
}

export interface Hunk {
  before: number;
  after: number;
  /** What stands behind the second @@: the function, where the writer of the diff knew it. */
  place: string;
  lines: DiffLine[];
  added: number;
  removed: number;
}

export interface FileDiff {
  path: string;
  action: "created" | "modified" | "deleted";
  hunks: Hunk[];
  added: number;
  removed: number;
}

/** A line in front of each file where one call changes several; what was asked names them so. */
const HEADING = /^\*\*\* (.+) \([a-z ]+\)$/;

/** Files of a unified diff; one without file names is a diff of `path`. */
export function parseDiff(text: string, path = ""): FileDiff[] {
  return parseChange(text, path).files;
}

/**
 * The same, with `rest`: the lines that no hunk has (files that are removed whole, and what changes
 * besides their lines). Who is asked about a change has to see these as well.
 */
export function parseChange(text: string, path = ""): { files: FileDiff[]; rest: string } {
  const files: FileDiff[] = [];
  const rest: string[] = [];
  let file: FileDiff | null = null;
  let hunk: Hunk | null = null;
  let from = "";
  let heading = "";
  let left = 0;
  let right = 0;
  const lines = text.split("\n");
  for (const line of lines) {
    const head = /^@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+ ?(.*)$/.exec(line);
    if (head) {
      if (file === null) files.push((file = newFile(HEADING.exec(heading)?.[1] ?? path)));
      heading = "";
      hunk = { before: Number(head[1]), after: Number(head[3]), place: head[5] ?? "", lines: [], added: 0, removed: 0 };
      left = head[2] === undefined ? 1 : Number(head[2]);
      right = head[4] === undefined ? 1 : Number(head[4]);
      file.hunks.push(hunk);
      continue;
    }
    if (hunk !== null && (left > 0 || right > 0)) {
      const sign = line[0] ?? " ";
      if (sign === "\\") continue;
      const kind = sign === "+" ? "add" : sign === "-" ? "del" : "same";
      const number = { before: nextBefore(hunk), after: nextAfter(hunk) };
      hunk.lines.push({ kind, ...number, text: line.slice(1), words: [] });
      if (kind !== "add") left -= 1;
      if (kind !== "del") right -= 1;
      if (kind === "add") hunk.added += 1;
      if (kind === "del") hunk.removed += 1;
      continue;
    }
    if (line.startsWith("--- ")) {
      from = name(line.slice(4));
      hunk = null;
    } else if (line.startsWith("+++ ")) {
      const to = name(line.slice(4));
      file = newFile(to === "/dev/null" ? from : to || path);
      file.action = from === "/dev/null" ? "created" : to === "/dev/null" ? "deleted" : "modified";
      files.push(file);
    } else if (HEADING.test(line)) {
      if (heading) rest.push(heading);
      heading = line;
      file = hunk = null;
    } else if (line.trim() && !line.startsWith("\\")) {
      if (heading) rest.push(heading);
      heading = "";
      rest.push(line);
    }
  }
  if (heading) rest.push(heading);
  for (const each of files) finish(each);
  rest.push(...files.filter((each) => each.hunks.length === 0).map((each) => `${each.path} (${each.action})`));
  return { files: files.filter((each) => each.hunks.length > 0), rest: rest.join("\n") };
}

/** The diff of two texts. */
export function diffTexts(path: string, before: string, after: string, context = 3): FileDiff {
  const patch = structuredPatch(path, path, before, after, "", "", { context });
  const file = newFile(path);
  for (const each of patch.hunks) {
    const hunk: Hunk = { before: each.oldStart, after: each.newStart, place: "", lines: [], added: 0, removed: 0 };
    for (const line of each.lines) {
      const sign = line[0];
      if (sign === "\\") continue;
      const kind = sign === "+" ? "add" : sign === "-" ? "del" : "same";
      hunk.lines.push({ kind, before: nextBefore(hunk), after: nextAfter(hunk), text: line.slice(1), words: [] });
      if (kind === "add") hunk.added += 1;
      if (kind === "del") hunk.removed += 1;
    }
    file.hunks.push(hunk);
  }
  if (before === "") file.action = "created";
  else if (after === "") file.action = "deleted";
  finish(file);
  return file;
}

/** A text with one hunk of a diff taken back; null where the text is not what the diff left. */
export function withoutHunk(text: string, hunk: Hunk): string | null {
  const lines = text.split("\n");
  const now = hunk.lines.filter((line) => line.kind !== "del").map((line) => line.text);
  const then = hunk.lines.filter((line) => line.kind !== "add").map((line) => line.text);
  const wanted = hunk.after - 1;
  const fits = (at: number): boolean => now.every((line, index) => lines[at + index] === line);
  const places = [...lines.keys()].filter(fits).sort((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted));
  const at = places[0];
  if (at === undefined) return null;
  lines.splice(at, now.length, ...then);
  return lines.join("\n");
}

function newFile(path: string): FileDiff {
  return { path, action: "modified", hunks: [], added: 0, removed: 0 };
}

function name(text: string): string {
  const bare = text.split("\t")[0]?.trim() ?? "";
  return bare === "/dev/null" ? bare : bare.replace(/^[ab]\//, "");
}

function nextBefore(hunk: Hunk): number {
  return hunk.before + hunk.lines.filter((line) => line.kind !== "add").length;
}

function nextAfter(hunk: Hunk): number {
  return hunk.after + hunk.lines.filter((line) => line.kind !== "del").length;
}

function finish(file: FileDiff): void {
  for (const hunk of file.hunks) {
    file.added += hunk.added;
    file.removed += hunk.removed;
    markWords(hunk.lines);
  }
  if (file.action === "modified" && file.hunks.every((hunk) => hunk.before === 0)) file.action = "created";
}

/** Marks what differs inside lines that replace one another, where under 60 % of a line does. */
function markWords(lines: DiffLine[]): void {
  for (let at = 0; at < lines.length; at += 1) {
    if (lines[at]?.kind !== "del") continue;
    let end = at;
    while (lines[end]?.kind === "del") end += 1;
    let stop = end;
    while (lines[stop]?.kind === "add") stop += 1;
    for (let each = 0; each < Math.min(end - at, stop - end); each += 1) {
      const before = lines[at + each];
      const after = lines[end + each];
      if (before && after && before.text.length < 500 && after.text.length < 500) pair(before, after);
    }
    at = stop - 1;
  }
}

function pair(before: DiffLine, after: DiffLine): void {
  const gone: [number, number][] = [];
  const come: [number, number][] = [];
  let left = 0;
  let right = 0;
  for (const part of diffWordsWithSpace(before.text, after.text)) {
    const length = part.value.length;
    if (part.removed) {
      gone.push([left, left + length]);
      left += length;
    } else if (part.added) {
      come.push([right, right + length]);
      right += length;
    } else {
      left += length;
      right += length;
    }
  }
  if (share(gone, before.text) < 0.6 && share(come, after.text) < 0.6) {
    before.words = joined(gone, before.text);
    after.words = joined(come, after.text);
  }
}

function share(ranges: [number, number][], text: string): number {
  const length = text.trim().length;
  return length === 0 ? 1 : ranges.reduce((sum, [a, b]) => sum + b - a, 0) / length;
}

/** Ranges with those joined that only a space parts. */
function joined(ranges: [number, number][], text: string): [number, number][] {
  const found: [number, number][] = [];
  for (const [from, to] of ranges) {
    const last = found.at(-1);
    if (last && text.slice(last[1], from).trim() === "" && from - last[1] <= 1) last[1] = to;
    else found.push([from, to]);
  }
  return found;
}

export type SplitRow = { left: DiffLine | null; right: DiffLine | null };

/** The lines of a hunk side by side. */
export function splitRows(lines: readonly DiffLine[]): SplitRow[] {
  const rows: SplitRow[] = [];
  let gone: DiffLine[] = [];
  let come: DiffLine[] = [];
  const flush = (): void => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1)
      rows.push({ left: gone[at] ?? null, right: come[at] ?? null });
    gone = [];
    come = [];
  };
  for (const line of lines) {
    if (line.kind === "del") gone.push(line);
    else if (line.kind === "add") come.push(line);
    else {
      flush();
      rows.push({ left: line, right: line });
    }
  }
  flush();
  return rows;
}
