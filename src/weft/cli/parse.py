"""The argument parser: words in, arguments out.

One parser reads every word once, so that no flag is ever found inside another flag's value.
"""

from __future__ import annotations

from typing import Any

from weft.cli.command_spec import CommandOption, CommandSpec
from weft.cli.options import VERBS, find_verb, options_of, run_options
from weft.errors import UsageError

FARTHEST = 0.45
"""How alike an unknown option and the nearest one must be at least; below that it is noise."""
LARGEST_NUMBER = 2**53
"""The largest of an option: what programs that read our JSON keep exactly."""
_NEVER_EMPTY = ("session_id", "agent", "name", "profile", "settings")
_VERB_NAMES = tuple(verb.name for verb in VERBS)


class ParsedArguments:
    """What was asked for."""

    __slots__ = ("literal", "values", "verb", "words")

    def __init__(
        self,
        verb: str,
        words: tuple[str, ...],
        values: dict[str, Any],
        literal: tuple[str, ...] = (),
    ) -> None:
        """`verb`: `""` is the chat; `session list` and the like are named in full.  `literal` are
        those of the words that stand behind `--`.
        """
        self.verb = verb
        self.words = words
        self.values = values
        self.literal = literal

    def flag(self, key: str) -> bool:
        """True when the flag was given."""
        return bool(self.values.get(key))

    def text(self, key: str) -> str | None:
        """The value of a text option, None when it was not given."""
        value = self.values.get(key)
        return None if value is None else str(value)

    def whole(self, key: str) -> int | None:
        """The value of a whole number."""
        value = self.values.get(key)
        return None if value is None else int(value)

    def number(self, key: str) -> float | None:
        """The value of a number."""
        value = self.values.get(key)
        return None if value is None else float(value)

    def many(self, key: str) -> tuple[str, ...]:
        """All values of an option that may be repeated."""
        return tuple(self.values.get(key, ()))


def parse(argv: list[str]) -> ParsedArguments:
    """Understand a command line.

    Raises:
        UsageError: an option is unknown (the nearest one is named), lacks its value or has a wrong
            one.
    """
    of_run = _run_options(argv)
    reader = _Reader(argv, of_run)
    verb: CommandSpec | None = None
    named: list[str] = []
    literal = 0
    while (word := reader.next_word()) is not None:
        # A command is only a command as the first word, and never after `-p` or `--`: `weft -p
        # session` asks about sessions.
        if not reader.words and not reader.is_literal and not reader.values.get("print"):
            candidates = verb.verbs if verb is not None else None
            found = find_verb(word, candidates) if candidates is not None else find_verb(word)
            if found is not None and (verb is None or verb.verbs):
                verb = found
                named.append(found.name)
                # From here on only the command's own options are known; `_check_values` looks at
                # those that stood before it.
                reader.options = of_run if found.is_run else options_of(found)
                reader.command = "" if found.is_run else " ".join(named)
                continue
            if verb is None:
                _check_spelling(word, reader.follows)
        reader.words.append(word)
        literal += reader.is_literal
    name = _full_name(verb, named, reader)
    _check_words(verb, name, reader.words)
    allowed = of_run if verb is None or verb.is_run else options_of(verb)
    _check_values(reader.values, allowed, name)
    words = tuple(reader.words)
    return ParsedArguments(name, words, reader.values, words[len(words) - literal :])


def _run_options(argv: list[str]) -> tuple[CommandOption, ...]:
    """The options of a run; a program that drives us may give more."""
    # The last one counts, as when it is read: otherwise what restricts would be taken and not done.
    given = ""
    for at, word in enumerate(argv):
        if word == "--":
            break
        name, has_value, value = word.partition("=")
        if name == "--input-format":
            given = value if has_value else "".join(argv[at + 1 : at + 2])
    if given == "stream-json":
        from weft.cli.agent_sdk.option_table import SDK_OPTIONS  # only for programs

        return (*SDK_OPTIONS, *run_options())
    return run_options()


