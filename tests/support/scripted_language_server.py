"""A language server that behaves as it is told: run as a program, with the standard library alone.

Its language has two words.  A line `BUG text` is an error that says its text, so that a diagnostic
shows which version of a file it is about.  `def NAME` defines a name and `use NAME` uses it, which
is an error unless some open file, or one in its folder, defines the name.

Its arguments are the traps that real servers set; `TRAPS` lists them.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

TRAPS = {
    "pull": "announces textDocument/diagnostic, and pushes nothing then",
    "register-pull": "announces it after the start, as pyright does",
    "refresh": "answers the first question with nothing, and says later that it has changed",
    "no-version": "pushes without a version, as typescript-language-server does",
    "stale": "pushes what it knew of the version before once more, after each change",
    "cold": "does not answer `initialize` before there is a file `go` in its folder",
    "hold": "says nothing of a document before there is a file `go` in its folder",
    "silent": "never says anything of a document",
    "clean-silent": "says nothing of a document without errors",
    "asks": "does not start to work before its own requests are answered",
    "proxy": "ends at once as rustup's stand-ins do",
    "garbage": "prints a line of text where messages belong",
    "child": "starts a process of its own, in a session of its own, when there is a bug",
    "grow": "holds 64 MB more",
    "crash": "ends when a document holds the word CRASH",
    "pull-and-push": "answers questions with warnings, and pushes the errors besides",
    "code-object": "sends codes as objects",
    "parent": "says with every document which process it takes for its parent",
    "share": "holds 64 MB more that other processes could share",
    "open-only": "knows of open files only",
    "utf8": "counts in bytes",
    "unchanged": "answers questions for diagnostics with: as before, whatever that was",
    "empty-report": "answers them with an empty table",
    "refuses": "answers `initialize` with an error that says nothing",
}


PULLS = {"pull", "register-pull", "refresh", "unchanged", "empty-report"}
"""Those that do not push."""


class ScriptedServer:
    """The server's side of one connection."""

    def __init__(self, traps: set[str]) -> None:
        self.traps = traps
        self.texts: dict[str, tuple[int, str]] = {}
        self.last_id = 0
        self.unanswered: set[int] = set()
        self.waiting: list[str] = []
        self.refused_once = False

    # -- messages

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        sys.stdout.buffer.flush()

    def ask(self, method: str, params: object) -> None:
        self.last_id += 1
        self.unanswered.add(self.last_id)
        self.send({"id": self.last_id, "method": method, "params": params})

    def run(self) -> None:
        while (message := read(sys.stdin.buffer)) is not None:
            method, params = message.get("method"), message.get("params") or {}
            if method is None:
                self.unanswered.discard(message["id"])
                if "result" not in message:
                    self.unanswered.add(-1)  # an error is no answer
                self.catch_up()
            elif "id" in message:
                self.send({"id": message["id"], **self.answer(method, params)})
            elif method == "exit":
                return
            else:
                self.take(method, params)

    # -- requests

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize" and "refuses" in self.traps:
            return {"error": {"code": -32603, "message": ""}}
        if method == "initialize":
            self.parent = params["processId"]
            return {"result": {"capabilities": self.start()}}
        if method == "shutdown":
            return {"result": None}
        handler = {
            "textDocument/diagnostic": self.report,
            "textDocument/definition": self.definition,
            "textDocument/references": self.references,
            "textDocument/hover": self.hover,
            "textDocument/documentSymbol": self.symbols,
            "workspace/symbol": self.workspace_symbols,
            "textDocument/rename": self.rename,
        }.get(method)
        if handler is None:
            return {"error": {"code": -32601, "message": method}}
        return {"result": handler(params)}

    def start(self) -> dict[str, Any]:
        if "cold" in self.traps:
            wait_for(Path("go"))
        found: dict[str, Any] = {
            "textDocumentSync": {"openClose": True, "change": 1, "save": True},
            "definitionProvider": True,
            "referencesProvider": True,
            "hoverProvider": True,
            "documentSymbolProvider": True,
            "workspaceSymbolProvider": True,
            "renameProvider": True,
        }
        if "utf8" in self.traps:
            found["positionEncoding"] = "utf-8"
        if {"pull", "refresh", "unchanged", "empty-report", "pull-and-push"} & self.traps:
            found["diagnosticProvider"] = {"interFileDependencies": True}
        return found

    def report(self, params: dict[str, Any]) -> dict[str, Any]:
        self.hold()
        uri = params["textDocument"]["uri"]
        if "unchanged" in self.traps:
            return {"kind": "unchanged", "resultId": "1"}
        if "empty-report" in self.traps:
            return {}
        if "refresh" in self.traps and not self.refused_once:
            self.refused_once = True
            self.ask("workspace/diagnostic/refresh", None)
            return {"kind": "full", "items": []}
        found = self.problems(uri, self.texts[uri][1])
        if "pull-and-push" in self.traps:
            found = [each for each in found if each["severity"] > 1]
        return {"kind": "full", "items": found}

    # -- notifications

    def take(self, method: str, params: dict[str, Any]) -> None:
        if method == "initialized":
            if "asks" in self.traps:
                self.ask("workspace/configuration", {"items": [{"section": "scripted.key"}]})
                self.ask("window/workDoneProgress/create", {"token": "t"})
                self.ask("client/registerCapability", {"registrations": []})
            if "register-pull" in self.traps:
                registration = {"id": "1", "method": "textDocument/diagnostic"}
                self.ask("client/registerCapability", {"registrations": [registration]})
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            self.texts[document["uri"]] = (document["version"], document["text"])
            self.look(document["uri"])
        elif method == "textDocument/didChange":
            document = params["textDocument"]
            before = self.texts[document["uri"]]
            text = params["contentChanges"][0]["text"]
            self.texts[document["uri"]] = (document["version"], text)
            if "stale" in self.traps:
                self.push(document["uri"], before)
            self.look(document["uri"])
        elif method == "textDocument/didClose":
            self.texts.pop(params["textDocument"]["uri"])

    def look(self, uri: str) -> None:
        text = self.texts[uri][1]
        if "crash" in self.traps and "CRASH" in text:
            sys.exit("internal error: it met the word")
        if "grow" in self.traps:
            self.ballast = bytes(bytearray(b"x") * (64 * 1024 * 1024))
        if "share" in self.traps:
            self.shared = mmap.mmap(-1, 64 * 1024 * 1024)
            for _ in range(64):
                self.shared.write(b"x" * (1024 * 1024))
        if "child" in self.traps and "BUG" in text:
            subprocess.Popen(["sleep", "600"], start_new_session=True)
        if not {"silent", *PULLS} & self.traps:
            self.waiting.append(uri)
            self.catch_up()

    def catch_up(self) -> None:
        """Push what waits, unless an answer is missing."""
        if "asks" in self.traps and self.unanswered:
            return
        for uri in self.waiting:
            if uri in self.texts:
                self.hold()
                self.push(uri, self.texts[uri])
        self.waiting.clear()

    def push(self, uri: str, document: tuple[int, str]) -> None:
        version, text = document
        problems = self.problems(uri, text)
        if "clean-silent" in self.traps and not problems:
            return
        params: dict[str, Any] = {"uri": uri, "diagnostics": problems}
        if "no-version" not in self.traps:
            params["version"] = version
        self.send({"method": "textDocument/publishDiagnostics", "params": params})

    def hold(self) -> None:
        if "hold" in self.traps:
            wait_for(Path("go"))

    # -- the language

    def units(self, text: str) -> int:
        return len(text.encode()) if "utf8" in self.traps else len(text.encode("utf-16-le")) // 2

    def problems(self, uri: str, text: str) -> list[dict[str, Any]]:
        known = {name for each in self.sources(uri).values() for name in defined(each)}
        found = []
        if "parent" in self.traps:
            found.append(self.problem(0, "", f"processId {self.parent}", 1))
        for number, line in enumerate(text.split("\n")):
            if bug := re.search(r"\bBUG.*", line):
                found.append(self.problem(number, line, bug.group(), 1))
            if (use := re.search(r"\buse (\w+)", line)) and use.group(1) not in known:
                found.append(self.problem(number, line, f"{use.group(1)} is not defined", 1))
            if warn := re.search(r"\bWARN.*", line):
                found.append(self.problem(number, line, warn.group(), 2))
        return found

    def problem(self, number: int, line: str, message: str, severity: int) -> dict[str, Any]:
        where = {"line": number, "character": 0}
        end = {"line": number, "character": self.units(line)}
        place = {"start": where, "end": end}
        code: Any = "scripted"
        if "code-object" in self.traps:
            code = {"value": "scripted", "target": "https://example.org"}
        return {"range": place, "message": message, "severity": severity, "code": code}

    def sources(self, uri: str) -> dict[str, str]:
        """Every file next to one, as it is open or on disk."""
        if "open-only" in self.traps:
            return {each: text for each, (_, text) in self.texts.items()}
        asked = Path(unquote(urlsplit(uri).path))
        found = sorted(asked.parent.glob(f"*{asked.suffix or '.scr'}"))
        disk = {path.as_uri(): text for path in found if (text := read_file(path)) is not None}
        return {**disk, **{each: text for each, (_, text) in self.texts.items()}}

    def places(self, params: dict[str, Any], pattern: str) -> list[tuple[str, dict[str, Any]]]:
        name = self.word(params)
        found = []
        for uri, text in self.sources(params["textDocument"]["uri"]).items():
            for number, line in enumerate(text.split("\n")):
                for match in re.finditer(pattern.format(name), line):
                    start = self.units(line[: match.start(1)])
                    end = start + self.units(match.group(1))
                    place = {
                        "start": {"line": number, "character": start},
                        "end": {"line": number, "character": end},
                    }
                    found.append((uri, place))
        return found

    def word(self, params: dict[str, Any]) -> str:
        uri, place = params["textDocument"]["uri"], params["position"]
        line = self.sources(uri)[uri].split("\n")[place["line"]]
        for match in re.finditer(r"\w+", line):
            start, end = (self.units(line[:each]) for each in match.span())
            if start <= place["character"] <= end:
                return match.group()
        return "\0"

    def definition(self, params: dict[str, Any]) -> Any:
        found = self.places(params, r"def ({})\b")
        return [{"targetUri": uri, "targetSelectionRange": place} for uri, place in found]

    def references(self, params: dict[str, Any]) -> Any:
        return [{"uri": uri, "range": place} for uri, place in self.places(params, r"\b({})\b")]

    def hover(self, params: dict[str, Any]) -> Any:
        return {"contents": {"kind": "plaintext", "value": f"name {self.word(params)}"}}

    def symbols(self, params: dict[str, Any]) -> Any:
        uri = params["textDocument"]["uri"]
        lines = self.sources(uri)[uri].split("\n")
        return [
            {"name": name, "kind": 12, "range": at(number), "selectionRange": at(number)}
            for number, line in enumerate(lines)
            for name in defined(line)
        ]

    def workspace_symbols(self, params: dict[str, Any]) -> Any:
        here = Path.cwd().joinpath("x").as_uri()
        return [
            {"name": name, "kind": 12, "location": {"uri": uri, "range": at(number)}}
            for uri, text in self.sources(here).items()
            for number, line in enumerate(text.split("\n"))
            for name in defined(line)
            if params["query"] in name
        ]

    def rename(self, params: dict[str, Any]) -> Any:
        changes: dict[str, list[Any]] = {}
        for uri, place in self.places(params, r"\b({})\b"):
            changes.setdefault(uri, []).append({"range": place, "newText": params["newName"]})
        return {"changes": changes}


def read_file(path: Path) -> str | None:
    """None for one that the sandbox hides, or that is no text."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def at(line: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": 4}, "end": {"line": line, "character": 5}}


def defined(text: str) -> list[str]:
    return re.findall(r"\bdef (\w+)", text)


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.005)


def read(stream: Any) -> dict[str, Any] | None:
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    data = stream.read(length) if length else b""
    return json.loads(data) if data else None


def main() -> None:
    """Serve, until the end of the input."""
    traps = {word for word in sys.argv[1:] if word in TRAPS}
    if "proxy" in traps:
        sys.exit("error: 'rust-analyzer' is not installed for the toolchain 'stable'")
    if "garbage" in traps:
        print("listening on stdio", "x" * 8192, flush=True)
    os.environ.pop("PYTHONPATH", None)
    ScriptedServer(traps).run()


if __name__ == "__main__":
    main()
