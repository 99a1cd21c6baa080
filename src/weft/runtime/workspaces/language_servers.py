"""Language servers as the settings want them: which may be started, where from, and in what.

Programs come from the user's `PATH` or from the settings.  Those of the project itself count only
in a folder that the user trusts.  They run in a sandbox that can write nothing; without a sandbox
they run in trusted folders only, because the files of a project can make them run its programs.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from weft.actors import Supervisor
from weft.clock import Clock
from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.errors import FinalToolError, UsageError
from weft.lsp import (
    KNOWN,
    CodeQueries,
    EditReports,
    LanguageServer,
    ServerLimits,
    ServerPool,
    ServerSpec,
    chosen,
    least_used,
)
from weft.runtime.workspaces.language_status import RunningServer, ServerStatus, StatusFolder
from weft.runtime.workspaces.read_guard import SessionReadGuard
from weft.workspace import PipedProgram, Workspace
from weft.workspace.process.piped import FilterResult, run_filter, start_piped
from weft.workspace.process.search_path import find_program, lies_in
from weft.workspace.sandbox.machine import SandboxOptions
from weft.workspace.sandbox.read_only import ReadOnlySandbox
from weft.workspace.skipped_folders import NODE_PACKAGES, PROJECT_PROGRAMS

TOTAL_SERVERS: Final = 2
"""All servers of a process may hold so many times what one may."""


class ServerSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[lsp.servers.NAME]`."""

    command: list[str] = []
    suffixes: list[str] = []
    language: str = ""
    """The protocol's name of the language; by default the suffix without its dot."""
    enabled: bool = True
    beside: bool = False
    """Runs beside the main server of the language, as linters do."""
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}


def configured_specs(given: Mapping[str, Mapping[str, Any]]) -> list[ServerSpec]:
    """The known servers as the settings change them, and those that they add; these come first.

    Raises:
        UsageError: a table is not right.
    """
    known = {spec.name: spec for spec in KNOWN}
    added: list[ServerSpec] = []
    for name, table in given.items():
        try:
            setting = msgspec.convert(table, ServerSetting)
        except msgspec.ValidationError as error:
            raise UsageError(f"lsp.servers.{name}: {error}") from error
        base = known.pop(name, None)
        if setting.enabled:
            added.append(_with_setting(name, base, setting))
    return [*added, *known.values()]


def _with_setting(name: str, base: ServerSpec | None, setting: ServerSetting) -> ServerSpec:
    languages = {
        suffix if suffix.startswith(".") else f".{suffix}": setting.language or suffix.lstrip(".")
        for suffix in setting.suffixes
    }
    if base is None and not (setting.command and languages):
        raise UsageError(f"lsp.servers.{name} needs a command and suffixes")
    if setting.command and "/" in (first := setting.command[0]) and not first.startswith("/"):
        raise UsageError(
            f"lsp.servers.{name}: {first!r} is neither a program on PATH nor an absolute path"
        )
    base = base or ServerSpec(name=name, command=("",), languages={})
    return msgspec.structs.replace(
        base,
        command=tuple(setting.command) or base.command,
        languages=languages or base.languages,
        role="beside" if setting.beside else base.role,
        settings={**base.settings, **setting.settings},
        options={**base.options, **setting.options},
    )


class _ServedProject(msgspec.Struct, frozen=True):
    """What servers are shared by: a project, as some sessions see it."""

    root: str
    is_trusted: bool
    hidden: tuple[str, ...]

    def covers(self, other: _ServedProject) -> bool:
        """True when its servers see the same: what they hide besides is gone."""
        is_same = (self.root, self.is_trusted) == (other.root, other.is_trusted)
        more = {*self.hidden} - {*other.hidden}
        is_hidden = not {*other.hidden} - {*self.hidden}
        return is_same and is_hidden and not any(map(os.path.lexists, more))


