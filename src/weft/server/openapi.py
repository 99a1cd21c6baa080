"""The OpenAPI 3.1 document, made from the table of operations and the types themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from weft.server.errors import ErrorAnswer
from weft.server.operation import ApiOperation, body_of
from weft.version import __version__

_REF = "#/components/schemas/{name}"


def _any_value(kind: type) -> dict[str, Any]:
    """The schema of `object`, which is what programs keep of their own."""
    if kind is not object:
        raise NotImplementedError
    return {"description": "Any value."}


@cache
def openapi_document(operations: Sequence[ApiOperation]) -> dict[str, Any]:
    """The document; the same one every time."""
    types: list[Any] = [ErrorAnswer]
    for each in operations:
        types += [kind for kind in (body_of(each), each.query, each.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components(
        types, ref_template=_REF, schema_hook=_any_value
    )
    by_type = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, Any] = {}
    for each in operations:
        path = re.sub(r"\{(\w+):path\}", r"{\1}", f"/api{each.path}")
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, by_type, components)
    made = {
        "openapi": "3.1.0",
        "info": {
            "title": "Weft",
            "version": __version__,
            "description": "Coding sessions over HTTP. docs/http.md explains it with examples.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }
    # As JSON has it: the defaults of types are Python's values.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return plain


def _operation(
    operation: ApiOperation, by_type: dict[int, Any], components: dict[str, Any]
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.says,
        "parameters": [*_path_parameters(operation), *_query_parameters(operation, components)],
        "responses": _responses(operation, by_type),
    }
    if operation.is_open:
        made["security"] = []
    body = body_of(operation)
    if body is not None:
        schema = by_type[id(body)]
        made["requestBody"] = {
            "required": bool(_fields(body, components).get("required")),
            "content": {"application/json": {"schema": schema}},
        }
    return made


def _path_parameters(operation: ApiOperation) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)", operation.path)
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


def _query_parameters(operation: ApiOperation, components: dict[str, Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    fields = _fields(operation.query, components)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in fields.get("required", ()),
            "schema": schema,
        }
        for name, schema in fields["properties"].items()
    ]


def _fields(kind: type, components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = components[kind.__name__]
    return found


def _responses(operation: ApiOperation, by_type: dict[int, Any]) -> dict[str, Any]:
    failed = {
        "description": "It was not done; the sentence says why.",
        "content": {"application/json": {"schema": by_type[id(ErrorAnswer)]}},
    }
    # By id of the list's own entry: two equal types are two entries.
    if operation.answer is None:
        done: dict[str, Any] = {"description": "Done."}
        status = "204"
    else:
        status = str(operation.status)
        content = {operation.media_type: {"schema": by_type[id(operation.answer)]}}
        if operation.streams:
            # Without a schema: it would be one of the whole stream, and is taken for an event's.
            content["text/event-stream"] = {}
        done = {"description": operation.says, "content": content}
    return {status: done, "default": failed}
