/** Numbers, times and names as the page says them. */

export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return "unknown";
  if (usd === 0) return "$0";
  if (usd < 0.01) return `$${usd.toFixed(4).replace(/0+$/, "")}`;
  return `$${usd.toFixed(2)}`;
}

/** "now", "2 m", "3 h", "Fri", "2 Nov": how long ago, in at most five characters. */
export function age(at: number, now: number): string {
  const seconds = now - at;
  if (at <= 0) return "";
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 20 * 3600) return `${Math.floor(seconds / 3600)} h`;
  const date = new Date(at * 1000);
  if (seconds < 6 * 86400) return date.toLocaleDateString("en-GB", { weekday: "short" });
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export function ago(at: number, now: number): string {
  const seconds = Math.max(0, now - at);
  if (at <= 0) return "";
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function seconds(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const whole = Math.round(ms / 1000);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} m`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
}

/** A model's name without its vendor: what fits a line of meta. */
export function shortModel(model: string): string {
  const name = model.includes(":") ? model.slice(model.indexOf(":") + 1) : model;
  return name.replace(/^claude-/, "").replace(/-\d{8}$/, "");
}

export function fileName(path: string): [string, string] {
  const cut = path.lastIndexOf("/") + 1;
  return [path.slice(0, cut), path.slice(cut)];
}

export function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}

/** A command line cut at its spaces, as a shell cuts it: quotes hold words together. */
export function commandWords(line: string): string[] {
  const found: string[] = [];
  for (const [, plain = "", single, double] of line.matchAll(/([^\s"']+)|'([^']*)'|"((?:[^"\\]|\\.)*)"/g))
    found.push(plain || (single ?? (double ?? "").replace(/\\(.)/g, "$1")));
  return found;
}

/** Where a value comes from, in a word; what the environment or the command line sets is shown only. */
export function sourceOf(source: string): { words: string; fixed: boolean } {
  if (/[/\\]\.weft[/\\]/.test(source)) return { words: "project", fixed: false };
  if (/[/\\]/.test(source)) return { words: "you", fixed: false };
  if (source === "caller") return { words: "command line", fixed: true };
  return { words: source, fixed: source !== "default" };
}
