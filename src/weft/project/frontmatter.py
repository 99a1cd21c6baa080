"""Front matter: YAML settings at the top of a Markdown file, between two lines `---`.

Agents, skills and commands are written so, and a project may bring them from anywhere.  So the YAML
is read event by event, and only plain data of a bounded size is built: no anchors and aliases (a
few lines of them stand for gigabytes), no tags (they name types), no deep nesting, no duplicate
names (what a reader sees first must be what counts).  A value is a text, an integer, true or false,
nothing, a list or a table; a date or a version stays the text that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from weft.config.settings import has_local_weights
from weft.errors import UsageError
from weft.text_cache import TextCache

if TYPE_CHECKING:  # loaded where there is such a file: it costs start-up time
    import yaml

FENCE: Final = "---"
LONGEST_SETTINGS: Final = 32 * 1024
"""Characters between the fences."""
DEEPEST: Final = 16
"""Lists and tables within each other."""
MOST_VALUES: Final = 1_000

_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})
_NOTHING: Final = frozenset({"", "~", "null"})
_WHOLE: Final = r"-?(?:0|[1-9][0-9]{0,17})"


def split_front_matter(text: str, name: str) -> tuple[dict[str, Any], str]:
    """The settings at the top of a file, and the text below; none where the file has no fence.

    Raises:
        UsageError: what stands between the fences is no YAML map; `name` says which file it is.
    """
    # Editors on Windows write a byte-order mark, which would hide the fence, and CRLF.
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].strip() != FENCE:
        return {}, "\n".join(lines)
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == FENCE), None)
    if end is None:
        raise UsageError(f"{name}: the settings at the top have no end; close them with ---")
    settings = _parsed("\n".join(lines[1:end]))
    if isinstance(settings, str):
        raise UsageError(f"{name}: {settings}")
    return dict(settings), "\n".join(lines[end + 1 :]).strip()


def setting_text(settings: Mapping[str, Any], name: str, path: str) -> str:
    """A setting that is a text; empty where it is not set.

    Raises:
        UsageError: it is a list or a table.
    """
    value = settings.get(name)
    if isinstance(value, list | dict):
        raise UsageError(f"{path}: {name} must be a text, not a list or a table")
    return "" if value is None else str(value)


def _parse(settings: str) -> dict[str, Any] | str:
    """The settings, or what is wrong with them."""
    if len(settings) > LONGEST_SETTINGS:
        return f"the settings at the top are longer than {LONGEST_SETTINGS // 1024} KB"
    if _brackets(settings) > DEEPEST:
        return _TOO_DEEP
    import yaml

    try:
        return _Builder(settings).settings()
    except _Refused as refused:
        return str(refused)
    except yaml.MarkedYAMLError as error:
        # The fence is the first line of the file.
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        return f"the settings at the top are not right{line}: {error.problem}"
    except (yaml.YAMLError, UnicodeError):
        return "the settings at the top hold characters that YAML does not allow"


# Every turn reads the files again.
_parsed: Final = TextCache(_parse, 1024 * 1024)

_TOO_DEEP: Final = f"the settings at the top are nested deeper than {DEEPEST} levels"


def _brackets(settings: str) -> int:
    """How deep brackets are nested, as if none stood in a text.

    Checked before parsing: the parser in Python takes quadratic time for many open brackets.
    """
    if settings.count("[") + settings.count("{") <= DEEPEST:
        return 0
    return max(accumulate((each in "[{") - (each in "]}") for each in settings))


class _Refused(Exception):
    """YAML that is right and yet not taken."""


class _Builder:
    """Plain data from the events of a YAML parser."""

    def __init__(self, settings: str) -> None:
        import yaml

        self._yaml = yaml
        # The parser in C is fifteen times as fast, but is not built everywhere.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[yaml.Event] = yaml.parse(settings, Loader=loader)
        self._left = MOST_VALUES

    def settings(self) -> dict[str, Any]:
        """The one table that there must be."""
        event = self._next_content()
        if event is None:
            return {}
        found = self._value(event, 0)
        if self._next_content() is not None:
            raise _Refused("the settings at the top are more than one YAML document")
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise _Refused("the settings at the top must be names with values")
        return found

    def _next_content(self) -> yaml.Event | None:
        """The first event of the next document; None when there is none."""
        about = (
            self._yaml.StreamStartEvent,
            self._yaml.StreamEndEvent,
            self._yaml.DocumentStartEvent,
            self._yaml.DocumentEndEvent,
        )
        return next((event for event in self._events if not isinstance(event, about)), None)

    def _value(self, event: yaml.Event, depth: int) -> Any:
        self._check(event, depth)
        if isinstance(event, self._yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, self._yaml.SequenceStartEvent):
            return [self._value(each, depth + 1) for each in self._until_end()]
        found: dict[str, Any] = {}
        for key in self._until_end():
            name = self._name(key, depth)
            if name in found:
                raise _Refused(
                    f"the settings at the top have {brief(name)} twice, in line {_line(key)} again"
                )
            found[name] = self._value(next(self._events), depth + 1)
        return found

    def _until_end(self) -> Iterator[yaml.Event]:
        """The events at which the members of a list, or the names of a table, begin.

        The caller consumes the rest of each member before it asks for the next.
        """
        ends = (self._yaml.SequenceEndEvent, self._yaml.MappingEndEvent)
        while not isinstance(event := next(self._events), ends):
            yield event

    def _name(self, event: yaml.Event, depth: int) -> str:
        self._check(event, depth)
        if not isinstance(event, self._yaml.ScalarEvent):
            raise _Refused(f"a name in line {_line(event)} of the settings is a list or a table")
        return str(event.value)

    def _check(self, event: yaml.Event, depth: int) -> None:
        # Counted while parsing: a document of 32 KB can hold thousands of values.
        self._left -= 1
        if self._left < 0:
            raise _Refused(f"the settings at the top have more than {MOST_VALUES:,} values")
        if depth > DEEPEST:
            raise _Refused(_TOO_DEEP)
        if getattr(event, "anchor", None) is not None:  # an alias has one too
            raise _Refused(f"line {_line(event)} of the settings uses an anchor (& or *)")
        if getattr(event, "tag", None) is not None:
            raise _Refused(f"line {_line(event)} of the settings uses a tag (!)")


def _scalar(event: yaml.ScalarEvent) -> Any:
    """A value as its writer means it: what is in quotes, or in a block, is always a text."""
    text = event.value
    if event.style:
        return text
    lowered = text.lower()
    if lowered in _NOTHING:
        return None
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    return int(text) if re.fullmatch(_WHOLE, text) else text


def _line(event: yaml.Event) -> int:
    """Which line of the file it stands in; the fence is the first."""
    mark = event.start_mark
    return mark.line + 2 if mark is not None else 1


def brief(value: Any) -> str:
    """A value as it may stand in a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def refuse_local_weights(model: str, path: str) -> None:
    """Refuse a project's file that chooses weights: the project needs no trust for it, and what is
    loaded on this machine is the user's choice.

    Raises:
        UsageError: it does.
    """
    if has_local_weights(model):
        raise UsageError(f"{path}: a project cannot choose local weights; leave out the model")
