"""The names of folders that are made for sessions from elsewhere."""

from __future__ import annotations

import pytest

from weft.runtime.checkouts.folder_maker import top_name


@pytest.mark.parametrize(
    ("path", "inside", "name"),
    [
        ("/home/ann/shop", "", "shop"),
        ("/home/ann/shop/", "", "shop"),
        ("/home/ann/shop/packages/inner", "packages/inner", "shop"),
        # Paths come out of a log.
        ("/", "", "project"),
        ("", "", "project"),
        ("/home/ann/..", "", "project"),
        ("/home/../packages/inner", "packages/inner", "project"),
        ("/home/.", "", "project"),
        ("/home/.git", "", "project"),
        ("/inner", "a/b/c", "project"),
    ],
)
def test_the_folder_is_called_as_it_was_where_that_is_a_name(
    path: str, inside: str, name: str
) -> None:
    assert top_name(path, inside) == name
