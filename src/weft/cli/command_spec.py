"""What a command and an option of the command line are.

Plain classes: this module is on the way to `--help` and must cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["flag", "text", "whole", "index", "number", "many", "maybe"]
"""`many` may be given several times; `maybe` takes the next word unless that is an option."""


# A named tuple, or a dataclass, is made by compiling source: three of them took longer than all the
# rest of this module.
class CommandOption:
    """One option."""

    __slots__ = ("about", "choices", "hidden", "kind", "metavar", "names")

    def __init__(
        self,
        names: tuple[str, ...],
        about: str,
        kind: Kind = "flag",
        metavar: str = "",
        choices: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
    ) -> None:
        """`hidden` are spellings that are taken and not advertised."""
        self.names = names
        """All spellings."""
        self.about = about
        self.kind = kind
        self.metavar = metavar
        self.choices = choices
        self.hidden = hidden

    @property
    def key(self) -> str:
        """The name its value is kept under: the first long spelling, with underscores."""
        return next(name for name in self.names if name.startswith("--"))[2:].replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return self.kind != "flag"


class OptionSection:
    """Options that belong together in the help."""

    __slots__ = ("options", "title")

    def __init__(self, title: str, options: tuple[CommandOption, ...]) -> None:
        self.title = title
        self.options = options


class CommandSpec:
    """One command, or one command of a command."""

    __slots__ = (
        "_verbs",
        "about",
        "aliases",
        "default",
        "default_takes_words",
        "examples",
        "is_run",
        "name",
        "options",
        "words",
    )

    def __init__(
        self,
        name: str,
        about: str,
        words: str = "",
        options: tuple[CommandOption, ...] = (),
        verbs: tuple[CommandSpec, ...] | Callable[[], tuple[CommandSpec, ...]] = (),
        default: str = "",
        aliases: tuple[str, ...] = (),
        *,
        is_run: bool = False,
        default_takes_words: bool = False,
        examples: tuple[str, ...] = (),
    ) -> None:
        """`verbs` may be a call that loads them: those of a large command cost nothing until it is
        used.
        """
        self.name = name
        self.about = about
        self.words = words
        """The words it takes, as the help shows them."""
        self.options = options
        self._verbs = verbs
        self.default = default
        """Which of `verbs` is meant when none is named."""
        self.default_takes_words = default_takes_words
        """A word that names none of `verbs` is meant for that one: `weft config KEY`."""
        self.aliases = aliases
        self.is_run = is_run
        """It takes all options of a run."""
        self.examples = examples
        """Command lines that the help shows, each with what it does behind two spaces and a #."""

    @property
    def verbs(self) -> tuple[CommandSpec, ...]:
        """The commands of this command."""
        if not isinstance(self._verbs, tuple):
            self._verbs = self._verbs()
        return self._verbs


JSON = CommandOption(("--json",), "Print JSON.")
