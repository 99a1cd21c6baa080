"""The list of models: which stand first, and what a row says of each.

The current one, then those that were used last, then those with a key, then the others; within a
provider the newest first, which is the catalogue's order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from weft.api.inspection import ModelInfo
from weft.cli.chat.screens.list_picker import matching
from weft.cli.chat.screens.list_question import ListKey, ListQuestion, ListRow
from weft.config.providers import NEVER_BY_KEY
from weft.thinking_levels import thinking_level

PROVIDER, PRICE, WINDOW, ABILITIES, ALIASES, STATE = range(6)
"""The columns of a row."""


class ModelList:
    """The models that there are, as rows."""

    def __init__(
        self,
        models: Sequence[ModelInfo],
        *,
        current: str,
        effort: str,
        recent: Sequence[str],
        usable: Collection[str],
        aliases: Mapping[str, tuple[str, ...]],
    ) -> None:
        """`recent` are the models of the last sessions, the last one first; `usable` the providers
        that have a key.
        """
        self.current = current
        self._usable = usable
        self._aliases = aliases
        self._effort = effort
        known = {f"{info.provider}:{info.name}": info for info in models if info.name}
        used = list(dict.fromkeys(name for name in recent if name in known))

        def rank(name: str) -> tuple[bool, int, bool, bool]:
            place = used.index(name) if name in used else len(used)
            provider = known[name].provider
            return name != current, place, provider not in usable, provider in NEVER_BY_KEY

        self.names = sorted(known, key=rank)
        self.rows = tuple(self._row(name, known[name]) for name in self.names)

    def question(self) -> ListQuestion:
        """The list, open on the current model."""
        return ListQuestion(
            title="Model",
            rows=self.rows,
            enter="this session",
            keys=(ListKey("c-d", "also as default", word="default"),),
            keeps=(PRICE, WINDOW, PROVIDER, ABILITIES, STATE),
            levels_label="Effort",
        )

    def newest(self, words: str) -> str | None:
        """The first model with these words in its name that has a key; None when there is none."""
        rows = tuple(
            ListRow(name, words=" ".join(self._aliases.get(name, ()))) for name in self.names
        )
        found = [self.names[number] for number in matching(rows, words)]
        return next((name for name in found if not self.lacks_key(name)), None)

    def lacks_key(self, name: str) -> str:
        """What to do before a model can be used; empty when it can."""
        provider = name.partition(":")[0]
        if provider in self._usable:
            return ""
        return no_key(provider)

    def _row(self, name: str, info: ModelInfo) -> ListRow:
        is_current = name == self.current
        aliases = ", ".join(self._aliases.get(name, ()))
        label = info.name.rpartition("/")[2]
        if self.lacks_key(name):
            hint = f"no key: /login {info.provider}"
            return ListRow(label, (info.provider, hint), is_dim=True, words=f"{name} {aliases}")
        levels = ("default", *info.levels) if info.thinks else ()
        asked = thinking_level(self._effort) or "default"
        return ListRow(
            label,
            (
                info.provider,
                _price(info, is_legend=is_current),
                _window(info.context_window, is_legend=is_current),
                _abilities(info),
                aliases,
                "now" if is_current else "",
            ),
            is_current=is_current,
            words=name,
            levels=levels,
            level=(asked if asked in levels else info.level(asked)) if levels else "",
        )


def _price(info: ModelInfo, *, is_legend: bool) -> str:
    """`$3 / $15`, with its unit where the row explains the column."""
    if info.price_input is None or info.price_output is None:
        return "price unknown"
    if not info.price_input and not info.price_output:
        return "free"
    return f"${info.price_input:g} / ${info.price_output:g}{' per 1M' * is_legend}"


def _window(tokens: int, *, is_legend: bool) -> str:
    shown = f"{tokens / 1e6:.2g}M" if tokens >= 1_000_000 else f"{tokens // 1000}k"
    return f"{shown}{' context' * is_legend}"


def _abilities(info: ModelInfo) -> str:
    can = {
        "thinking": info.thinks,
        "images": info.sees_images,
        "PDF": info.reads_pdf,
        "no tools": not info.calls_tools,
    }
    return ", ".join(name for name, is_so in can.items() if is_so)


def no_key(provider: str) -> str:
    """What to do before models of this provider can be used."""
    return f"there is no key for {provider}; /login {provider} adds one"
