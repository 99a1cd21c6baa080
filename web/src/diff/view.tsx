/** Diffs: unified or side by side, with numbers and signs as text. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { highlightLines, languageOf, type Span } from "../code/highlight.ts";
import { splitRows, type DiffLine, type FileDiff, type Hunk } from "./parse.ts";

export function DiffView({ file, split }: { file: FileDiff; split: boolean }): JSX.Element {
  return (
    <div class="diff-file">
      {file.hunks.map((hunk, at) => {
        const previous = file.hunks[at - 1];
        const gap = previous ? hunk.after - (previous.after + previous.lines.filter((line) => line.kind !== "del").length) : 0;
        return (
          <div key={at}>
            {gap > 0 ? <div class="gap">{gap} unchanged {gap === 1 ? "line" : "lines"}</div> : null}
            <HunkView hunk={hunk} path={file.path} split={split} />
          </div>
        );
      })}
    </div>
  );
}

export function HunkView({ hunk, path, split, struck = false }: { hunk: Hunk; path: string; split: boolean; struck?: boolean }): JSX.Element {
  const language = languageOf(path);
  const looks = new Map<DiffLine, Span[]>();
  for (const side of ["del", "add"] as const) {
    const lines = hunk.lines.filter((line) => line.kind === "same" || line.kind === side);
    highlightLines(lines.map((line) => line.text).join("\n"), language).forEach((spans, at) => {
      const line = lines[at];
      if (line) looks.set(line, spans);
    });
  }
  const big = useSignal(hunk.lines.length <= 400);
  if (!big.value)
    return <button type="button" class="gap" onClick={() => { big.value = true; }}>Show {hunk.lines.length} lines</button>;
  const isWhole = hunk.removed === 0 && hunk.lines.every((line) => line.kind === "add");
  const table = split && !isWhole ? <Split hunk={hunk} looks={looks} path={path} /> : <Unified hunk={hunk} looks={looks} path={path} />;
  return <div class={struck ? "diff struck" : "diff"}>{table}</div>;
}

function Unified({ hunk, looks, path }: { hunk: Hunk; looks: Map<DiffLine, Span[]>; path: string }): JSX.Element {
  return (
    <table class="unified" aria-label={`Change of ${path}`}>
      <tbody>
        {hunk.lines.map((line, at) => (
          <tr key={at} class={line.kind}>
            <th scope="row">{line.kind === "del" ? line.before : line.after}</th>
            <td class="sign">{sign(line)}</td>
            <td class="text">{words(line, looks.get(line))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Split({ hunk, looks, path }: { hunk: Hunk; looks: Map<DiffLine, Span[]>; path: string }): JSX.Element {
  return (
    <table class="split" aria-label={`Change of ${path}, side by side`}>
      <colgroup><col class="n" /><col class="s" /><col /><col class="n" /><col class="s" /><col /></colgroup>
      <tbody>
        {splitRows(hunk.lines).map((row, at) => (
          <tr key={at}>
            <Half line={row.left} side="left" looks={looks} />
            <Half line={row.right} side="right" looks={looks} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Half({ line, side, looks }: { line: DiffLine | null; side: "left" | "right"; looks: Map<DiffLine, Span[]> }): JSX.Element {
  if (line === null) return <><td class={`missing ${side}`} colSpan={3} /></>;
  return (
    <>
      <th scope="row" class={`${line.kind} ${side}`}>{side === "left" ? line.before : line.after}</th>
      <td class={`sign ${line.kind}`}>{sign(line)}</td>
      <td class={`text ${line.kind}`}>{words(line, looks.get(line))}</td>
    </>
  );
}

function sign(line: DiffLine): string {
  return line.kind === "add" ? "+" : line.kind === "del" ? "−" : " ";
}

/** The line's colours, cut again where its changed words begin and end. */
function words(line: DiffLine, spans: readonly Span[] = [{ text: line.text, look: "" }]): ComponentChildren {
  if (line.words.length === 0) return spans.map((span, at) => (span.look ? <span key={at} class={span.look}>{span.text}</span> : span.text));
  const cuts = new Set(line.words.flat());
  const found: JSX.Element[] = [];
  let at = 0;
  for (const span of spans) {
    let from = 0;
    for (let index = 1; index <= span.text.length; index += 1) {
      if (index < span.text.length && !cuts.has(at + index)) continue;
      const start = at + from;
      const isWord = line.words.some(([a, b]) => a <= start && start < b);
      found.push(<span key={start} class={[span.look, isWord ? "word" : ""].join(" ")}>{span.text.slice(from, index)}</span>);
      from = index;
    }
    at += span.text.length;
  }
  return found;
}
