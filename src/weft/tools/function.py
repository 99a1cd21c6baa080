"""A Python function as a tool.

Its type hints become the schema, its docstring the description (the first paragraph) and what is
said about each argument (the `Args:` section).  A parameter annotated `ToolContext` is handed the
context and is no argument of the model's.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, get_type_hints, overload

import anyio
import msgspec
from anyio import to_thread

from weft.errors import UsageError
from weft.events import Effect
from weft.permissions import ToolAction
from weft.sha256 import sha256
from weft.tools.arguments import parse, schema_of
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome, as_outcome

DEFAULT_SECONDS = 120.0
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_MAX_TARGET = 400
_THREADS = 8


class FunctionTool(Tool):
    """A tool around a typed function; still callable as that function.

    A coroutine function runs on the loop.  A plain one runs in a thread: a cancel leaves it to
    finish there unseen, since a thread cannot be stopped.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "unknown",
        timeout_seconds: float = DEFAULT_SECONDS,
        preview: Callable[..., str] | None = None,
    ) -> None:
        self.name = name if name is not None else str(getattr(function, "__name__", ""))
        if not re.fullmatch(_NAME, self.name):
            raise UsageError(
                f"{self.name!r} is not a valid tool name; use letters, digits, `_` and "
                "`-`, or pass name="
            )
        summary, about = _docstring(function)
        self.description = description or summary or self.name.replace("_", " ")
        self.effect: Effect = effect
        self.timeout_seconds = timeout_seconds
        self._function = function
        self._preview = preview
        self._arguments, self._context_name = _arguments(self.name, function, about)
        self.schema = _schema(self.name, self._arguments)
        self._limiter: anyio.CapacityLimiter | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        return self._function(*args, **kwargs)

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(self._arguments, args)
        values = {field: getattr(given, field) for field in self._arguments.__struct_fields__}
        if self._context_name is not None:
            values[self._context_name] = context
        shown = _call_text(given)
        return PreparedCall(
            action=ToolAction(
                tool=self.name,
                kind="other",
                target=_bounded(shown),
                has_effect=self.effect != "pure",
            ),
            run=partial(self._run, values),
            preview=self._preview(**self._for_preview(values)) if self._preview else shown,
        )

    def _for_preview(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name != self._context_name}

    async def _run(self, values: dict[str, Any]) -> ToolOutcome:
        if inspect.iscoroutinefunction(self._function):
            return as_outcome(await self._function(**values))
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(_THREADS)
        # A thread cannot be stopped: a cancel gives it up, and it runs on. With a limiter of its
        # own, a tool whose calls hang does not keep the others from getting threads.
        result = await to_thread.run_sync(
            partial(self._function, **values), abandon_on_cancel=True, limiter=self._limiter
        )
        if inspect.isawaitable(result):  # a plain function that hands out a coroutine
            result = await result
        return as_outcome(result)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "unknown",
    timeout_seconds: float = DEFAULT_SECONDS,
    preview: Callable[..., str] | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function; `@tool` or `@tool(effect="pure", …)`.

    `effect` says what a repeat would do: leave it at `unknown` unless the function changes nothing
    (`pure`).  `preview` takes the same arguments and returns what the user is shown before they
    allow the call.

    Raises:
        UsageError: the function's parameters cannot be described to a model.
    """
    if function is not None:
        return FunctionTool(function, **options)
    return lambda decorated: FunctionTool(decorated, **options)


# --- the arguments -----------------------------------------------------------------------------


def _arguments(
    name: str, function: Callable[..., Any], about: dict[str, str]
) -> tuple[type[msgspec.Struct], str | None]:
    """The Struct of the function's arguments, and the name of the parameter that wants the
    context.
    """
    hints = _hints(name, function)
    fields: list[Any] = []
    context_name = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise UsageError(
                f"tool {name!r}: parameter {parameter.name!r} cannot be given by name, as "
                "a model does"
            )
        hint = hints.get(parameter.name, Any)
        if hint is ToolContext:
            context_name = parameter.name
            continue
        fields.append(_field(parameter, hint, about.get(parameter.name, "")))
    struct = msgspec.defstruct(
        f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )
    return struct, context_name


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise UsageError(f"tool {name!r}: its type hints cannot be read: {error}") from error


def _field(parameter: inspect.Parameter, hint: Any, about: str) -> tuple[Any, ...]:
    if about and not _described(hint):
        hint = Annotated[hint, msgspec.Meta(description=about)]
    if parameter.default is parameter.empty:
        return (parameter.name, hint)
    default = parameter.default
    # One default for all calls would carry what one call did to it into the next.
    if isinstance(default, list | dict | set | bytearray):
        return (
            parameter.name,
            hint,
            msgspec.field(default_factory=partial(copy.deepcopy, default)),
        )
    return (parameter.name, hint, default)


def _described(hint: Any) -> bool:
    metas = getattr(hint, "__metadata__", ())
    return any(isinstance(meta, msgspec.Meta) and meta.description for meta in metas)


def _schema(name: str, arguments: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        return schema_of(arguments)
    except (TypeError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"tool {name!r}: its arguments cannot be described to a model: {error}"
        ) from error


# --- the docstring -----------------------------------------------------------------------------


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The first paragraph, and what the `Args:` section says of each parameter."""
    text = inspect.getdoc(function) or ""
    summary = " ".join(text.split("\n\n")[0].split())
    section = re.search(
        r"^(?:Args|Arguments|Parameters):[ \t]*\n((?:[ \t]+.*(?:\n|$)|\n)*)", text, re.MULTILINE
    )
    if section is None:
        return summary, {}
    about: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n" + section.group(1)).split("\n"):
        start = re.match(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line)
        if start:
            name = start.group(1)
            about[name] = start.group(2).strip()
        elif name and line.strip():
            about[name] = f"{about[name]} {line.strip()}".strip()
    return summary, about


# --- what is shown -------------------------------------------------------------------------------


def _call_text(given: msgspec.Struct) -> str:
    try:
        return msgspec.json.encode(given).decode()
    except (TypeError, msgspec.MsgspecError):
        return repr(given)


def _bounded(shown: str) -> str:
    """The arguments as the target of a grant: short, and still different for different
    arguments.
    """
    if len(shown) <= _MAX_TARGET:
        return shown
    return f"{shown[:_MAX_TARGET]}… #{sha256(shown.encode()).hexdigest()[:16]}"
