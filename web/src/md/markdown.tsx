/** Markdown as elements. Nothing here makes HTML of a string: raw HTML is shown as text. */

import type { Token, Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";
import { Component, Fragment } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { highlightOnce, languageOf, spans } from "../code/highlight.ts";
import { CopyButton } from "../ui/controls.tsx";
import { blocks, BlockStream, safeLink, type Block } from "./blocks.ts";

/** A text as elements; one that grows reads its last block alone, and keeps its elements when it is whole. */
export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }): JSX.Element {
  const stream = useRef<BlockStream | undefined>(undefined);
  if (isLive) stream.current ??= new BlockStream();
  const grown = stream.current;
  const found = useMemo(() => (isLive ? grown?.update(text) : grown?.finish(text)) ?? blocks(text), [text, isLive]);
  return <div class={`text-block${isLive ? " streaming" : ""}${grown ? " grown" : ""}`}><Blocks found={found} /></div>;
}

/** Blocks that are compared as one: an answer of a thousand blocks is not gone through for each piece. */
const PART = 16;

function Blocks({ found }: { found: Block[] }): JSX.Element {
  const parts: JSX.Element[] = [];
  for (let at = 0; at < found.length; at += PART) parts.push(<BlockPart key={at} found={found.slice(at, at + PART)} />);
  return <div class="prose">{parts}</div>;
}

class BlockPart extends Component<{ found: Block[] }> {
  override shouldComponentUpdate({ found }: { found: Block[] }): boolean {
    return found.length !== this.props.found.length || found.some((each, at) => each !== this.props.found[at]);
  }

  override render(): JSX.Element {
    return <div class="part">{this.props.found.map(({ key, token }) => <BlockView key={key} token={token} raw={token.raw} />)}</div>;
  }
}

function BlockView({ token, raw }: { token: Token; raw: string }): JSX.Element {
  // A block whose words did not change is not built again.
  return useMemo(() => <Fragment>{block(token)}</Fragment>, [raw]);
}

function block(token: Token): ComponentChildren {
  switch (token.type) {
    case "paragraph":
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "heading":
      return <p class={`heading h${Math.min(token.depth as number, 4)}`} role="heading" aria-level={3}>{inline(token.tokens)}</p>;
    case "code":
      return <Code text={token.text as string} language={(token.lang as string | undefined) ?? ""} source={token} />;
    case "list":
      return list(token as Tokens.List);
    case "blockquote":
      return <blockquote>{(token.tokens ?? []).map((each, at) => <Fragment key={at}>{block(each)}</Fragment>)}</blockquote>;
    case "table":
      return table(token as Tokens.Table);
    case "hr":
      return <hr />;
    case "space":
    case "def":
      return null;
    case "html":
      return <p class="raw">{token.raw.trimEnd()}</p>;
    case "text":
      return token.tokens ? inline(token.tokens) : unescaped(token.text as string);
    default:
      return <p>{token.raw}</p>;
  }
}

function list(token: Tokens.List): JSX.Element {
  const items = token.items.map((item, at) => (
    <li key={at} class={item.task ? "task" : undefined}>
      {item.task ? <span class={item.checked ? "box on" : "box"} role="img" aria-label={item.checked ? "done" : "to do"} /> : null}
      {item.tokens.filter((each) => each.type !== "checkbox").map((each, index) => <Fragment key={index}>{block(each)}</Fragment>)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table): JSX.Element {
  const cell = (each: Tokens.TableCell, at: number, head: boolean): JSX.Element => {
    const look = each.align ? `align-${each.align}` : undefined;
    return head ? <th key={at} class={look} scope="col">{inline(each.tokens)}</th> : <td key={at} class={look}>{inline(each.tokens)}</td>;
  };
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Table">
      <table class="md">
        <thead><tr>{token.header.map((each, at) => cell(each, at, true))}</tr></thead>
        <tbody>{token.rows.map((row, at) => <tr key={at}>{row.map((each, index) => cell(each, index, false))}</tr>)}</tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, at) => <Fragment key={at}>{piece(token)}</Fragment>);
}

function piece(token: Token): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <s>{inline(token.tokens)}</s>;
    case "codespan":
      return <code>{token.text as string}</code>;
    case "br":
      return <br />;
    case "link":
      return link(token as Tokens.Link);
    case "image":
      return <span class="remote">[picture: {(token.text as string) || (token.href as string)}]</span>;
    case "text":
      return token.tokens ? inline(token.tokens) : unescaped(token.text as string);
    case "escape":
      return token.text as string;
    default:
      return token.raw;
  }
}

function link(token: Tokens.Link): JSX.Element {
  const href = safeLink(token.href);
  if (href === null) return <span>{inline(token.tokens)}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {inline(token.tokens)}
    </a>
  );
}

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity);
}

export function Code({ text, language, source }: { text: string; language: string; source: object }): JSX.Element {
  const lines = highlightOnce(source, text, languageOf(language.split(/\s/)[0] ?? ""));
  return (
    <div class="code">
      <pre tabIndex={0}><code>{lines.map((line, at) => <Fragment key={at}>{spans(line)}{at < lines.length - 1 ? "\n" : null}</Fragment>)}</code></pre>
      <CopyButton text={text} />
    </div>
  );
}
