"""Whose names are spoken on the line protocol: our own, or those of the Claude Agent SDK.

A guard that was written for the SDK tests `tool_name == "Bash"` and `input["file_path"]`; under any
other name it never matches, and what it should have stopped goes through.  So in the SDK's dialect
a call is sent as the SDK would send it: its name, the names of its arguments, absolute paths,
milliseconds.  What comes back is read the same way.  The model knows nothing of this.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from weft.errors import UsageError
from weft.permissions import claude_tool_name
from weft.protocol.session_options import PERMISSION_MODES

CLAUDE: Final = "claude"
WEFT: Final = "weft"
_MODES: Final = {ours: theirs for theirs, ours in PERMISSION_MODES.items() if theirs != "dontAsk"}
_SAME_AS: Final = {
    "check": "shell",
    "user_shell": "shell",
    "user_shell_private": "shell",
}
"""What we ask about under a name of its own is to a guard this tool."""
OF_CHILD: Final = " ▸ "
"""Parts the kind of agent that asks from the name of the tool."""


class ToolDialect:
    """Our own names: everything is sent as it is."""

    def tool(self, name: str) -> str:
        """The name of a tool, as the other side has it; of one that an agent uses, what is asked
        about."""
        return name

    def input(self, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The input of a call, as the other side has it."""
        return dict(args)

    def args(self, name: str, args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Our arguments for an input that the other side gives for a call with these.

        Raises:
            UsageError: it cannot be understood.
        """
        return dict(given)

    def response(
        self, name: str, args: Mapping[str, Any], response: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What a call came to, as the other side has it."""
        return dict(response)

    def mode(self, mode: str) -> str:
        """A permission mode, as the other side has it."""
        return mode

    @property
    def is_ours(self) -> bool:
        """True when nothing is translated."""
        return True


class _Field(NamedTuple):
    """One argument: its names, and how its value is written and read."""

    ours: str
    theirs: str
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


class ClaudeDialect(ToolDialect):
    """The names of the Claude Agent SDK."""

    def __init__(self, root: str) -> None:
        """`root` is the folder that relative paths are below."""
        self._root = root
        self._fields = self._table()

    @property
    def is_ours(self) -> bool:
        return False

    def tool(self, name: str) -> str:
        return claude_tool_name(_plain(name))

    def mode(self, mode: str) -> str:
        return _MODES.get(mode, mode)

    def input(self, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        plain = _plain(name)
        fields = {field.ours: field for field in self._fields.get(plain, ())}
        # An argument that only has the other's name is not the one that will be used, and must not
        # hide it.
        taken = {fields[key].theirs for key in args if key in fields}
        sent_args: dict[str, Any] = {}
        for key, value in args.items():
            if key in fields:
                sent_args[fields[key].theirs] = fields[key].write(value)
            elif key not in taken:
                sent_args[key] = value
        if plain == "shell" and _is_elsewhere(args) and isinstance(sent_args.get("command"), str):
            # There a command has no folder of its own, so a guard would not look for one.
            sent_args["command"] = (
                f"cd {shlex.quote(sent_args.pop('cwd'))} && {sent_args['command']}"
            )
        if plain == "ask":
            return _asked(args)
        return sent_args

    def args(self, name: str, args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        plain = _plain(name)
        if plain == "ask":
            return _asking(args, given)
        # What we sent is computed again and compared: it tells which values the other side changed.
        sent = self.input(name, args)
        fields = {field.theirs: field for field in self._fields.get(plain, ())}
        found: dict[str, Any] = {}
        for key, value in given.items():
            field = fields.get(key)
            ours = key if field is None else field.ours
            if ours in found:
                raise UsageError(f"the input has {ours!r} twice, under two names; give it once")
            if key in sent and value == sent[key]:
                # As it was sent, so it means what the model gave: translated twice it might not.
                found |= {ours: args[ours]} if ours in args else {}
            # Names that we do not know are kept: to drop them would ignore what a guard has set.
            elif key not in _ONLY_SHOWN.get(plain, ()):
                found[ours] = value if field is None else field.read(value)
        # The folder was folded into the command line on the way out. An unchanged command gets it
        # back; a changed one is taken as it is, with its own `cd`.
        if plain == "shell" and _is_elsewhere(args) and given.get("command") == sent.get("command"):
            found.setdefault("cwd", args["cwd"])
        return found

    def response(
        self, name: str, args: Mapping[str, Any], response: Mapping[str, Any]
    ) -> dict[str, Any]:
        sent_args = dict(response)
        if _plain(name) == "shell":
            stopped = response.get("status") != "done"
            # Our shell has one output for both streams; readers expect two fields.
            sent_args |= {"stdout": response.get("text", ""), "stderr": "", "interrupted": stopped}
        if (path := self.input(name, args).get("file_path")) is not None:
            sent_args["filePath"] = path
        return sent_args

    def _table(self) -> dict[str, tuple[_Field, ...]]:
        file = _Field("path", "file_path", self._absolute)
        folder = _Field("path", "path", self._absolute)
        return {
            "read": (file,),
            "write": (file,),
            "edit": (file,),
            "multi_edit": (file,),
            "list": (folder,),
            "find": (folder,),
            "grep": (
                folder,
                _Field("ignore_case", "-i"),
                _Field("context", "-C"),
                _Field("limit", "head_limit"),
                _Field("files_only", "output_mode", _output_mode, _files_only),
            ),
            "shell": (
                _Field("timeout_seconds", "timeout", _milliseconds, _seconds),
                _Field("background", "run_in_background"),
                _Field("outside_sandbox", "dangerouslyDisableSandbox"),
            ),
            "shell_output": (_Field("id", "bash_id"),),
            "shell_stop": (_Field("id", "shell_id"),),
            "todo": (_Field("todos", "todos", _todos_written, _todos_read),),
            "agent": (
                _Field("agent", "subagent_type"),
                _Field("background", "run_in_background"),
            ),
            "skill": (_Field("name", "skill"),),
            "lsp": (file,),
            "rename": (file,),
        }

    def _absolute(self, path: Any) -> Any:
        """The whole path, read as our tools read it: a guard compares beginnings, and `../..` has
        the wrong one."""
        if not isinstance(path, str) or not path.strip() or "\0" in path:
            return path
        return "/" + os.path.normpath(os.path.join(self._root, path)).lstrip("/")


_ONLY_SHOWN: Final = {"shell": ("description",), "grep": ("-n",)}
"""Arguments that only say how something is shown, and that we have no use for."""


def dialect_of(name: str, root: str) -> ToolDialect:
    """The dialect of this name."""
    return ClaudeDialect(root) if name == CLAUDE else ToolDialect()


def _plain(name: str) -> str:
    """The tool that is meant, without the name of the agent that uses it."""
    tool = name.rpartition(OF_CHILD)[2]
    return _SAME_AS.get(tool, tool)


def _is_elsewhere(args: Mapping[str, Any]) -> bool:
    cwd = args.get("cwd")
    return isinstance(cwd, str) and cwd.strip() not in ("", ".")


def _is_number(value: Any) -> bool:
    # `True` is an int in Python, and would be taken for a number of seconds.
    return isinstance(value, int | float) and not isinstance(value, bool)


def _milliseconds(seconds: Any) -> Any:
    return round(seconds * 1000) if _is_number(seconds) else seconds


def _seconds(milliseconds: Any) -> Any:
    return milliseconds / 1000 if _is_number(milliseconds) else milliseconds


def _output_mode(files_only: Any) -> str:
    return "files_with_matches" if files_only else "content"


def _files_only(output_mode: Any) -> bool:
    if output_mode not in ("files_with_matches", "content"):
        raise UsageError(
            f"output_mode {output_mode!r} is not supported: files_with_matches or content"
        )
    return bool(output_mode == "files_with_matches")


# The SDK has no cancelled task. On the way back `completed` is `done`.
_STATUSES: Final = {"done": "completed", "cancelled": "completed"}


def _todos_written(todos: Any) -> Any:
    if not isinstance(todos, list):
        return todos
    return [_todo_written(each) if isinstance(each, dict) else each for each in todos]


def _todo_written(todo: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in todo.items() if key not in ("text", "status")}
    status = todo.get("status", "pending")
    text = todo.get("text", "")
    return {"content": text, "activeForm": text, "status": _STATUSES.get(status, status), **rest}


def _todos_read(todos: Any) -> Any:
    if not isinstance(todos, list):
        return todos
    return [_todo_read(each) if isinstance(each, dict) else each for each in todos]


def _todo_read(todo: dict[str, Any]) -> dict[str, Any]:
    names = {"content": "text"}
    read = {names.get(key, key): value for key, value in todo.items() if key != "activeForm"}
    if read.get("status") == "completed":
        read["status"] = "done"
    return read


def _asked(args: Mapping[str, Any]) -> dict[str, Any]:
    """The question of `ask`, as `AskUserQuestion` has several."""
    options = args.get("options")
    question = {
        "question": args.get("question", ""),
        "header": "Question",
        "options": [
            {"label": each, "description": ""}
            for each in (options if isinstance(options, list | tuple) else ())
        ],
        "multiSelect": False,
    }
    return {"questions": [question]}


def _asking(args: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Back from `_asked`; answers are no part of the input."""
    if given.get("questions") == _asked(args)["questions"]:
        return dict(args)
    try:
        [question] = given["questions"]
        options = [each["label"] for each in question.get("options", ())]
        return {"question": question["question"], "options": options}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError("AskUserQuestion takes one question here, with its options") from error
