"""Prompts outside the chat: a slash command from a Markdown file, or text that names files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft.api.session import Session
from weft.app import App
from weft.cli.prompt_input import PromptParts, attached, missing_text
from weft.errors import UsageError
from weft.messages import Content, Text
from weft.project.markdown_commands import split_line
from weft.project.slash_commands import command_problem

if TYPE_CHECKING:  # loaded where a prompt names files: it costs start-up time
    from weft.project.mentions import AskRead


async def expanded(
    app: App,
    session: Session,
    said: PromptParts,
    words: Sequence[str],
    ask_read: AskRead | None = None,
    *,
    tell: Callable[[str], None] | None = None,
) -> tuple[Content, dict[str, Any]]:
    """What to send, and its options: a command filled in, or what was said with the files that its
    words name.

    `tell` is given one sentence where a name looks like a path and there is no such file.

    Raises:
        UsageError: there is no such command; or a shell command in it needs permission, or a file
            lies outside the project, and there is no one to ask.
    """
    first, *rest = said
    line = split_line(first.text) if isinstance(first, Text) else None
    if line is not None and isinstance(first, Text):
        from_files = {command.name for command in await session.list_commands()}
        if line[0] in from_files:
            found = await session.expand_command(first.text, ask_read=ask_read)
            if found.missing and tell is not None:
                tell(missing_text(found.missing))
            return (*found.content, *rest), found.options
        if why := command_problem(line[0], from_files, in_chat=False):
            raise UsageError(why)
    return (*said, *await attached(app, words, ask=ask_read, tell=tell)), {}
