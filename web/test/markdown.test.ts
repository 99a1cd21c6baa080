import assert from "node:assert/strict";
import test from "node:test";
import { blocks, BlockStream, safeLink } from "../src/md/blocks.ts";

const TEXT = "# One\n\nSome *words* and `code`.\n\n- a\n- b\n\n  more\n\n```python\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end.";

function shapes(text: string): string[] {
  return blocks(text).map((block) => `${block.token.type}:${block.token.raw.trim()}`);
}

test("a text that streams in ends as the same blocks as the whole", () => {
  const stream = new BlockStream();
  let last: string[] = [];
  for (let end = 1; end <= TEXT.length; end += 3) last = stream.update(TEXT.slice(0, end)).map((block) => block.token.type);
  last = stream.update(TEXT).map((block) => `${block.token.type}:${block.token.raw.trim()}`);
  assert.deepEqual(last, shapes(TEXT));
});

test("only the last block is read again", () => {
  const stream = new BlockStream();
  const paragraph = "words and words and words and words\n\n";
  const text = paragraph.repeat(400);
  for (let end = 0; end <= text.length; end += 20) stream.update(text.slice(0, end));
  assert.ok(stream.read < text.length * 10, `${stream.read} of ${text.length}`);
});

test("a text that is finished is not read from its beginning, but where a link is defined in it", () => {
  const stream = new BlockStream();
  const text = "words and words and words\n\n".repeat(100);
  for (let end = 1; end <= text.length; end += 300) stream.update(text.slice(0, end));
  const before = stream.read;
  const found = stream.finish(text)?.map((block) => `${block.token.type}:${block.token.raw.trim()}`);
  assert.deepEqual(found, shapes(text));
  assert.ok(stream.read - before < 400, `${stream.read - before}`);
  assert.equal(stream.finish(`${text}[a]: https://example.org\n`), null);
});

test("a line that looks like another block while it comes in stays with its paragraph", () => {
  for (const text of ["see\n#12 and more", "see\n***so*** it is", "see\n1. \n_> q"]) {
    const stream = new BlockStream();
    for (let end = 1; end < text.length; end += 1) stream.update(text.slice(0, end));
    const found = stream.finish(text)?.map((block) => `${block.token.type}:${block.token.raw.trim()}`);
    new BlockStream().update("");
    assert.deepEqual(found, shapes(text), text);
  }
});

test("keys of blocks that are done stay the same", () => {
  const stream = new BlockStream();
  const first = stream.update("One.\n\nTwo.\n\nThr");
  const second = stream.update("One.\n\nTwo.\n\nThree.\n\nFo");
  assert.deepEqual(second.slice(0, 2).map((block) => block.key), first.slice(0, 2).map((block) => block.key));
});

test("links lead only where a browser may be sent", () => {
  assert.equal(safeLink("https://example.org/a"), "https://example.org/a");
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:alert(1)", "vbscript:x", "//evil", "file:///etc/passwd", "/relative"]) assert.equal(safeLink(bad), null);
});

function deepest(tokens: readonly { tokens?: unknown; items?: unknown }[]): number {
  const below = (each: { tokens?: unknown; items?: unknown }): number => deepest([...((each.tokens as []) ?? []), ...((each.items as []) ?? [])]);
  return tokens.length === 0 ? 0 : 1 + Math.max(...tokens.map(below));
}

test("what nests without an end is read to some depth, and its rest is text", () => {
  const nested = { quotes: "> ".repeat(3000), tight: ">".repeat(20_000), lists: "- ".repeat(3000), numbers: "1. ".repeat(3000), both: "> - ".repeat(1000), emphasis: "**a _b ".repeat(400) };
  for (const [name, text] of Object.entries(nested)) {
    const found = deepest(blocks(`${text}x`).map((block) => block.token as { tokens?: unknown }));
    assert.ok(found > 0 && found < 100, `${name}: ${found}`);
    assert.ok(deepest(new BlockStream().update(`${text}x`).map((block) => block.token as { tokens?: unknown })) < 100, name);
  }
});

test("what would take the square of the time to read is text", () => {
  const heavy = { address: `${"a".repeat(50_000)}@`, marks: "_a".repeat(20_000), spaced: "_a ".repeat(6_000), brackets: "[ ".repeat(9_000), long: "word ".repeat(5_000) };
  for (const [name, text] of Object.entries(heavy)) {
    const [block] = blocks(`**b** ${text}`);
    assert.deepEqual((block?.token as { tokens?: { type: string }[] }).tokens?.map((each) => each.type), ["text"], name);
  }
  const [code] = blocks(`\`\`\`\n${"a".repeat(50_000)}@\n\`\`\`\n`);
  assert.equal(code?.token.type, "code", "code is as long as it is");
});
