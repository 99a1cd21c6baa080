"""The request of one branch, and the stream of its text: capped, and mended at the seam."""

from __future__ import annotations

from typing import Final

from weft.context import estimate_text
from weft.errors import WeftError
from weft.loom.boundary_repair import RepairedText, StreamRepair, rules_for
from weft.loom.continuation import (
    ContinuationOptions,
    PromptEntry,
    Strategy,
    choose_strategy,
    continuation_request,
    prompt_entries,
)
from weft.loom.token_cap import TokenCap
from weft.providers import ModelInfo, ModelRequest

LONGEST_TOKEN: Final = 5
"""Characters of a token by which a branch is held to its limit.  More than most have: the vendor's
own limit ends it first, and this one only where there is none, or reasoning counts into it.
"""


class BranchStream:
    """What comes of one branch: the model's pieces in, the text of its node out."""

    def __init__(self, before: str, strategy: Strategy, max_tokens: int) -> None:
        self._cap = TokenCap(max_tokens, lambda text: len(text) // LONGEST_TOKEN)
        self._repair = StreamRepair(before, rules_for(strategy))
        self._is_over = False

    @property
    def is_full(self) -> bool:
        """The limit is reached; nothing more is taken."""
        return self._cap.is_reached

    def feed(self, piece: str) -> str:
        """The text that is certain now."""
        kept = self._cap.clip(piece)
        return self._repair.feed(kept) if kept else ""

    def finish(self, *, was_cut: bool) -> str:
        """The rest; `was_cut` where a limit ended it and not the model."""
        if self._is_over:
            return ""
        self._is_over = True
        return self._repair.finish(was_cut=was_cut or self._cap.is_reached)

    def result(self) -> RepairedText:
        """All of it, and where it differs from what the model wrote."""
        return self._repair.result()


def branch_request(
    info: ModelInfo, strategy: Strategy, text: str, options: ContinuationOptions
) -> ModelRequest:
    """The request that has a model continue a text."""
    return continuation_request(info, strategy, text, options)


def prompt_tokens(request: ModelRequest) -> int:
    """About how many tokens a request has."""
    return sum(estimate_text(len(entry.text)) for entry in prompt_entries(request))


def shown_prompt(
    info: ModelInfo, wanted: str, text: str, options: ContinuationOptions
) -> tuple[str, tuple[PromptEntry, ...]]:
    """The strategy and the prompt that a model would get, for showing; never an error."""
    try:
        strategy = choose_strategy(info, wanted or None)
        return strategy, prompt_entries(continuation_request(info, strategy, text, options))
    except WeftError as error:
        return wanted, (PromptEntry("system", str(error)),)
