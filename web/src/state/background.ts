/** What runs beside the turns, and what it prints. */

import type { BackgroundWork, Event } from "../types.ts";

/** As much of a command's output as is kept here. */
const KEPT = 20_000;

/** The list with more output of one command; null when that is not in it. */
export function withOutput(list: readonly BackgroundWork[], event: Event): BackgroundWork[] | null {
  const at = list.findIndex((each) => each.id === event.id);
  const work = list[at];
  if (!work) return null;
  // Offsets count code points, as Python does.
  const chunk = [...(event.chunk as string)];
  const offset = event.offset as number;
  const end = offset + chunk.length;
  const printed = work.printed ?? 0;
  if (end <= printed) return [...list];
  const news = offset >= printed ? chunk : chunk.slice(printed - offset);
  const output = ((work.output ?? "") + news.join("")).slice(-KEPT);
  return list.map((each, index) => (index === at ? { ...work, output, printed: end } : each));
}

/** A list that was read, with what had come of its output before the answer did. */
export function readAgain(known: readonly BackgroundWork[], read: readonly BackgroundWork[]): BackgroundWork[] {
  return read.map((each) => {
    const before = known.find((one) => one.id === each.id);
    return before && (before.printed ?? 0) > (each.printed ?? 0) ? { ...each, output: before.output ?? "", printed: before.printed ?? 0 } : each;
  });
}

/** The last line that says something. */
export function lastLine(output: string): string {
  return output.trimEnd().split("\n").at(-1)?.trim() ?? "";
}
