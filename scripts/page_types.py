"""Writes the types and the TypeScript client of the HTTP API from the table of operations:

python -m scripts.page_types    # writes web/src/generated/api.ts

A test fails when the file is not what this would write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.messages import Node, ToolResult
from weft.server import OPERATIONS
from weft.server.openapi import openapi_document
from weft.server.operation import ApiOperation

IN_EVENTS: Final = (Node, ToolResult)
"""What stands in events alone: no operation answers with it."""
TARGET: Final = Path(__file__).resolve().parents[1] / "web" / "src" / "generated" / "api.ts"

HEAD: Final = """\
/**
 * The types and the client of Weft's HTTP API.
 *
 * Written by `python -m scripts.page_types` from the table of operations; edit that, and write it
 * again. Fields that the server leaves out at their default are optional.
 */

"""

CLIENT: Final = """\

/** What sends a request; `fetch` of a browser or of Node is one. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string },
) => Promise<{ ok: boolean; status: number; text(): Promise<string> }>;

/** An operation that was refused, as the server says why. */
export class WeftError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly details: unknown = null,
  ) {
    super(message);
  }
}

type Given<N extends OperationName> = Omit<Operations[N], "answer">;

/** Calls operations by their names. */
export class WeftClient {
  constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly send: Fetch,
  ) {}

  async call<N extends OperationName>(name: N, given: Given<N>): Promise<Operations[N]["answer"]> {
    const { path, query, body } = given as {
      path?: Record<string, string>;
      query?: Record<string, unknown>;
      body?: unknown;
    };
    const [method, template] = PATHS[name];
    const filled = template.replace(/\\{(\\w+)\\}/g, (_, part: string) =>
      encodeURIComponent(path?.[part] ?? ""),
    );
    const asked = Object.entries(query ?? {})
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`)
      .join("&");
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    if (method !== "GET") headers["Content-Type"] = "application/json";
    const answer = await this.send(`${this.url}${filled}${asked ? `?${asked}` : ""}`, {
      method,
      headers,
      ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw refused(answer.status, text);
    return (TEXTS.has(name) ? text : text ? JSON.parse(text) : null) as Operations[N]["answer"];
  }
}

function refused(status: number, text: string): WeftError {
  let error: { kind?: string; message?: string; details?: unknown } = {};
  try {
    error = (JSON.parse(text) as { error?: typeof error }).error ?? {};
  } catch {
    // Not ours: a proxy, perhaps.
  }
  const said = error.message ?? `status ${status}`;
  return new WeftError(status, error.kind ?? "", said, error.details);
}
"""


def page_types() -> str:
    """The text of the file."""
    document = openapi_document(OPERATIONS)
    _, more = msgspec.json.schema_components(IN_EVENTS, ref_template="#/components/schemas/{name}")
    schemas = {**more, **document["components"]["schemas"]}
    parts = [HEAD, *(_declared(name, schemas[name]) for name in sorted(schemas))]
    parts += ["\n", *_operations(document), CLIENT]
    return "".join(parts)


def _operations(document: dict[str, Any]) -> Iterator[str]:
    yield "/** Every operation: what it is given, and what it answers with. */\n"
    yield "export interface Operations {\n"
    for each in OPERATIONS:
        yield f"  /** {each.says} */\n  {each.name}: {_operation(each, document)};\n"
    yield "}\n\nexport type OperationName = keyof Operations;\n\n"
    yield "export const PATHS: Record<OperationName, readonly [string, string]> = {\n"
    for each in OPERATIONS:
        yield f'  {each.name}: ["{each.method}", "{_path(each)}"],\n'
    yield "};\n\n/** Operations whose answer is text and no JSON. */\n"
    texts = [each.name for each in OPERATIONS if each.media_type != "application/json"]
    yield "const TEXTS: ReadonlySet<OperationName> = new Set<OperationName>([\n"
    yield "".join(f'  "{name}",\n' for name in texts)
    yield "]);\n"


def _path(operation: ApiOperation) -> str:
    return re.sub(r"\{(\w+):path\}", r"{\1}", f"/api{operation.path}")


def _operation(operation: ApiOperation, document: dict[str, Any]) -> str:
    made = document["paths"][_path(operation)][operation.method.lower()]
    fields: list[str] = []
    if names := re.findall(r"\{(\w+)\}", _path(operation)):
        fields.append(f"path: {{ {'; '.join(f'{name}: string' for name in names)} }}")
    queries = [each for each in made.get("parameters", ()) if each["in"] == "query"]
    if queries:
        shown = "; ".join(
            _member(each["name"], each["schema"], each["required"]) for each in queries
        )
        needed = any(each["required"] for each in queries)
        fields.append(f"query{'' if needed else '?'}: {{ {shown} }}")
    if "requestBody" in made:
        schema = made["requestBody"]["content"]["application/json"]["schema"]
        mark = "" if made["requestBody"].get("required") else "?"
        fields.append(f"body{mark}: {_type(schema)}")
    return f"{{ {'; '.join([*fields, f'answer: {_answer(operation, made)}'])} }}"


def _answer(operation: ApiOperation, made: dict[str, Any]) -> str:
    if operation.answer is None:
        return "null"
    content = made["responses"][str(operation.status)].get("content", {})
    schema = content.get("application/json", {}).get("schema")
    return (
        "string" if schema is None or operation.media_type != "application/json" else _type(schema)
    )


def _declared(name: str, schema: dict[str, Any]) -> str:
    about = f"/** {_sentence(schema['description'])} */\n" if schema.get("description") else ""
    if schema.get("type") == "object" and "properties" in schema:
        required = set(schema.get("required", ()))
        lines = [
            f"  {_member(field, each, field in required)};\n"
            for field, each in schema["properties"].items()
        ]
        return f"{about}export interface {_name(name)} {{\n{''.join(lines)}}}\n"
    return f"{about}export type {_name(name)} = {_type(schema)};\n"


def _sentence(text: str) -> str:
    return " ".join(text.split()).replace("*/", "* /")


def _member(name: str, schema: dict[str, Any], required: bool) -> str:
    shown = name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)
    return f"{shown}{'' if required else '?'}: {_type(schema)}"


def _name(name: str) -> str:
    return re.sub(r"\W", "_", name)


_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(_type(each) for each in schema[union]))
    if "allOf" in schema:
        return " & ".join(_type(each) for each in schema["allOf"])
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    if isinstance(kind, list):
        return " | ".join(_PLAIN[each] for each in kind)
    return _PLAIN.get(str(kind), "unknown")


def _array(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    items = schema.get("items")
    inner = _type(items) if isinstance(items, dict) and items else "unknown"
    return f"({inner})[]" if " " in inner else f"{inner}[]"


def _object(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        required = set(schema.get("required", ()))
        shown = "; ".join(
            _member(name, each, name in required) for name, each in schema["properties"].items()
        )
        return f"{{ {shown} }}"
    values = schema.get("additionalProperties")
    inner = _type(values) if isinstance(values, dict) and values else "unknown"
    return f"Record<string, {inner}>"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(page_types(), encoding="utf-8")
