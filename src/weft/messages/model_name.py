"""Model names: `provider:model[:effort]` and `provider/model[:effort]`.

Names of models hold colons of their own (`qwen3:8b`, `qwen3:free`, `claude-v1:0`).  So the last
part is an effort only if it is the word of a thinking level, and only if a model stands before it.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from weft.thinking_levels import ThinkingLevel, thinking_level


class ModelName(msgspec.Struct, frozen=True):
    """A model by its parts; `model` is empty where only a provider is named."""

    provider: str
    model: str
    effort: ThinkingLevel | None = None
    """None where none is named."""

    @property
    def name(self) -> str:
        """`provider:model`, as logs have it."""
        return f"{self.provider}:{self.model}"

    def __str__(self) -> str:
        return self.name if self.effort is None else f"{self.name}:{self.effort}"


@lru_cache(maxsize=256)  # a turn asks for its model several times a round
def parse_model_name(text: str) -> ModelName:
    """What `provider:model[:effort]` or `provider/model[:effort]` means."""
    # The first separator parts provider and model; later ones belong to the model's own name
    # (`openrouter/qwen/qwen3:free`).
    cut = next((place for place, letter in enumerate(text) if letter in ":/"), 0)
    if cut == 0:
        return ModelName(text, "")
    model, effort = _split_effort(text[cut + 1 :])
    return ModelName(text[:cut], model, effort)


def _split_effort(model: str) -> tuple[str, ThinkingLevel | None]:
    """Cut off every level at the end, so that no level ends what is left; the last one counts."""
    effort: ThinkingLevel | None = None
    # All of them, not only the last: else the name that `str()` writes would be read back as
    # another model and another effort.
    while True:
        name, _, word = model.rpartition(":")
        level = thinking_level(word)
        if level is None or not name:
            return model, effort
        model, effort = name, effort or level
