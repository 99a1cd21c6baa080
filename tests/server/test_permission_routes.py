"""Permission rules over HTTP: listed, added, tried, explained and removed; and the audit."""

from __future__ import annotations

import pytest

from tests.support.served_world import serving
from tests.support.world import World

pytestmark = pytest.mark.anyio


async def test_rules_are_edited_and_explained_and_count_in_every_open_project(
    plain_world: World,
) -> None:
    other = plain_world.base / "other"
    other.mkdir()
    async with serving(plain_world) as served:
        await served.good("POST", "/sessions", {"project_path": str(other), "title": "T"})
        names = [each["id"] for each in await served.good("GET", "/projects")]
        assert len(names) == 2
        rule = {"verdict": "deny", "rule": "shell(git push *)", "match": ["git push x"]}
        added = await served.good("POST", f"/projects/{names[0]}/permissions", rule)
        assert added["rule"] == "shell(git push *)"
        for name in names:
            listed = await served.good("GET", f"/projects/{name}/permissions")
            assert [each["rule"] for each in listed["rules"]] == ["shell(git push *)"]
            told = await served.good(
                "GET", f"/projects/{name}/permissions/explain?text=ls%3B%20git%20push"
            )
            assert told["decision"] == "deny"
            assert [part["argv"] for part in told["parts"]] == [["ls"], ["git", "push"]]
        tried = await served.good(
            "GET", f"/projects/{names[0]}/permissions/simulate?rule=shell(make%20*)"
        )
        assert tried["covered"] == 0
        removal = {"verdict": "deny", "rule": "shell(git push *)"}
        answer = await served.call("DELETE", f"/projects/{names[0]}/permissions", removal)
        assert answer.status in (200, 204)
        for name in names:
            assert (await served.good("GET", f"/projects/{name}/permissions"))["rules"] == []


async def test_a_rule_that_covers_nothing_is_refused_with_a_sentence(plain_world: World) -> None:
    async with serving(plain_world) as served:
        [name] = [each["id"] for each in await served.good("GET", "/projects")]
        place = f"/projects/{name}/permissions"
        for rule in ("shell(a | b *)", "Nonsense(x)", ""):
            answer = await served.call("POST", place, {"verdict": "deny", "rule": rule})
            assert 400 <= answer.status < 500, rule
        wrong = {"verdict": "allow", "rule": "shell(ls *)", "match": ["rm x"]}
        answer = await served.call("POST", place, wrong)
        assert "is not covered" in answer.body.decode()
        gone = await served.call("DELETE", place, {"verdict": "deny", "rule": "shell(ls *)"})
        assert 400 <= gone.status < 500


async def test_a_change_of_the_rules_that_comes_again_changes_nothing_more(
    plain_world: World,
) -> None:
    async with serving(plain_world) as served:
        [name] = [each["id"] for each in await served.good("GET", "/projects")]
        place = f"/projects/{name}/permissions"
        rule = {"verdict": "deny", "rule": "shell(make *)"}
        await served.good("POST", place, rule | {"input_id": "first"})
        for _ in range(2):
            gone = await served.call("DELETE", place, rule | {"input_id": "second"})
            assert gone.status == 204
        await served.good("POST", place, rule | {"input_id": "first"})
        assert (await served.good("GET", place))["rules"] == []


async def test_the_audit_of_a_session_is_read_without_starting_it(plain_world: World) -> None:
    async with serving(plain_world) as served:
        made = await served.good("POST", "/sessions", {"title": "T"})
        assert await served.good("GET", f"/sessions/{made['id']}/audit") == []
        missing = await served.call("GET", "/sessions/ses_nobody/audit")
        assert missing.status == 404
