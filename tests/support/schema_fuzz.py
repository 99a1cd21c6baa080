"""Requests made from an OpenAPI document at random, and their answers checked against it.

    python -m tests.support.schema_fuzz URL TOKEN-FILE COUNT [SEED]

Bodies and queries follow their schemas or break them; ids are sometimes those of what is there.
"""

from __future__ import annotations

import json
import random
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema  # type: ignore[import-untyped]  # it has no types

LEFT_OUT = {"subscribe", "subscribe_topic", "fan_events", "delete_session"}
"""Streams end when their reader goes, and have tests of their own; without sessions nothing else
would have an answer."""
ODD = [
    "",
    "\0",
    "a\0b",
    "\ud800",
    "🧵",
    "../..",
    "/",
    "x" * 3_000,
    "%00",
    "null",
    "-1",
    "'\"\\",
    "\u202e",
]
NUMBERS = [0, 1, -1, 2**31, 2**63, 2**64, -(2**70), 0.5, 1e308]
DEPTH = 4
EXPECTED = (502, 503)
"""A model that fails, and a server that closes, say so."""
TOO_MANY = 429
"""Of more requests than a token may send; a user waits, and so does `main`."""

Send = Callable[[str, str, bytes | None], tuple[int, str, bytes]]
"""Sends a method, a target and a body; returns status, media type and body."""


