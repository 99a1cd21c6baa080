/** The one WebSocket of a tab: all sessions that it follows, each resumed by its cursor. */

import { signal } from "@preact/signals";
import { token } from "./api.ts";
import type { Event } from "./types.ts";

export type LinkState = { at: "connecting" } | { at: "open" } | { at: "lost"; until: number };

type Listener = (events: Event[]) => void;

const WAITS = [500, 1000, 2000, 4000, 8000];

export class Link {
  readonly state = signal<LinkState>({ at: "connecting" });
  private socket: WebSocket | null = null;
  private readonly followed = new Map<string, { cursor: number; listener: Listener; closes: number }>();
  /** The page as a client of one session: it goes with this connection. */
  private client = "";
  /** Called when a connection that was lost is there again. */
  back: () => void = () => undefined;
  private failures = 0;
  private timer = 0;

  constructor(private readonly refused: () => void) {}

  connect(): void {
    window.clearTimeout(this.timer);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/ws`, ["weft.v1", `bearer.${token()}`]);
    this.socket = socket;
    socket.onopen = () => {
      const wasLost = this.failures > 0;
      this.failures = 0;
      this.state.value = { at: "open" };
      if (wasLost) this.back();
      else if (this.client) this.write({ client: this.client });
      for (const [topic, { cursor }] of this.followed) this.ask(topic, cursor);
    };
    socket.onmessage = (message) => this.receive(message.data as string);
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (event.code === 4401) this.refused();
      else this.retry();
    };
  }

  /** Try again at once. */
  now(): void {
    if (this.state.value.at === "lost") this.connect();
  }

  /** Hand on the events of a session from its cursor on; with a negative one, from now on. */
  follow(topic: string, cursor: number, listener: Listener): void {
    this.followed.set(topic, { cursor, listener, closes: 0 });
    this.ask(topic, cursor);
  }

  /** From now on the client of this id is this connection's: it is detached when that ends. */
  as(id: string): void {
    this.client = id;
    this.write({ client: id });
  }

  drop(topic: string): void {
    if (this.followed.delete(topic)) this.write({ drop: topic });
  }

  /** Join a session anew, from its cursor: what is in flight comes again, whole. */
  again(topic: string): void {
    const known = this.followed.get(topic);
    if (known === undefined) return;
    this.write({ drop: topic });
    this.ask(topic, known.cursor);
  }

  private ask(topic: string, cursor: number): void {
    this.write(topic === "sessions" || cursor < 0 ? { follow: topic } : { follow: topic, after: cursor });
  }

  private write(frame: unknown): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  private receive(data: string): void {
    const frame = JSON.parse(data) as { s?: string; e?: Event[]; closed?: string };
    const known = this.followed.get(frame.s ?? "");
    if (known === undefined) return;
    if (frame.e === undefined) return this.comeBack(frame.s ?? "");
    known.closes = 0;
    for (const event of frame.e) if (event.seq !== undefined && event.seq > known.cursor) known.cursor = event.seq;
    known.listener(frame.e);
  }

  /** A session that can be followed no more may be open again soon: after a restart, or elsewhere. */
  private comeBack(topic: string): void {
    const known = this.followed.get(topic);
    if (known === undefined) return;
    const wait = WAITS[Math.min(known.closes, WAITS.length - 1)] ?? 8000;
    known.closes += 1;
    window.setTimeout(() => {
      if (this.followed.get(topic) === known) this.ask(topic, known.cursor);
    }, wait);
  }

  private retry(): void {
    const wait = WAITS[Math.min(this.failures, WAITS.length - 1)] ?? 8000;
    this.failures += 1;
    this.state.value = { at: "lost", until: Date.now() + wait };
    this.timer = window.setTimeout(() => this.connect(), wait);
  }
}
