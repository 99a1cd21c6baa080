// What a rewind does not put back because it is not tracked, in rows: folders of one name share
// one, for caches stand beside every module.

export interface UntrackedRow { name: string; why: string }

const MOST = 10;

export function untrackedRows(leftOut: readonly string[]): UntrackedRow[] {
  const alike = new Map<string, { name: string; why: string; paths: string[] }>();
  for (const each of leftOut) {
    const cut = each.indexOf(": ");
    const path = cut < 0 ? each : each.slice(0, cut);
    const why = cut < 0 ? "" : each.slice(cut + 2);
    if (path === ".git/") continue; // never tracked
    const name = path.endsWith("/") ? `${path.split("/").at(-2)}/` : path;
    const row = alike.get(`${name}\0${why}`) ?? { name, why, paths: [] };
    row.paths.push(path);
    alike.set(`${name}\0${why}`, row);
  }
  const rows = [...alike.values()].map(({ name, why, paths }) => ({
    name: paths.length === 1 ? paths[0]! : `${name} in ${paths.length} folders`,
    why: why === "ignored" ? "gitignored" : why,
  }));
  const more = rows.length - MOST;
  return more > 0 ? [...rows.slice(0, MOST), { name: `${more} more`, why: "" }] : rows;
}
