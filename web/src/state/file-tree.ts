/** A project's files as a tree whose folders open and close. Pure. */

export interface FileTreeRow {
  path: string;
  /** What stands in the row: a folder that holds nothing but a folder goes with it. */
  name: string;
  depth: number;
  /** Open or closed; null where it is a file. */
  isOpen: boolean | null;
}

/** A project of so few files stands open. */
const FEW = 60;

interface Folder {
  folders: Map<string, Folder>;
  files: string[];
}

/** The rows that are seen; `shown` are files whose folders are open unless `closed` says otherwise. */
export function fileTreeRows(paths: readonly string[], shown: readonly string[], chosen: ReadonlyMap<string, boolean>): FileTreeRow[] {
  const open = new Set(shown.flatMap(foldersOf));
  const isOpen = (path: string): boolean => chosen.get(path) ?? (paths.length <= FEW || open.has(path));
  const rows: FileTreeRow[] = [];
  const add = (folder: Folder, above: string, depth: number): void => {
    for (const [first, found] of [...folder.folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const [name, inner] = joined(first, found);
      const path = above + name;
      rows.push({ path, name, depth, isOpen: isOpen(path) });
      if (isOpen(path)) add(inner, `${path}/`, depth + 1);
    }
    for (const name of [...folder.files].sort()) rows.push({ path: above + name, name, depth, isOpen: null });
  };
  add(treeOf(paths), "", 0);
  return rows;
}

/** The row of the folder that a row stands in; -1 at the top. */
export function rowAbove(rows: readonly FileTreeRow[], at: number): number {
  const depth = rows[at]?.depth ?? 0;
  return rows.findLastIndex((row, place) => place < at && row.depth < depth);
}

function treeOf(paths: readonly string[]): Folder {
  const top: Folder = { folders: new Map(), files: [] };
  for (const path of paths) {
    const parts = path.split("/");
    const name = parts.pop() ?? path;
    let at = top;
    for (const part of parts) {
      const next = at.folders.get(part) ?? { folders: new Map(), files: [] };
      at.folders.set(part, next);
      at = next;
    }
    at.files.push(name);
  }
  return top;
}

function joined(name: string, folder: Folder): [string, Folder] {
  let at = folder;
  let whole = name;
  while (at.files.length === 0 && at.folders.size === 1) {
    const [[next, inner]] = [...at.folders] as [[string, Folder]];
    whole += `/${next}`;
    at = inner;
  }
  return [whole, at];
}

function foldersOf(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
}
