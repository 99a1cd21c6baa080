/** An answer that comes as server-sent events to a call that is no GET, which an EventSource cannot make. */

import { ApiError, token } from "./api.ts";

export async function follow(path: string, body: Record<string, unknown>, signal: AbortSignal, each: (event: string, value: unknown) => void): Promise<void> {
  const headers = { Accept: "text/event-stream", "Content-Type": "application/json", Authorization: `Bearer ${token()}` };
  const answer = await fetch(`/api${path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (!answer.ok || !answer.body) {
    const error = ((await answer.json().catch(() => null)) as { error?: { kind?: string; message?: string } } | null)?.error;
    throw new ApiError(answer.status, error?.kind ?? "Error", error?.message ?? `${answer.status} ${answer.statusText}`);
  }
  let text = "";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const pieces = text.split("\n\n");
    text = pieces.pop() ?? "";
    for (const piece of pieces) {
      const lines = piece.split("\n");
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      const event = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "message";
      if (data !== undefined) each(event, JSON.parse(data));
    }
  }
}
