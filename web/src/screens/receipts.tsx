/** What the last answer claims, beside what is on record: asked for when a turn has ended. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of } from "../api.ts";
import type { Receipt } from "../generated/api.ts";
import { session, touched } from "../store.ts";
import { Icon } from "../ui/icons.tsx";

const SHOWN = { green: ["check", "Shown"], grey: ["clock", "Out of date"], amber: ["warn", "Not shown"] } as const;

export function Receipts(): JSX.Element | null {
  const found = useSignal<Receipt[]>([]);
  const state = session.value;
  const id = state?.id ?? "";
  // Files that change later make a claim out of date.
  const moment = state?.status === "idle" && id ? `${id} ${state.treeVersion} ${touched.value.length}` : "";
  useEffect(() => {
    found.value = [];
    if (!moment) return;
    let isOld = false;
    void get<Receipt[]>(of(id, "receipts")).then((answer) => { if (!isOld) found.value = answer; }, () => undefined);
    return () => { isOld = true; };
  }, [moment]);
  const judged = found.value.filter((each) => each.color !== "none");
  if (judged.length === 0) return null;
  return (
    <ul class="receipts" aria-label="What is on record">
      {judged.map((each) => <Line key={`${each.kind} ${each.claim}`} receipt={each} />)}
    </ul>
  );
}

function Line({ receipt }: { receipt: Receipt }): JSX.Element | null {
  if (receipt.color === "none") return null;
  const [icon, word] = SHOWN[receipt.color];
  return (
    <li class={`receipt ${receipt.color}`}>
      <Icon name={icon} size={14} />
      <span class="word">{word}</span>
      <span class="words">“{receipt.claim}” <span class="dim">{receipt.why}</span></span>
    </li>
  );
}
