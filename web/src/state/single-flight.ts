/** Work that runs once at a time for each key: whoever asks meanwhile waits for the same. */
export function singleFlight(key: () => string, run: (key: string) => Promise<void>): () => Promise<void> {
  const running = new Map<string, Promise<void>>();
  return () => {
    const name = key();
    const known = running.get(name);
    if (known) return known;
    const begun = run(name).finally(() => running.delete(name));
    running.set(name, begun);
    return begun;
  };
}
