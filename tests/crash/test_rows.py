"""The proof that every call of the API is held by a test sees what it should.

`tests.crash.rows` tries all of them.
"""

from __future__ import annotations

import pytest

from tests.crash.rows import judge, rows, stub_for
from tests.support.requirements import REQUIREMENTS


def test_every_row_that_is_a_call_is_tried() -> None:
    assert stub_for("session:abort:partial") == "Session.abort"
    assert stub_for("manager:get") == "SessionManager.get"
    assert stub_for("entry:run") == "weft.run"
    assert stub_for("session:queue:idle") == ""
    assert set(rows()) < set(REQUIREMENTS)
    assert len(rows()) > 100


@pytest.mark.process
def test_a_row_that_is_shown_goes_red_without_it() -> None:
    assert judge("session:todos") == ""


@pytest.mark.process
def test_a_row_whose_tests_do_without_it_is_found() -> None:
    assert "end with 0" in judge("session:todos", "Session.reorder_queue")
