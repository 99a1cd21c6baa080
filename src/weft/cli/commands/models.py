"""`weft models`: what can be used, and fetching what runs without a network."""

from __future__ import annotations

import os

import anyio
import msgspec

from weft.app import App
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.local_model import fetch
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write_line, write_pretty
from weft.config.local_weights import embedded_models


def run(arguments: ParsedArguments) -> int:
    """Carry out a `models` command."""
    if arguments.verb == "models pull":
        return _pull(arguments)

    async def work(app: App) -> int:
        return await _list(app, arguments)

    return with_app(arguments, work)


async def _list(app: App, arguments: ParsedArguments) -> int:
    models = [model for model in await app.host.available_models() if model.name]
    wanted = [word.casefold() for word in arguments.words]
    models = [
        model
        for model in models
        if all(word in f"{model.provider}:{model.name}".casefold() for word in wanted)
    ]
    if arguments.flag("json"):
        write_pretty([msgspec.to_builtins(model) for model in models])
        return OK
    if not models:
        named = f"no model whose name has {' and '.join(map(repr, wanted))} is" if wanted else ""
        tell(f"{named or 'no models are'} listed; any can still be named as provider:model")
        return OK
    rows = [
        (
            f"{model.provider}:{model.name}",
            f"{model.context_window:,}",
            _price(model.price_input, model.price_output),
            ", ".join(
                _abilities(
                    model.thinks,
                    model.sees_images,
                    model.reads_pdf,
                    model.calls_tools,
                    model.levels,
                )
            ),
        )
        for model in sorted(models, key=lambda model: (model.provider, model.name))
    ]
    print_table(rows, head=("model", "window", "$ per million, in/out", "can"))
    return OK


def _price(price_in: float | None, price_out: float | None) -> str:
    return "unknown" if price_in is None or price_out is None else f"{price_in:g} / {price_out:g}"


def _abilities(
    thinks: bool, sees: bool, reads: bool, calls: bool, levels: tuple[str, ...]
) -> list[str]:
    think = f"think ({' '.join(levels)})" if levels else "think"
    names = {think: thinks, "see": sees, "read PDF": reads, "use tools": calls}
    return [name for name, can in names.items() if can]


def _pull(arguments: ParsedArguments) -> int:
    known = embedded_models(os.environ)
    if not arguments.words:
        rows = [
            (name, "here" if here else "not downloaded", about)
            for name, (about, here) in known.items()
        ]
        print_table(rows, head=("name", "", "what it is"))
        return OK
    for name in arguments.words:
        path = anyio.run(fetch, name)
        write_line(str(path))
    return OK
