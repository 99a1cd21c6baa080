/** Calls of the server. Changing ones carry an input id, so that a repeat does nothing twice. */

const KEY = "weft.token";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly details: unknown = null,
  ) {
    super(message);
  }
}

export function token(): string {
  return localStorage.getItem(KEY) ?? "";
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}

/** Trades the code in the address for a token, and takes it out of the address bar. */
export async function pair(code: string): Promise<void> {
  history.replaceState(null, "", location.pathname);
  const answer = await call<{ token: string }>("POST", "/pair", { code });
  localStorage.setItem(KEY, answer.token);
}

/** The page as a client of the open session: who it is there, and how it attaches anew. */
export const asClient = { session: "", id: "", again: async (): Promise<void> => undefined };

function isAsClient(path: string): boolean {
  return asClient.id !== "" && path.startsWith(`/sessions/${encodeURIComponent(asClient.session)}/`) && !path.includes("/clients");
}

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const held = asClient.id;
  try {
    return await callOnce<T>(method, path, body);
  } catch (error) {
    // A server that was started again knows its clients no more.
    if (!(error instanceof ApiError && error.kind === "client" && isAsClient(path))) throw error;
    // The page may be attached anew since: a second client of its own could only watch the first.
    if (asClient.id === held) await asClient.again();
    return callOnce<T>(method, path, body);
  }
}

async function callOnce<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  if (method !== "GET") headers["Content-Type"] = "application/json";
  if (isAsClient(path)) headers["Weft-Client"] = asClient.id;
  let answer: Response;
  try {
    answer = await fetch(`/api${path}`, {
      method,
      headers,
      body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
    });
  } catch {
    throw new ApiError(0, "Offline", "The server does not answer.");
  }
  const text = await answer.text();
  // Differences, logs and exports are text, and are handed over as they are.
  const isText = answer.ok && !(answer.headers.get("content-type") ?? "").includes("json");
  let value: unknown = null;
  try {
    value = isText ? text : text ? JSON.parse(text) : null;
  } catch {
    value = null;
  }
  if (answer.ok) return value as T;
  const error = (value as { error?: { kind?: string; message?: string; details?: unknown } } | null)?.error;
  throw new ApiError(answer.status, error?.kind ?? "Error", error?.message ?? `${answer.status} ${answer.statusText}`, error?.details);
}

/** The address of a picture that the server holds, for as long as the page shows it. */
export async function blobAddress(project: string, blob: string, type: string): Promise<string> {
  const answer = await fetch(`/api/projects/${encodeURIComponent(project)}/blobs/${encodeURIComponent(blob)}`, { headers: { Authorization: `Bearer ${token()}` } });
  return answer.ok ? URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type })) : "";
}

export function get<T>(path: string, query: Record<string, string | number | boolean | null | undefined> = {}): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return call<T>("GET", text ? `${path}?${text}` : path);
}

export function send<T = unknown>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body: Record<string, unknown> = {}): Promise<T> {
  return call<T>(method, path, { input_id: inputId(), ...body });
}

export function inputId(): string {
  return `inp_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** The address of something of a session. */
export function of(session: string, ...rest: string[]): string {
  return ["/sessions", session, ...rest].map((part, at) => (at === 0 ? part : encodeURIComponent(part))).join("/");
}
