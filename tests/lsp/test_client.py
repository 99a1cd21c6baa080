"""The client against a server that sets the traps of real ones, each in the sandbox."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.language_project import PATIENCE, language_project
from weft.lsp.client import MOST_PROBLEMS, SETTLE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.mark.parametrize(
    "trap",
    ["", "pull", "register-pull", "asks", "no-version", "stale", "clean-silent", "code-object"],
)
async def test_an_error_of_the_edit_is_reported_whatever_way_the_server_has(
    tmp_path: Path, trap: str
) -> None:
    async with language_project(tmp_path, *([trap] if trap else [])) as project:
        assert await project.messages("a.scr", "BUG 1\n") == ["BUG 1"]
        assert await project.messages("a.scr", "def x\nBUG 2\n") == ["BUG 2"]


@pytest.mark.parametrize("trap", ["", "pull", "register-pull"])
async def test_a_file_without_problems_is_said_to_have_none(tmp_path: Path, trap: str) -> None:
    async with language_project(tmp_path, *([trap] if trap else [])) as project:
        assert await project.messages("a.scr", "def x\n") == []


async def test_a_push_about_the_text_before_does_not_count(tmp_path: Path) -> None:
    """200 edits in a row, each followed by what the server said of the one before."""
    async with language_project(tmp_path, "stale") as project:
        for number in range(200):
            assert await project.messages("a.scr", f"BUG {number}\n") == [f"BUG {number}"]


async def test_two_hundred_answers_are_each_about_the_text_that_was_sent(tmp_path: Path) -> None:
    async with language_project(tmp_path, "pull") as project:
        for number in range(200):
            assert await project.messages("a.scr", f"BUG {number}\n") == [f"BUG {number}"]


async def test_a_push_without_a_version_is_never_called_sure(tmp_path: Path) -> None:
    async with language_project(tmp_path, "no-version", "stale") as project:
        await project.messages("a.scr", "BUG 1\n")
        document = project.edit("a.scr", "BUG 2\n")
        assert document.fresh is None, "what was known of the text before is cleared at the change"
        known = await project.client.diagnostics(document, document.version)
        assert known is not None
        assert not known.is_sure
        assert [item.message for item in known.items] == ["BUG 2"], "the last word after a pause"


async def test_an_answer_for_a_text_that_was_replaced_meanwhile_is_left_out(
    tmp_path: Path,
) -> None:
    async with language_project(tmp_path, "pull", "hold") as project:
        await project.ready()
        document = project.edit("a.scr", "BUG 1\n")
        version = document.version
        project.edit("a.scr", "def ok\n")
        (tmp_path / "go").touch()
        with anyio.fail_after(PATIENCE):
            assert await project.client.diagnostics(document, version) is None
            known = await project.client.diagnostics(document, document.version)
        assert known is not None
        assert known.items == ()


async def test_a_document_that_is_shown_before_the_handshake_is_opened_after_it(
    tmp_path: Path,
) -> None:
    async with language_project(tmp_path, "cold") as project:
        document = project.edit("a.scr", "BUG 1\n")
        project.edit("a.scr", "BUG 2\n")
        assert not await project.server.ready_within(0.05)
        assert project.server.state == "starting"
        (tmp_path / "go").touch()
        await project.ready()
        with anyio.fail_after(PATIENCE):
            known = await project.client.diagnostics(document, document.version)
        assert known is not None
        assert [item.message for item in known.items] == ["BUG 2"]


async def test_an_answer_that_the_server_takes_back_is_asked_for_again(tmp_path: Path) -> None:
    async with language_project(tmp_path, "refresh") as project:
        document = project.edit("a.scr", "BUG 1\n")
        with anyio.fail_after(PATIENCE):
            await project.client.diagnostics(document, document.version)
            while not document.fresh or not document.fresh.items:
                # The answer that is taken back may have been replaced before it was seen.
                await project.client.news()
        assert [item.message for item in document.fresh.items] == ["BUG 1"]


@pytest.mark.parametrize("trap", ["unchanged", "empty-report"])
async def test_an_answer_without_diagnostics_is_none(tmp_path: Path, trap: str) -> None:
    """It is not the absence of problems."""
    async with language_project(tmp_path, trap) as project:
        await project.ready()
        document = project.edit("a.scr", "BUG 1\n")
        params = {"textDocument": {"uri": document.uri}}
        # Answers come in order: when this one is there, that of the client's own question is too.
        for _ in range(2):
            await project.client.ask("textDocument/diagnostic", params, msgspec.Raw)
        assert document.fresh is None


async def test_the_same_text_shown_again_is_looked_at_again(tmp_path: Path) -> None:
    """A file that another one defines names for has no change of its own."""
    async with language_project(tmp_path) as project:
        await project.messages("a.scr", "def x\n")
        assert await project.messages("b.scr", "use x\n") == []
        await project.messages("a.scr", "def y\n")
        assert await project.messages("b.scr", "use x\n") == ["x is not defined"]


async def test_what_is_pushed_beside_the_answers_counts_too(tmp_path: Path) -> None:
    async with language_project(tmp_path, "pull-and-push") as project:
        for number in range(20):
            text = f"BUG {number}\nWARN {number}\n"
            document = project.edit("a.scr", text)
            with anyio.fail_after(PATIENCE):
                while len(document.fresh.items if document.fresh else ()) < 2:
                    await project.client.news()
            assert document.fresh is not None
            found = {item.message for item in document.fresh.items}
            assert found == {f"BUG {number}", f"WARN {number}"}


@pytest.mark.parametrize("trap", ["", "pull", "pull-and-push"])
async def test_of_more_problems_than_anyone_reads_some_are_kept(tmp_path: Path, trap: str) -> None:
    text = "".join(f"BUG {number}\n" for number in range(MOST_PROBLEMS + 500))
    async with language_project(tmp_path, *([trap] if trap else [])) as project:
        assert len(await project.messages("a.scr", text)) == MOST_PROBLEMS
        assert await project.messages("a.scr", "BUG 2\n") == ["BUG 2"]


def test_a_server_without_versions_is_given_the_time_that_real_ones_take() -> None:
    """vtsls pushes types up to 0.61 s after a change, and something else before (measured)."""
    assert SETTLE_SECONDS > 0.61


async def test_more_documents_than_a_server_should_hold_are_closed(tmp_path: Path) -> None:
    async with language_project(tmp_path) as project:
        for number in range(70):
            project.edit(f"f{number}.scr", "def x\n")
        assert len(project.client.documents) == 64
        assert await project.messages("f0.scr", "BUG 1\n") == ["BUG 1"]
