import assert from "node:assert/strict";
import test from "node:test";
import { type Fetch, WeftClient, WeftError } from "../src/generated/api.ts";

interface Sent {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
}

function answering(status: number, text: string): { sent: Sent[]; send: Fetch } {
  const sent: Sent[] = [];
  const send: Fetch = (url, init) => {
    sent.push({ url, ...init });
    return Promise.resolve({ ok: status < 400, status, text: () => Promise.resolve(text) });
  };
  return { sent, send };
}

test("an operation is called by its name, with its path, query and body", async () => {
  const { sent, send } = answering(202, '{"status":"started"}');
  const client = new WeftClient("http://127.0.0.1:7717", "secret", send);
  const accepted = await client.call("send_prompt", { path: { id: "ses_1" }, body: { content: "Go." } });
  assert.equal(accepted.status, "started");
  await client.call("list_saved", { query: { q: "a & b", limit: 5, after: null } });
  assert.deepEqual(
    sent.map((each) => [each.method, each.url, each.body]),
    [
      ["POST", "http://127.0.0.1:7717/api/sessions/ses_1/prompt", '{"content":"Go."}'],
      ["GET", "http://127.0.0.1:7717/api/sessions?q=a%20%26%20b&limit=5", undefined],
    ],
  );
  assert.equal(sent[0]?.headers.Authorization, "Bearer secret");
});

test("text is handed over as it is, and nothing as null", async () => {
  const text = answering(200, "# Title");
  const client = new WeftClient("", "t", text.send);
  assert.equal(await client.call("export_session", { path: { id: "ses_1" }, query: { format: "md" } }), "# Title");
  const nothing = new WeftClient("", "t", answering(204, "").send);
  assert.equal(await nothing.call("stop_session", { path: { id: "ses_1" } }), null);
});

test("a refusal is an error with the server's words", async () => {
  const { send } = answering(404, '{"error":{"kind":"SessionNotFound","message":"no session","details":{"session_id":"x"}}}');
  const client = new WeftClient("", "t", send);
  await assert.rejects(client.call("metadata", { path: { id: "x" } }), (error: WeftError) => {
    return error.status === 404 && error.kind === "SessionNotFound" && error.message === "no session";
  });
  const proxy = new WeftClient("", "t", answering(502, "<html>").send);
  await assert.rejects(proxy.call("metadata", { path: { id: "x" } }), (error: WeftError) => error.status === 502);
});
