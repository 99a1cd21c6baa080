/** Markdown as tokens, block by block: while text streams in, only its last two blocks are read again. */

import { Lexer, type MarkedOptions, type Token, type TokensList } from "marked";

export interface Block {
  key: number;
  token: Token;
}

/** Deeper than this nothing nests: the rest is plain text, which costs neither time nor stack. */
const DEEPEST = 20;
/** Of a text in one block, of a word in it, and of the marks in it: the reading of more takes the square of the time. */
const LONGEST = 20_000;
const LONGEST_WORD = /\S{2000}/;
const MARKS = /[*_~`[\]<]/g;
const MOST_MARKS = 1_000;

/** Reads Markdown that anyone may have written: what would hold the page up is plain text. */
class BoundedLexer extends Lexer {
  private depth = 0;

  constructor() {
    super({ gfm: true } as MarkedOptions);
  }

  override blockTokens(source: string, tokens?: Token[], isLast?: boolean): Token[];
  override blockTokens(source: string, tokens?: TokensList, isLast?: boolean): TokensList;
  override blockTokens(source: string, tokens: Token[] = [], isLast = false): Token[] {
    return this.nested(source, tokens, () => super.blockTokens(source, tokens, isLast));
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    if (isHeavy(source)) return plain(source, tokens);
    return this.nested(source, tokens, () => super.inlineTokens(source, tokens));
  }

  private nested(source: string, tokens: Token[], read: () => Token[]): Token[] {
    if (this.depth >= DEEPEST) return plain(source, tokens);
    this.depth += 1;
    try {
      return read();
    } finally {
      this.depth -= 1;
    }
  }
}

function plain(source: string, tokens: Token[]): Token[] {
  tokens.push({ type: "text", raw: source, text: source });
  return tokens;
}

function isHeavy(source: string): boolean {
  return source.length > LONGEST || LONGEST_WORD.test(source) || (source.match(MARKS)?.length ?? 0) > MOST_MARKS;
}

/** What streamed in last: the finished message is mostly the same text, and has its blocks. */
let streamed: { text: string; found: Block[] } = { text: "", found: [] };

/** Later definitions of links change earlier blocks: such a text is read once more when it is whole. */
const DEFINES = /^ {0,3}\[[^\]\n]+\]:/m;

/** The first text costs as much as fifty later ones: it is read while nobody waits. */
const FIRST = "# A **b**\n\n- *c* `d`\n- [e](https://example.org)\n\n1. ~~f~~\n\n> g\n\n```py\nh\n```\n\n|i|j|\n|-|-|\n|k|l|\n";

export function warmUp(): void {
  new BoundedLexer().lex(FIRST);
}

/** The blocks of a finished text. */
export function blocks(text: string): Block[] {
  if (text === streamed.text && !DEFINES.test(text)) return streamed.found;
  return new BoundedLexer()
    .lex(text)
    .filter((token) => token.type !== "space" && token.type !== "def")
    .map((token, key) => ({ key, token }));
}

/** Blocks of a text that grows: what is before its last two blocks is never read twice. */
export class BlockStream {
  private settled: Block[] = [];
  private from = 0;
  private text = "";
  private next = 0;
  /** Characters that were read in all; for tests. */
  read = 0;

  update(text: string): Block[] {
    const found = this.grown(text);
    streamed = { text, found };
    return found;
  }

  /** The blocks of the text now that it is whole; null where it has to be read from its beginning. */
  finish(text: string): Block[] | null {
    return DEFINES.test(text) ? null : this.update(text);
  }

  private grown(text: string): Block[] {
    if (!text.startsWith(this.text)) {
      this.settled = [];
      this.from = 0;
      this.next = 0;
    }
    this.text = text;
    const rest = text.slice(this.from);
    this.read += rest.length;
    const tokens = new BoundedLexer().lex(rest);
    // Nothing after a block can change it, but a list or a paragraph may still go on: the last two,
    // and the blank lines behind them, stay open.
    let last = blockAt(tokens, tokens.length - 1);
    // What the last one looks like says nothing of the one before it yet: `#` may become a heading, or
    // `#12`, which goes on with the paragraph.
    last = blockAt(tokens, last - 1);
    let length = 0;
    for (const token of tokens.slice(0, last)) {
      length += token.raw.length;
      if (token.type === "space" || token.type === "def") continue;
      this.settled.push({ key: this.next, token });
      this.next += 1;
    }
    // Where the lexer dropped something (a carriage return), places do not fit: read all of it.
    const whole = tokens.reduce((sum, token) => sum + token.raw.length, 0);
    if (whole === rest.length) this.from += length;
    else {
      this.settled = [];
      this.next = 0;
      this.from = 0;
      return blocks(text);
    }
    const open = tokens.slice(last).filter((token) => token.type !== "space" && token.type !== "def");
    return [...this.settled, ...open.map((token, index) => ({ key: this.next + index, token }))];
  }
}

/** The block at a place, or before the blank lines there. */
function blockAt(tokens: readonly Token[], from: number): number {
  let at = Math.max(from, 0);
  while (at > 0 && tokens[at]?.type === "space") at -= 1;
  return at;
}

/** A link's address where it may be followed; null where it is shown as text. */
export function safeLink(href: string): string | null {
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return null;
  }
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
}
