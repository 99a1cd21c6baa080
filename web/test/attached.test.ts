import assert from "node:assert/strict";
import test from "node:test";
import { asClient, send } from "../src/api.ts";
import { singleFlight } from "../src/state/single-flight.ts";

const UNKNOWN = JSON.stringify({ error: { kind: "client", message: "no such client", details: {} } });

/** A server that was started again: it knows the client `new` alone. */
function restarted(answered: () => void): string[] {
  const seen: string[] = [];
  const fetched = async (_: string, init: { headers: Record<string, string> }): Promise<unknown> => {
    const client = init.headers["Weft-Client"] ?? "";
    seen.push(client);
    if (client !== "new") answered();
    const ok = client === "new";
    return { ok, status: ok ? 202 : 409, statusText: "", headers: new Map([["content-type", "application/json"]]), text: async () => (ok ? "{}" : UNKNOWN) };
  };
  Object.assign(globalThis, { fetch: fetched, localStorage: { getItem: () => "t" } });
  return seen;
}

test("a call that a server does not know the client of is made again as the client that the page is by then", async () => {
  let attached = 0;
  const again = async (): Promise<void> => { attached += 1; asClient.id = "new"; };
  Object.assign(asClient, { session: "s", id: "old", again });
  // It was attached anew while the call was on its way, as after a lost connection.
  const seen = restarted(() => { asClient.id = "new"; });
  await send("POST", "/sessions/s/prompt", { content: "Go." });
  assert.deepEqual(seen, ["old", "new"]);
  assert.equal(attached, 0);
});

test("a call that a server does not know the client of attaches the page anew where nobody has", async () => {
  let attached = 0;
  const again = async (): Promise<void> => { attached += 1; asClient.id = "new"; };
  Object.assign(asClient, { session: "s", id: "old", again });
  const seen = restarted(() => undefined);
  await send("POST", "/sessions/s/prompt", { content: "Go." });
  assert.deepEqual(seen, ["old", "new"]);
  assert.equal(attached, 1);
});

test("work of one key runs once at a time, and again when it is over", async () => {
  const begun: string[] = [];
  let name = "a";
  let end: () => void = () => undefined;
  const run = singleFlight(() => name, (key) => { begun.push(key); return new Promise((done) => { end = done; }); });
  const first = run();
  assert.equal(run(), first);
  name = "b";
  assert.equal(run() === first, false);
  name = "a";
  assert.equal(run(), first);
  assert.deepEqual(begun, ["a", "b"]);
  end();
  name = "b";
  await new Promise((done) => { setTimeout(done, 0); });
  void run();
  assert.deepEqual(begun, ["a", "b", "b"]);
});
