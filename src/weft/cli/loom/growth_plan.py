"""Which models grow a tree, and how: what the command line gives, and what it leaves open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from weft.app import App
from weft.cli.exit_codes import NO_KEY, CommandExit
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell
from weft.errors import UsageError
from weft.loom import ModelPlanEntry
from weft.loom.model_plan import BRANCHES as LEAST_MOST
from weft.loom.model_plan import TOKENS as LENGTHS

EMBEDDED: Final = "local:smollm2"
BRANCHES: Final = 3
TOKENS: Final = 200
EMBEDDED_TOKENS: Final = 40
"""All branches of an embedded model share the processor: more would be waited for too long."""


def new_plan(app: App, arguments: ParsedArguments) -> list[ModelPlanEntry]:
    """The plan of a new tree.

    Raises:
        UsageError: a name or a number is wrong.
        CommandExit: no model is named, and there is none to take.
    """
    _check_limits(arguments)
    models = _named_models(app, arguments)
    models = models or [default_model(app, offers=not arguments.flag("empty"))]
    return [
        ModelPlanEntry(
            model=model,
            n_branches=arguments.whole("branches") or (BRANCHES if len(models) == 1 else 1),
            max_tokens=arguments.whole("tokens") or default_tokens(model),
            temperature=_temperature(arguments, 0.9),
            strategy=arguments.text("strategy") or "",
        )
        for model in dict.fromkeys(models)
    ]


def changed_plan(
    app: App, arguments: ParsedArguments, plan: Sequence[ModelPlanEntry]
) -> list[ModelPlanEntry] | None:
    """The plan of a tree with what the command line changes of it; None where it changes nothing.

    Raises:
        UsageError: a name or a number is wrong.
    """
    _check_limits(arguments)
    models = _named_models(app, arguments)
    named = ("branches", "tokens", "temperature", "strategy")
    if not models and all(arguments.text(name) is None for name in named):
        return None
    known = {each.model: each for each in plan}
    first = next((each for each in plan if each.enabled), plan[0])
    old = [known.get(each) or _like(first, each) for each in dict.fromkeys(models)] or list(plan)
    # Models that are named are the ones that write; the others of the plan stay known.
    kept = [_replaced(each, enabled=False) for each in plan if models and each not in old]
    return [_changed(each, arguments) for each in old] + kept


def _named_models(app: App, arguments: ParsedArguments) -> list[str]:
    """The models that the command line names; a tree would keep one that cannot be."""
    found = [app.host.normal_model(each) for each in arguments.many("model")]
    for each in found:
        app.host.check_model(each)
    return found


def _check_limits(arguments: ParsedArguments) -> None:
    for name, shown, (least, most) in (("branches", "-n", LEAST_MOST), ("tokens", "-t", LENGTHS)):
        given = arguments.whole(name)
        if given is not None and not least <= given <= most:
            raise UsageError(f"{shown} takes {least} to {most}, not {given}")
    _temperature(arguments, 0.0)


def _changed(entry: ModelPlanEntry, arguments: ParsedArguments) -> ModelPlanEntry:
    if not entry.enabled and not arguments.many("model"):
        return entry
    strategy = arguments.text("strategy")
    return _replaced(
        entry,
        n_branches=arguments.whole("branches") or entry.n_branches,
        max_tokens=arguments.whole("tokens") or entry.max_tokens,
        temperature=_temperature(arguments, entry.temperature),
        strategy=entry.strategy if strategy is None else strategy,
        enabled=True,
    )


def _like(entry: ModelPlanEntry, model: str) -> ModelPlanEntry:
    tokens = entry.max_tokens
    if tokens == default_tokens(entry.model):
        tokens = default_tokens(model)
    return _replaced(entry, model=model, max_tokens=tokens)


def _replaced(entry: ModelPlanEntry, **changes: object) -> ModelPlanEntry:
    fields = {name: getattr(entry, name) for name in ModelPlanEntry.__struct_fields__}
    return ModelPlanEntry(**{**fields, **changes})


def _temperature(arguments: ParsedArguments, default: float) -> float:
    given = arguments.text("temperature")
    if given is None:
        return default
    try:
        number = float(given)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 2:
        raise UsageError(f"--temperature takes a number from 0 to 2, not {given!r}")
    return number


def default_tokens(model: str) -> int:
    """How long a branch of a model may get where nothing is said of it."""
    return EMBEDDED_TOKENS if model.startswith("local:") else TOKENS


def default_model(app: App, *, offers: bool) -> str:
    """The model of a new tree that names none: the configured one, else the embedded one where it
    is installed, and that is said.  Where only its weights are missing it is offered, on a
    terminal.

    Raises:
        CommandExit: there is none.
    """
    if app.host.has_default_model():
        return app.host.default_model()
    from weft.cli.local_model import NO_KEY_LINES, has_engine  # only without a key
    from weft.config.local_weights import missing_weights

    missing = missing_weights(EMBEDDED, os.environ)
    if has_engine() and not missing:
        tell(f"no API key was found, so the embedded model {EMBEDDED} writes; -m names another")
        return EMBEDDED
    if has_engine() and offers and _is_wanted(missing):
        return EMBEDDED
    raise CommandExit(NO_KEY, NO_KEY_LINES)


def _is_wanted(weights: str) -> bool:
    """Whether the user lets the embedded model be downloaded; never unasked."""
    from weft.cli.commands.confirmation import confirm
    from weft.config.local_weights import size_of

    size = size_of(weights) // 10**6
    try:
        confirm(
            f"no API key was found; download a small embedded model ({size} MB, once)?",
            unasked="",
            refused="",
        )
    except UsageError:
        return False
    return True


async def make_ready(app: App, plan: Sequence[ModelPlanEntry]) -> None:
    """Have everything that the models of a plan need, before anything is stored or paid.

    Raises:
        CommandExit: none of them has a key.
        UsageError: there is no such model.
    """
    models = [each.model for each in plan if each.enabled]
    missing = [why for model in models if (why := app.host.missing_key(model))]
    if missing and len(missing) == len(models):
        raise CommandExit(NO_KEY, missing[0])
    for model in models:
        if model.startswith("local:"):
            from weft.cli import local_model  # only for embedded models

            await local_model.make_ready(model, tell)
