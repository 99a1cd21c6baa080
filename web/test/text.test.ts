import assert from "node:assert/strict";
import test from "node:test";
import { append, codePoints, EMPTY, flow, visible, written } from "../src/state/text.ts";

test("offsets count code points, so a thread emoji is no gap", () => {
  const first = append(EMPTY, 0, "a🧵");
  assert.equal(first?.length, 2);
  assert.equal(append(first ?? EMPTY, 2, "b")?.text, "a🧵b");
});

test("a piece that is known already changes nothing, and one that overlaps adds its rest", () => {
  const known = flow("abc🧵d");
  assert.equal(append(known, 1, "bc"), known);
  assert.equal(append(known, 3, "🧵de")?.text, "abc🧵de");
});

test("a piece at 0 begins the text anew", () => {
  assert.equal(append(flow("abc"), 0, "x")?.text, "x");
});

test("a missing piece is told", () => {
  assert.equal(append(flow("abc"), 5, "x"), null);
});

test("characters that turn text around are shown as codes", () => {
  assert.deepEqual(visible("rm \u202egnp"), [
    { text: "rm ", hidden: false },
    { text: "<U+202E>", hidden: true },
    { text: "gnp", hidden: false },
  ]);
  assert.equal(codePoints("ok"), 2);
});

test("characters that are not seen at all are shown as codes, the same as the terminal's", () => {
  for (const code of [0x034f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x200b, 0x2800, 0x3164, 0xfe00, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001, 0xe0041]) {
    const shown = written(`rm${String.fromCodePoint(code)} x`);
    assert.deepEqual(shown, { text: `rm<U+${code.toString(16).toUpperCase().padStart(4, "0")}> x`, isHiding: true });
  }
  assert.deepEqual(written("naïve ✔️ 日本語 👩‍💻".replace("\u200d", "")), { text: "naïve ✔️ 日本語 👩💻", isHiding: false });
});
