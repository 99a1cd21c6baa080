/** Colours of code: loaded after the first screen, as a tree and never as HTML. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { h } from "preact";

interface Leaf {
  type: string;
  value?: string;
  tagName?: string;
  properties?: { className?: string[] };
  children?: Leaf[];
}

type Highlighter = (language: string, text: string) => Leaf | null;

const ready = signal<Highlighter | null>(null);
let asked = false;

const LANGUAGES: Record<string, string> = {
  py: "python", python: "python", js: "javascript", mjs: "javascript", jsx: "javascript", javascript: "javascript",
  ts: "typescript", tsx: "typescript", typescript: "typescript", sh: "bash", bash: "bash", shell: "bash",
  zsh: "bash", json: "json", yaml: "yaml", yml: "yaml", toml: "ini", ini: "ini", md: "markdown",
  markdown: "markdown", css: "css", html: "xml", xml: "xml", svg: "xml", rs: "rust", rust: "rust", go: "go",
  c: "c", h: "c", cpp: "cpp", cc: "cpp", hpp: "cpp", java: "java", sql: "sql", diff: "diff",
};

export function languageOf(name: string): string {
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return LANGUAGES[ending] ?? "";
}

export interface Span {
  text: string;
  look: string;
}

const KEY = /keyword|literal|selector|tag$|attr$|meta/;
const STRING = /string|number|regexp|symbol|char/;
const COMMENT = /comment|quote|doctag/;
const TITLE = /title/;

/** The code cut at every change of colour, line by line; in one colour before it can be told. */
export function highlightLines(text: string, language: string): Span[][] {
  const found = language && text.length < 200_000 ? highlighter()?.(language, text) : null;
  const lines: Span[][] = [[]];
  const add = (value: string, look: string): void => {
    value.split("\n").forEach((part, index) => {
      if (index > 0) lines.push([]);
      if (part) lines.at(-1)?.push({ text: part, look });
    });
  };
  const walk = (leaf: Leaf, look: string): void => {
    if (leaf.type === "text") add(leaf.value ?? "", look);
    const name = (leaf.properties?.className ?? []).join(" ");
    const own = COMMENT.test(name) ? "syn-com" : STRING.test(name) ? "syn-str" : TITLE.test(name) ? "syn-def" : KEY.test(name) ? "syn-key" : look;
    for (const each of leaf.children ?? []) walk(each, own);
  };
  if (found) walk(found, "");
  else add(text, "");
  return lines;
}

const known = new WeakMap<object, Span[][]>();

/** The same, told once for what stands for the code: a block that is drawn elsewhere keeps its colours. */
export function highlightOnce(source: object, text: string, language: string): Span[][] {
  const before = ready.value === null ? undefined : known.get(source);
  if (before) return before;
  const found = highlightLines(text, language);
  if (ready.peek() !== null) known.set(source, found);
  return found;
}

export function spans(line: readonly Span[]): ComponentChildren {
  return line.map((span, index) => (span.look ? h("span", { key: index, class: span.look }, span.text) : span.text));
}

function highlighter(): Highlighter | null {
  if (!asked) {
    asked = true;
    void import("./languages.ts").then((module) => {
      ready.value = module.highlight;
    });
  }
  return ready.value;
}
