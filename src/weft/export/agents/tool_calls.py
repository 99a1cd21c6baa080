"""Calls of other agents' tools in the words of ours, so that screens show them as cards and a model
reads calls that it could make itself; a tool that there is none of here keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from weft.messages import clean_value

_NAMES: Final[Mapping[str, str]] = {
    "read": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "multi_edit",
    "ls": "list",
    "list": "list",
    "glob": "find",
    "find": "find",
    "grep": "grep",
    "bash": "shell",
    "shell": "shell",
    "exec_command": "shell",
    "shell_command": "shell",
    "local_shell": "shell",
    "container.exec": "shell",
    "apply_patch": "apply_patch",
    "patch": "apply_patch",
    "todowrite": "todo",
    "update_plan": "todo",
    "webfetch": "fetch",
    "task": "agent",
    "agent": "agent",
}
"""Their name in lower case → ours."""
_PATHS: Final = ("file_path", "filePath", "path", "notebook_path")
_KEYS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "read": {"path": _PATHS, "offset": ("offset",), "limit": ("limit",)},
    "write": {"path": _PATHS, "content": ("content",)},
    "edit": {
        "path": _PATHS,
        "old_string": ("old_string", "oldString", "oldText"),
        "new_string": ("new_string", "newString", "newText"),
        "replace_all": ("replace_all", "replaceAll"),
    },
    "multi_edit": {"path": _PATHS, "edits": ("edits",)},
    "list": {"path": _PATHS},
    "find": {"pattern": ("pattern",), "path": _PATHS},
    "grep": {"pattern": ("pattern",), "path": _PATHS, "glob": ("glob", "include")},
    "shell": {
        "command": ("command", "cmd"),
        "description": ("description",),
        "cwd": ("cwd", "workdir"),
    },
    "apply_patch": {"patch": ("patch", "input", "patchText")},
}
"""Our tool → its words, each with theirs; others are left out."""
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MOST_NAME: Final = 64
"""Letters of a name that every vendor takes."""
_STATES: Final = {"completed": "done", "in_progress": "in_progress", "cancelled": "cancelled"}
_MOST_TASKS: Final = 100


def our_call(name: str, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Our name of a tool, and the arguments in our words."""
    ours = _NAMES.get(name.lower())
    words: dict[str, Any] = clean_value(dict(args))
    if ours == "edit" and isinstance(words.get("edits"), list):
        ours = "multi_edit"
    if ours is None:
        return _NO_NAME.sub("_", name)[:_MOST_NAME] or "tool", words
    if ours == "todo":
        return ours, {"todos": _tasks(words.get("todos") or words.get("plan"))}
    keys = _KEYS.get(ours)
    return ours, words if keys is None else _renamed(ours, keys, words)


def _renamed(
    ours: str, keys: Mapping[str, tuple[str, ...]], args: Mapping[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, theirs in keys.items():
        given = next((args[each] for each in theirs if args.get(each) is not None), None)
        if given is not None:
            found[key] = given
    if isinstance(found.get("command"), list):
        found["command"] = _line(found["command"])
    if ours == "multi_edit" and isinstance(found.get("edits"), list):
        edits = [each for each in found["edits"] if isinstance(each, dict)]
        wanted = {key: each for key, each in _KEYS["edit"].items() if key != "path"}
        found["edits"] = [_renamed("edit", wanted, each) for each in edits]
    return found


def _line(words: list[Any]) -> str:
    """A command that was given as words: the line itself where they are a shell and its line."""
    texts = [str(word) for word in words]
    if len(texts) == 3 and texts[1] in ("-c", "-lc"):
        return texts[2]
    import shlex  # few agents give words

    return shlex.join(texts)


def _tasks(given: Any) -> list[dict[str, Any]]:
    """A list of tasks in our words."""
    tasks: list[dict[str, Any]] = []
    for each in given if isinstance(given, list) else ():
        text = (each.get("content") or each.get("step")) if isinstance(each, dict) else None
        if isinstance(text, str) and text:
            status = _STATES.get(str(each.get("status")), "pending")
            tasks.append({"text": text[:1000], "status": status})
    return tasks[:_MOST_TASKS]
