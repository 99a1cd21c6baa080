"""Running a command that needs the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from weft.app import App
from weft.cli.exit_codes import CommandExit, first_of
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.errors import WeftError


def with_app(arguments: ParsedArguments, work: Callable[[App], Awaitable[int]]) -> int:
    """Open the application, work, close it; returns the exit code."""
    app = make_app(arguments)

    async def opened() -> int:
        async with app:
            return await work(app)

    return run_command(opened)


def run_command(work: Callable[[], Awaitable[int]]) -> int:
    """Work in an event loop; of several errors the first is raised."""

    async def main() -> int:
        try:
            return await work()
        except* (WeftError, CommandExit, OSError) as errors:
            raise first_of(errors) from None
        raise AssertionError(
            "not reached"
        )  # the checker does not know that `except*` may not fall through

    return anyio.run(main)
