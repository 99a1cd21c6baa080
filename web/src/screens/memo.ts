/** A component that is drawn again only when its properties, or signals that it reads, change. */

import { Component, h, type ComponentChildren, type FunctionComponent, type VNode } from "preact";

export function memo<P extends object>(inner: (props: P) => VNode | null): FunctionComponent<P> {
  class Kept extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P & { children?: ComponentChildren }>): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys({ ...before, ...after }).some((name) => before[name] !== after[name]);
    }
    override render(): VNode {
      return h(inner as FunctionComponent<P>, this.props as P) as VNode;
    }
  }
  return Kept as unknown as FunctionComponent<P>;
}
