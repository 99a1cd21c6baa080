/** Starts the page: pairs it where a code was given, then shows what the address names. */

import { effect, signal } from "@preact/signals";
import { render, type JSX } from "preact";
import { pair, token } from "./api.ts";
import { listen } from "./keys.ts";
import { warmUp } from "./md/blocks.ts";
import { Shell } from "./screens/shell.tsx";
import { attachAgain, helpOpen, link, loadSessions, look, openSession, paired, paletteOpen, readRoute, route } from "./store.ts";
import { Logo } from "./ui/icons.tsx";

/** What opens over every screen, loaded behind the first one. */
const dialogs = signal<typeof import("./screens/palette.tsx") | null>(null);

function Page(): JSX.Element {
  if (!paired.value) return <Unpaired />;
  const late = dialogs.value;
  return (
    <>
      <Shell />
      {late ? <late.Palette /> : null}
      {late ? <late.Help /> : null}
    </>
  );
}

function loadDialogs(): void {
  // Where the server was away, the next key that opens one of them asks again.
  void import("./screens/palette.tsx").then((module) => { dialogs.value = module; }, () => { paletteOpen.value = false; helpOpen.value = false; });
}

function Unpaired(): JSX.Element {
  return (
    <main class="unpaired">
      <Logo size={32} />
      <h1>This page is not paired</h1>
      <p>Run <code>weft web</code> in your project: it opens this page with a code that works once.</p>
    </main>
  );
}

async function start(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    try {
      await pair(code);
    } catch {
      // A code that was used before is no harm where the page has a token.
    }
    paired.value = token() !== "";
  }
  effect(() => { document.documentElement.style.colorScheme = look.value === "system" ? "" : look.value; });
  window.addEventListener("hashchange", () => { paletteOpen.value = false; route.value = readRoute(location.hash); });
  route.value = readRoute(location.hash);
  const root = document.getElementById("page");
  // What stood there from the first paint on.
  root?.replaceChildren();
  if (root) render(<Page />, root);
  listen();
  loadDialogs();
  window.requestIdleCallback?.(warmUp);
  effect(() => { if ((paletteOpen.value || helpOpen.value) && !dialogs.peek()) loadDialogs(); });
  effect(() => {
    if (!paired.value) return;
    link.back = attachAgain;
    link.connect();
    void loadSessions();
    link.follow("sessions", 0, () => void later());
  });
  effect(() => { if (paired.value) void openSession(route.value.session); });
}

let timer = 0;

/** The list is read again soon after it changed, not once for each change. */
function later(): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => void loadSessions(), 300);
}

void start();
