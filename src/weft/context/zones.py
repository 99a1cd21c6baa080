"""Zones of a request: what fills it, and how much of the window each may take.

The prefix holds the system prompt, the tools, and texts that others write: instructions, memory,
skills, agents.  Each of these texts has a budget: so many tokens as the settings say, and no more
than a share of the model's window, so that a small model keeps room for the conversation.  What is
beyond it is cut off at the end, which is said where it is cut.  The conversation itself is not cut
here: it is compacted.
"""

from __future__ import annotations

from typing import Final

from weft.context.sizes import CHARACTERS_PER_TOKEN, estimate_text

ZONE_SHARES: Final = {"instructions": 1 / 8, "memory": 1 / 16, "skills": 1 / 8, "agents": 1 / 16}
"""The zones with a budget, and the share of the window that each may take at most.

Together they are less than half of it: system prompt and tools come on top, and cannot be cut.
"""
_CUT: Final = "[The rest is left out: "


def zone_budget(name: str, configured: int, window: int) -> int:
    """Tokens that a zone may have in a window; `window` is 0 where it is not known."""
    if not window:
        return configured
    return min(configured, int(window * ZONE_SHARES[name]))


def fitted(text: str, name: str, tokens: int) -> str:
    """A text as far as its zone has room for it; cut at the end of a line.

    What was fitted stays as it is when it is fitted again.
    """
    # A sixteenth more passes: headings come on top of what the files were read up to.
    if estimate_text(len(text)) <= tokens + tokens // 16:
        return text
    note = f"\n\n{_CUT}the setting context.{name} and the model's window allow {tokens:,} tokens.]"
    room = tokens * CHARACTERS_PER_TOKEN - len(note)
    if room <= 0:
        return ""
    end = text.rfind("\n", 0, room + 1)
    # A single long line is better cut inside than left out.
    kept = text[: end if end > room // 2 else room].rstrip()
    return kept + note


def is_cut(text: str) -> bool:
    """Whether a zone holds less than it was given."""
    return _CUT in text[-400:]
