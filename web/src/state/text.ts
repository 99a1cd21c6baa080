/** Text in flight: pieces come with their place in code points, as the server counts them. */

export interface Flow {
  text: string;
  /** Code points of `text`: JavaScript's own length counts a pair of surrogates twice. */
  length: number;
}

export const EMPTY: Flow = { text: "", length: 0 };

export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

export function flow(text: string): Flow {
  return { text, length: codePoints(text) };
}

/** The flow with a piece at `offset`; null where pieces in between are missing. */
export function append(before: Flow, offset: number, piece: string): Flow | null {
  if (offset === 0 && before.length > 0) return flow(piece);
  const count = codePoints(piece);
  if (offset + count <= before.length) return before;
  if (offset > before.length) return null;
  const skip = before.length - offset;
  const rest = skip === 0 ? piece : [...piece].slice(skip).join("");
  return { text: before.text + rest, length: offset + count };
}

/** What turns text around, does not show, or stands for nothing, and yet changes what is read. */
const STRANGE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** Such characters as codes: `<U+202E>`. */
export function visible(text: string): { text: string; hidden: boolean }[] {
  const found: { text: string; hidden: boolean }[] = [];
  let last = 0;
  for (const match of text.matchAll(STRANGE)) {
    if (match.index > last) found.push({ text: text.slice(last, match.index), hidden: false });
    const code = match[0].codePointAt(0) ?? 0;
    found.push({ text: `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`, hidden: true });
    last = match.index + match[0].length;
  }
  if (last < text.length || found.length === 0) found.push({ text: text.slice(last), hidden: false });
  return found;
}

/** The text with such characters written as codes, and whether there were any. */
export function written(text: string): { text: string; isHiding: boolean } {
  const pieces = visible(text);
  return { text: pieces.map((piece) => piece.text).join(""), isHiding: pieces.some((piece) => piece.hidden) };
}