class LanguageRegistry:
    """The language servers of one application, by project."""

    def __init__(
        self,
        config: Config,
        *,
        environ: Mapping[str, str],
        places: WeftPaths,
        hidden: Sequence[Path],
        is_sandboxed: bool,
        supervisor: Supervisor,
        clock: Clock,
        is_trusted: Callable[[str], Awaitable[bool]],
    ) -> None:
        """`hidden` names files and folders that servers must not see; `is_sandboxed` is false where
        programs run as they are."""
        self._config = config
        self._supervisor = supervisor
        self._clock = clock
        self._is_trusted = is_trusted
        self._is_sandboxed = is_sandboxed
        self._box = ReadOnlySandbox(
            environ=environ,
            hidden=[str(path.resolve()) for path in (places.home, places.config, *hidden)],
            options=SandboxOptions(
                network=config.get("sandbox.network"),
                shown=tuple(config.get("sandbox.show")),
                passed=tuple(config.get("environment.pass")),
            ),
        )
        self._status = StatusFolder(places.servers_restart)
        self._restarted = self._status.restarted
        self._must_restart = False
        self._projects: dict[_ServedProject, ProjectLanguages] = {}
        self._users: WeakKeyDictionary[SessionReadGuard, _ServedProject] = WeakKeyDictionary()

    async def project(self, files: Workspace, guard: SessionReadGuard) -> ProjectLanguages:
        """The servers of a project for a session.  Those that share them may not read the same
        files, which are hidden from the servers: what a program was shown cannot be taken back, so
        others are started when more is to be hidden.

        Raises:
            UsageError: the settings are not right.
            FinalToolError: not all files can be hidden that this session may not read.
        """
        await self._heed_restart()
        key = _ServedProject(
            root=files.root,
            is_trusted=await self._is_trusted(files.root),
            hidden=tuple(sorted(await guard.hidden_files())),
        )
        before = self._users.get(guard)
        if before is not None and before in self._projects and before.covers(key):
            return self._projects[before]
        self._users[guard] = key
        if before is not None and before not in self._users.values():
            await self._stop(before)
        # Not before: another session may have made it while this one waited.
        if key not in self._projects:
            self._projects[key] = self._made(files, key)
        return self._projects[key]

    def _made(self, files: Workspace, key: _ServedProject) -> ProjectLanguages:
        mode = self._config.get("sandbox.mode") if self._is_sandboxed else "off"
        return ProjectLanguages(
            files,
            ServerLauncher(
                key.root, self._box, mode=mode, is_trusted=key.is_trusted, hidden=key.hidden
            ),
            configured_specs(self._config.get("lsp.servers")),
            self._supervisor,
            self._clock,
            self._limits,
            self._write_status,
            self._config.get("lsp.wait"),
            self._must_leave,
        )

    async def _stop(self, key: _ServedProject) -> None:
        if (project := self._projects.pop(key, None)) is not None:
            await project.pool.restart()

    def hide(self, files: Sequence[Path]) -> None:
        """Hide these as well: before the next use all servers are started anew."""
        self._box.hide([str(path.resolve()) for path in files])
        self._must_restart = True

    def _must_leave(self, server: LanguageServer) -> bool:
        """Whether all servers hold too much together, and this one was used longest ago."""
        every = [each for project in self._projects.values() for each in project.pool.running]
        if server is not least_used(every) or len(every) < 2:
            return False
        most = TOTAL_SERVERS * int(self._config.get("lsp.max_memory"))
        return sum(each.memory() for each in every) > most

    @property
    def _limits(self) -> ServerLimits:
        return ServerLimits(
            idle_seconds=self._config.get("lsp.idle_stop"),
            max_memory=self._config.get("lsp.max_memory"),
        )

    async def _heed_restart(self) -> None:
        """Stop all servers if the user has asked for that, here or in another process; all that was
        found out about the projects is then found out anew."""
        asked = self._status.restarted
        if asked != self._restarted or self._must_restart:
            self._restarted, self._must_restart = asked, False
            self._box.forget_trials()
            for key in list(self._projects):
                await self._stop(key)

    def _write_status(self) -> None:
        self._status.write(
            [
                RunningServer(
                    name=server.spec.name,
                    project=project.pool.root,
                    state=server.state,
                    why=server.why,
                    pid=server.pid or 0,
                )
                for project in self._projects.values()
                for server in project.pool.servers.values()
            ]
        )

    def close(self) -> None:
        """The servers have ended with the tasks that ran them; take their record away."""
        self._status.remove()


