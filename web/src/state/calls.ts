/** Tool calls as one line each: verb, target, result, state. Pure. */

import { parseDiff } from "../diff/parse.ts";
import type { IconName } from "../ui/icons.tsx";
import type { CallResult } from "./fold.ts";
import { count, firstLine, seconds } from "./words.ts";

export interface CallLine {
  icon: IconName;
  verb: string;
  target: string;
}

const ICONS: Record<string, IconName> = {
  read: "file", write: "pen", edit: "pen", multi_edit: "pen", apply_patch: "pen", list: "file", find: "grep", grep: "grep",
  find_symbol: "grep", references: "grep", outline: "file", map: "file", shell: "shell", shell_output: "shell",
  shell_stop: "shell", todo: "todo", ask: "chat", wait: "clock", agent: "agent", task: "agent",
};

export const LOOKUPS = new Set(["read", "list", "find", "grep", "outline", "find_symbol", "references"]);

export function callLine(name: string, args: Record<string, unknown>, target = ""): CallLine {
  const icon = ICONS[name] ?? (name.startsWith("decision") ? "why" : "tool");
  const verb = name === "multi_edit" ? "edit" : name === "apply_patch" ? "patch" : name.replaceAll("_", " ");
  return { icon, verb, target: target || targetOf(name, args) };
}

function targetOf(name: string, args: Record<string, unknown>): string {
  const text = (key: string): string => (typeof args[key] === "string" ? (args[key] as string) : "");
  switch (name) {
    case "shell":
      return firstLine(text("command"));
    case "grep":
      return `"${text("pattern")}"${text("path") ? ` in ${text("path")}` : ""}`;
    case "find":
      return text("pattern") || text("glob") || text("path");
    case "read": {
      const first = args.offset ?? args.first;
      return text("path") + (typeof first === "number" && first > 0 ? `:${first}` : "");
    }
    case "todo":
      return Array.isArray(args.todos) ? count(args.todos.length, "task") : "";
    case "agent":
      return text("keep") ? `keep ${text("keep")}` : firstLine(text("description") || text("prompt"));
    default:
      return text("path") || text("file_path") || text("command") || text("question") || text("description") || text("title") || text("name") || text("query") || plain(args);
  }
}

function plain(args: Record<string, unknown>): string {
  const words = Object.entries(args).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return firstLine(words.join(", ")).slice(0, 160);
}

export type CallState = "queued" | "running" | "waits" | "done" | "failed" | "refused" | "denied" | "stopped" | "interrupted";

export interface CallEnd {
  state: CallState;
  /** Small words at the right, the important one first. */
  words: string[];
  /** The first word is shown in this tone. */
  tone: "" | "bad" | "warn";
  added: number;
  removed: number;
}

export function callEnd(name: string, result: CallResult): CallEnd {
  const end: CallEnd = { state: "done", words: [], tone: "", added: 0, removed: 0 };
  const time = result.durationMs > 0 ? seconds(result.durationMs) : "";
  if (result.diff) {
    for (const file of parseDiff(result.diff)) {
      end.added += file.added;
      end.removed += file.removed;
    }
  }
  const how = { call: "once, by you", turn: "this turn, by you", session: "always, by you", "": "" }[result.allowed] ?? "";
  switch (result.status) {
    case "denied":
      end.state = /rule|boundary|mode/i.test(result.text) && !/said|user/i.test(result.text) ? "refused" : "denied";
      end.words.push(firstLine(result.text).slice(0, 90));
      end.tone = end.state === "refused" ? "bad" : "";
      return end;
    case "aborted":
      end.state = "stopped";
      end.words.push(time ? `stopped after ${time}` : "stopped");
      return end;
    case "interrupted":
      end.state = "interrupted";
      end.words.push("interrupted: effect unknown, not run again");
      end.tone = "warn";
      return end;
    default:
  }
  if (how) end.words.push(how);
  if (result.exitCode !== null && (name === "shell" || name === "shell_output")) {
    end.words.unshift(`exit ${result.exitCode}`);
    if (result.exitCode !== 0) {
      end.state = "failed";
      end.tone = "bad";
    }
  } else if (result.isError) {
    end.state = "failed";
    end.tone = "bad";
    end.words.unshift(firstLine(result.text).slice(0, 90) || "failed");
  } else if (LOOKUPS.has(name)) {
    const lines = result.text ? result.text.split("\n").length : 0;
    end.words.push(name === "grep" ? count(lines, "hit") : count(lines, "line"));
  }
  if (time) end.words.push(time);
  return end;
}
