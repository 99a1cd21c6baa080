import assert from "node:assert/strict";
import test from "node:test";
import { DrawPace, type Frames } from "../src/pace.ts";

const FRAME = 16;

/** Frames of a browser whose time is a number: each drawing takes so long. */
class Screen implements Frames {
  time = 0;
  hidden = false;
  private later: { at: number; then: () => void }[] = [];
  private shown: (() => void)[] = [];

  constructor(public cost: number) {}

  now(): number { return this.time; }
  isHidden(): boolean { return this.hidden; }
  after(wait: number, then: () => void): void { this.later.push({ at: this.time + wait, then }); }
  next(then: () => void): void { this.later.push({ at: (Math.floor(this.time / FRAME) + 1) * FRAME, then }); }
  drawn(then: () => void): void { this.shown.push(then); }

  /** Lets time pass up to a moment. */
  pass(until: number): void {
    for (;;) {
      this.later.sort((a, b) => a.at - b.at);
      const first = this.later[0];
      if (first === undefined || first.at > until) break;
      this.later.shift();
      this.time = Math.max(this.time, first.at);
      first.then();
      if (this.shown.length === 0) continue;
      this.time += this.cost;
      for (const then of this.shown.splice(0)) then();
    }
    this.time = Math.max(this.time, until);
  }
}

/** How often is drawn in a second in which something comes every few milliseconds. */
function drawings(cost: number): number {
  const screen = new Screen(cost);
  let count = 0;
  const pace = new DrawPace(() => { count += 1; }, screen);
  for (let at = 0; at < 1000; at += 4) {
    screen.pass(at);
    pace.ask();
  }
  return count;
}

test("every frame is drawn where drawing is cheap", () => {
  assert.ok(drawings(3) >= 60, String(drawings(3)));
});

test("a tab whose drawings take long draws rarer, but never less than twelve times a second", () => {
  assert.ok(drawings(9) <= 32, String(drawings(9)));
  assert.ok(drawings(30) <= 20, String(drawings(30)));
  assert.ok(drawings(60) >= 12, String(drawings(60)));
});

test("where drawings take twice as long, they are less than half as many", () => {
  assert.ok(drawings(12) * 2 < drawings(6), `${drawings(12)} of ${drawings(6)}`);
});

test("what comes after a pause does not wait", () => {
  const screen = new Screen(40);
  const times: number[] = [];
  const pace = new DrawPace(() => { times.push(screen.time); }, screen);
  pace.ask();
  screen.pass(1000);
  pace.ask();
  screen.pass(2000);
  assert.deepEqual(times.length, 2);
  assert.ok((times[1] ?? 0) - 1000 <= FRAME, String(times));
});

test("what waits for a frame is drawn when the tab is hidden, once", () => {
  const screen = new Screen(1);
  let count = 0;
  const pace = new DrawPace(() => { count += 1; }, screen);
  pace.ask();
  screen.hidden = true;
  pace.now();
  pace.now();
  screen.pass(1000);
  assert.equal(count, 1);
  pace.ask();
  screen.pass(1100);
  assert.equal(count, 1, "a hidden tab is drawn rarely");
  screen.pass(1300);
  assert.equal(count, 2);
});