class ProjectLanguages:
    """The servers of one project."""

    def __init__(
        self,
        files: Workspace,
        launcher: ServerLauncher,
        specs: Sequence[ServerSpec],
        supervisor: Supervisor,
        clock: Clock,
        limits: ServerLimits,
        changed: Callable[[], None],
        wait_seconds: float,
        must_leave: Callable[[LanguageServer], bool],
    ) -> None:
        self.launcher = launcher
        self._wait_seconds = wait_seconds
        self.pool = ServerPool(
            files,
            specs,
            launcher.find,
            launcher.launch,
            supervisor.start,
            limits=limits,
            clock=clock,
            changed=changed,
            must_leave=must_leave,
        )

    def reports(self, guard: SessionReadGuard) -> EditReports:
        """What tells a session what servers say of its edits."""
        return EditReports(self.pool, self._wait_seconds, guard.may_show)

    def queries(self, guard: SessionReadGuard) -> CodeQueries:
        """The way of a session to ask servers about code."""
        return CodeQueries(self.pool, guard.may_show)


class ServerLauncher:
    """Finds and starts the servers and formatters of one project."""

    def __init__(
        self,
        root: str,
        box: ReadOnlySandbox,
        *,
        mode: str,
        is_trusted: bool,
        hidden: Sequence[str] = (),
    ) -> None:
        """`mode` is that of the sandbox: auto, on or off; `hidden` are files that no program may
        see, besides those that none sees anyway."""
        self.root = root
        self._box = box
        self._mode = mode
        self._is_trusted = is_trusted
        self._hidden = hidden
        self._found: dict[str, str | None] = {}

    def find(self, program: str) -> str | None:
        """Where a program is that may be started; None where there is none."""
        if program not in self._found:
            self._found[program] = self._look(program)
        return self._found[program]

    def _look(self, program: str) -> str | None:
        if program.startswith("/"):
            return program if os.access(program, os.X_OK) else None
        path = self._box.environ["PATH"]
        if not self._is_trusted or self._mode == "off":
            return find_program(program, path, outside=[self.root])
        # Its own first: they have the version that the project is written for.
        own = ":".join(f"{self.root}/{folder}" for folder in PROJECT_PROGRAMS)
        return find_program(program, f"{own}:{path}")

    async def launch(self, spec: ServerSpec) -> tuple[PipedProgram, ServerSpec]:
        """Start a server.

        Raises:
            FinalToolError: it cannot, or may not, be started here.
        """
        program = self.find(spec.program)
        if program is None:
            raise FinalToolError(f"{spec.program} is not on PATH")
        spec = self._with_library(spec, program)
        return await self._started((program, *spec.command[1:]), "language servers"), spec

    async def filtered(
        self, command: Sequence[str], data: bytes, *, seconds: float, most: int
    ) -> FilterResult:
        """Run a program that reads its input and prints what it makes of it.

        Raises:
            ToolError: it cannot, or may not, be started here.
        """
        program = self.find(command[0])
        if program is None:
            raise FinalToolError(f"{command[0]} is not on PATH")
        started = await self._started((program, *command[1:]), "formatters")
        return await run_filter(started, data, seconds=seconds, most=most)

    async def _started(self, argv: Sequence[str], programs: str) -> PipedProgram:
        if not (why := await self._why_unconfined()):
            return await self._box.start(argv, self.root, self._hidden)
        self._refuse_unconfined(why, programs)
        argv = (self._outside(argv[0], why), *argv[1:])
        return await start_piped(argv, cwd=self.root, environ=self._box.environ)

    def _outside(self, program: str, why: str) -> str:
        """The same program from outside the project, which an edit could replace by anything."""
        if not lies_in(program, [self.root]):
            return program
        name = os.path.basename(program)
        found = find_program(name, self._box.environ["PATH"], outside=[self.root])
        if found is None:
            raise FinalToolError(
                f"{program} is a program of the project, and such are not run without a sandbox "
                f"({why})"
            )
        return found

    async def _why_unconfined(self) -> str:
        if self._mode == "off":
            return "the sandbox is off"
        return await self._box.why_not(self.root)

    def _refuse_unconfined(self, why: str, programs: str) -> None:
        if self._mode == "on":
            raise FinalToolError(f"it may only run in the sandbox, and there is none: {why}")
        if not self._is_trusted:
            raise FinalToolError(
                f"without a sandbox ({why}) {programs} run only in folders that you trust"
            )
        if self._hidden:
            raise FinalToolError(
                f"without a sandbox ({why}) nothing hides the files that it may not read"
            )

    def _with_library(self, spec: ServerSpec, program: str) -> ServerSpec:
        """With the library next to the server's own package, where it would otherwise load the
        project's."""
        if not spec.own_library or self._is_trusted:
            return spec
        folder = os.path.realpath(program)
        while (folder := os.path.dirname(folder)) != "/":
            library = os.path.join(folder, NODE_PACKAGES, spec.own_library)
            if os.path.isfile(library):
                tsserver = {**spec.options.get("tsserver", {}), "path": library}
                options = {**spec.options, "tsserver": tsserver}
                return msgspec.structs.replace(spec, options=options)
        raise FinalToolError(
            f"it has no {spec.own_library} of its own, and the project's is used only in folders "
            "that you trust"
        )


