/** Buttons, chips, keys, menus: the small parts that every screen uses. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { written } from "../state/text.ts";
import { fileName } from "../state/words.ts";
import { Icon, type IconName } from "./icons.tsx";

export function Key({ children }: { children: ComponentChildren }): JSX.Element {
  return <kbd>{children}</kbd>;
}

interface ButtonProps {
  kind?: "primary" | "plain" | "quiet";
  small?: boolean;
  icon?: IconName;
  keys?: string;
  /** The key stands before the label: answers of a request. */
  keyFirst?: boolean;
  /** Why it is off; undefined: it is on. */
  off?: string | undefined;
  busy?: boolean;
  label?: string;
  pressed?: boolean;
  expanded?: boolean;
  class?: string;
  onClick?: (event: MouseEvent) => void;
  children?: ComponentChildren;
  title?: string;
}

export function Button(props: ButtonProps): JSX.Element {
  const { kind = "plain", icon, keys, off, busy, label, children } = props;
  const look = ["button", kind, props.small ? "small" : "", children === undefined ? "bare" : "", props.class ?? ""].filter(Boolean).join(" ");
  const key = keys ? <Key>{keys}</Key> : null;
  return (
    <button type="button" class={look} aria-label={label} aria-disabled={off !== undefined} aria-pressed={props.pressed} aria-expanded={props.expanded} aria-busy={busy} title={off ?? props.title ?? (children === undefined ? label : undefined)} onClick={(event) => off === undefined && !busy && props.onClick?.(event)}>
      {props.keyFirst ? key : null}
      {icon ? <Icon name={icon} /> : null}
      {children === undefined ? null : <span class="label">{children}</span>}
      {props.keyFirst ? null : key}
    </button>
  );
}

export function CopyButton({ text }: { text: string }): JSX.Element {
  const done = useSignal(false);
  return (
    <button type="button" class="copy" aria-label={done.value ? "Copied" : "Copy"} title="Copy" onClick={() => {
      void navigator.clipboard?.writeText(text).then(() => { done.value = true; window.setTimeout(() => { done.value = false; }, 1500); });
    }}>
      <Icon name={done.value ? "check" : "copy"} />
    </button>
  );
}

export function Segments<T extends string>({ name, value, options, onChange }: { name: string; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={name}>
      {options.map(([each, label]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChange(each)}>{label}</button>
      ))}
    </div>
  );
}

export function Chip({ icon, tone, children }: { icon?: IconName; tone?: "accent" | "ok" | "bad" | "warn"; children: ComponentChildren }): JSX.Element {
  return <span class={`chip ${tone ?? ""}`}>{icon ? <Icon name={icon} size={13} /> : null}<span class="clip">{children}</span></span>;
}

export function Filter({ chosen, onClick, children }: { chosen: boolean; onClick: () => void; children: ComponentChildren }): JSX.Element {
  return <button type="button" class="filter" aria-pressed={chosen} onClick={onClick}>{children}</button>;
}

export function Stat({ added, removed }: { added: number; removed: number }): JSX.Element | null {
  if (!added && !removed) return null;
  return (
    <span class="stat">
      {added ? <span class="add" aria-label={`${added} lines added`}>+{added}</span> : null}
      {removed ? <span class="del" aria-label={`${removed} lines removed`}>−{removed}</span> : null}
    </span>
  );
}

export function PathName({ path }: { path: string }): JSX.Element {
  const shown = written(path).text;
  const [folder, name] = fileName(shown);
  return <span class="path" title={shown}><span class="folder">{folder}</span><span class="name">{name}</span></span>;
}

export function Check({ on, onChange, label, children }: { on: boolean; onChange: (on: boolean) => void; label?: string; children?: ComponentChildren }): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={on} aria-label={label} onChange={(event) => onChange(event.currentTarget.checked)} />
      {children}
    </label>
  );
}

export function Switch({ on, label, off, onChange }: { on: boolean; label: string; off?: boolean; onChange: (on: boolean) => void }): JSX.Element {
  return <button type="button" class="switch" role="switch" aria-checked={on} aria-label={label} aria-disabled={off} onClick={() => !off && onChange(!on)}><span /></button>;
}

