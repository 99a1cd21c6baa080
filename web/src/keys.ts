/** Keys of the whole page. Single letters count only outside of text fields. */

import { session, go, helpOpen, looking, notice, paletteOpen, route, rows, say, startSession, tree, undoRewind, unfolded, type Screen } from "./store.ts";
import { busy, stop } from "./screens/composer.tsx";

export const KEYS: { keys: string; says: string; act?: string }[] = [
  { keys: "Enter", says: "send; while a turn runs, steer it" },
  { keys: "Alt Enter", says: "queue for after the turn" },
  { keys: "Shift Enter", says: "a new line" },
  { keys: "Esc", says: "one step out: menu, dialog, past; then stop the turn" },
  { keys: "Esc Esc", says: "look back along the thread" },
  { keys: "1 … 4", says: "answer the request that has the focus; Alt and the number from anywhere" },
  { keys: "Alt ↑", says: "take queued messages back" },
  { keys: "Shift Tab", says: "the next permission mode (in the message)" },
  { keys: "Ctrl O", says: "open or fold all tools" },
  { keys: "Ctrl K", says: "find and do" },
  { keys: "Ctrl Z", says: "undo the last rewind, outside of text" },
  { keys: "[", says: "the session before" },
  { keys: "]", says: "the next session" },
  { keys: "N", says: "new session" },
  { keys: "T", says: "open and close the tree" },
  { keys: "G C", says: "chat", act: "go chat" },
  { keys: "G T", says: "tree", act: "go tree" },
  { keys: "G H", says: "changes", act: "go changes" },
  { keys: "G F", says: "files", act: "go files" },
  { keys: "G P", says: "plan", act: "go plan" },
  { keys: "G D", says: "decisions", act: "go decisions" },
  { keys: "G L", says: "loom", act: "go loom" },
  { keys: "J K", says: "the next and the previous turn, hunk or stream" },
  { keys: "Y", says: "accept the hunk (Changes)" },
  { keys: "W", says: "why (Changes), weave (Loom)" },
  { keys: "=", says: "mark two turns to compare (Tree)" },
  { keys: "F6", says: "the next part of the page; with Shift, the part before" },
  { keys: "?", says: "this list" },
];

const SCREENS: Record<string, Screen> = { c: "chat", t: "tree", h: "changes", f: "files", d: "decisions", p: "plan", l: "loom" };
const PARTS = [".top-bar", ".thread-bar .track", ".chat .scroll", ".request", "#message", ".panel"];

let goesAt = Number.NEGATIVE_INFINITY;
let escapedAt = Number.NEGATIVE_INFINITY;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function listen(): void {
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return act(event, () => { paletteOpen.value = !paletteOpen.value; });
    if (paletteOpen.value || helpOpen.value) return;
    if (event.ctrlKey && event.key.toLowerCase() === "o") return act(event, () => { unfolded.value = !unfolded.value; });
    if (event.key === "F6") return act(event, () => jump(event.shiftKey ? -1 : 1));
    if (event.key === "Escape") return escape(event);
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
      if (!isTyping(event.target) && event.ctrlKey && event.key === "z" && session.value) act(event, undo);
      return;
    }
    letter(event);
  });
}

function act(event: KeyboardEvent, run: () => void): void {
  event.preventDefault();
  run();
}

function undo(): void {
  const shown = notice.value?.undo;
  if (shown) { shown(); notice.value = null; } else void undoRewind();
}

function letter(event: KeyboardEvent): void {
  const key = event.key.toLowerCase();
  if (performance.now() - goesAt < 1000) {
    goesAt = Number.NEGATIVE_INFINITY;
    const screen = SCREENS[key];
    if (screen && session.value) act(event, () => go(screen));
    return;
  }
  const isLoom = route.value.screen === "loom";
  if (key === "g" && !isLoom) goesAt = performance.now();
  else if (key === "?") act(event, () => { helpOpen.value = true; });
  else if (key === "n") act(event, () => void startSession());
  else if (key === "t" && session.value) act(event, () => go(route.value.screen === "tree" ? "chat" : "tree"));
  else if (key === "/" && session.value) act(event, () => document.querySelector<HTMLElement>("#message")?.focus());
  else if (key === "[" || key === "]") act(event, () => neighbour(key === "]" ? 1 : -1));
}

function neighbour(step: number): void {
  const at = rows.value.findIndex((row) => row.id === route.value.session);
  const next = rows.value[at + step];
  if (next) go("chat", next.id);
}

function escape(event: KeyboardEvent): void {
  const state = session.value;
  if (!state) return;
  if (looking.value !== null) return act(event, () => { looking.value = null; });
  if (route.value.screen !== "chat") return;
  if (busy.value) return act(event, () => void stop(state.id));
  if (performance.now() - escapedAt < 700) {
    escapedAt = Number.NEGATIVE_INFINITY;
    const line = tree.value?.line ?? [];
    if (line.length > 1) { looking.value = line.at(-2) ?? null; document.querySelector<HTMLElement>(".thread-bar .track")?.focus(); } else say("warn", "There is no earlier turn to go back to.");
    return event.preventDefault();
  }
  escapedAt = performance.now();
}

function jump(step: number): void {
  const parts = PARTS.map((each) => document.querySelector<HTMLElement>(each)).filter((each) => each !== null);
  const at = parts.findIndex((each) => each.contains(document.activeElement));
  const next = at < 0 && step < 0 ? parts.at(-1) : parts[(at + step + parts.length) % parts.length];
  const target = next?.matches("[tabindex],textarea,button") ? next : next?.querySelector<HTMLElement>("button,a,[tabindex]");
  target?.focus();
}
