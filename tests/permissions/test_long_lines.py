"""Long lines: what comes again in them is read and judged once."""

from __future__ import annotations

import pytest

from weft.permissions.shell import parse_line, read_program


@pytest.mark.parametrize("line", ["ls; " * 400, "A=1 ls -la | " * 300 + "wc", "ls\n" * 400])
def test_a_command_that_comes_again_is_the_same_one(line: str) -> None:
    found = parse_line(line)
    assert not found.doubt
    assert len({id(each) for each in found.commands}) <= 2
    assert len({id(each) for each in read_program(line).parts}) <= 2


def test_commands_that_only_look_alike_are_not_the_same() -> None:
    line = "cat a; cat 'a'; cat a > b; cat a < b; X=1 cat a; cat \\a"
    assert len({id(each) for each in parse_line(line).commands}) == 6
