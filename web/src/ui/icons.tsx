/** Icons: strokes of the text's colour, 16 px. */

import type { JSX } from "preact";

const PATHS = {
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4 14 14",
  plus: "M8 3v10M3 8h10",
  rail: "M2.5 3h11v10h-11zM6 3v10",
  panel: "M2.5 3h11v10h-11zM10.5 3v10",
  gear: "M8 5.8a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4zM8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4",
  down: "m4.5 6.5 3.5 3.5 3.5-3.5",
  up: "m4.5 9.5 3.5-3.5 3.5 3.5",
  left: "M9.5 4.5 6 8l3.5 3.5",
  right: "M6.5 4.5 10 8l-3.5 3.5",
  check: "m3 8.5 3.2 3.2L13 5",
  cross: "m4 4 8 8M12 4l-8 8",
  file: "M4 2h5l3 3v9H4zM6 8h4M6 10.5h4M6 5.5h2",
  pen: "m3 13 .6-2.8 7-7a1.5 1.5 0 0 1 2.2 2.2l-7 7zM9.6 4.2l2.2 2.2",
  shell: "m3 4.5 3 3-3 3M8 11h5",
  grep: "M2.5 4h8M2.5 7.5h4M2.5 11h3M10 8a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM11.6 11.6l2 2",
  agent: "M4 3v4.5A2.5 2.5 0 0 0 6.5 10H9M11 8.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6z",
  todo: "M3 4.5h1M6.5 4.5h7M3 8h1M6.5 8h7M3 11.5h1M6.5 11.5h7",
  tool: "M8 2.5 13.5 8 8 13.5 2.5 8z",
  stop: "M4.5 4.5h7v7h-7z",
  send: "M8 13V3.5M4 7l4-4 4 4",
  clip: "M11.5 6.5 6.8 11.2a2 2 0 0 1-2.9-2.9l5.6-5.6a3 3 0 0 1 4.3 4.3l-5.6 5.6",
  shield: "M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
  globe: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM2.5 8h11M8 2.5c-2 1.5-2.5 3.5-2.5 5.5S6 12 8 13.5M8 2.5c2 1.5 2.5 3.5 2.5 5.5S10 12 8 13.5",
  cube: "M8 2 13.5 5v6L8 14l-5.5-3V5zM2.5 5 8 8l5.5-3M8 8v6",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3l2 1.5",
  warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
  undo: "M4 3v3.5h3.5M4.2 6.3A5 5 0 1 1 3 9.5",
  branch: "M1.5 9h3M4.5 7.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6zM6.3 9H14M6 8c2-3.5 4-4 8-4",
  eye: "M1.8 8S4 4 8 4s6.2 4 6.2 4S12 12 8 12 1.8 8 1.8 8zM8 6.3a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4z",
  no: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM4.2 4.2l7.6 7.6",
  copy: "M5.5 5.5h8v8h-8zM5.5 10.5h-3v-8h8v3",
  chat: "M2.5 3h11v8h-6L4.5 13.5V11h-2z",
  changes: "M4 2h8v12H4zM6.5 5.5h3M8 4v3M6.5 10.5h3",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  key: "M5 8.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM6.8 9.2 13 3M11 5l2 2M9.5 6.5l1.5 1.5",
  swap: "M2.5 5.5h10M10 3l2.5 2.5L10 8M13.5 10.5h-10M6 8l-2.5 2.5L6 13",
  star: "m8 2.5 1.7 3.6 3.8.5-2.8 2.6.7 3.8L8 11.1 4.6 13l.7-3.8L2.5 6.6l3.8-.5z",
  why: "M5 4.5 8 2l3 2.5L8 7zM8 7v3M5 12.5h6M5.5 10h5l1 2.5h-7z",
  weave: "M4 2v12M8 2v12M12 2v12M2 6h4M10 6h4M6 10h4",
  drag: "M6 4v.1M10 4v.1M6 8v.1M10 8v.1M6 12v.1M10 12v.1",
  mark: "M5 2.5h6v11l-3-2.5-3 2.5z",
} as const;

export type IconName = keyof typeof PATHS;

const HEAVY = new Set<IconName>(["more", "drag"]);

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class={`icon i-${name}`} width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill={name === "stop" ? "currentColor" : "none"} stroke="currentColor" stroke-width={HEAVY.has(name) ? 2 : 1.35} stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

