"""Examples of rules, judged as the rules are where they count."""

from __future__ import annotations

import pytest

from weft.permissions import example_problem, table_problem

HOME = "/home/u"


@pytest.mark.parametrize("text", ["~/.ssh/id_rsa", "/home/u/.ssh/id_rsa"])
def test_a_rule_about_the_home_folder_has_examples_there(text: str) -> None:
    rule = "read(~/.ssh/**)"
    assert example_problem("deny", rule, [text], home=HOME) == ""
    assert "and it is" in example_problem("deny", rule, (), [text], home=HOME)
    tables = {"match": [text], "not_match": ["/.ssh/id_rsa"]}
    assert table_problem(f"deny {rule}", tables, home=HOME) == ""


def test_a_file_outside_is_no_example_of_a_rule_that_allows_those_of_the_project() -> None:
    assert example_problem("allow", "edit(**)", ["src/a"], ["/etc/x", "../x"]) == ""
