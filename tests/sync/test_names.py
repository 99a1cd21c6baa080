"""Nothing of the async API is missing in the blocking one, at run time and in the stub."""

from __future__ import annotations

import inspect

import pytest

import weft.sync
from tests.support.sync_stub import ASYNC_ONLY, STUB, stub_text
from weft import api
from weft.app import App, open_app, run

PAIRS = [
    (App, weft.sync.App),
    (api.SessionManager, weft.sync.SessionManager),
    (api.Session, weft.sync.Session),
]


def public(cls: type) -> set[str]:
    names = {name for name in dir(cls) if not name.startswith("_")}
    return names - ASYNC_ONLY.get(cls, set())


def test_the_runtime_beneath_the_api_has_no_blocking_form() -> None:
    assert not hasattr(weft.sync.App, "host")
    with pytest.raises(AttributeError, match="host"):
        weft.sync.open(store="memory").host  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.requirement("sync:names")
@pytest.mark.parametrize(("waiting", "blocking"), PAIRS)
def test_every_public_name_is_there_and_none_is_a_coroutine(waiting: type, blocking: type) -> None:
    assert public(waiting) <= public(blocking)
    coroutines = [
        name for name in public(blocking) if inspect.iscoroutinefunction(getattr(blocking, name))
    ]
    assert coroutines == []


@pytest.mark.parametrize(("waiting", "blocking"), PAIRS)
def test_a_method_has_the_signature_and_the_words_of_the_async_one(
    waiting: type, blocking: type
) -> None:
    for name in sorted(public(waiting) - {"aclose", "close"}):
        member = getattr(waiting, name)
        if inspect.isfunction(member):
            assert inspect.signature(getattr(blocking, name)) == inspect.signature(member)
            assert getattr(blocking, name).__doc__ == member.__doc__


@pytest.mark.parametrize(
    ("name", "function"),
    [("open", open_app), ("run", run), ("query", api.query), ("stream", api.stream)],
)
def test_the_functions_are_there(name: str, function: object) -> None:
    blocking = getattr(weft.sync, name)
    assert not inspect.iscoroutinefunction(blocking)
    # A function.
    assert inspect.signature(blocking) == inspect.signature(function)  # type: ignore[arg-type]


@pytest.mark.process
def test_the_stub_says_what_the_classes_are() -> None:
    """`.venv/bin/python -m tests.support.sync_stub` writes it anew."""
    assert STUB.read_text("utf-8") == stub_text()
