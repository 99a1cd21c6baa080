/** Branches of a tree of text that grow, side by side, in the order they were planned. Pure. */

import { append, EMPTY, flow, type Flow } from "./text.ts";
import type { Event } from "../types.ts";

export interface Stream {
  id: string;
  model: string;
  text: Flow;
  /** Why it came to nothing; empty where it did not. */
  failure: string;
}

export function growStreams(before: readonly Stream[], event: Event): readonly Stream[] {
  const node = event.node_id as string;
  switch (event.kind) {
    case "branches_started": {
      const plan = (event.plan as { node_id: string; model: string }[] | undefined) ?? [];
      return plan.map((slot) => ({ id: slot.node_id, model: slot.model, text: EMPTY, failure: "" }));
    }
    case "draft":
      return known(before, node).map((each) => (each.id === node ? { ...each, text: flow(event.text as string) } : each));
    case "text_delta":
      return known(before, node).map((each) => {
        if (each.id !== node) return each;
        // A piece that is missing shows as a gap until the branch is a node, which is read whole.
        const grown = append(each.text, event.offset as number, event.text as string);
        return { ...each, text: grown ?? flow(`${each.text.text}…${event.text as string}`) };
      });
    case "branch_failed":
      return before.map((each, at) => (at === event.slot ? { ...each, failure: (event.sentence as string) || (event.category as string) } : each));
    case "branches_ended":
      return [];
    default:
      return before;
  }
}

function known(before: readonly Stream[], node: string): readonly Stream[] {
  return before.some((each) => each.id === node) ? before : [...before, { id: node, model: "", text: EMPTY, failure: "" }];
}
