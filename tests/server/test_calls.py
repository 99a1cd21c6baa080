"""Calls over HTTP do what the API does, once, in the project they belong to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["\0", "a\0b", "x" * 5_000, "~nobody-of-this-name/x"])
async def test_a_path_of_no_folder_is_refused_with_a_sentence(
    path: str, plain_world: World
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        for where, body in (("/projects", {"path": path}), ("/sessions", {"project_path": path})):
            answer = await served.call("POST", where, body)
            assert (answer.status, answer.kind) == (400, "UsageError"), answer.body


@pytest.mark.parametrize("path", ["", ".", "src", "../x"])
async def test_a_folder_is_named_by_its_whole_path(plain_world: World, path: str) -> None:
    """Another would be looked for below the folder that the server happens to run in."""
    async with serving(plain_world, ScriptedModel([])) as served:
        for target, body in (("/projects", {"path": path}), ("/sessions", {"project_path": path})):
            answer = await served.call("POST", target, body)
            assert (answer.status, answer.kind) == (400, "UsageError")
            assert "whole path" in answer.json["error"]["message"]
        assert await served.good("GET", "/sessions/active") == []


async def test_a_project_that_is_not_known_is_named_as_one(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        answer = await served.call("GET", "/projects/nope/trust")
        assert (answer.status, answer.kind) == (404, "project")
        assert "no project 'nope'" in answer.json["error"]["message"]


async def test_a_boundary_of_what_can_be_no_file_is_refused(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        answer = await served.call("GET", f"/sessions/{session}/boundaries/a%00b")
        assert (answer.status, answer.kind) == (400, "UsageError")
        for path in ("/looms/search?q=x&limit=0", f"/looms/search/trees?q=x&limit={2**63}"):
            refused = await served.call("GET", path)
            assert (refused.status, refused.kind) == (400, "UsageError")


def saying(text: str = "Fine.") -> ScriptedModel:
    return ScriptedModel([], choose=lambda request: text)


async def started(served: ServedWorld, **settings: Any) -> str:
    answer = await served.good("POST", "/sessions", settings)
    return str(answer["id"])


async def test_a_call_that_comes_again_gets_the_first_answer(world: World) -> None:
    async with serving(world, saying()) as served:
        first = await served.good("POST", "/sessions", {"input_id": "a", "title": "One"})
        again = await served.good("POST", "/sessions", {"input_id": "a", "title": "One"})
        assert first["id"] == again["id"]
        path = f"/sessions/{first['id']}"
        body = {"content": "Hello.", "input_id": "b"}
        sent = [await served.good("POST", f"{path}/prompt", body) for _ in range(2)]
        assert sent[0] == sent[1]
        noted = [
            await served.good(
                "POST", "/projects/main/memory", {"text": "Use tabs.", "input_id": "c"}
            )
            for _ in range(2)
        ]
        assert noted[0] == noted[1]
        assert len(await served.good("GET", "/projects/main/memory")) == 1


async def test_an_input_id_with_other_arguments_is_refused(plain_world: World) -> None:
    async with serving(plain_world, saying()) as served:
        session = await started(served)
        for path, one, other in (
            (f"/sessions/{session}/notes", {"text": "a"}, {"text": "b"}),
            ("/projects/main/memory", {"text": "a"}, {"text": "b"}),
        ):
            await served.good("POST", path, {**one, "input_id": "x"})
            refused = await served.call("POST", path, {**other, "input_id": "x"})
            assert (refused.status, refused.kind) == (409, "StaleInput")


async def test_a_viewer_watches_until_it_drives(plain_world: World) -> None:
    async with serving(plain_world, saying()) as served:
        session = await started(served)
        path = f"/sessions/{session}"
        client = (await served.good("POST", f"{path}/clients", {"role": "viewer"}))["client"]
        headers = {"Weft-Client": client}
        refused = await served.call("POST", f"{path}/prompt", {"content": "Hi."}, headers)
        assert (refused.status, refused.kind) == (403, "ViewerRefused")
        await served.good("POST", f"{path}/clients/{client}/drive")
        await served.good("POST", f"{path}/prompt", {"content": "Hi."}, Weft_Client=client)
        assert await served.good("DELETE", f"{path}/clients/{client}") is None
        gone = await served.call("POST", f"{path}/prompt", {"content": "Hi."}, headers)
        assert gone.status == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/sessions/ses_none", None, 404, "SessionNotFound"),
        ("GET", "/sessions/ses_none/events", None, 404, "SessionNotFound"),
        ("GET", "/sessions/{id}/messages?limit=0", None, 400, "UsageError"),
        ("GET", "/sessions/{id}/messages?limit=x", None, 400, "UsageError"),
        ("GET", "/sessions/{id}/messages?limit=1&limit=2", None, 400, "UsageError"),
        ("GET", "/sessions/{id}/messages?nothing=1", None, 400, "UsageError"),
        ("GET", "/sessions/{id}/events?after=-1", None, 400, "UsageError"),
        ("POST", "/sessions/{id}/requests/req_1", {"action": "deny"}, 409, "NoPendingRequest"),
        ("POST", "/sessions/{id}/requests/req_1", {}, 400, "UsageError"),
        ("POST", "/sessions/{id}/prompt", {"content": 1}, 400, "UsageError"),
        ("POST", "/sessions", {"model": "no-such"}, 400, "UsageError"),
        ("POST", "/projects", {"path": "/no/such/folder"}, 400, "UsageError"),
        ("GET", "/projects/none/config", None, 404, "project"),
        ("GET", "/projects/main/blobs/00", None, 400, "UsageError"),
        ("GET", "/looms/nod_none", None, 404, "NodeNotFound"),
        ("GET", "/nothing", None, 404, "path"),
    ],
)
async def test_an_error_has_its_status_its_kind_and_a_sentence(
    plain_world: World, method: str, path: str, body: object, status: int, kind: str
) -> None:
    async with serving(plain_world, saying()) as served:
        session = await started(served) if "{id}" in path else ""
        answer = await served.call(method, path.format(id=session), body)
        assert (answer.status, answer.kind) == (status, kind), answer
        assert " " in answer.json["error"]["message"]


async def test_a_session_works_in_the_project_that_it_was_started_in(shared_world: World) -> None:
    other = shared_world.base / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("Here we use tabs.\n")
    async with serving(shared_world, saying()) as served:
        here = await served.good("POST", "/sessions", {})
        there = await served.good("POST", "/sessions", {"project_path": str(other)})
        assert here["project"] != there["project"]
        projects = await served.good("GET", "/projects")
        assert {each["path"]: each["is_main"] for each in projects} == {
            str(shared_world.project): True,
            str(other): False,
        }
        reply = await served.good("POST", f"/sessions/{there['id']}/message", {"content": "Hi."})
        assert reply["text"] == "Fine."
        rows = await served.good("GET", f"/sessions?project={there['project']}")
        assert [row["id"] for row in rows["rows"]] == [there["id"]]
        active = await served.good("GET", "/sessions/active")
        assert {info["project_path"] for info in active} == {
            str(shared_world.project),
            str(other),
        }
    async with serving(shared_world, saying()) as served:
        # After a restart it is found where it belongs, without being asked for by its folder.
        again = await served.good("GET", f"/sessions/{there['id']}")
        assert again["project_path"] == str(other)


async def test_the_trust_question_is_asked_and_answered(plain_world: World) -> None:
    plain_world.write(".weft/config.toml", '[permissions]\nallow = ["shell"]\n')
    async with serving(plain_world, saying()) as served:
        asked = await served.good("GET", "/projects/main/trust")
        assert not asked["is_trusted"]
        assert asked["question"]["settings"] == ["permissions.allow"]
        answered = await served.good("PUT", "/projects/main/trust", {"trusted": True})
        assert answered == {"is_trusted": True, "question": None}
        taken_back = await served.good("PUT", "/projects/main/trust", {"trusted": False})
        assert not taken_back["is_trusted"]


async def test_sessions_are_listed_renamed_archived_forked_exported_and_deleted(
    world: World,
) -> None:
    async with serving(world, saying()) as served:
        session = await started(served, title="First")
        path = f"/sessions/{session}"
        await served.good("POST", f"{path}/message", {"content": "Hello."})
        await served.good("PATCH", path, {"title": "Renamed"})
        fork = await served.good("POST", f"{path}/fork", {"title": "Fork"})
        listed = await served.good("GET", "/sessions?limit=1")
        assert listed["next"]
        rest = await served.good("GET", f"/sessions?limit=1&after={listed['next']}")
        titles = {row["title"] for row in (*listed["rows"], *rest["rows"])}
        assert titles == {"Renamed", "Fork"}
        exported = await served.call("GET", f"{path}/export?format=jsonl")
        assert exported.headers["content-disposition"] == "attachment"
        imported = await served.good(
            "POST", "/sessions/import", {"content": exported.body.decode()}
        )
        assert imported["session"]["id"] not in (session, fork["id"])
        await served.good("PATCH", path, {"archived": True})
        await served.good("DELETE", f"/sessions/{fork['id']}")
        left = await served.good("GET", "/sessions")
        assert [row["id"] for row in left["rows"]] == [imported["session"]["id"]]
        record = await served.good("GET", f"{path}/record")
        assert [message["role"] for message in record["messages"]] == ["user", "assistant"]


async def test_a_query_and_a_run_answer_whole_or_as_events(plain_world: World) -> None:
    async with serving(plain_world, saying("Forty-two.")) as served:
        answer = await served.good("POST", "/query", {"prompt": "What?"})
        assert answer["text"] == "Forty-two."
        result = await served.good("POST", "/run", {"prompt": "What?"})
        assert (result["text"], result["finish_reason"]) == ("Forty-two.", "stop")
        events = {"Accept": "text/event-stream"}
        told = await served.call("POST", "/query", {"prompt": "What?"}, events)
        assert b"event: answer" in told.body
        told = await served.call("POST", "/run", {"prompt": "What?"}, events)
        assert b'"kind":"turn_finished"' in told.body
        # Neither is kept.
        assert (await served.good("GET", "/sessions"))["rows"] == []
        assert await served.good("GET", "/sessions/active") == []


async def test_a_tree_of_text_grows_over_http(plain_world: World) -> None:
    async with serving(plain_world, saying(" and on")) as served:
        root = await served.good("POST", "/looms", {"text": "On"})
        path = f"/looms/{root['id']}"
        await served.good(
            "PUT",
            f"{path}/settings",
            {"model_plan": [{"model": "scripted:script", "n_branches": 2}]},
        )
        done = await served.good("POST", f"{path}/generate", {})
        assert done["kind"] == "generation_complete", done
        child = done["new_nodes"][0]["id"]
        text = await served.good("GET", f"/looms/{child}/text")
        assert text["text"] == "On and on"
        edited = await served.good("POST", f"/looms/{child}/edit", {"text": " and off"})
        assert edited["revision"] == 1
        assert (await served.good("POST", f"/looms/{child}/bookmark"))["value"] is True
        assert (await served.good("POST", f"/looms/{child}/delete"))["deleted"] == 1
        assert (await served.good("POST", f"/looms/{child}/restore"))["restored"] == 1
        exported = await served.call("GET", f"/looms/{child}/export?format=md")
        assert b"On and off" in exported.body
        events = {"Accept": "text/event-stream"}
        told = await served.call("POST", f"{path}/generate", {}, events)
        assert b'"kind":"token_received"' in told.body
        assert (await served.good("GET", "/looms"))["total"] == 1


async def test_what_is_cut_off_in_a_fork_stays_in_the_fork(world: World) -> None:
    async with world.open() as app:
        root, [child] = await app.loom.save_continuations("Root", [" and"])
        fork = (await app.sessions.fork_session(await app.loom.session_of(root.id))).id
        shared = f"{fork}/{child.id}"
        own = await app.loom.add_child(shared, " in the fork")
    async with serving(world, saying()) as served:
        cut = await served.good("POST", f"/looms/{own.id}/truncate", {"position": 3})
        assert cut["text"] == " in"
        beside = await served.good("POST", f"/looms/{child.id}/truncate", {"position": 2})
        assert (beside["text"], beside["parent_id"]) == (" a", root.id)
    async with world.open() as app:
        assert [node.text for node in await app.loom.children(shared)] == [" in the fork", " in"]
        assert await app.loom.children(child.id) == []


async def test_decisions_are_logged_and_asked_for(plain_world: World) -> None:
    async with serving(plain_world, saying()) as served:
        path = "/projects/main/decisions"
        logged = await served.good("POST", path, {"title": "Use SQLite", "why": "One file."})
        found = await served.good("GET", f"{path}?text=sqlite")
        assert [node["id"] for node in found["nodes"]] == [logged["id"]]
        assert (await served.good("GET", f"{path}/{logged['id']}"))["nodes"] == [logged]
        assert "score" in await served.good("GET", f"{path}/pulse")
