/** Settings: each value with where it comes from. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, send } from "../api.ts";
import { access, attempt, look, notifies, project, readAccess, route, say, wantNotifications } from "../store.ts";
import type { KeyCheck, ModelAccess } from "../types.ts";
import { Button, Chip, Empty, Loading, Segments, Switch } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";
import { KEYS } from "../keys.ts";
import { sourceOf } from "../state/words.ts";
import { Costs } from "./costs.tsx";
import { KeyForm } from "./first-run.tsx";
import { McpServers } from "./mcp.tsx";
import { Permissions } from "./permissions.tsx";

interface Setting { value: unknown; source: string; about: string; choices?: string[] }

const NAMES: Record<string, string> = { model: "Models and keys", providers: "Models and keys", models: "Models and keys", permissions: "Permissions", permission: "Permissions", sandbox: "Sandbox", context: "Context", compaction: "Context", files: "Files and history", snapshots: "Files and history", storage: "Files and history", history: "Files and history", theme: "Terminal", animation: "Terminal", chat: "Terminal", statusline: "Terminal", keys: "Terminal", notify: "Terminal", profile: "Profiles", profiles: "Profiles", lsp: "Language servers", repo: "Index", session: "Sessions and agents", agents: "Sessions and agents", hooks: "Tools and hooks", formatters: "Tools and hooks", environment: "Tools and hooks", mcp: "Tools and hooks" };

/** What a setting is called, where its own name does not say it. */
const TITLES: Record<string, string> = { "model.default": "Default model", "model.effort": "Thinking", "model.architect": "Planner", "model.editor": "Runs steps", "model.rotation": "Models to go through", "model.fallback": "Models that step in", "model.style": "How answers are written", "sandbox.mode": "Sandbox", "sandbox.network": "Network in the sandbox", "sandbox.show": "Folders shown in the sandbox", "loom.model": "Model of trees of text" };

function titleOf(name: string): string {
  const tail = (name.split(".").slice(1).join(" ") || name).replaceAll("_", " ");
  return TITLES[name] ?? (tail[0]?.toUpperCase() ?? "") + tail.slice(1);
}

/** Shown as rules, one by one. */
const RULES = new Set(["permissions.allow", "permissions.ask", "permissions.deny"]);
const GROUPS = ["Models and keys", "Permissions", "Sandbox", "Context", "Files and history"];

