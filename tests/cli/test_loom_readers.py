"""Commands that only read a tree: they take no lease, and wait for no process that has one."""

from __future__ import annotations

import json
import signal

import pytest

from tests.support.tmux_terminal import wait_until
from tests.support.weft_program import WeftProgram, text
from weft.cli.loom.node_references import short_id

pytestmark = pytest.mark.process

READERS = (
    ["list"],
    ["list", "--bookmarked"],
    ["roots"],
    ["active"],
    ["active", "/"],
    ["children"],
    ["show"],
    ["show", "/1", "--segment"],
    ["show", "/", "--tree"],
    ["compare", "/1", "/2"],
    ["weave", "/1", "/2", "--list"],
    ["search", "loom"],
    ["search", "--bookmarked"],
    ["stats"],
    ["stats", "--all"],
    ["settings"],
    ["export"],
    ["export", "--format", "html"],
)

NO_LEASES = """
import weft.store.sqlite.store as store
from weft.errors import StoreUnavailable

async def refused(self, *streams):
    raise StoreUnavailable("a lease was asked for")

store.SqliteStore.take_lease = store.SqliteStore.take_leases = refused
"""
"""Planted: no lease is to be had."""


def test_readers_take_no_lease(weft: WeftProgram) -> None:
    model = weft.script([text(" a loom")], [text(" a song")], by="position", loop=True)
    assert weft.run("loom", "new", "Once", "-n", "2", "-m", model).returncode == 0
    planted = weft.plant(NO_LEASES)
    for words in READERS:
        done = weft.run("loom", *words, env=planted)
        assert done.returncode == 0, (words, done.stderr)
    # The plant is there: what writes is refused.
    assert "a lease was asked for" in weft.run("loom", "bookmark", "1", env=planted).stderr


def test_a_tree_is_read_while_it_grows_elsewhere_and_that_process_is_stopped(
    weft: WeftProgram,
) -> None:
    first = weft.script([text(" a loom")], [text(" a song")], by="position", loop=True)
    assert weft.run("loom", "new", "Once", "-n", "2", "-m", first).returncode == 0
    slow = weft.script([text(" and so on" * 5_000, 5)], loop=True, pace_seconds=0.01)
    growing = weft.start("loom", "continue", "-b", "1", "-n", "1", "-m", slow)

    def has_begun() -> bool:
        found = json.loads(weft.call("loom", "settings", "--json").stdout)
        return any(each["model"] == slow and each["enabled"] for each in found["model_plan"])

    wait_until(has_begun)
    growing.send_signal(signal.SIGSTOP)
    try:
        for words in (["show"], ["children", "/"], ["stats"], ["compare", "/1", "/2"], ["list"]):
            done = weft.run("loom", *words)
            assert done.returncode == 0, (words, done.stderr)
        refused = weft.run("loom", "bookmark", "/1")
        assert refused.returncode == 2
        [tree] = json.loads(weft.call("loom", "list", "--json").stdout)
        shown = short_id(tree["root_id"])
        assert f"another process has the tree {shown} (Once)" in refused.stderr
        assert f"`weft loom show {shown} --tree` reads it" in refused.stderr
        assert "read_only" not in refused.stderr
    finally:
        growing.send_signal(signal.SIGCONT)
    growing.send_signal(signal.SIGINT)
    assert growing.wait(timeout=20) == 130
