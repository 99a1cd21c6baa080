/** How fast an answer is written: tokens a second, estimated from its text as it grows. */

/** Characters of a token, about; what was really used is known only when the answer is whole. */
const TOKEN = 4;
const SPAN_SECONDS = 6;

/** When it was seen, in seconds, and how long the text was then. */
export type Sample = readonly [at: number, length: number];

/** The samples with one more: a text that is shorter than before is another one. */
export function sampled(before: readonly Sample[], at: number, length: number): readonly Sample[] {
  const last = before.at(-1);
  if (length === 0 || (last && length < last[1])) return length ? [[at, length]] : [];
  return [...before.filter((each) => each[0] > at - SPAN_SECONDS), [at, length]];
}

/** Tokens a second; 0 where too little was seen to say. */
export function speedOf(samples: readonly Sample[]): number {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || last[0] - first[0] < 1) return 0;
  return Math.round((last[1] - first[1]) / TOKEN / (last[0] - first[0]));
}
