/** How often the page is drawn while events come in. */

/** Drawings that take this long are this far apart; milliseconds. Where they take twice as long, they
 * are four times as far apart: a slow drawing tells that others wait for the processor, too. */
const LIGHT = 6;
const LIGHT_GAP = 12;
/** What comes in is never older than this when it is drawn, however long a drawing takes; milliseconds. */
const LONGEST_WAIT = 50;
/** A hidden tab gets no frames, and must not keep what it is sent. */
const HIDDEN_WAIT = 250;

/** What a browser has for it; a test has its own. */
export interface Frames {
  now(): number;
  isHidden(): boolean;
  after(wait: number, then: () => void): void;
  /** Before the next frame is drawn. */
  next(then: () => void): void;
  /** After the frame is drawn that was begun. */
  drawn(then: () => void): void;
}

/** Draws in the next frame, and rarer where drawing takes long: then more is drawn at once. */
export class DrawPace {
  private isAsked = false;
  private due = 0;

  constructor(
    private readonly draw: () => void,
    private readonly frames: Frames,
  ) {}

  ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    const wait = this.due - this.frames.now();
    if (this.frames.isHidden()) this.frames.after(HIDDEN_WAIT, () => this.run());
    else if (wait > 0) this.frames.after(wait, () => this.frames.next(() => this.run()));
    else this.frames.next(() => this.run());
  }

  /** Draws what waits although its frame has not come, as that of a tab which was just hidden does not. */
  now(): void {
    if (this.isAsked) this.run();
  }

  private run(): void {
    if (!this.isAsked) return;
    this.isAsked = false;
    const began = this.frames.now();
    this.draw();
    this.frames.drawn(() => {
      const cost = (this.frames.now() - began) / LIGHT;
      this.due = began + Math.min(LIGHT_GAP * cost * cost, LONGEST_WAIT);
    });
  }
}

export function browserFrames(): Frames {
  const channel = new MessageChannel();
  let waiting: (() => void)[] = [];
  channel.port1.onmessage = () => {
    const found = waiting;
    waiting = [];
    for (const then of found) then();
  };
  return {
    now: () => performance.now(),
    isHidden: () => document.hidden,
    after: (wait, then) => void window.setTimeout(then, wait),
    next: (then) => void requestAnimationFrame(then),
    drawn: (then) => {
      waiting.push(then);
      channel.port2.postMessage(0);
    },
  };
}
