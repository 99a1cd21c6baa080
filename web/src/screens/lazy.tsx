/** Screens that are loaded when they are first shown. */

import { signal } from "@preact/signals";
import type { FunctionComponent, JSX } from "preact";
import { Loading } from "../ui/controls.tsx";

export function lazy<N extends string>(load: () => Promise<Record<N, FunctionComponent>>, name: N): FunctionComponent {
  const found = signal<FunctionComponent | null>(null);
  const failed = signal(false);
  let asked = false;
  return function Late(): JSX.Element {
    if (!asked) {
      asked = true;
      load().then((module) => { found.value = module[name]; }, () => { failed.value = true; asked = false; });
    }
    const Inner = found.value;
    if (Inner) return <Inner />;
    return failed.value ? <div class="empty"><p class="title">This screen could not be loaded</p><p>Reload the page; nothing typed is lost.</p></div> : <Loading rows={4} />;
  };
}
