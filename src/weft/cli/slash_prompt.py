"""A prompt that is a slash command from a Markdown file, where nobody sits at the chat."""

from __future__ import annotations

from typing import Any

from weft.api.session import Session
from weft.cli.prompt_input import Said
from weft.messages import Content, Text
from weft.project.markdown_commands import split_line


async def expanded(session: Session, said: Said) -> tuple[Content, dict[str, Any]]:
    """What to send, and its options; what is no command from a file stays as it is.

    Raises:
        UsageError: a shell command in it needs leave, which nobody is there to give.
    """
    first, *rest = said
    line = split_line(first.text) if isinstance(first, Text) else None
    if (
        line is None
        or not isinstance(first, Text)
        or line[0] not in {command.name for command in await session.list_commands()}
    ):
        return said, {}
    found = await session.expand_command(first.text)
    return (*found.content, *rest), found.options