_ELSEWHERE = {
    "update": "`pip install --upgrade weft` updates it",
    "upgrade": "`pip install --upgrade weft` updates it",
    "db": "`weft store` checks and copies the store, and `weft store path` names its file",
    "login": "`weft auth login` saves a key",
    "logout": "`weft auth logout` deletes a key",
    "resume": "`weft -c` resumes the newest session here, `weft -r` picks one",
    "continue": "`weft -c` resumes the newest session here, `weft -r` picks one",
    "fork": "`weft -c --fork` goes on in a new session that shares the history",
    "list": "`weft session list` lists sessions, `weft models` models",
    "chat": "`weft` alone is the chat",
    "version": "`weft --version` shows it",
}
"""Words that are commands of other agents, and what does it here."""


def _check_spelling(word: str, follows: str | None) -> None:
    """Refuse a word that is a misspelled command, or one of another agent: as a prompt it would
    start a chat.

    Alone, or before a word that only the command takes; a prompt of several words goes through.
    """
    if word in _ELSEWHERE and (follows is None or (word, follows) == ("db", "path")):
        raise UsageError(
            f"there is no command {word!r}: {_ELSEWHERE[word]}; `weft -- {word}` sends it as a "
            "prompt"
        )
    if " " not in word and (near := _meant_verb(word, follows)):
        raise UsageError(
            f"there is no command {word!r} (did you mean {near!r}?); "
            f"`weft -- {word}` sends it as a prompt"
        )


def _meant_verb(word: str, follows: str | None) -> str:
    """The command that a word was meant to be; empty where it may be a prompt's first."""
    import difflib  # a prompt in quotes does not come here

    if follows is None:
        return "".join(difflib.get_close_matches(word, _VERB_NAMES, 1, 0.75))
    for near in difflib.get_close_matches(word, _VERB_NAMES, 3, 0.6):
        meant = find_verb(near)
        if meant is not None and find_verb(follows, meant.verbs) is not None:
            return near
    return ""


def _full_name(verb: CommandSpec | None, named: list[str], reader: _Reader) -> str:
    if verb is None or not verb.verbs or reader.values.get("help"):
        return " ".join(named)
    if reader.words and not verb.default_takes_words:
        raise UsageError(_no_such(reader.words[0], [each.name for each in verb.verbs], verb.name))
    return f"{verb.name} {verb.default}"


def _check_words(verb: CommandSpec | None, name: str, words: list[str]) -> None:
    """Refuse words behind a command that takes none: what they ask for would not be done."""
    if verb is not None and not verb.is_run and not verb.verbs and not verb.words and words:
        raise UsageError(f"`weft {name}` takes no {words[0]!r}; `weft help {name}` explains it")


def _no_such(word: str, known: list[str], verb: str) -> str:
    return f"there is no `{verb} {word}`{_nearest(word, known)}; it has {', '.join(known)}"


def _check_values(values: dict[str, Any], allowed: tuple[CommandOption, ...], verb: str) -> None:
    """Options that stood before the command must be the command's, too."""
    keys = {option.key for option in allowed}
    for key in values:
        if key not in keys:
            raise UsageError(f"`weft {verb}` takes no --{key.replace('_', '-')}")


