/** Ctrl+K: turns, sessions, files and commands in one list. */

import { effect, untracked, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { age } from "../state/words.ts";
import { branchAt, go, helpOpen, look, looking, minute, paletteOpen, rows, session, startSession, touched, tree, undoRewind } from "../store.ts";
import { Key } from "../ui/controls.tsx";
import { Icon, Mark, type IconName, type MarkName } from "../ui/icons.tsx";
import { KEYS } from "../keys.ts";
import { projectFiles } from "./composer.tsx";
import { found } from "./sessions.tsx";
import { standing, titleOf } from "./shell.tsx";

interface Item { group: string; mark?: MarkName; icon?: IconName; text: string; note: string; keys?: string; run: () => void; branch?: () => void }

export function Palette(): JSX.Element | null {
  const dialog = useRef<HTMLDialogElement>(null);
  const words = useSignal("");
  const at = useSignal(0);
  const files = useSignal<string[]>([]);
  // At once, not after the next drawing: what is typed right after Ctrl+K belongs here.
  useEffect(() => effect(() => {
    if (!paletteOpen.value) { dialog.current?.close(); return; }
    dialog.current?.showModal();
    untracked(() => {
      words.value = "";
      at.value = 0;
      if (session.value) void projectFiles().then((list) => { files.value = list; });
    });
  }), []);
  const close = (): void => { paletteOpen.value = false; };
  const items = paletteOpen.value ? find(words.value, files.value) : [];
  const chosen = Math.min(at.value, items.length - 1);
  const run = (item: Item | undefined, branch: boolean): void => { if (!item) return; close(); if (branch && item.branch) item.branch(); else item.run(); };
  const key = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") at.value = (chosen + 1) % Math.max(1, items.length);
    else if (event.key === "ArrowUp") at.value = (chosen - 1 + items.length) % Math.max(1, items.length);
    else if (event.key === "Enter") {
      // By what is typed now: the list on the screen may be a drawing behind.
      const fresh = find(words.value, files.value);
      run(fresh[Math.min(at.value, fresh.length - 1)], event.ctrlKey || event.metaKey);
    }
    else return;
    event.preventDefault();
    requestAnimationFrame(() => dialog.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }));
  };
  const rowsOf: ComponentChildren[] = [];
  let group = "";
  items.forEach((item, index) => {
    if (item.group !== group) { group = item.group; rowsOf.push(<div key={group} class="group" role="presentation">{group}</div>); }
    rowsOf.push(
      <div key={`${group}${index}`} id={`palette-${index}`} role="option" aria-selected={index === chosen} class="item" onPointerMove={() => { at.value = index; }} onClick={(event) => run(item, event.ctrlKey)}>
        {item.mark ? <Mark name={item.mark} label="" /> : <Icon name={item.icon ?? "right"} />}<span class="words">{found(item.text, words.value.replace(/^[>@#]/, ""))}</span><span class="note">{item.note}</span>{item.keys ? <Key>{item.keys}</Key> : null}
      </div>,
    );
  });
  return (
    <dialog ref={dialog} class="palette" aria-label="Find and do" onClose={close} onClick={(event) => { if (event.target === event.currentTarget) close(); }}>
      <div class="palette-box" onKeyDown={key}>
        <div class="palette-head"><Icon name="search" /><input role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={items.length ? `palette-${chosen}` : undefined} aria-label="Find a turn, session, file or command" placeholder="Find a turn, session, file or command" autoFocus value={words.value} onInput={(event) => { words.value = event.currentTarget.value; at.value = 0; }} /><Key>Esc</Key></div>
        <div id="palette-list" class="palette-list" role="listbox" aria-label="Results">{rowsOf.length ? rowsOf : <div class="empty" role="option" aria-selected="false">Nothing found</div>}</div>
        <div class="palette-foot"><Key>↑</Key><Key>↓</Key> choose <Key>Enter</Key> go <Key>Ctrl Enter</Key> branch there<span class="push" /><Key>{">"}</Key> commands <Key>@</Key> files <Key>#</Key> turns</div>
      </div>
    </dialog>
  );
}

function find(given: string, files: readonly string[]): Item[] {
  const only = /^[>@#]/.exec(given)?.[0] ?? "";
  const words = (only ? given.slice(1) : given).trim().toLowerCase();
  const fits = (text: string): boolean => words.split(/\s+/).every((each) => text.toLowerCase().includes(each));
  const known = tree.value;
  const items: Item[] = [];
  if ((!only || only === "#") && known && words + only)
    for (const key of [...known.order].reverse()) {
      const turn = known.turns.get(key);
      if (!turn || !fits(turn.prompt)) continue;
      const onLine = known.line.includes(key);
      items.push({ group: "Turns in this session", mark: onLine ? "weft" : "other", text: turn.prompt, note: `turn ${turn.depth + 1} · ${known.lanes.find((lane) => lane.keys.includes(key))?.name ?? known.headBranch}`, run: () => { if (onLine) { looking.value = key === known.line.at(-1) ? null : key; go("chat"); } else go("tree", undefined, { at: key }); }, branch: () => void branchAt(turn.nodes.at(-1) ?? "") });
      if (items.length >= (only ? 50 : 5)) break;
    }
  if (!only)
    for (const row of rows.value.filter((each) => fits(titleOf(each))).slice(0, words ? 5 : 6))
      items.push({ group: "Sessions", mark: standing(row).mark, text: titleOf(row), note: row.id === session.value?.id ? "here" : age(row.last_active, minute.value), run: () => go("chat", row.id) });
  if ((!only && words) || only === "@") {
    const changed = new Set(touched.value.map((each) => each.path));
    const all = files.length ? files : [...changed];
    for (const path of all.filter(fits).slice(0, only ? 50 : 5)) items.push({ group: "Files", icon: "file", text: path, note: changed.has(path) ? "changed" : "", run: () => go("files", undefined, { path }) });
  }
  const file = !only && words ? items.find((each) => each.icon === "file") : undefined;
  if (file) items.push({ group: "Commands", icon: "why", text: `Why: ${file.text}`, note: "", run: () => go("decisions", undefined, { why: file.text }) });
  if (!only || only === ">") for (const item of commands().filter((each) => fits(each.text)).slice(0, only ? 50 : 8)) items.push(item);
  return items;
}

function commands(): Item[] {
  const group = "Commands";
  const has = session.value !== null;
  const screens = has ? (["chat", "tree", "changes", "files", "plan", "decisions", "loom", "fan"] as const) : [];
  const icons: Record<string, IconName> = { chat: "chat", tree: "branch", changes: "changes", files: "file", plan: "todo", decisions: "why", loom: "weave", fan: "star" };
  return [
    ...screens.map((screen): Item => ({ group, icon: icons[screen] ?? "right", text: `Go to ${screen === "fan" ? "candidates" : screen}`, note: "", keys: KEYS.find((each) => each.act === `go ${screen}`)?.keys ?? "", run: () => go(screen) })),
    { group, icon: "plus", text: "New session", note: "", keys: "N", run: () => void startSession() },
    ...(has ? [{ group, icon: "undo" as const, text: "Undo the last rewind", note: "", run: () => void undoRewind() }] : []),
    { group, icon: "search", text: "All sessions", note: "", run: () => go("sessions", "") },
    { group, icon: "gear", text: "Settings", note: "", run: () => go("settings", "") },
    ...(["light", "dark", "system"] as const).map((name): Item => ({ group, icon: "eye", text: `Look: ${name}`, note: look.value === name ? "chosen" : "", run: () => { look.value = name; } })),
    { group, icon: "key", text: "All keys", note: "", keys: "?", run: () => { helpOpen.value = true; } },
  ];
}

export function Help(): JSX.Element | null {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { if (helpOpen.value) dialog.current?.showModal(); }, [helpOpen.value]);
  if (!helpOpen.value) return null;
  return (
    <dialog ref={dialog} class="palette help" aria-label="All keys" onClose={() => { helpOpen.value = false; }} onClick={(event) => { if (event.target === event.currentTarget) helpOpen.value = false; }}>
      <div class="palette-box"><div class="palette-head"><strong>All keys</strong><span class="push" /><button type="button" class="button quiet small" onClick={() => { helpOpen.value = false; }}>Close</button></div>
        <dl class="keys" tabIndex={0}>{KEYS.map((each) => <div key={each.keys + each.says}><dt>{each.keys.split(" ").map((key) => <Key key={key}>{key}</Key>)}</dt><dd>{each.says}</dd></div>)}</dl></div>
    </dialog>
  );
}
