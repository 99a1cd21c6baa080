"""`weft blame`: a file and a line of it, and a mistake is one sentence."""

from __future__ import annotations

import pytest

from weft.cli.evidence.blame import place_of
from weft.errors import UsageError


def test_a_file_may_have_a_colon_in_its_name() -> None:
    assert place_of("src/app.py:12") == ("src/app.py", 12)
    assert place_of("a:b.txt:3") == ("a:b.txt", 3)


@pytest.mark.parametrize("given", ["src/app.py", "app.py:", "app.py:x", ":3", "app.py:-1"])
def test_without_a_line_the_way_to_say_it_is_shown(given: str) -> None:
    with pytest.raises(UsageError, match="FILE:LINE"):
        place_of(given)