export interface MenuItem {
  value: string;
  label: ComponentChildren;
  note?: string;
  chosen?: boolean;
  off?: string;
}

/** A button with a list of choices: arrows move, Enter chooses, Escape closes. */
export function Menu({ label, items, onChoose, children, class: look = "", up = false, disabled }: { label: string; items: MenuItem[]; onChoose: (value: string) => void; children: ComponentChildren; class?: string; up?: boolean; disabled?: boolean }): JSX.Element {
  const open = useSignal(false);
  const list = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open.value) return;
    const chosen = list.current?.querySelector<HTMLElement>("[aria-checked=true]") ?? list.current?.querySelector<HTMLElement>("[role=menuitemradio]");
    chosen?.focus();
    const away = (event: Event): void => {
      if (!list.current?.contains(event.target as Node) && !opener.current?.contains(event.target as Node)) open.value = false;
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open.value]);
  const close = (): void => {
    open.value = false;
    opener.current?.focus();
  };
  const move = (event: KeyboardEvent): void => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitemradio]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") { event.stopPropagation(); close(); }
    else if (event.key === "ArrowDown") { event.preventDefault(); all[(at + 1) % all.length]?.focus(); }
    else if (event.key === "ArrowUp") { event.preventDefault(); all[(at - 1 + all.length) % all.length]?.focus(); }
    else if (event.key === "Home") { event.preventDefault(); all[0]?.focus(); }
    else if (event.key === "End") { event.preventDefault(); all.at(-1)?.focus(); }
    else if (event.key === "Tab") open.value = false;
    else if (event.key.length === 1 && !event.ctrlKey) all.find((each) => each.textContent?.trim().toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
  };
  return (
    <span class={`menu ${look}`}>
      <button type="button" ref={opener} class="opener" aria-haspopup="menu" aria-expanded={open.value} aria-controls={open.value ? id : undefined} title={label} disabled={disabled} onClick={() => { open.value = !open.value; }}>
        <span class="sr">{label}</span>{children}
      </button>
      {open.value ? (
        <div id={id} ref={list} class={up ? "list up" : "list"} role="menu" aria-label={label} onKeyDown={move}>
          {items.map((item) => (
            <button key={item.value} type="button" role="menuitemradio" tabIndex={-1} aria-checked={item.chosen ?? false} aria-disabled={item.off !== undefined} title={item.off} onClick={() => { if (item.off === undefined) { close(); onChoose(item.value); } }}>
              <span class="tick">{item.chosen ? <Icon name="check" size={14} /> : null}</span>
              <span class="label">{item.label}</span>
              {item.note ? <span class="note">{item.note}</span> : null}
            </button>
          ))}
        </div>
      ) : null}
    </span>
  );
}

export function Tabs<T extends string>({ name, value, tabs, onChange }: { name: string; value: T; tabs: readonly { id: T; label: string; count?: string | number | undefined }[]; onChange: (value: T) => void }): JSX.Element {
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.id === value);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next) {
      onChange(next.id);
      (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[tabs.indexOf(next)]?.focus();
    }
  };
  return (
    <div class="tabs" role="tablist" aria-label={name} onKeyDown={move}>
      {tabs.map((tab) => (
        <button key={tab.id} type="button" role="tab" aria-selected={tab.id === value} tabIndex={tab.id === value ? 0 : -1} onClick={() => onChange(tab.id)}>
          {tab.label}{tab.count !== undefined && tab.count !== 0 ? <span class="count">{tab.count}</span> : null}
        </button>
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return <div class="empty"><p class="title">{title}</p><p>{children}</p></div>;
}

/** Grey bars of the final height, shown only after a while. */
export function Loading({ rows = 3 }: { rows?: number }): JSX.Element {
  return <div class="loading" role="status" aria-label="Loading">{Array.from({ length: rows }, (_, at) => <span key={at} />)}</div>;
}
