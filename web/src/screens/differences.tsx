/** Files that are not what the log tells of, asked for when the panel is opened. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { get, of } from "../api.ts";
import type { FileDifference } from "../generated/api.ts";
import { letter } from "../state/changes.ts";
import { session } from "../store.ts";
import { Button, PathName } from "../ui/controls.tsx";

const WHOSE: Record<string, string> = { outside: "not by this session", unknown: "perhaps by a command that was interrupted or still runs" };

export function Differences(): JSX.Element | null {
  const found = useSignal<FileDifference[]>([]);
  const id = session.value?.id ?? "";
  const look = async (): Promise<void> => {
    if (!id) return;
    try {
      const answer = await get<FileDifference[]>(of(id, "differences"));
      if ((session.value?.id ?? "") === id) found.value = answer;
    } catch {
      // Where the files are not known there is nothing to compare.
      found.value = [];
    }
  };
  useEffect(() => { found.value = []; void look(); }, [id]);
  if (found.value.length === 0) return null;
  return (
    <section class="block" aria-label="Differences">
      <h3>Differences</h3>
      <p class="dim">Not what the log tells of. <Button kind="quiet" small onClick={() => void look()}>Look again</Button></p>
      <ul class="file-list">
        {found.value.map((each) => <li key={each.path} class="line"><span class={`letter ${each.kind}`}>{letter(each.kind)}</span><PathName path={each.path} /><span class="dim">{WHOSE[each.by] ?? each.by}</span></li>)}
      </ul>
    </section>
  );
}
