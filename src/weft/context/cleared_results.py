"""Cleared results: what a line has of the results of tools once they had to give way.

The first room that is made costs no model call: results that can be fetched again are replaced by
a line that names the call to repeat.  All of them in one step, because each step costs the vendor's
cache of everything behind it.  Errors stay, and so does the newest read of each file that the
session has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from weft.context.build import ContextTarget, LineEntry, render
from weft.context.sizes import CHARACTERS_PER_TOKEN, estimate, estimate_text
from weft.ids import CallUid
from weft.messages import ToolCall, ToolResult

REFETCHABLE: Final = frozenset(
    {
        "decision_query",
        "find",
        "find_symbol",
        "grep",
        "list",
        "map",
        "outline",
        "read",
        "references",
    }
)
"""Tools that only look: the same call brings the same, or what is newer."""
LEAST_CLEARED: Final = 800
"""Characters of a result that is worth a line in its place."""
LEAST_SHORTENED: Final = 2_000
"""Characters that a result keeps which is too long for the window."""
ARGUMENTS: Final = 200
"""Characters of a call's arguments in the line that names it."""
TARGET_SHARE: Final = 0.5
"""How full the room may be after it; more, and a summary would be due soon all the same."""
CACHE_WRITE: Final = 1.25
CACHE_READ: Final = 0.1
"""What vendors ask for a token that goes into their cache, or comes from it, against one that does
neither."""
REQUESTS: Final = 20
"""Requests that a cleared line serves, about, until room is made again."""


def cleared_entry(entry: LineEntry, cleared: Mapping[CallUid, int]) -> LineEntry:
    """The entry as the model sees it; itself where nothing of it was cleared."""
    found = {
        call.call_uid: _cleared(call, result, cleared[call.call_uid])
        for call in entry.node.calls
        if call.call_uid in cleared and (result := entry.results.get(call.call_uid)) is not None
    }
    if not found:
        return entry
    return msgspec.structs.replace(entry, results={**entry.results, **found})


def _cleared(call: ToolCall, result: ToolResult, kept: int) -> ToolResult:
    replace = msgspec.structs.replace
    if kept:
        return replace(result, text=_shortened(result.text, kept))
    args = msgspec.json.encode(call.args).decode()
    shown = args if len(args) <= ARGUMENTS else f"{args[:ARGUMENTS]}…"
    lines = result.text.count("\n") + 1
    text = (
        f"[Cleared to make room: {lines} lines of {call.name} {shown}. "
        "Make the same call again if you need them.]"
    )
    return replace(result, text=text, images=())


def _shortened(text: str, kept: int) -> str:
    if len(text) <= kept:
        return text
    half = kept // 2
    left = len(text) - 2 * half
    return (
        f"{text[:half]}\n[… {left} characters are left out: the whole result does not fit the "
        f"window. Ask for a smaller part.]\n{text[-half:]}"
    )


def results_to_clear(
    line: Sequence[LineEntry],
    first_kept: int,
    touched: Collection[str],
    *,
    used: int,
    space: int,
    cleared: Collection[CallUid] = (),
) -> list[CallUid]:
    """Which results before `first_kept` to clear, all at once; none where that would not be enough,
    or not pay for the cache that it costs.
    """
    stays = _newest_reads(line, touched)
    gains = [
        (place, uid, gain)
        for place, entry in enumerate(line[:first_kept])
        for uid, gain in _gains(entry, {*stays, *cleared})
    ]
    sizes = [_size(entry) for entry in line]
    # From the first place on that pays: what stands before it keeps its cache.
    for start, (place, _, _) in enumerate(gains):
        freed = sum(gain for _, _, gain in gains[start:])
        if used - freed > space * TARGET_SHARE:
            return []
        written_again = sum(sizes[place:]) - freed
        if freed * REQUESTS * CACHE_READ >= written_again * (CACHE_WRITE - CACHE_READ):
            return [uid for _, uid, _ in gains[start:]]
    return []


def _gains(entry: LineEntry, stays: Collection[CallUid]) -> list[tuple[CallUid, int]]:
    return [
        (call.call_uid, estimate_text(len(result.text) - ARGUMENTS))
        for call in entry.node.calls
        if call.name in REFETCHABLE
        and call.call_uid not in stays
        and (result := entry.results.get(call.call_uid)) is not None
        and not result.is_error
        and len(result.text) >= LEAST_CLEARED
    ]


def _newest_reads(line: Sequence[LineEntry], touched: Collection[str]) -> set[CallUid]:
    """For each file that was changed, the call that read it last."""
    newest: dict[str, CallUid] = {}
    for entry in line:
        for call in entry.node.calls:
            result = entry.results.get(call.call_uid)
            read = result.data.get("read") if result is not None and call.name == "read" else None
            newest.update(dict.fromkeys(read if isinstance(read, dict) else (), call.call_uid))
    return {uid for path, uid in newest.items() if path in touched}


def results_to_shorten(
    line: Sequence[LineEntry], excess: int, cleared: Collection[CallUid] = ()
) -> dict[CallUid, int]:
    """How many characters each of the longest results may keep, so that about `excess` tokens go;
    empty where even that would not be enough.
    """
    lengths = {
        uid: len(result.text)
        for entry in line
        for uid, result in entry.results.items()
        if uid not in cleared and len(result.text) > LEAST_SHORTENED
    }
    wanted = excess * CHARACTERS_PER_TOKEN
    if sum(lengths.values()) - LEAST_SHORTENED * len(lengths) < wanted:
        return {}
    # The longest are cut to one length: as long as possible, found by halves.
    low, high = LEAST_SHORTENED, max(lengths.values())
    while high - low > 1:
        most = (low + high) // 2
        freed = sum(max(0, length - most) for length in lengths.values())
        low, high = (most, high) if freed >= wanted else (low, most)
    return {uid: low for uid, length in lengths.items() if length > low}


def cleared_tokens(line: Sequence[LineEntry], results: Mapping[CallUid, int]) -> int:
    """The tokens that go with these results."""
    return sum(_size(entry) - _size(cleared_entry(entry, results)) for entry in line)


def _size(entry: LineEntry) -> int:
    return estimate(render(entry, ContextTarget("", "")))