export function Logo({ size = 20 }: { size?: number }): JSX.Element {
  return (
    <svg class="logo" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true">
      <path d="M6 2.5v15M10 2.5v15M14 2.5v15" stroke="var(--line-strong)" stroke-width="1.6" stroke-linecap="round" fill="none" />
      <path d="M1.5 8.5C6 8.5 5.5 10.5 10 10.5s4.5 1.5 8.5 1.5" stroke="var(--accent)" stroke-width="2.3" stroke-linecap="round" fill="none" />
    </svg>
  );
}

export type MarkName =
  | "you" | "weft" | "here" | "looking" | "running" | "needs" | "other" | "partial" | "failed" | "checkpoint" | "checked" | "coming" | "rest";

const MARK_WORDS: Record<MarkName, string> = {
  you: "your prompt", weft: "answered", here: "here", looking: "looking here", running: "running", needs: "needs you",
  other: "on another branch", partial: "interrupted", failed: "failed", checkpoint: "checkpoint", checked: "checked",
  coming: "to come", rest: "at rest",
};

/** One vocabulary for the chat, the tree, the plan, the loom and the list of sessions. */
export function Mark({ name, size = 16, label }: { name: MarkName; size?: number; label?: string }): JSX.Element {
  const words = label ?? MARK_WORDS[name];
  const role = words ? { role: "img" as const, "aria-label": words } : { "aria-hidden": "true" as const };
  return (
    <svg ref={name === "running" ? inStep : undefined} class={`mark m-${name}`} width={size} height={size} viewBox="0 0 16 16" {...role}>
      {shape(name)}
    </svg>
  );
}

/** All arcs turn in the same frames: each frame that one of them turns in is drawn anew, whole. */
function inStep(mark: Element | null): void {
  for (const turning of mark?.getAnimations() ?? []) turning.startTime = 0;
}

function shape(name: MarkName): JSX.Element {
  switch (name) {
    case "you":
      return <circle cx="8" cy="8" r="3.2" fill="var(--bg)" stroke="var(--accent)" stroke-width="2" />;
    case "weft":
      return <circle cx="8" cy="8" r="4" fill="var(--accent)" />;
    case "here":
      return (
        <g>
          <circle cx="8" cy="8" r="6.6" fill="var(--bg)" stroke="var(--accent)" stroke-width="1.8" />
          <circle cx="8" cy="8" r="3.2" fill="var(--accent)" />
        </g>
      );
    case "looking":
      return <circle cx="8" cy="8" r="6.6" fill="var(--accent)" />;
    case "running":
      return (
        <g>
          <circle cx="8" cy="8" r="5.8" fill="none" stroke="var(--accent-line)" stroke-width="2" />
          <path d="M8 2.200A5.8 5.8 0 0 1 13.8 8" fill="none" stroke="var(--accent)" stroke-width="2" stroke-linecap="round" />
        </g>
      );
    case "needs":
      return (
        <g>
          <circle cx="8" cy="8" r="7" fill="var(--accent)" />
          <path d="M6.2 6.400a1.9 1.9 0 1 1 2.7 1.700c-.6.3-.9.6-.9 1.300M8 11.600v.1" fill="none" stroke="var(--on-accent)" stroke-width="1.6" stroke-linecap="round" />
        </g>
      );
    case "other":
      return <circle cx="8" cy="8" r="3.6" fill="var(--line-strong)" />;
    case "rest":
      return <circle cx="8" cy="8" r="2" fill="var(--line-strong)" />;
    case "partial":
      return (
        <g>
          <circle cx="8" cy="8" r="4.2" fill="var(--bg)" stroke="var(--line-strong)" stroke-width="1.6" />
          <path d="M8 3.800a4.2 4.2 0 0 0 0 8.400z" fill="var(--line-strong)" />
        </g>
      );
    case "failed":
      return (
        <g fill="none" stroke="var(--bad)" stroke-width="1.5" stroke-linecap="round">
          <circle cx="8" cy="8" r="6.3" />
          <path d="m5.8 5.8 4.4 4.400M10.2 5.800l-4.4 4.4" />
        </g>
      );
    case "checkpoint":
      return <path d="M8 2.8 13.2 8 8 13.2 2.8 8z" fill="var(--bg)" stroke="var(--accent)" stroke-width="1.6" />;
    case "checked":
      return (
        <g fill="none" stroke="var(--ok)" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">
          <circle cx="8" cy="8" r="6.3" />
          <path d="m5.4 8.2 1.9 1.9 3.4-3.8" />
        </g>
      );
    case "coming":
      return <circle cx="8" cy="8" r="6.2" fill="none" stroke="var(--line-strong)" stroke-width="1.6" stroke-dasharray="2.6 2.270" />;
  }
}
