/** Before there is a model: the ways to one. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { send } from "../api.ts";
import { access, project, projectName, readAccess, say, startSession } from "../store.ts";
import type { KeyCheck, ModelAccess } from "../types.ts";
import { Button, Key } from "../ui/controls.tsx";
import { Icon } from "../ui/icons.tsx";

export function FirstRun(): JSX.Element {
  const asks = useSignal(false);
  useEffect(() => { void readAccess(); }, []);
  const known = access.value;
  const ready = known?.has_default ?? false;
  const local = known?.local_models ?? [];
  return (
    <div class="first-run">
      <svg class="drawing" width="560" height="90" viewBox="0 0 560 90" aria-hidden="true">
        <g class="lane"><path d="M140 42C190 42 180 14 230 14H390" /><circle cx="230" cy="14" r="4" /><circle cx="310" cy="14" r="4" /><circle cx="390" cy="14" r="4" /><path d="M330 42C380 42 360 70 410 70H500" /><circle cx="410" cy="70" r="4" /><circle cx="500" cy="70" r="4" /></g>
        <path class="main" d="M4 42H330" /><path class="ahead" d="M338 42H545" />
        {[4, 72, 140, 236].map((x) => <circle key={x} class="dot" cx={x} cy="42" r="4" />)}
        <circle class="ring-here" cx="330" cy="42" r="7.5" /><circle class="dot" cx="330" cy="42" r="4" />
      </svg>
      <h2>Start a session{projectName.value ? ` in ${projectName.value}` : ""}</h2>
      <p class="lead">Everything you and the model do is kept as a tree. You can go back to any turn, files included, and go on from there.</p>
      <div class="ways">
        <div class="ways-head"><strong>Choose a model</strong><span class="push" /><span class="dim">{known === null ? "" : ready ? known.default_model : "no key found"}</span></div>
        {ready ? <div class="way"><Icon name="check" /><span class="words"><span>{known?.default_model}</span><span class="dim">It is set, or there is a key for it</span></span><Button kind="primary" onClick={() => void startSession()}>Start</Button></div> : null}
        <div class="way"><Icon name="key" /><span class="words"><span>Add a key</span><span class="dim">{known?.providers.slice(0, 4).map((each) => each.title).join(", ") || "Anthropic, OpenAI, Google"} or another provider</span></span>{asks.value ? null : <Button kind={ready ? "plain" : "primary"} onClick={() => { asks.value = true; }}>Add a key…</Button>}</div>
        {asks.value ? <KeyForm known={known} done={() => { asks.value = false; }} /> : null}
        {local.slice(0, 3).map((name) => <div key={name} class="way"><Icon name="globe" /><span class="words"><span>{name}</span><span class="dim">runs on this machine</span></span><Button onClick={() => void startSession({ model: name })}>Use</Button></div>)}
        <div class="way"><Icon name="cube" /><span class="words"><span>Local model, on this machine</span><span class="dim">SmolLM2 135M · no key, enough to look around · fetched once by <code>weft models pull smollm2</code></span></span><Button onClick={() => void startSession({ model: "local:smollm2" })}>Try it</Button></div>
      </div>
      <p class="dim after"><span>Or in the terminal: <code>export ANTHROPIC_API_KEY=…</code></span><span class="push" /><Key>?</Key> all keys</p>
    </div>
  );
}

export function KeyForm({ known, done, of = "any" }: { known: ModelAccess | null; done: () => void; of?: string }): JSX.Element {
  const key = useSignal("");
  const whose = useSignal(of);
  const trouble = useSignal("");
  const busy = useSignal(false);
  const save = async (): Promise<void> => {
    busy.value = true;
    trouble.value = "";
    const given = key.value; // the one that is tested is saved, whatever is typed meanwhile
    try {
      const path = `/projects/${encodeURIComponent(project.value.key)}/keys/${encodeURIComponent(whose.value)}`;
      const test = await send<KeyCheck>("POST", `${path}/test`, { key: given });
      if (test.state === "refused") { trouble.value = `${test.why}. It is not saved.`; return; }
      access.value = await send<ModelAccess>("PUT", path, { key: given });
      key.value = "";
      if (test.state === "works") say("ok", "The key works and is saved; only you can read it.");
      else say("warn", `The key is saved, and could not be tested: ${test.why}.`);
      done();
    } catch (error) {
      trouble.value = error instanceof Error ? error.message : String(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <form class="way key-form" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <select class="field" aria-label="Whose key" value={whose.value} onChange={(event) => { whose.value = event.currentTarget.value; }}><option value="any">Found by the key</option>{known?.providers.map((each) => <option key={each.name} value={each.name}>{each.title}</option>)}</select>
      <input class="field" type="password" autocomplete="off" aria-label="Key" placeholder="Paste the key" value={key.value} ref={(element) => { if (element && !key.value) element.focus(); }} aria-invalid={trouble.value !== ""} onInput={(event) => { key.value = event.currentTarget.value; trouble.value = ""; }} />
      <Button kind="primary" busy={busy.value} off={key.value.trim() ? undefined : "Paste the key"} onClick={() => void save()}>Save</Button>
      {trouble.value ? <p class="bad" role="alert">{trouble.value}</p> : null}
    </form>
  );
}