class SchemaFuzzer:
    """Makes requests, and checks their answers."""

    def __init__(self, document: dict[str, Any], seed: int = 0) -> None:
        self._document = document
        self._random = random.Random(seed)
        self._operations = [
            (path, method, each)
            for path, methods in document["paths"].items()
            for method, each in methods.items()
            if each["operationId"] not in LEFT_OUT
        ]
        self._validators: dict[str, Any] = {}
        self.known: dict[str, list[str]] = {}
        """Values for parts of paths: ids of what is there."""
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []

    def one(self, send: Send) -> None:
        """One request."""
        path, method, operation = self._random.choice(self._operations)
        target = self._target(path, operation)
        body = self._body(operation) if "requestBody" in operation else None
        status, kind, answer = send(method.upper(), target, body)
        self.statuses[status] += 1
        problem = self._problem(operation, status, kind, answer)
        if problem:
            self.problems.append(f"{method.upper()} {target} {body!r:.300}: {problem}")

    # -- what is asked

    def _target(self, path: str, operation: dict[str, Any]) -> str:
        filled, query = path, {}
        for each in operation.get("parameters", ()):
            if each["in"] == "path":
                value = self._part(path, each["name"])
                filled = filled.replace(f"{{{each['name']}}}", quote(value, safe=""))
            elif each["required"] or self._random.random() < 0.5:
                given = self._value(each["schema"], 0)
                query[each["name"]] = given if isinstance(given, str) else json.dumps(given)
        asked = urlencode(query, errors="replace") if query else ""
        return f"{filled}?{asked}" if asked else filled

    def _part(self, path: str, name: str) -> str:
        known = self.known.get("loom" if name == "id" and "/looms" in path else name, [])
        if known and self._random.random() < 0.8:
            return self._random.choice(known)
        return self._text().encode("utf-8", "replace").decode() or "x"

    def _body(self, operation: dict[str, Any]) -> bytes:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        kind = self._random.random()
        if kind < 0.05:
            return self._random.choice([b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 5_000])
        made = self._value(schema, 0)
        if kind < 0.3 and isinstance(made, dict):
            made[self._random.choice([*made, "other"])] = self._any()
        return json.dumps(made).encode()

    def _value(self, schema: dict[str, Any], depth: int) -> Any:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._value(self._document["components"]["schemas"][name], depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self._value(self._random.choice(schema[union]), depth)
        return self._of_type(schema, depth)

    def _of_type(self, schema: dict[str, Any], depth: int) -> Any:
        match schema.get("type"):
            case "object" if "properties" in schema:
                required = schema.get("required", ())
                return {
                    name: self._value(each, depth + 1)
                    for name, each in schema["properties"].items()
                    if name in required or (depth < DEPTH and self._random.random() < 0.5)
                }
            case "object":
                return {self._text(): self._any() for _ in range(self._random.randint(0, 2))}
            case "array":
                items = schema.get("items") or {}
                count = 0 if depth > DEPTH else self._random.randint(0, 3)
                return [self._value(items, depth + 1) for _ in range(count)]
            case "integer" | "number":
                return self._random.choice(NUMBERS)
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case "string":
                return self._text()
            case _:
                return self._any()

    def _text(self) -> str:
        if self._random.random() < 0.3:
            return self._random.choice(ODD)
        ids = [each for values in self.known.values() for each in values]
        return self._random.choice(["Go on.", "main", "a.txt", "default", "low", *ids])

    def _any(self) -> Any:
        return self._random.choice([None, True, 1, -1, 0.5, self._text(), [], {}, [[]], {"a": 1}])

    # -- what comes back

    def _problem(self, operation: dict[str, Any], status: int, kind: str, answer: bytes) -> str:
        if status >= 500 and status not in EXPECTED:
            return f"answered with {status}: {answer!r:.300}"
        described = operation["responses"].get(str(status)) or operation["responses"].get("default")
        if described is None:
            return f"answered with {status}, which is not in the document"
        content = described.get("content", {})
        if not answer and not content:
            return ""
        media = kind.partition(";")[0].strip()
        known = {name.partition(";")[0].strip(): each for name, each in content.items()}
        if media not in known:
            return f"answered with {kind!r}, and not with one of {list(content)}"
        if media != "application/json":
            return ""
        return self._unfit(f"{operation['operationId']} {status}", known[media]["schema"], answer)

    def _unfit(self, name: str, schema: dict[str, Any], answer: bytes) -> str:
        if name not in self._validators:
            whole = {**schema, "components": self._document["components"]}
            self._validators[name] = jsonschema.Draft202012Validator(whole)
        error = next(self._validators[name].iter_errors(json.loads(answer)), None)
        return "" if error is None else f"{status_of(name)}: {error.message:.300}"


def status_of(name: str) -> str:
    """What is said of an answer that does not fit."""
    return f"the answer of {name} does not fit its schema"


def main(url: str, token_file: str, count: int, seed: int = 0) -> int:
    """Send so many requests to a server that runs; returns the exit code."""
    token = Path(token_file).read_text().strip()

    def send(method: str, target: str, body: bytes | None) -> tuple[int, str, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(url + target, body, headers, method=method)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, answer.headers["Content-Type"] or "", answer.read()
            except urllib.error.HTTPError as error:
                if error.code == TOO_MANY and error.headers["Retry-After"]:
                    time.sleep(float(error.headers["Retry-After"]))
                    continue
                return error.code, error.headers["Content-Type"] or "", error.read()

    fuzzer = SchemaFuzzer(json.loads(send("GET", "/api/openapi.json", None)[2]), seed)
    plant(fuzzer, send)
    for _ in range(count):
        fuzzer.one(send)
    for problem in dict.fromkeys(fuzzer.problems):
        print(problem)
    counted = dict(sorted(fuzzer.statuses.items()))
    print(f"{count} requests, {len(fuzzer.problems)} problems, {counted}")
    return int(bool(fuzzer.problems))


def plant(fuzzer: SchemaFuzzer, send: Send) -> None:
    """Something for the requests to be about."""

    def post(path: str, **body: Any) -> Any:
        status, _, answer = send("POST", f"/api{path}", json.dumps(body).encode())
        assert status < 300, answer
        return json.loads(answer)

    sessions = [post("/sessions", title=f"S{number}")["id"] for number in range(4)]
    for session in sessions:
        post(f"/sessions/{session}/message", content="Go.")
    rows = json.loads(send("GET", f"/api/sessions/{sessions[0]}/messages", None)[2])["messages"]
    root = post("/looms", text="Once upon")["id"]
    child = post(f"/looms/{root}/children", text=" a time")["id"]
    fuzzer.known |= {
        "id": sessions,
        "loom": [root, child],
        "project": ["main"],
        "node": [row["id"] for row in rows],
        "branch": ["main", "0"],
        "mark": ["pin"],
        "path": ["a.txt"],
        "name": ["general"],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
