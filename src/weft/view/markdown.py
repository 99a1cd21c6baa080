"""Markdown in flight: where text that is still being written may be cut.

Only after blocks to which nothing can be added any more: what was handed out is never taken back.
"""

from __future__ import annotations

import re

_fence = re.compile(r" {0,3}(`{3,}|~{3,})")
_item = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])( |\t|$)")


def finished_length(text: str) -> int:
    """How much of `text`, from its start, is made of finished blocks.

    A block is finished by the line that begins the next one (a list or a quote may go on after an
    empty line, so an empty line alone says nothing), or by the end of its code fence.
    """
    cut = at = 0
    fence = ""
    in_list = after_empty = False
    for line in text.splitlines(keepends=True):
        # The last line may still grow: what it is can only be decided when it cannot change any
        # more.
        is_whole = line.endswith("\n")
        stripped = line.rstrip()
        opening = _fence.match(line)
        if fence:
            closes = opening and opening.group(1).startswith(fence) and stripped.strip("`~ ") == ""
            if closes and is_whole:
                fence = ""
                # A fence inside a list item ends the fence, not the item.
                cut = cut if in_list else at + len(line)
        elif not stripped:
            after_empty = True
        else:
            goes_on = in_list and (line[0] in " \t" or bool(_item.match(line)))
            if after_empty and not goes_on and (is_whole or not _could_be_item(line)):
                cut = at
                in_list = False
            in_list = in_list or bool(_item.match(line))
            after_empty = False
            if opening:
                fence = opening.group(1)
        at += len(line)
    return cut


def _could_be_item(line: str) -> bool:
    """True while a line that has only begun may still turn out to be an item of a list."""
    # A list number has at most nine digits in CommonMark, so a longer line is not one.
    return len(line) < 12 and line.strip(" \t0123456789.-*+)") == ""