export function Settings(): JSX.Element {
  const all = useSignal<Record<string, Setting> | null>(null);
  const trouble = useSignal("");
  const words = useSignal("");
  const group = useSignal(route.value.query.show ?? "Look");
  const load = (): void => { get<Record<string, Setting>>(`/projects/${encodeURIComponent(project.value.key)}/config`).then((found) => { all.value = found; if (group.value === "Look" && !words.value) group.value = "Models and keys"; }, (error: Error) => { trouble.value = error.message; }); };
  useEffect(load, []);
  const wanted = route.value.query.show;
  useEffect(() => { if (wanted) group.value = wanted; }, [wanted]);
  const entries = Object.entries(all.value ?? {});
  const place = (name: string): string => `${GROUPS.includes(name) ? GROUPS.indexOf(name) : 9} ${name}`;
  const groups = [...new Set(entries.map(([name]) => groupOf(name)))].sort((one, other) => place(one).localeCompare(place(other)));
  const low = words.value.toLowerCase();
  const shown = low ? entries.filter(([name, each]) => `${name} ${titleOf(name)} ${each.about}`.toLowerCase().includes(low)) : entries.filter(([name]) => groupOf(name) === group.value && !RULES.has(name));
  return (
    <div class="settings">
      <div class="settings-side">
        <div class="search"><Icon name="search" /><input class="field" type="search" aria-label="Find a setting" placeholder="Find a setting" value={words.value} onInput={(event) => { words.value = event.currentTarget.value; }} /></div>
        <ul>{[...groups, "MCP servers", "Costs", "Look", "Shortcuts"].map((name) => <li key={name}><button type="button" class="settings-tab" aria-current={!low && group.value === name} onClick={() => { group.value = name; words.value = ""; }}>{name}</button></li>)}</ul>
      </div>
      <div class="settings-main" tabIndex={-1}>
        <h2>{low ? "Found" : group.value}</h2>
        {low || !["Costs", "MCP servers", "Shortcuts"].includes(group.value) ? <p class="dim">Each value says where it comes from. A change here goes to your own file.</p> : null}
        {trouble.value ? <Empty title="The settings could not be read">{trouble.value}</Empty> : null}
        {all.value === null && !trouble.value && group.value !== "Look" && group.value !== "Shortcuts" ? <Loading rows={6} /> : null}
        {!low && group.value === "Look" ? <><Look /><Notices /></> : null}
        {!low && group.value === "Costs" ? <Costs /> : null}
        {!low && group.value === "MCP servers" ? <McpServers /> : null}
        {!low && group.value === "Permissions" ? <><Permissions /><h3 class="keys-head">Settings</h3></> : null}
        {!low && group.value === "Shortcuts" ? <dl class="keys open">{KEYS.map((each) => <div key={each.keys + each.says}><dt>{each.keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{each.says}</dd></div>)}</dl> : null}
        {shown.map(([name, each]) => <Row key={name} name={name} setting={each} changed={load} />)}
        {!low && group.value === "Models and keys" && all.value ? <Keys /> : null}
      </div>
    </div>
  );
}

function groupOf(name: string): string {
  const head = name.split(".")[0] ?? name;
  return NAMES[head] ?? (head[0]?.toUpperCase() ?? "") + head.slice(1);
}

function Look(): JSX.Element {
  return (
    <div class="setting"><div class="setting-words"><span>Light or dark</span><span class="dim">Kept in this browser.</span></div><div class="setting-control"><Segments name="Light or dark" value={look.value} options={[["system", "System"], ["light", "Light"], ["dark", "Dark"]] as const} onChange={(value) => { look.value = value; }} /></div><span class="dim">this browser</span></div>
  );
}

function Notices(): JSX.Element {
  return (
    <div class="setting"><div class="setting-words"><span>Notifications</span><span class="dim">When a session in a tab that is not in view asks you something, or has finished.</span></div><div class="setting-control"><Switch on={notifies.value} label="Notifications" onChange={(on) => void wantNotifications(on)} /></div><span class="dim">this browser</span></div>
  );
}

function Row({ name, setting, changed }: { name: string; setting: Setting; changed: () => void }): JSX.Element {
  const words = useSignal<string | null>(null);
  const source = sourceOf(setting.source);
  const fixed = source.fixed;
  const text = typeof setting.value === "string" ? setting.value : setting.value === null ? "" : JSON.stringify(setting.value);
  const set = async (value: string | null): Promise<void> => {
    words.value = null;
    const done = await attempt(send<{ text: string }>("PUT", `/projects/${encodeURIComponent(project.value.key)}/config`, { name, value }));
    if (done) { if (done.text) say("ok", done.text); changed(); }
  };
  const isDefault = setting.source === "default";
  return (
    <div class="setting">
      <div class="setting-words"><span class="line"><span>{titleOf(name)}</span><code class="dim">{name}</code></span><span class="dim">{setting.about}</span></div>
      <div class="setting-control">
        {typeof setting.value === "boolean" ? <Switch on={setting.value} label={name} off={fixed} onChange={(on) => void set(String(on))} /> : setting.choices?.length && !fixed ? (
          setting.choices.length <= 5 ? <Segments name={name} value={text} options={setting.choices.map((each) => [each, each.replaceAll("_", " ")] as const)} onChange={(value) => void set(value)} /> : <select class="field" aria-label={name} value={text} onChange={(event) => void set(event.currentTarget.value)}>{setting.choices.map((each) => <option key={each} value={each}>{each}</option>)}</select>
        ) : (
          <form onSubmit={(event) => { event.preventDefault(); if (words.value !== null) void set(words.value); }}><input class="field" aria-label={name} value={words.value ?? text} disabled={fixed} onInput={(event) => { words.value = event.currentTarget.value; }} onKeyDown={(event) => { if (event.key === "Escape") words.value = null; }} /></form>
        )}
        {words.value !== null && words.value !== text ? <Button small onClick={() => void set(words.value)}>Save</Button> : !isDefault && !fixed ? <Button kind="quiet" small onClick={() => void set(null)}>Back to default</Button> : null}
      </div>
      {isDefault ? <span class="dim">default</span> : <span title={setting.source}><Chip>{source.words}</Chip></span>}
    </div>
  );
}

/** Which providers have a key here; a key is added or replaced, never shown. */
function Keys(): JSX.Element {
  const open = useSignal("");
  useEffect(() => { void readAccess(); }, []);
  const known = access.value;
  return (
    <>
      <h3 class="keys-head">Keys</h3>
      {known === null ? <Loading rows={3} /> : (
        <table class="plain rows key-table"><thead><tr><th scope="col">Provider</th><th scope="col">Key</th><th scope="col">From</th><th scope="col">State</th><th scope="col"><span class="sr">Change</span></th></tr></thead>
          <tbody>{known.providers.map((each) => <KeyRow key={each.name} row={each} replace={() => { open.value = open.value === each.name ? "" : each.name; }} />)}</tbody></table>
      )}
      {open.value ? <KeyForm key={open.value} known={known} of={open.value} done={() => { open.value = ""; }} /> : null}
    </>
  );
}

function KeyRow({ row, replace }: { row: ModelAccess["providers"][number]; replace: () => void }): JSX.Element {
  const found = useSignal<KeyCheck | null>(null);
  const busy = useSignal(false);
  // Another key is another state.
  useEffect(() => { found.value = null; }, [row.shown]);
  const test = async (): Promise<void> => {
    busy.value = true;
    found.value = await attempt(send<KeyCheck>("POST", `/projects/${encodeURIComponent(project.value.key)}/keys/${encodeURIComponent(row.name)}/test`, {}));
    busy.value = false;
  };
  const state = found.value?.state;
  return (
    <tr>
      <th scope="row">{row.title}</th>
      <td>{row.shown ? <code>{row.shown}</code> : <span class="dim">{row.is_usable ? "none needed" : "none"}</span>}</td>
      <td>{row.source ? row.source === "your file" ? "your file" : <code>{row.source}</code> : null}</td>
      <td aria-live="polite">{state === "works" ? <span class="verdict ok"><Icon name="check" size={13} /> works</span> : state === "refused" ? <span class="verdict bad"><Icon name="cross" size={13} /> {found.value?.why}</span> : state ? <span class="dim">{found.value?.why}</span> : null}</td>
      <td>{row.shown ? <Button small kind="quiet" busy={busy.value} label={`Test the key of ${row.title}`} onClick={() => void test()}>Test</Button> : null}<Button small label={`${row.shown ? "Replace" : "Add"} the key of ${row.title}`} onClick={replace}>{row.shown ? "Replace…" : "Add…"}</Button></td>
    </tr>
  );
}
