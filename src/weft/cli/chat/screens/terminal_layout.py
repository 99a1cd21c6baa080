"""The layout of the terminal screen: the redrawn lines at the bottom, as an inline application.

From top to bottom: what is in flight, a question if there is one, the input line, completions, the
status line.  Nothing here knows a session; what a part shows is a function that is called anew for
each drawing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from weft.cli.chat.screens.live_area import Fragments

REDRAW_SECONDS = 0.05

_STYLE = {
    "prompt": "bold ansicyan",
    "quiet": "ansibrightblack",
    "tool": "ansigreen",
    "warning": "ansiyellow",
    "danger": "bold ansired",
    "question": "bold ansiyellow",
    "picked": "bold",
    "status": "ansibrightblack",
    "mode": "bold ansimagenta",
    "completion": "ansibrightblack",
    "completion.current": "bold ansicyan",
    "rule": "ansibrightblack",
}


class ScreenParts(NamedTuple):
    """What the parts of the screen show; each function is called for every drawing."""

    in_flight: Callable[[], Fragments]
    question: Callable[[], Fragments]
    label: Callable[[], Fragments]
    completions: Callable[[], Fragments]
    status: Callable[[], Fragments]
    buffer: Buffer
    """The input line of the chat."""
    line: Buffer
    """The line that a question asks for."""
    chooses: Condition
    """A list of answers is open."""
    asks: Condition
    """A line is asked for."""


def make_application(parts: ScreenParts, keys: KeyBindings, *, coloured: bool) -> Application[None]:
    """The application, not yet running."""
    application: Application[None] = Application(
        layout=_layout(parts),
        key_bindings=keys,
        style=Style.from_dict(_STYLE),
        color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
        # The cursor's position is not requested: a slow terminal answers late, and its answer would
        # then be read as typed text.
        output=Vt100_Output(
            sys.stdout, _size, term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False
        ),
        min_redraw_interval=REDRAW_SECONDS,
        erase_when_done=True,
        full_screen=False,
        mouse_support=False,
    )
    # Esc alone must act at once, but it also begins the sequences of arrow and Alt keys.  A
    # terminal sends a sequence in one burst, so 50 ms tell the two apart.
    application.ttimeoutlen = 0.05
    application.timeoutlen = 0.1
    return application


def _layout(parts: ScreenParts) -> Layout:
    search = SearchToolbar(ignore_case=True)
    chooses, asks = parts.chooses, parts.asks
    has_text = Condition(lambda: bool(parts.buffer.text))
    return Layout(
        HSplit(
            [
                _lines(parts.in_flight),
                _when(chooses & ~asks, Window(height=1)),
                _when(chooses & ~asks, _lines(parts.question)),
                _when(asks, _lines(parts.label)),
                _when(asks, _input_window(parts.line, None)),
                # A question hides the empty input line.  Text that was being typed stays in sight:
                # it takes the keys until it is sent or cleared.
                _when(
                    ~asks & (~chooses | has_text),
                    HSplit([Window(height=1), _input_window(parts.buffer, search)]),
                ),
                search,
                _when(has_completions & ~chooses & ~asks, _lines(parts.completions)),
                Window(_drawn_by(parts.status), height=1, wrap_lines=False),
            ]
        ),
        focused_element=parts.buffer,
    )


def _input_window(buffer: Buffer, search: SearchToolbar | None) -> Window:
    control = BufferControl(
        buffer=buffer, search_buffer_control=search.control if search is not None else None
    )

    def prefix(line_number: int, wrap_count: int) -> AnyFormattedText:
        return [("class:prompt", "› " if line_number == wrap_count == 0 else "  ")]

    return Window(
        control,
        wrap_lines=True,
        get_line_prefix=prefix,
        dont_extend_height=True,
        # At most a third of the window: a long paste must not push the question out of sight.
        height=lambda: Dimension(min=1, max=max(3, _size().rows // 3)),
    )


def _lines(draw: Callable[[], Fragments]) -> Any:
    """A part that is as high as what it shows, and not there when that is nothing."""
    window = Window(
        _drawn_by(draw),
        dont_extend_height=True,
        wrap_lines=False,
    )
    return ConditionalContainer(window, Condition(lambda: bool(draw())))


def _drawn_by(draw: Callable[[], Fragments]) -> FormattedTextControl:
    def formatted() -> AnyFormattedText:
        return [*draw()]

    return FormattedTextControl(formatted)


def _when(condition: Any, part: Any) -> ConditionalContainer:
    return ConditionalContainer(part, condition)


def without_last_newline(drawn: Fragments) -> Fragments:
    if drawn and drawn[-1][1].endswith("\n"):
        style, text = drawn[-1]
        return [*drawn[:-1], (style, text[:-1])]
    return drawn


def line_history(path: str | None) -> History:
    """Lines of earlier chats, in a private file."""
    if path is None:
        return InMemoryHistory()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _size() -> Size:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, rows = 80, 24
    return Size(rows=rows or 24, columns=columns or 80)


def speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")
