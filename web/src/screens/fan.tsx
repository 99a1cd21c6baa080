import type { JSX } from "preact";
import { Empty } from "../ui/controls.tsx";

export function Fan(): JSX.Element {
  return <Empty title="Not here yet">This screen is not built yet.</Empty>;
}
