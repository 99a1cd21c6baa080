"""`weft/__init__.py` is the face we promise to keep."""

from __future__ import annotations
import __future__

import types
import typing

import weft


def exposed() -> set[str]:
    """The public names that the package really has, without its folders and without the import
    machinery.
    """
    machinery = (types.ModuleType, __future__._Feature)
    return {
        name
        for name, value in vars(weft).items()
        if not name.startswith("_")
        and not isinstance(value, machinery)
        and getattr(value, "__module__", "") != typing.__name__
        and name != "TYPE_CHECKING"
    }


def test_the_face_exposes_exactly_what_it_lists() -> None:
    listed = set(getattr(weft, "__all__", []))
    for name in listed:
        getattr(weft, name)  # a lazily imported name appears in `vars` by this
    assert exposed() <= listed
    assert all(hasattr(weft, name) for name in listed)


def test_the_face_lists_no_name_twice_and_in_order() -> None:
    listed = list(getattr(weft, "__all__", []))
    assert len(listed) == len(set(listed))
