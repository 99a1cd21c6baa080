"""Which language servers may be started, and from where."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.support.language_project import PATIENCE, SCRIPT, supervised
from weft.clock import SystemClock
from weft.config.paths import places
from weft.config.settings import Config, SettingValue
from weft.errors import FinalToolError, UsageError
from weft.ids import SessionId
from weft.lsp import KNOWN, programs_by_suffix
from weft.permissions import PermissionRule
from weft.runtime.workspaces.language_servers import (
    LanguageRegistry,
    ServerLauncher,
    configured_specs,
)
from weft.runtime.workspaces.language_status import StatusFolder
from weft.runtime.workspaces.read_guard import SessionReadGuard
from weft.runtime.workspaces.workspace_factory import SERVER_PROGRAMS, WorkspaceFactory
from weft.session.permission_gate import GrantedPermissions, SessionPermissionGate
from weft.state import SessionState
from weft.workspace import LocalWorkspace
from weft.workspace.sandbox.read_only import ReadOnlySandbox


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\nexit 1\n")
    file.chmod(0o755)
    return str(file)


def launcher(
    root: Path, path: Path, *, trusted: bool, mode: str = "auto", hidden: tuple[str, ...] = ()
) -> ServerLauncher:
    root.mkdir(exist_ok=True)
    environ = {"PATH": str(path), "HOME": str(root.parent)}
    box = ReadOnlySandbox(environ=environ)
    return ServerLauncher(str(root), box, mode=mode, is_trusted=trusted, hidden=hidden)


def test_the_quick_table_names_the_programs_of_the_known_servers() -> None:
    assert programs_by_suffix() == SERVER_PROGRAMS


@pytest.mark.parametrize("folder", ["node_modules/.bin", ".venv/bin", "venv/bin"])
def test_a_program_of_the_project_counts_only_in_a_trusted_folder(
    tmp_path: Path, folder: str
) -> None:
    own = program(tmp_path / "p" / folder, "ty")
    assert launcher(tmp_path / "p", tmp_path, trusted=False).find("ty") is None
    assert launcher(tmp_path / "p", tmp_path, trusted=True).find("ty") == own


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize("folder", [".venv/bin", "bin"])
async def test_without_a_sandbox_no_program_of_the_project_is_run_trusted_or_not(
    tmp_path: Path, folder: str, mode: str
) -> None:
    """The model can write such a program, and would have it run by its next edit."""
    own = program(tmp_path / "p" / folder, "ty")  # and no bwrap on this path
    start = launcher(tmp_path / "p", Path(own).parent, trusted=True, mode=mode)
    for command in (("ty", "server"), (own, "server")):
        with pytest.raises(FinalToolError, match=r"not run without a sandbox|is not on PATH"):
            await start.launch(msgspec.structs.replace(KNOWN[0], command=command))
        with pytest.raises(FinalToolError, match=r"not run without a sandbox|is not on PATH"):
            await start.filtered(command, b"", seconds=PATIENCE, most=0)


@pytest.mark.anyio
@pytest.mark.process
async def test_without_a_sandbox_the_users_program_is_run_instead_of_the_projects(
    tmp_path: Path,
) -> None:
    program(tmp_path / "p" / ".venv/bin", "ty")
    theirs = tmp_path / "bin"
    theirs.mkdir()
    (theirs / "ty").write_text("#!/bin/sh\necho theirs\n")
    (theirs / "ty").chmod(0o755)
    start = launcher(tmp_path / "p", theirs, trusted=True)
    result = await start.filtered(["ty"], b"", seconds=PATIENCE, most=100)
    assert result.output == b"theirs\n"


@pytest.mark.anyio
async def test_trust_that_is_taken_back_counts_at_once(tmp_path: Path) -> None:
    program(tmp_path / "p" / ".venv/bin", "prettier")
    trusted = [True]
    files, guard = LocalWorkspace(str(tmp_path / "p")), guard_of(tmp_path / "p")
    async with registry(tmp_path / "p", is_trusted=lambda: trusted[0]) as languages:
        assert (await languages.project(files, guard)).launcher.find("prettier") is not None
        trusted[0] = False
        assert (await languages.project(files, guard)).launcher.find("prettier") is None


def test_a_program_on_path_that_lies_in_the_project_is_not_the_users(tmp_path: Path) -> None:
    inside = tmp_path / "p" / "bin"
    program(inside, "ty")
    assert launcher(tmp_path / "p", inside, trusted=False).find("ty") is None


def test_the_users_program_is_found(tmp_path: Path) -> None:
    theirs = program(tmp_path / "bin", "ty")
    assert launcher(tmp_path / "p", tmp_path / "bin", trusted=False).find("ty") == theirs


@pytest.mark.anyio
async def test_where_the_sandbox_is_required_and_missing_nothing_is_started(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bin"
    program(path, "ty")  # and no bwrap on this path
    spec = KNOWN[0]
    with pytest.raises(FinalToolError, match="only run in the sandbox"):
        await launcher(tmp_path / "p", path, trusted=True, mode="on").launch(spec)
    with pytest.raises(FinalToolError, match="folders that you trust"):
        await launcher(tmp_path / "p", path, trusted=False).launch(spec)


@pytest.mark.anyio
async def test_without_a_sandbox_nothing_hides_what_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    program(path, "ty")
    start = launcher(tmp_path / "p", path, trusted=True, mode="off", hidden=("/secret",))
    with pytest.raises(FinalToolError, match="nothing hides"):
        await start.launch(KNOWN[0])


@pytest.mark.anyio
async def test_the_projects_typescript_is_not_loaded_unless_it_is_trusted(tmp_path: Path) -> None:
    modules = tmp_path / "lib" / "node_modules"
    path = modules / ".bin"
    program(path, "typescript-language-server")
    spec = next(each for each in KNOWN if each.own_library)
    untrusted = launcher(tmp_path / "p", path, trusted=False)
    with pytest.raises(FinalToolError, match=r"no typescript/lib/tsserver.js of its own"):
        await untrusted.launch(spec)
    library = program(modules / "typescript" / "lib", "tsserver.js")
    found = untrusted._with_library(spec, str(path / "typescript-language-server"))
    assert found.options["tsserver"]["path"] == library


def test_settings_add_change_and_switch_off_servers() -> None:
    specs = configured_specs(
        {
            "mine": {"command": ["/opt/mine", "-x"], "suffixes": ["foo", ".bar"]},
            "ty": {"enabled": False},
            "clangd": {"command": ["clangd", "--log=error"]},
        }
    )
    named = {spec.name: spec for spec in specs}
    assert specs[0].name == "mine"
    assert named["mine"].languages == {".foo": "foo", ".bar": "bar"}
    assert "ty" not in named
    assert named["clangd"].command == ("clangd", "--log=error")
    assert ".cpp" in named["clangd"].languages


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"command": ["x"]}, "needs a command and suffixes"),
        ({"suffixes": [".x"]}, "needs a command and suffixes"),
        ({"command": ["./x"], "suffixes": [".x"]}, "neither a program on PATH nor an absolute"),
        ({"comand": ["x"]}, "comand"),
        ({"command": "x"}, "lsp.servers.mine"),
    ],
)
def test_a_table_that_is_not_right_is_named(table: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        configured_specs({"mine": table})


@pytest.mark.parametrize("installed", [True, False])
def test_a_stand_in_of_rustup_counts_only_with_its_component(
    tmp_path: Path, installed: bool
) -> None:
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    for name in ("rustup", "rust-analyzer"):
        program(tmp_path / "bin", name)
    toolchain = tmp_path / ".rustup" / "toolchains" / "stable" / "bin"
    program(toolchain, "rust-analyzer" if installed else "rustc")
    factory = WorkspaceFactory(Config({}), environ=environ, places=places(environ))
    assert factory.has_servers() == installed


def test_whether_a_server_may_be_there_is_answered_from_path_alone(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    factory = WorkspaceFactory(Config({}), environ=environ, places=places(environ))
    project = str(tmp_path / "p")
    assert not factory.may_be_served("a.py", project)
    assert not factory.may_be_served("README", project)
    program(tmp_path / "bin", "gopls")
    assert factory.may_be_served("x/a.go", project)
    assert not factory.may_be_served("a.py", project)
    assert factory._languages is None
    assert os.listdir(tmp_path) == ["bin"]


def test_after_a_restart_is_asked_for_path_is_searched_anew(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    factory = WorkspaceFactory(Config({}), environ=environ, places=places(environ))
    project = str(tmp_path / "p")
    assert not factory.may_be_served("a.go", project)
    assert not factory.has_servers()
    program(tmp_path / "bin", "gopls")
    assert not factory.may_be_served("a.go", project), "it was looked for once"
    StatusFolder(places(environ).servers_restart).ask_restart()
    assert factory.may_be_served("a.go", project)
    assert factory.has_servers()


def guard_of(root: Path, *denied: str) -> SessionReadGuard:
    """Of a session that may not read these files."""
    rules = tuple(PermissionRule(verdict="deny", tool="read", pattern=each) for each in denied)
    state = SessionState(session_id=SessionId("s"))
    guard = SessionReadGuard(str(root))
    guard.follow(
        SessionPermissionGate(state, rules=rules, asking="no", granted=GrantedPermissions())
    )
    return guard


@asynccontextmanager
async def registry(
    root: Path, is_trusted: Callable[[], bool] = lambda: False, **more: object
) -> AsyncIterator[LanguageRegistry]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(root.parent)}
    command = [sys.executable, "-I", "-S", SCRIPT]
    servers = {"scripted": {"command": command, "suffixes": [".scr"]}}

    settings = {name.replace("__", "."): [SettingValue(more[name], "test")] for name in more}

    async def trusts(path: str) -> bool:
        return is_trusted()

    async with supervised() as supervisor:
        yield LanguageRegistry(
            Config({"lsp.servers": [SettingValue(servers, "test")], **settings}),
            environ=environ,
            places=places(environ),
            hidden=(),
            is_sandboxed=True,
            supervisor=supervisor,
            clock=SystemClock(),
            is_trusted=trusts,
        )


@pytest.mark.anyio
@pytest.mark.process
async def test_sessions_that_may_read_different_files_share_no_server(tmp_path: Path) -> None:
    """What one may read must not come to the other through a server that both ask."""
    for name in ("a.scr", "b.scr"):
        (tmp_path / name).write_text("def x\n")
    files = LocalWorkspace(str(tmp_path))
    free, alike = guard_of(tmp_path), guard_of(tmp_path)
    held = guard_of(tmp_path, "b.scr")
    async with registry(tmp_path) as languages:
        first = await languages.project(files, free)
        assert await languages.project(files, alike) is first
        second = await languages.project(files, held)
        assert second is not first
        assert await languages.project(files, free) is first


@pytest.mark.anyio
@pytest.mark.process
async def test_servers_that_no_session_may_use_any_more_are_stopped(tmp_path: Path) -> None:
    files, guard = LocalWorkspace(str(tmp_path)), guard_of(tmp_path, "*.secret")
    async with registry(tmp_path) as languages:
        first = await languages.project(files, guard)
        (server,) = first.pool.servers_for(str(tmp_path / "a.scr"))
        assert server.use() is not None
        assert await server.ready_within(PATIENCE), server.why
        (tmp_path / "new.secret").write_text("canary")
        second = await languages.project(files, guard)
        assert second is not first
        assert (server.state, server.client) == ("stopped", None)


@pytest.mark.anyio
async def test_a_hidden_file_that_is_gone_costs_no_server(tmp_path: Path) -> None:
    """Files that a rule names may come and go with every command; only the coming matters."""
    files, guard = LocalWorkspace(str(tmp_path)), guard_of(tmp_path, "*.log")
    (tmp_path / "a.log").write_text("canary")
    async with registry(tmp_path) as languages:
        first = await languages.project(files, guard)
        (tmp_path / "a.log").unlink()
        assert await languages.project(files, guard) is first
        (tmp_path / "b.log").write_text("canary")
        assert await languages.project(files, guard) is not first


@pytest.mark.anyio
async def test_a_rule_that_is_lifted_shows_the_file_to_a_new_server(tmp_path: Path) -> None:
    files, guard = LocalWorkspace(str(tmp_path)), guard_of(tmp_path, "a.log")
    (tmp_path / "a.log").write_text("def x")
    async with registry(tmp_path) as languages:
        first = await languages.project(files, guard)
        assert guard._gate is not None
        guard.follow(guard_of(tmp_path)._gate or guard._gate)
        assert await languages.project(files, guard) is not first


@pytest.mark.anyio
@pytest.mark.process
@pytest.mark.parametrize("most", [1_000_000, 2_000_000_000])
async def test_what_servers_hold_together_is_bounded(tmp_path: Path, most: int) -> None:
    (tmp_path / "b.scr").write_text("def x\n")
    files = LocalWorkspace(str(tmp_path))
    async with registry(tmp_path, lsp__max_memory=most) as languages:
        servers = []
        for guard in (guard_of(tmp_path), guard_of(tmp_path, "b.scr")):
            project = await languages.project(files, guard)
            (server,) = project.pool.servers_for(str(tmp_path / "a.scr"))
            server.use()
            assert await server.ready_within(PATIENCE), server.why
            servers.append(server)
        leaves = [languages._must_leave(each) for each in servers]
        assert leaves == [most == 1_000_000, False], "the one that was used longest ago"
