"""`weft btw`: a question beside the line of a session."""

from __future__ import annotations

from weft.app import App
from weft.cli.commands.table import money
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.prompt_input import compose, read_piped
from weft.cli.session_options import find_id
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError


def run(arguments: ParsedArguments) -> int:
    """Carry out the command."""
    if not arguments.words:
        raise UsageError("`weft btw` takes a session and a question: weft btw ses_06b3 'why?'")
    words = arguments.words[1:]
    asked = compose(words, piped=read_piped(has_prompt=bool(words)))
    if not asked:
        raise UsageError("`weft btw` needs a question behind the session")

    async def ask(app: App) -> int:
        session = await app.sessions.get(await find_id(app, arguments.words[0]))
        answer = await session.ask_aside(asked)
        if arguments.flag("json"):
            write_pretty(answer)
        else:
            write_line(answer.text)
            tell(f"beside the line; {money(answer.cost_usd)}")
        return OK

    return with_app(arguments, ask)
