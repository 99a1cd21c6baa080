"""Settings as they are shown: keys and passwords stay where they are."""

from __future__ import annotations

from typing import Any

import pytest

from weft.config.api_keys import masked_setting

OPEN = "postgres://weft@db.example:5432/weft?sslmode=require"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (OPEN, OPEN),
        ("postgres://weft:p4ss@db.example/weft", "postgres://weft:…@db.example/weft"),
        ("postgres://weft:p@4/ss@db.example/weft", "postgres://weft:…@db.example/weft"),
        ("postgres://:p4ss@/weft", "postgres://:…@/weft"),
        (
            "postgres://db.example/weft?user=weft&password=p4ss&tenant=a",
            "postgres://db.example/weft?user=weft&password=…&tenant=a",
        ),
        ("postgres:///weft?PASSWORD=p4ss", "postgres:///weft?PASSWORD=…"),
        ({"team": {"store": {"address": "postgres://a:p4ss@h/d"}}}, None),
    ],
)
def test_no_password_of_an_address_is_shown(value: Any, shown: Any) -> None:
    masked = masked_setting(value)
    assert "p4ss" not in str(masked)
    assert "4/ss" not in str(masked)
    assert shown is None or masked == shown