class _Reader:
    """Takes words off the command line; options go into `values`."""

    def __init__(self, argv: list[str], options: tuple[CommandOption, ...]) -> None:
        # Reversed, because `pop` from the end is cheap and `_value` may look at the next word.
        self._left = list(reversed(argv))
        self.options = options
        self.words: list[str] = []
        self.values: dict[str, Any] = {}
        self.is_literal = False
        """Everything after `--` is a word."""
        self.command = ""
        """Whose options these are; empty for a run's."""

    @property
    def follows(self) -> str | None:
        """The word behind the one that was taken last."""
        return self._left[-1] if self._left else None

    def next_word(self) -> str | None:
        """The next word that is no option; None at the end."""
        while self._left:
            word = self._left.pop()
            # A lone `-` is a word: programs use it as the name of standard input.
            if self.is_literal or word == "-" or not word.startswith("-"):
                return word
            # Behind a command a negative number is a place counted from the end: no option is one.
            if self.command and word[1:].isdecimal():
                return word
            if word == "--":
                self.is_literal = True
            elif word.startswith("--"):
                self._long(word)
            else:
                self._short(word)
        return None

    def _long(self, word: str) -> None:
        name, has_value, value = word.partition("=")
        option = self._find(name)
        if has_value and not option.takes_value:
            raise UsageError(f"{name} takes no value")
        self._take(option, name, value if has_value else None)

    def _short(self, word: str) -> None:
        """`-m x`, `-mx`, and flags together: `-pc`."""
        letters = word[1:]
        while letters:
            name, letters = f"-{letters[0]}", letters[1:]
            option = self._find(name, word)
            if option.takes_value and letters:
                self._take(option, name, letters.removeprefix("="))
                return
            self._take(option, name, None)

    def _find(self, name: str, word: str = "") -> CommandOption:
        for option in self.options:
            if name in option.names or name in option.hidden:
                return option
        known = [each for option in self.options for each in option.names]
        shown = word or name
        where = f"; `weft help {self.command}` lists its options" if self.command else ""
        raise UsageError(f"there is no option {shown!r}{_nearest_option(shown, known)}{where}")

    def _take(self, option: CommandOption, name: str, value: str | None) -> None:
        key = option.key
        if option.kind == "flag":
            self.values[key] = True
            return
        if value is None:
            value = self._value(option, name)
        if not value and (option.metavar in ("DIR", "FILE") or key in _NEVER_EMPTY):
            raise UsageError(f"{name} needs a value: {name} {option.metavar}")
        if option.choices and value not in option.choices:
            raise UsageError(
                f"{name} needs one of {', '.join(option.choices)}, not {value!r}"
                f"{_nearest(value, option.choices)}"
            )
        if option.kind == "many":
            self.values.setdefault(key, []).append(value)
        else:
            self.values[key] = _converted(option, name, value)

    def _value(self, option: CommandOption, name: str) -> str:
        follows = self.follows
        if option.kind == "maybe":
            # `-r` without an id picks from a list, so an option behind it is not its value.
            return "" if follows is None or follows.startswith("-") else self._left.pop()
        # A long option in the place of a value is a forgotten value. A single dash may be one: a
        # negative number, or a prompt that begins with a dash.
        if follows is None or (follows.startswith("--") and len(follows) > 2):
            raise UsageError(f"{name} needs a value: {name} {option.metavar}")
        return self._left.pop()


def _converted(option: CommandOption, name: str, value: str) -> Any:
    if option.kind == "index":
        if not (value.isascii() and value.isdecimal() and len(value) < 10):
            raise UsageError(f"{name} needs a whole number from 0 on, not {value!r:.80}")
        return int(value)
    if option.kind not in ("whole", "number"):
        return value
    try:
        # Python refuses thousands of digits as it refuses words; they are too many here, too.
        number = int(value[:4000]) if option.kind == "whole" else float(value)
    except ValueError:
        # Zero is refused below with the same sentence; so is `nan`, which compares false.
        number = 0
    if not 0 < number < float("inf"):
        wanted = "a whole number" if option.kind == "whole" else "a number"
        raise UsageError(f"{name} needs {wanted} above 0, not {value!r:.80}")
    if number > LARGEST_NUMBER:
        raise UsageError(f"{name} needs a smaller number than {value:.80}")
    return number


def _nearest_option(word: str, known: list[str]) -> str:
    """The options that were perhaps meant, as the end of a sentence: for a letter the other case,
    for a word those that begin with it, or the nearest one.
    """
    if not word.startswith("--"):
        return f" (did you mean {word.swapcase()!r}?)" if word.swapcase() in known else ""
    long = [each for each in known if each.startswith("--")]
    begins = [each for each in long if len(word) > 4 and each.lower().startswith(word.lower())]
    if begins:
        return f" (did you mean {' or '.join(map(repr, begins[:3]))}?)"
    if near := _nearest(word, long):
        return near
    near = _nearest(word, long, FARTHEST)
    return near.replace(" (did you mean ", "; the nearest is ").removesuffix("?)")


def _nearest(word: str, known: list[str] | tuple[str, ...], cutoff: float = 0.6) -> str:
    """` (did you mean …?)`, or nothing."""
    import difflib  # only when something is wrong

    # Without the dashes, which would make any two options alike.
    spelt = {each.lstrip("-"): each for each in known}
    near = difflib.get_close_matches(word.lstrip("-"), spelt, n=1, cutoff=cutoff)
    return f" (did you mean {spelt[near[0]]!r}?)" if near else ""
