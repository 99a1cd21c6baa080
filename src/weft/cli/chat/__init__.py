"""The chat in a terminal: a view folded from events, a screen that shows it, commands, questions.

Knows the application and the pure folders; nothing here stores or decides anything.
"""

from weft.cli.chat.start import run_chat

__all__ = ["run_chat"]
