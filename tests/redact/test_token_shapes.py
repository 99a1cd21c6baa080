"""The table of vendors' tokens: every row masks what it describes, and nothing that only looks
alike.
"""

from __future__ import annotations

import random
import re
from re import _constants as ops  # type: ignore[attr-defined]  # how a pattern is read, for samples
from re import _parser as patterns  # type: ignore[attr-defined]
from typing import Any

import pytest

from tests.support.example_count import cases
from weft.data_tables import read_table
from weft.redact import redact, secret_shapes

ROWS = read_table(secret_shapes.__file__, "token_shapes.tsv", 5)
EXTRA = 6
"""Characters in a token beyond the least number that an open repetition asks for."""


def sample(pattern: str, chance: random.Random, extra: int = EXTRA) -> str:
    """A text that the pattern describes, with `extra` characters more than it asks for.

    What it only looks ahead at is left to the body's digits.
    """
    return "".join(_piece(part, chance, extra) for part in patterns.parse(pattern))


def _piece(part: tuple[Any, Any], chance: random.Random, extra: int) -> str:
    op, value = part
    if op is ops.LITERAL:
        return chr(value)
    if op is ops.IN:
        return chance.choice(_letters(value))
    if op in (ops.MAX_REPEAT, ops.POSSESSIVE_REPEAT):
        least, most, inside = value
        count = min(most, least + extra)
        return "".join(_piece(each, chance, extra) for _ in range(count) for each in inside)
    if op is ops.SUBPATTERN:
        return "".join(_piece(each, chance, extra) for each in value[-1])
    if op is ops.BRANCH:
        return "".join(_piece(each, chance, extra) for each in chance.choice(value[1]))
    assert op in (ops.ASSERT, ops.ASSERT_NOT), part
    return ""


def _letters(parts: list[tuple[Any, Any]]) -> str:
    found = ""
    for op, value in parts:
        found += (
            chr(value) if op is ops.LITERAL else "".join(map(chr, range(value[0], value[1] + 1)))
        )
    return found.replace("=", "") or "="  # only the end of a token is filled up with it


def token_of(prefix: str, body: str, extra: int = EXTRA) -> str:
    chance = random.Random(prefix + body)
    pattern = re.compile(prefix + body)
    for _ in range(200):
        made = sample(prefix + body, chance, extra)
        if pattern.fullmatch(made):
            return made
    raise AssertionError(f"no sample of {prefix}{body}")


def test_the_table_is_long_and_every_row_has_its_source() -> None:
    assert len(ROWS) >= 80
    assert len({(prefix, body) for _, _, prefix, body, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("kind", "gate", "prefix", "body", "source"), cases(ROWS))
def test_a_token_is_masked_wherever_it_stands(
    kind: str, gate: str, prefix: str, body: str, source: str
) -> None:
    token = token_of(prefix, body)
    for text in ("{}", "a {} b", '"{}"', "x={}\n", "https://h/p?q={}&r=1", "\x1b[31m{}\x1b[0m"):
        shown = redact(text.format(token))
        assert token not in shown, (kind, token)
        assert "[redacted" in shown


@pytest.mark.parametrize(("kind", "gate", "prefix", "body", "source"), cases(ROWS))
def test_the_gates_let_the_shortest_token_through(
    kind: str, gate: str, prefix: str, body: str, source: str
) -> None:
    """A gate before many groups knows the least that each of their tokens has."""
    token = token_of(prefix, body, extra=0)
    assert token not in redact(f"it is {token} here"), (kind, token)


@pytest.mark.parametrize(("kind", "gate", "prefix", "body", "source"), cases(ROWS))
def test_half_a_token_inside_a_word_is_left_alone(
    kind: str, gate: str, prefix: str, body: str, source: str
) -> None:
    """A prefix in the middle of a word starts no token: `whisk-…` is not `sk-…`."""
    begin = re.match(r"[A-Za-z]{2,}", token_of(prefix, body))
    if begin is not None:
        text = f"the word xy{begin.group()} stands here"
        assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "def re_compiled_patterns_of_the_module(self): ...",
        "the key-value-store-with-a-long-name and access-control-allow-origin",
        "secret_manager_client_configuration_options",
        "sha256:3f8a1c9e0b7d24653f8a1c9e0b7d24653f8a1c9e0b7d24653f8a1c9e0b7d2465",
        "3f8a1c9e-0b7d-2465-3f8a-1c9e0b7d2465",
        "ciphers and cioppino, oy2 and EAA, pattern.pattern.pattern",
        "sk.sklearn.linear_model.LogisticRegressionCV",
        "tk_inter_widget_configuration_names",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text
