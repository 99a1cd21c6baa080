/** Before there is a model: three ways to one. */

import type { JSX } from "preact";
import { startSession } from "../store.ts";
import { Button, Key } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

export function FirstRun(): JSX.Element {
  return (
    <div class="first-run">
      <svg class="drawing" width="560" height="90" viewBox="0 0 560 90" aria-hidden="true">
        <g class="lane"><path d="M140 42C190 42 180 14 230 14H390" /><circle cx="230" cy="14" r="4" /><circle cx="310" cy="14" r="4" /><circle cx="390" cy="14" r="4" /><path d="M330 42C380 42 360 70 410 70H500" /><circle cx="410" cy="70" r="4" /><circle cx="500" cy="70" r="4" /></g>
        <path class="main" d="M4 42H330" /><path class="ahead" d="M338 42H545" />
        {[4, 72, 140, 236].map((x) => <circle key={x} class="dot" cx={x} cy="42" r="4" />)}
        <circle class="ring-here" cx="330" cy="42" r="7.5" /><circle class="dot" cx="330" cy="42" r="4" />
      </svg>
      <h2>Start a session</h2>
      <p class="lead">Everything you and the model do is kept as a tree. You can go back to any turn, files included, and go on from there.</p>
      <div class="ways">
        <div class="ways-head"><strong>Choose a model</strong></div>
        <div class="way"><Icon name="key" /><span class="words"><span>A key</span><span class="dim">Anthropic, OpenAI, Google or any compatible address: <code>weft auth login</code> in the terminal</span></span></div>
        <div class="way"><Icon name="cube" /><span class="words"><span>Local model, on this machine</span><span class="dim">SmolLM2 135M · no key, no network · enough to look around</span></span><Button onClick={() => void startSession({ model: "local:smollm2" })}>Try it</Button></div>
        <div class="way"><Icon name="globe" /><span class="words"><span>The model that is set</span><span class="dim">model.default of your settings</span></span><Button kind="primary" onClick={() => void startSession()}>Start</Button></div>
      </div>
      <p class="dim after"><span>Or in the terminal: <code>export ANTHROPIC_API_KEY=…</code></span><span class="push" /><Key>?</Key> all keys</p>
    </div>
  );
}
