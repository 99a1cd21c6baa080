/** What a permission request asks about: the command alone, and what is known of it besides. */

import { parseChange, type FileDiff } from "../diff/parse.ts";
import type { PermissionRequest } from "../types.ts";
import { written } from "./text.ts";

export interface AskedFact {
  icon: "agent" | "clock" | "cube" | "file" | "globe" | "shield";
  text: string;
  /** A piece of the command that the sentence is about. */
  code?: string;
  warns?: boolean;
}

const OUTSIDE = "# outside the sandbox\n";
const INSIDE = "# not outside the sandbox\n";
const REACHES = "# may reach ";
const BARE = "# without a sandbox: ";
const STAYS = "# goes on in the background";
/** Programs whose second word says what they do. */
const TWO_WORDS = new Set(["apt", "brew", "cargo", "docker", "gh", "git", "go", "kubectl", "make", "npm", "pip", "pnpm", "poetry", "systemctl", "uv", "yarn"]);

/**
 * The text that is asked about. Only lines that the server put before what it asks about are
 * remarks; lines of the command itself, which a model writes, stay in it whatever they say.
 */
export function asked(request: PermissionRequest): { text: string; remarks: string[] } {
  const preview = request.preview ?? "";
  const target = request.tool_path ?? "";
  if (request.tool_name !== "shell" || !target || !preview.endsWith(target)) return { text: preview, remarks: [] };
  const remarks = preview.slice(0, preview.length - target.length).split("\n").filter(Boolean);
  if (target.startsWith(OUTSIDE)) return { text: target.slice(OUTSIDE.length), remarks: [...remarks, OUTSIDE.trim()] };
  const end = target.startsWith(REACHES) ? target.indexOf("\n") : -1;
  const line = target.slice(end + 1);
  if (end > 0) remarks.push(target.slice(0, end));
  return { text: line.startsWith(INSIDE) ? line.slice(INSIDE.length) : line, remarks };
}

/** What a server is said to have changed begins behind this line. */
const PIN = "\n\nWhat it says of itself, against what you know:\n";
/** Tools of ours whose preview is a diff that the server made. */
const CHANGES = new Set(["edit", "multi_edit", "write", "apply_patch", "rename"]);

/**
 * What is asked about, as text and as a diff. Only tools of ours that change files, and Weft's own
 * look at a server, are shown as a diff: what another tool is given may look like one and hide what
 * it does behind it. What does not show in a diff is written as a code.
 */
export function askedChange(request: PermissionRequest): { text: string; files: FileDiff[]; isHiding: boolean } {
  const { text } = asked(request);
  const preview = request.preview ?? "";
  const isChange = CHANGES.has(request.tool_name) && /^(---|@@|diff )/m.test(preview);
  const at = request.tool_name.startsWith("mcp__") ? text.indexOf(PIN) : -1;
  const diff = isChange ? preview : at < 0 ? "" : text.slice(at + PIN.length);
  const shown = written(diff.replaceAll("\r\n", "\n"));
  const { files, rest } = parseChange(shown.text, request.tool_path);
  if (files.length === 0) return { text, files, isHiding: false };
  const call = isChange ? "" : text.slice(0, at);
  return { text: [call, rest].filter(Boolean).join("\n\n"), files, isHiding: shown.isHiding };
}

/** What each key answers, in their order; null where there is no such button, for then it is no answer. */
export function answersOf(request: PermissionRequest, isHiding: boolean): (string | null)[] {
  return ["allow_once", isHiding ? null : "allow_turn", isHiding || !request.always_pattern ? null : "allow_always", "deny"];
}

/** What commands in the sandbox have of the network; "hosts": those that rules allow, null: not known. */
export type SandboxNetwork = boolean | "hosts" | null;

/** The facts below it. */
export function askedFacts(request: PermissionRequest, network: SandboxNetwork): AskedFact[] {
  const { text, remarks } = asked(request);
  const found: AskedFact[] = request.child ? [{ icon: "agent", text: "A sub-agent asks" }] : [];
  if (request.tool_name === "shell") found.push(...whereItRuns(remarks, network));
  else if (request.tool_name.startsWith("mcp__")) found.push({ icon: "globe", text: "A tool of the MCP server", code: request.tool_name.split("__")[1] ?? "" });
  if (request.reason) found.push({ icon: "shield", text: sentence(request.reason) });
  else found.push({ icon: "shield", text: "No rule covers", code: request.tool_name === "shell" ? program(text) : request.tool_path || request.tool_name });
  return found;
}

function whereItRuns(remarks: readonly string[], network: SandboxNetwork): AskedFact[] {
  const stays: AskedFact[] = remarks.includes(STAYS) ? [{ icon: "clock", text: "Goes on in the background" }] : [];
  if (remarks.includes(OUTSIDE.trim())) return [{ icon: "globe", text: "Outside the sandbox: your files and the network are open to it", warns: true }, ...stays];
  const bare = remarks.find((each) => each.startsWith(BARE));
  if (bare) return [{ icon: "globe", text: `Without a sandbox: ${bare.slice(BARE.length)}`, warns: true }, ...stays];
  const reach = remarks.find((each) => each.startsWith(REACHES));
  const besides = network === "hosts" ? ", besides allowed hosts" : "";
  if (reach && network !== true) return [{ icon: "globe", text: `May reach${besides}`, code: reach.slice(REACHES.length), warns: true }, { icon: "cube", text: "In the sandbox: what it changes can be put back" }, ...stays];
  const net: AskedFact[] = network === null ? [] : [{ icon: "globe", text: network === "hosts" ? "Reaches allowed hosts only" : network ? "With the network" : "Without the network" }];
  return [...net, { icon: "cube", text: "In the sandbox: what it changes can be put back" }, ...stays];
}

function program(command: string): string {
  const line = command.split("\n").find((each) => each.trim() && !each.trim().startsWith("#")) ?? command;
  const [first = "", second = ""] = line.trim().split(/\s+/);
  return TWO_WORDS.has(first) && /^[a-z][\w-]*$/.test(second) ? `${first} ${second}` : first;
}

function sentence(words: string): string {
  return (words[0]?.toUpperCase() ?? "") + words.slice(1);
}

/** What a click on a hunk waits for: its file, and what was asked before. */
export interface HunkClick {
  path: string;
  open: ReadonlySet<string>;
}

/** Whether the click is the answer: to its own edit alone, never to what a model or an agent asks beside it. */
export function isAnsweredBy(click: HunkClick, request: PermissionRequest): boolean {
  return ["edit", "write"].includes(request.tool_name) && request.tool_path === click.path && !request.child && !click.open.has(request.request_id);
}
