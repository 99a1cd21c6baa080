"""Patches: the models that are trained on them edit so, with the same record as other edits."""

from __future__ import annotations

import stat

import pytest

from tests.support.rewind_project import open_world, project_tree, start
from tests.support.world import World
from weft.events import ToolExecuting
from weft.providers.base import ModelInfo
from weft.providers.catalogue import shipped
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+ONE
*** Add File: new/b.txt
+fresh
*** Delete File: old.txt
*** End Patch"""


def described(model: ScriptedModel) -> set[str]:
    return {tool.name for tool in model.last_request.tools}


@pytest.mark.parametrize("tools", ["all", ["read", "edit"]])
@pytest.mark.parametrize("patches", [True, False])
async def test_a_model_is_told_of_patches_or_of_exact_replacements(
    world: World, patches: bool, tools: str | list[str]
) -> None:
    info = ModelInfo(provider="scripted", name="script", edits_by_patch=patches)
    model = ScriptedModel(["ok"], info=info)
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("hi", tools=tools)
    assert ("apply_patch" in described(model)) == patches
    assert ("edit" in described(model)) != patches


@pytest.mark.parametrize(
    ("name", "patches"),
    [
        ("openai:gpt-6.1-sol", True),
        ("openai:gpt-5.3-codex", True),
        ("openai:gpt-9-unheard-of", True),
        ("openai-chat:gpt-5", True),
        ("azure:gpt-5.4", True),
        ("openrouter:openai/gpt-6.1-sol", True),
        ("openai:gpt-4o", False),
        ("anthropic:claude-sonnet-5-5", False),
        ("google:gemini-3.8-flash", False),
        ("openrouter:anthropic/claude-sonnet-5.5", False),
    ],
)
def test_the_catalogue_says_which_models_edit_by_patch(name: str, patches: bool) -> None:
    assert shipped().resolve(name).edits_by_patch == patches


@pytest.mark.process
async def test_a_patch_is_on_record_and_a_rewind_takes_it_back(world: World) -> None:
    (world.project / "a.txt").write_text("one\ntwo\n")
    (world.project / "old.txt").write_text("old\n")
    (world.project / "old.txt").chmod(0o755)
    before = project_tree(world)
    model = ScriptedModel([[CallTool(name="apply_patch", args={"patch": PATCH})], "done"])
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("patch it")
        files = {each.path: each.action for each in await session.touched_files()}
        assert (world.project / "new/b.txt").read_text() == "fresh\n"
        events = await session.subscribe(after=0, live=False)
        modes = [each.pre_modes async for each in events if isinstance(each, ToolExecuting)]
        await session.rewind(None)
    # With the intent: after a crash, a rewind brings the file back as executable as it was.
    assert modes == [{"old.txt": stat.S_IFREG | 0o755}]
    assert files["a.txt"] == "modified"
    assert files["new/b.txt"] == "created"
    assert files["old.txt"] == "deleted"
    assert project_tree(world) == before


async def test_plan_mode_has_no_patches(world: World) -> None:
    (world.project / "old.txt").write_text("old\n")
    info = ModelInfo(provider="scripted", name="script", edits_by_patch=True)
    call = CallTool(name="apply_patch", args={"patch": PATCH})
    model = ScriptedModel([[call], "done"], info=info)
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.set_permission_mode("plan")
        await session.send_message("patch it")
    assert "apply_patch" not in described(model)
    assert (world.project / "old.txt").exists()