async def server_status(
    config: Config,
    *,
    environ: Mapping[str, str],
    places: WeftPaths,
    project: str,
    is_trusted: bool,
) -> list[ServerStatus]:
    """The servers that are there for a project, those that run for it, and those of others.

    Raises:
        UsageError: the settings are not right.
    """
    running = StatusFolder(places.servers_restart).read()
    # The first of each name: sessions with other rules have servers of their own.
    here = {each.name: each for each in reversed(running) if each.project == project}
    found = _found_here(config, environ, project, is_trusted=is_trusted)
    rows = [_with_state(row, here.get(row.name)) for row in found]
    named = [here[row.name] for row in found if row.name in here]
    others = [each for each in running if not any(each is known for known in named)]
    return [*rows, *(_with_state(ServerStatus(name=each.name), each) for each in others)]


def _found_here(
    config: Config, environ: Mapping[str, str], project: str, *, is_trusted: bool
) -> list[ServerStatus]:
    """The configured servers, and the known ones that are there."""
    configured = config.get("lsp.servers")
    specs = configured_specs(configured)
    box = ReadOnlySandbox(environ=environ)
    mode = config.get("sandbox.mode")
    launcher = ServerLauncher(project, box, mode=mode, is_trusted=is_trusted)
    rows: list[ServerStatus] = []
    for spec in specs:
        program = launcher.find(spec.program)
        if program is None and spec.name not in configured:
            continue
        served = [each for each in spec.languages if spec in chosen(each, specs, launcher.find)]
        state = "not found" if program is None else "not started" if served else "not used"
        rows.append(
            ServerStatus(
                name=spec.name,
                project=project,
                program=program or spec.program,
                suffixes=tuple(served or spec.languages),
                state=state,
                why="" if served or program is None else "another one serves these files",
            )
        )
    return rows


def _with_state(row: ServerStatus, running: RunningServer | None) -> ServerStatus:
    if running is None:
        return row
    return msgspec.structs.replace(
        row,
        project=running.project,
        state=running.state,
        why=running.why,
        pid=running.pid,
        memory=running.memory,
    )
