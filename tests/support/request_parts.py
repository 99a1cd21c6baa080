"""The parts of a request that journeys look at: its prefix, and the notes for the model."""

from __future__ import annotations

from weft.messages import ChatMessage, Text
from weft.providers import ModelRequest


def notes(request: ModelRequest) -> list[str]:
    """The notes on the environment, in order."""
    texts = [
        part.text
        for message in request.messages
        if isinstance(message, ChatMessage)
        for part in message.parts
        if isinstance(part, Text)
    ]
    return [text for text in texts if text.startswith("<environment>")]


def prefix(request: ModelRequest) -> tuple[object, ...]:
    """What vendors cache first."""
    return request.system, request.tools
