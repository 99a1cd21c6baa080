"""Real language servers: ty, pyright, basedpyright, typescript-language-server and clangd.

They run where `make oracles` has installed them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.support.real_servers import LANGUAGES, PATIENCE, only, program_of, real_pool
from tests.support.world import World, request_lines
from weft.lsp import CodeQueries, EditReports
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.oracle]

each_server = pytest.mark.parametrize("server", LANGUAGES)


def library_of(server: str) -> str:
    """The library's name: C includes headers."""
    return "library.h" if server == "clangd" else f"library{LANGUAGES[server].suffix}"


@each_server
async def test_a_type_error_made_by_an_edit_is_in_the_same_result(
    plain_world: World, server: str
) -> None:
    language = LANGUAGES[server]
    library, user = library_of(server), f"user{language.suffix}"
    plain_world.write(library, language.library)
    plain_world.write(user, language.user)
    write = {"path": library, "content": language.broken}
    model = ScriptedModel(
        [
            [CallTool(name="read", args={"path": library})],
            [CallTool(name="write", args=write)],
            "done",
        ]
    )
    config = {
        "sandbox.mode": "auto",
        "lsp.enabled": True,
        "lsp.wait": PATIENCE,
        "lsp.servers": only(server),
    }
    async with plain_world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        with anyio.fail_after(PATIENCE):
            await session.send_message("break it")
    said = [line for line in request_lines(model.requests[-1]) if line.startswith("result: ")]
    assert f"{server}: 1 problem\nin files that import it:\n{user}:3:" in said[-1]


@each_server
async def test_two_hundred_edits_never_show_a_stale_diagnostic_as_fresh(
    tmp_path: Path, server: str
) -> None:
    """Some are waited for and some are not; what is known is always about the last text."""
    language = LANGUAGES[server]
    file = tmp_path / f"edited{language.suffix}"
    async with real_pool(tmp_path, server) as pool:
        file.write_text(language.clean.format(0))
        (used,) = pool.servers_for(str(file))
        seen = 0
        for number in range(200):
            text = language.unknown if number % 3 else language.clean
            file.write_text(text.format(number))
            document = await pool.show(used, str(file))
            assert document is not None, used.why
            if number % 2:
                assert used.client is not None
                with anyio.fail_after(PATIENCE):
                    known = await used.client.diagnostics(document, document.version)
                assert known is not None
                assert known.is_sure
                found = {name for item in known.items for name in names_in(item.text)}
                assert found == ({f"missing_{number}"} if number % 3 else set())
                seen += 1
        assert seen == 100


def names_in(message: str) -> list[str]:
    return re.findall(r"missing_\d+", message)


@each_server
async def test_names_are_found_and_renamed_everywhere(tmp_path: Path, server: str) -> None:
    language = LANGUAGES[server]
    library, user = tmp_path / library_of(server), tmp_path / f"user{language.suffix}"
    library.write_text(language.library)
    user.write_text(language.user)
    async with real_pool(tmp_path, server) as pool:
        queries = CodeQueries(pool)
        with anyio.fail_after(PATIENCE):
            line = 3
            defined = await queries.places("definition", str(user), line, "area")
            hover = await queries.hover(str(user), line, "area")
            outline = await queries.outline(str(library))
            used = await queries.places("references", str(user), line, "area")
            renamed = await queries.rename(str(user), line, "area", "surface")
    assert {Path(place.path).name for place in defined.places} == {library.name}
    assert "area" in hover
    assert "area" in [symbol.name.partition("(")[0] for symbol in outline]
    assert {Path(place.path).name for place in used.places} == {library.name, user.name}
    assert {Path(path).name for path in renamed.edits} == {library.name, user.name}


@pytest.mark.parametrize("server", ["pyright", "typescript-language-server"])
async def test_a_cold_server_is_named_and_answers_later(tmp_path: Path, server: str) -> None:
    language = LANGUAGES[server]
    file = tmp_path / f"edited{language.suffix}"
    file.write_text(language.unknown.format(7))
    async with real_pool(tmp_path, server) as pool:
        reports = EditReports(pool, 0.01)
        first = await reports.after_change([file.name], waits=True)
        assert first.startswith(f"{server}: no answer yet for {file.name} (starting)")
        client = pool.servers[server].client
        assert client is not None
        with anyio.fail_after(PATIENCE):
            while not (late := reports.late()):
                await client.news()
    assert "missing_7" in late


async def test_ruff_says_nothing_of_types_and_all_of_syntax(tmp_path: Path) -> None:
    program_of("ruff")
    file = tmp_path / "edited.py"
    async with real_pool(tmp_path, "ruff") as pool:
        reports = EditReports(pool, PATIENCE)
        file.write_text("import os\n")
        unused = await reports.after_change([file.name], waits=True)
        file.write_text("def (:\n")
        broken = await reports.after_change([file.name], waits=True)
    assert "[F401]" in unused
    assert "error:" in broken


def is_stand_in(program: str) -> bool:
    found = shutil.which(program)
    if found is None:
        return False
    return subprocess.run([found, "--version"], capture_output=True, check=False).returncode != 0


async def test_a_proxy_of_rustup_without_the_component_is_not_started_again(
    tmp_path: Path,
) -> None:
    if not is_stand_in("rust-analyzer"):
        pytest.skip("no rustup here, or the component is installed")
    (tmp_path / "a.rs").write_text("fn main() {}\n")
    async with real_pool(tmp_path, "rust-analyzer") as pool:
        reports = EditReports(pool, PATIENCE)
        first = await reports.after_change(["a.rs"], waits=True)
        second = await reports.after_change(["a.rs"], waits=True)
    assert "not installed: error: " in first
    assert second == ""
