/** Where the columns of the thread bar stand. Pure. */

export const WIDEST = 58;
export const NARROWEST = 12;
export const FOLD_WIDTH = 96;

export interface Columns {
  /** Turns that are folded into plain line at the left. */
  folded: number;
  x(column: number): number;
  /** The column nearest to a place. */
  at(x: number): number;
  step: number;
  end: number;
}

/** Columns for `count` turns of the longest line in `width` pixels, from `left` on. */
export function columns(count: number, width: number, left = 8): Columns {
  const room = Math.max(width - left - 16, NARROWEST);
  const most = Math.floor(room / NARROWEST) + 1;
  if (count <= most) {
    const step = count > 1 ? Math.min(WIDEST, room / (count - 1)) : WIDEST;
    const x = (column: number): number => left + column * step;
    return {
      folded: 0,
      x,
      at: (place) => clamp(Math.round((place - left) / step), count),
      step,
      end: x(Math.max(count - 1, 0)),
    };
  }
  const fold = Math.min(FOLD_WIDTH, room / 3);
  const shown = Math.floor((room - fold) / NARROWEST);
  const folded = count - shown;
  const begin = left + fold;
  const x = (column: number): number =>
    column < folded ? left + (column / folded) * fold : begin + (column - folded) * NARROWEST;
  return {
    folded,
    x,
    at: (place) =>
      clamp(
        place < begin
          ? Math.round(((place - left) / fold) * folded)
          : folded + Math.round((place - begin) / NARROWEST),
        count,
      ),
    step: NARROWEST,
    end: x(count - 1),
  };
}

function clamp(column: number, count: number): number {
  return Math.max(0, Math.min(count - 1, column));
}

/** A fork: it leaves by one curve within a column, then runs straight. */
export function fork(x0: number, y0: number, x1: number, y1: number): string {
  const middle = (x0 + x1) / 2;
  return `M${r(x0)} ${r(y0)}C${r(middle)} ${r(y0)} ${r(middle)} ${r(y1)} ${r(x1)} ${r(y1)}`;
}

function r(value: number): string {
  return String(Math.round(value * 10) / 10);
}
