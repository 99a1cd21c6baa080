"""The composition root: settings in, a running application out.

This is the one place that reads the environment, the config files and the working directory, and
that picks a store, a workspace and providers.  Every other part is handed values.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import anyio
import anyio.to_thread

from weft.actors import Supervisor
from weft.api.manager import SessionManager
from weft.clock import Clock, SystemClock
from weft.config.api_keys import SavedKeyWatch, known_secrets
from weft.config.models import ModelRegistry
from weft.config.paths import WeftPaths, absolute, places
from weft.config.providers import default_providers
from weft.config.setting_keys import MODEL_KEYS
from weft.config.settings import Config, load_config
from weft.config.unattended_key import UnattendedKey
from weft.errors import StoreError, UsageError, WeftError
from weft.ids import BlobId, SessionId
from weft.messages import Content, File, Image, Text
from weft.project.environment import holds_source
from weft.project.saved_rules import SavedRules
from weft.project.system_prompt import (
    MOST_PROBLEMS,
    PromptTerms,
    SystemPromptWriter,
    machine_name,
)
from weft.providers import Provider
from weft.redact import Redactor
from weft.runtime.mcp.mcp_access import McpAccess
from weft.runtime.mcp.mcp_terms import McpTerms
from weft.runtime.ports.local import HookProvider
from weft.runtime.registry import standing_rules
from weft.runtime.services import ProjectIndexes, Services
from weft.runtime.session_host import SessionHost
from weft.runtime.stores import AsyncCloseable, StoreRegistry
from weft.runtime.workspaces.orphan_search import ORPHAN_SEARCH
from weft.runtime.workspaces.read_guard import read_judge
from weft.runtime.workspaces.workspace_factory import WorkspaceFactory, holds_home
from weft.store import Store
from weft.store.address import unix_address
from weft.store.liveness import on_death
from weft.store.location import StoreArgument, location_of, open_location
from weft.workspace import Runner
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process.search_path import find_program

if TYPE_CHECKING:  # loaded where a project or the user has such files: it costs start-up time
    from datetime import datetime

    from weft.api.decisions import ProjectDecisions
    from weft.api.fan import Fan, FanSummary
    from weft.api.file_changes.kept_contents import KeptContents
    from weft.api.imports.agent_import import AgentImport
    from weft.api.mcp.mcp_servers import AppMcp
    from weft.api.mcp.program_access import ProgramMcp
    from weft.api.permissions.standing_rules import AppPermissions
    from weft.api.unattended.waits import SessionWait
    from weft.app.index import AppIndex
    from weft.app.memory import AppMemory
    from weft.evidence.blame import Blame
    from weft.hooks.config import HookTable
    from weft.loom import GenerationStore
    from weft.permissions import PermissionRule
    from weft.project.mentions import AskRead, MentionReader, TellMissing
    from weft.project.trust import ProjectFiles, TrustQuestion, TrustStore
    from weft.runtime.daily_usage import DailyUsage, UsageCounter
    from weft.runtime.index_access import IndexAccess
    from weft.runtime.mcp.program_servers import ProgramServers
    from weft.runtime.mcp.project_servers import ProjectMcpServers
    from weft.runtime.ports.hooked import HookSource
    from weft.runtime.ports.socket_protocol import SummaryRequest
    from weft.runtime.repo_topic import RepoEvents, RepoTopic
    from weft.runtime.session_topic import SessionListEvents
    from weft.runtime.workspaces.language_status import ServerStatus
    from weft.workspace.sandbox.machine import SandboxReport

logger = logging.getLogger(__name__)

UNLOAD_EVERY_SECONDS = 60.0
MOST_UNLOAD_SECONDS = 960.0
"""The longest pause when unloading fails again and again."""
TRIM_EVERY_SECONDS = 15.0
WAKE_EVERY_SECONDS = 5.0
INDEX_AFTER_SECONDS = 0.5
"""When the index is first looked at: a model takes longer to answer, and then nothing waits."""
INDEX_EVERY_SECONDS = 10.0
SOURCE_EVERY_SECONDS = 60.0
"""How often it is looked whether a project without an index has got code."""
WATCH_SECONDS = 60.0
"""How long a subscriber waits for the first reading of a project to end."""
_NOT_OPEN = "the app is not open: use `async with weft.open() as app`"


class App:
    """A running Weft.  Use it as an async context manager.

    It may be entered in one task and left in another.
    """

    def __init__(
        self,
        project_path: str | os.PathLike[str] = ".",
        store: StoreArgument | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        providers: Mapping[str, Provider] | None = None,
        runner: Runner | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        added: Sequence[str] = (),
        hooks: HookTable | None = None,
        listen_after_seconds: float = 0.0,
        wakes_due: bool = False,
        serves: bool = False,
        mcp_config: Sequence[str] = (),
        only_mcp_config: bool = False,
        without_project: bool = False,
    ) -> None:
        """`hooks` are those of a program that drives us, besides the configured ones; it may still
        grow.

        `listen_after_seconds`: how long to wait before other processes may drive our sessions; a
        short run need not bother.

        `wakes_due`: whether turns of this project that waited go on here when their time has come
        and no process has them at work.  They may be another program's: they go on with the rules
        and hooks of this one.

        `serves`: it is a server's, which takes commands for its sessions over HTTP where the store
        is shared over a network.  A store that is handed in stays the server's to close.

        `mcp_config` names MCP servers besides the configured ones, each text a file or JSON;
        `only_mcp_config`: and no others count.

        `without_project`: settings, hooks and MCP servers of the project do not count.
        """
        self._without_project = without_project
        self._serves = serves
        self._program_servers: ProgramServers | None = None
        self._mcp_config = (tuple(mcp_config), only_mcp_config)
        self._mcp: McpAccess | None = None
        self._more_hooks = hooks
        # A copy: a program that drives us may change its environment later, and our secrets, paths
        # and keys must all come from the same one.
        self._environ = dict(os.environ if environ is None else environ)
        self.places: WeftPaths = places(self._environ)
        self.project_path = absolute(os.fspath(project_path))
        # Those of the sessions, held so that they are not ended and begun again between two.
        self._threads = DiskThreads.of(self.project_path)
        self._given = dict(config or {})
        self._seen: ProjectFiles | None = None
        self._hooks: HookSource | None = None
        self.config: Config = self._read_config()
        own = self.config.get("store.address") or self.places.database
        self._given_store = own if store is None else store
        self._clock = clock or SystemClock()
        self._providers = dict(providers) if providers is not None else None
        self._sleep = sleep
        self._listen_after = listen_after_seconds
        self._wakes_due = wakes_due
        self._workspaces = WorkspaceFactory(
            self.config, environ=self._environ, places=self.places, added=added, runner=runner
        )
        on_death(ORPHAN_SEARCH.begin)
        self._supervisor = Supervisor()
        self._store: Store | None = None
        self._stores: StoreRegistry | None = None
        # Watched before they are read, so that no key is saved between the two.
        watch = SavedKeyWatch(self.places.config)
        self._redact = Redactor(
            known_secrets(self._environ, self.places.config, self.config.get("providers")), watch
        )
        self._prompter = SystemPromptWriter(
            self.places.config, self.places.user, self._redact, self._prompt_terms(), self.places
        )
        self._host: SessionHost | None = None
        self._sessions: SessionManager | None = None
        self._socket: AsyncCloseable | None = None
        self._models: ModelRegistry | None = None
        self._index_access: IndexAccess | None = None
        self._repo_topic: RepoTopic | None = None
        self._source_asked_at = -SOURCE_EVERY_SECONDS
        self._is_source_there = False
        self._shared: Services | None = None
        self._decisions: ProjectDecisions | None = None
        self._loom: GenerationStore | None = None
        self._usage: UsageCounter | None = None

    def _prompt_terms(self) -> PromptTerms:
        # As the runner finds it, which is made with the first command.
        absolute = [part for part in self._environ.get("PATH", "").split(":") if part[:1] == "/"]
        return PromptTerms(
            platform=machine_name(),
            shell_name="bash" if find_program("bash", ":".join(absolute)) else "sh",
            style=self.config.get("model.style"),
            # About four bytes a token: what is beyond need not even be read.
            instructions_bytes=4 * self.config.get("context.instructions"),
            memory_bytes=4 * self.config.get("context.memory"),
        )

    # -- what programs use

    @property
    def sessions(self) -> SessionManager:
        """All sessions."""
        if self._sessions is None:
            raise UsageError(_NOT_OPEN)
        return self._sessions

    @property
    def host(self) -> SessionHost:
        """The runtime of the sessions, for screens and servers; programs need only `sessions`."""
        if self._host is None:
            raise UsageError(_NOT_OPEN)
        return self._host

    @property
    def store(self) -> Store:
        """The store that is in use."""
        if self._store is None:
            raise UsageError(_NOT_OPEN)
        return self._store

    @property
    def decisions(self) -> ProjectDecisions:
        """The decision graph of this project."""
        if self._shared is None:
            raise UsageError(_NOT_OPEN)
        if self._decisions is None:
            from weft.api.decisions import ProjectDecisions  # most runs have none

            self._decisions = ProjectDecisions(self.host, self._shared, self.store)
        return self._decisions

    async def blame(self, path: str, line: int) -> Blame:
        """Who or what wrote a line of a file of the project, counted from 1: the change that made
        it, its turn and message, what was decided there, who allowed it, the first check that was
        run after it, and its commit.  Computed from the logs of all the project's sessions; it
        changes nothing.

        Raises:
            UsageError: there is no such line, or the file is none that has lines.
        """
        return await self.decisions.blame(path, line)

    @property
    def loom(self) -> GenerationStore:
        """All text trees."""
        if self._loom is None:
            from weft.app.loom_host import AppLoomHost  # most runs have none
            from weft.loom import GenerationStore

            host = AppLoomHost(self.host, self.store, self.change_setting)
            self._loom = GenerationStore(host)
        return self._loom

    @property
    def index(self) -> AppIndex:
        """Files, symbols and maps of this project; it need not be open.

        Raises:
            UsageError: the setting `repo.index` is off.
        """
        from weft.app.index import AppIndex
        from weft.app.map_request import IS_OFF

        if not self.config.get("repo.index"):
            raise UsageError(IS_OFF)

        return AppIndex(self.project_path, self._indexes())

    async def fan(self, fan_id: str) -> Fan:
        """A fan-out by its id or the unique beginning or end of it, at work here or stored.

        Raises:
            UsageError: there is none, or several; or its session is open in another process.
        """
        from weft.api.fan import open_fan  # few runs look at one

        return await open_fan(self.host, fan_id)

    async def fans(self) -> list[FanSummary]:
        """The fan-outs of this project, the newest first."""
        from weft.api.fan import list_fans  # as above

        return await list_fans(self.host, self.project_path)

    async def schedule(
        self,
        at: str | float | datetime,
        prompt: Content,
        session_id: str | None = None,
        **settings: Any,
    ) -> SessionWait:
        """Send a prompt at a time, in a new session or one that there is; `settings` are those of
        `Session.schedule` (`every`, `max_rounds`, …).

        Raises:
            UsageError: it is no time within a year.
        """
        from weft.api.unattended.later_prompts import schedule_in  # few runs send anything later

        now = self.host.now()
        return await schedule_in(self.sessions, at, prompt, session_id, settings, now)

    async def usage_by_day(self, days: int = 30) -> list[DailyUsage]:
        """What all sessions of the store have used in the last days, by day, project and model, the
        newest day first; what was deleted with its session is not counted.

        Raises:
            UsageError: too many days, or none.
        """
        if self._usage is None:
            from weft.runtime.daily_usage import UsageCounter  # few ask

            self._usage = UsageCounter(self.store, self._clock)
        return await self._usage.by_day(days)

    async def import_from(
        self,
        agent: str,
        path: str | None = None,
        *,
        preview: bool = True,
        setup: bool | None = None,
    ) -> AgentImport:
        """Sessions of another agent (`claude`, `codex`, `pi`, `opencode`) as sessions of ours, and
        its set-up beside the user's own; as a preview nothing is written.

        Those that worked in this project, or the one of `path`: a file, or an id that it has
        there.  The set-up goes along unless one session is named; `setup` says otherwise.

        Raises:
            UsageError: there is no such agent, file or id.
        """
        from weft.api.imports.agent_import import import_into  # few do, and once
        from weft.api.imports.foreign_setup import SetupTerms

        terms = SetupTerms(
            model=str(self.config.get("model.default") or ""),
            check_model=self.host.services.models.check,
            change_setting=self.change_setting,
            permissions=self.permissions,
            servers=self.mcp,
            places=self.places,
            environ=self._environ,
        )
        takes_setup = path is None if setup is None else setup
        return await import_into(
            self.host, self.project_path, terms, agent, path, preview=preview, setup=takes_setup
        )

    async def kept_contents(self) -> KeptContents:
        """The file contents that are kept of this project: how much, which go next, and which
        messages a rewind, a bisection and blame lose with them.  Nothing else ever goes unasked.
        """
        from weft.api.file_changes.kept_contents import kept_contents  # few look

        quota = max(0, int(self.config.get("history.quota")))
        return await kept_contents(self.store, self.project_path, quota)

    @property
    def memory(self) -> AppMemory:
        """What the user asked to be remembered, here and everywhere; it need not be open."""
        from weft.app.memory import AppMemory  # only for those who look at it

        return AppMemory(self.project_path, self._prompter.memory_files(), self._clock)

    @property
    def permissions(self) -> AppPermissions:
        """The standing rules, and what they say of a command; it need not be open."""
        from weft.api.permissions.standing_rules import (
            AppPermissions,  # only for those who look at them
        )

        async def is_sandboxed() -> bool:
            if not self._workspaces.may_be_sandboxed:
                return False
            return self.is_sandboxed or (await self.probe_sandbox()).is_available

        return AppPermissions(
            project=self.project_path,
            config=self.config,
            places=self.places,
            rules=self._standing_rules,
            runner=lambda: self._workspaces.runner,
            is_sandboxed=is_sandboxed,
            history=lambda: (self.store, self.host.registry),
            changed=self._read_again,
        )

    def _indexes(self) -> IndexAccess:
        if self._index_access is None:
            from weft.runtime.index_access import IndexAccess  # only where there is an index

            self._index_access = IndexAccess(self.places, self._environ)
        return self._index_access

    def _has_index(self, project: str) -> bool:
        """Whether there is an index of a project that may be used; one look at the disk."""
        if not self.config.get("repo.index"):
            return False
        return os.path.exists(f"{self.places.index_of(project)}/cache.db")

    def _may_index(self, project: str) -> bool:
        """Whether a project is to be indexed without the user's asking.  Blocks for a look."""
        if not self.config.get("repo.index") or holds_home(project, self.places.user):
            return False
        # A run that stores nothing leaves nothing behind, an index neither.
        if self._store is None or not self._store.is_lasting:
            return False
        if self._has_index(project):
            return True
        return self._has_source() if project == self.project_path else holds_source(project)

    def _has_source(self) -> bool:
        """Whether this project has code, looked at now and then: it may be a look at many names."""
        now = self._clock.monotonic()
        if now >= self._source_asked_at + SOURCE_EVERY_SECONDS:
            self._source_asked_at = now
            self._is_source_there = holds_source(self.project_path)
        return self._is_source_there

    def _update_indexes(self, projects: set[str]) -> None:
        """Have an indexer read what has changed in this project, where it has code, and in the
        others of `projects` that have an index.  Blocks.
        """
        others = (each for each in projects - {self.project_path} if self._has_index(each))
        for project in (self.project_path, *others):
            try:
                if self._may_index(project):
                    self._indexes().start_update(project)
            except OSError:
                logger.warning("the index of a project could not be updated", exc_info=True)

    @overload
    async def subscribe(self, topic: Literal["repo:updates"]) -> RepoEvents: ...
    @overload
    async def subscribe(self, topic: Literal["sessions"]) -> SessionListEvents: ...
    @overload
    async def subscribe(self, topic: str) -> SessionListEvents | RepoEvents: ...

    async def subscribe(self, topic: str) -> SessionListEvents | RepoEvents:
        """Events that are no session's: those of the topic `sessions` say which rows of
        `sessions.list_saved()` have changed, by this process or another; those of `repo:updates`
        which files of this project have, as soon as the index has read them.

        Raises:
            UsageError: there is no such topic, or no index to be kept current.
        """
        if topic == "repo:updates":
            return await self._repo_events()
        if topic != "sessions":
            raise UsageError(f"no topic {topic!r}; there are 'sessions' and 'repo:updates'")
        return await self.host.registry.list_events()

    async def _repo_events(self) -> RepoEvents:
        for name in ("repo.index", "repo.watch"):
            if not self.config.get(name):
                raise UsageError(f"the project is not watched: the setting {name} is off")
        events = self._watch_project().subscribe()
        # What changes from now on must not be taken for what was there before.
        with anyio.move_on_after(WATCH_SECONDS):
            await self._watch_project().is_ready.wait()
        return events

    def _watch_project(self) -> RepoTopic:
        """Have an indexer keep the index current from now on."""
        if self._repo_topic is None:
            from weft.runtime.repo_topic import RepoTopic  # only where a project is watched

            self._repo_topic = RepoTopic()
            self._supervisor.start(self._follow_indexer, "watch the project")
        return self._repo_topic

    async def _follow_indexer(self) -> None:
        assert self._repo_topic is not None
        try:
            await self._indexes().watch(self.project_path, self._repo_topic.publish)
        except OSError:
            logger.warning("the project could not be watched", exc_info=True)

    # -- keys

    async def save_key(self, provider: str, key: str) -> None:
        """Save a provider's key for this user, and use it from now on.

        Raises:
            UsageError: it can be no key, or cannot be written down.
        """
        from weft.config.api_keys import KeyFile, check_key  # only for those who log in

        check_key(key)
        KeyFile(self.places.config, self.config.get("profile")).keep(provider, key)
        # Before it is used: a vendor may echo it in an error.
        self._redact.add(key)
        if self._models is not None:
            self._models.learn_key(provider, key)

    # -- settings

    async def change_setting(self, name: str, text: str | None) -> str:
        """Set a setting in the user's own file as they typed it, or take it out (None); it counts
        from now on where that is possible.

        Returns what to say of it: where it stands, and what still comes before it.

        Raises:
            UsageError: there is no such setting, it takes no such value, or the file cannot be
                changed; nothing is.
        """
        from weft.config.settings_file import SettingsFile, setting_note

        file = SettingsFile(self.places.config)
        if text is None:
            was_there = await anyio.to_thread.run_sync(file.unset, name)
        else:
            if self._models is not None:
                # Before it is written down.
                self._models.check_setting(name, text)
            await anyio.to_thread.run_sync(file.change, name, text)
            was_there = True
        self._read_again()
        return setting_note(self.config.lookup(name), name, file.path, was_there=was_there)

    def shown_settings(self) -> dict[str, dict[str, Any]]:
        """Every setting by its name, with its value, where that comes from, what it is about, and
        which values there are where they can be counted; keys are masked.
        """
        from weft.config.api_keys import masked_setting  # only for those who look
        from weft.config.setting_keys import KEYS, choices_of

        return {
            name: {
                "value": masked_setting(found.value),
                "source": found.source,
                "about": KEYS[name].about,
                "choices": choices_of(name),
            }
            for name, found in self.config.all().items()
        }

    # -- trust

    async def is_trusted(self, path: str | os.PathLike[str] | None = None) -> bool:
        """Whether the user trusts a folder (this project) as it is now: its settings may start
        programs and widen permissions.
        """
        from weft.project.trust import look

        seen = await anyio.to_thread.run_sync(look, path or self.project_path)
        return self._trust.covers(seen)

    async def trust_question(
        self, path: str | os.PathLike[str] | None = None
    ) -> TrustQuestion | None:
        """What to ask the user about a folder (this project).

        None when nothing of it is withheld.
        """
        from weft.project.trust import look

        seen = await anyio.to_thread.run_sync(look, path or self.project_path)
        return self._trust.question(seen)

    async def trust(self, path: str | os.PathLike[str] | None = None) -> None:
        """Remember that the user trusts a folder (this project) as it is now.  Sessions heed its
        settings from now on, those too that are open.

        Only the user can decide that: nothing calls this by itself.

        Raises:
            UsageError: it cannot be written down.
        """
        from weft.project.trust import look

        seen = await anyio.to_thread.run_sync(look, path or self.project_path)
        self._trust.keep(seen, self._clock.now())
        self._read_again()

    async def forget_trust(self, path: str | os.PathLike[str] | None = None) -> bool:
        """Trust a folder (this project) no longer; False when it was not trusted."""
        was_trusted = self._trust.forget(os.fspath(path or self.project_path))
        self._read_again()
        return was_trusted

    @property
    def _trust(self) -> TrustStore:
        from weft.project.trust import TrustStore

        return TrustStore(self.places.config)

    async def project_problems(self) -> tuple[str, ...]:
        """What this project (or the user) brings along that is left out, and why: a sentence each.

        Instructions, skills, agents, commands, settings and hooks that are not right, or not safe
        to read.  There are at most twenty sentences; the last one counts the rest.
        """
        project = self.project_path
        brought = await self._threads.run(lambda: self._prompter.problems(project))
        saved = SavedRules(self.places.config)
        rules = await self._threads.run(lambda: saved.problems(project))
        found = dict.fromkeys((*self.config.problems, *brought, *rules))
        if len(found) <= MOST_PROBLEMS:
            return tuple(found)
        more = f"{len(found) - MOST_PROBLEMS + 1} more files"
        return (*islice(found, MOST_PROBLEMS - 1), more)

    # -- files that prompts name

    async def attach_files(
        self,
        words: Sequence[str],
        *,
        ask: AskRead | None = None,
        missing: TellMissing | None = None,
    ) -> tuple[Text | Image | File, ...]:
        """The files that a prompt names with `@`, to be sent behind its text; it need not be open.

        `words` are the arguments of a command line, or one whole message.  `ask` is called with the
        path of each file outside the project and its added folders; without it such a prompt is
        refused.  `missing` is called once with the names that look like paths of no file.

        Raises:
            UsageError: a file may not be read, or cannot be attached; `weft.project.mentions` says
                which.
        """
        return await self._mentions(ask).attached(words, missing=missing)

    async def read_images(self, paths: Sequence[str]) -> tuple[Image | File, ...]:
        """The images and PDFs at these absolute paths, which the user picked; it need not be open.

        Raises:
            UsageError: one is neither, or cannot be read.
        """
        return await self._mentions(None).images(paths)

    async def read_blob(self, blob_id: str) -> bytes:
        """The content that a fact or a part names by its SHA-256; secrets in a text are masked.

        Raises:
            UsageError: there is none, or an open session has it as what a file held which the rules
                keep from being read.
        """
        return await self.host.read_blob(BlobId(blob_id))

    def _mentions(self, ask: AskRead | None) -> MentionReader:
        from weft.project.mentions import MentionReader  # only where a prompt names files

        workspace = self._workspaces.workspace(self.project_path)
        home = str(self.places.user)
        judge = read_judge(standing_rules(self.config, home), workspace.root)
        return MentionReader(workspace, home=home, redact=self._redact, ask=ask, judge=judge)

    def _read_config(self) -> Config:
        seen = self._look()
        is_trusted = seen is not None and self._trust.covers(seen)
        self._seen = seen if is_trusted else None
        config = load_config(
            user=self.places.config,
            project=self.project_path,
            environ=self._environ,
            given=self._given,
            files=seen.files if seen is not None else {},
            is_trusted=is_trusted,
        )
        if seen is not None:
            config.problems = (*seen.problems, *config.problems)
            if config.problems and self._trust.knows(seen):
                # The user wants these settings: to go on without would silently lose `deny` rules.
                raise UsageError(config.problems[0])
        return config

    def _read_again(self) -> None:
        self.config.take_over(self._read_config())
        self._prompter.use(self._prompt_terms())
        self._check_models()
        # In place: sessions that are open hold on to the hooks, and must neither run those of a
        # folder that is not trusted any more nor miss those of one that is.
        if self._hooks is not None:
            self._hooks.renew(self.config, self._seen)
        if self._host is not None:
            self._host.registry.renew()

    def _check_fallbacks(self, models: ModelRegistry) -> None:
        """Now, and not when the first model is down: then it would be too late."""
        fallbacks = self.config.lookup("model.fallback")
        for name in fallbacks.value:
            try:
                models.check(name)
            except UsageError as error:
                where = "" if fallbacks.source == "caller" else f"{fallbacks.source}: "
                raise UsageError(f"{where}model.fallback: {error}") from error

    def _check_models(self) -> None:
        """Leave out the models of an untrusted project that are unknown here.

        They would stop every session that names no model itself.
        """
        if self._models is None:
            return
        for name, setting in self.config.untrusted.items():
            if name in MODEL_KEYS and setting.value:
                named = setting.value
                try:
                    for each in [named] if isinstance(named, str) else named:
                        self._models.check(each)
                except UsageError as error:
                    self.config.leave_out(name, f"{setting.source}: {name}: {error}"[:400])

    def _look(self) -> ProjectFiles | None:
        """What could act in this project; a project without such a folder costs one look."""
        has_none = not os.path.lexists(os.path.join(self.project_path, ".weft"))
        if self._without_project or has_none:
            return None
        from weft.project.trust import look

        return look(self.project_path)

    def _mcp_access(self) -> McpAccess:
        if self._mcp is None:
            texts, is_strict = self._mcp_config
            if self._more_hooks is not None:
                from weft.runtime.mcp.program_servers import ProgramServers  # see `hooks`

                self._program_servers = ProgramServers()
            terms = McpTerms(
                config=self.config,
                environ=self._environ,
                places=self.places,
                hidden=self._workspaces.hidden,
                redact=self._redact,
                supervisor=self._supervisor,
                clock=self._clock,
                given=texts,
                is_strict=is_strict,
                is_sandboxed=self._workspaces.may_be_sandboxed,
                program_servers=self._program_servers,
                without_project=self._without_project,
            )
            self._mcp = McpAccess(terms)
        return self._mcp

    @property
    def mcp_servers(self) -> ProjectMcpServers | None:
        """The MCP servers of this project; None where none is configured.

        Raises:
            UsageError: what `mcp_config` names cannot be read.
        """
        access = self._mcp_access()
        access.look(self.project_path)
        return access.of(self.project_path)

    @property
    def program_mcp(self) -> ProgramMcp:
        """The MCP servers of this project, for the program that drives us.

        Raises:
            UsageError: none does, or what `mcp_config` names cannot be read.
        """
        from weft.api.mcp.program_access import ProgramMcp  # only for those who are driven

        access = self._mcp_access()
        if self._program_servers is None:
            raise UsageError("no program drives Weft")
        return ProgramMcp(self._program_servers, access.loaded(self.project_path))

    @property
    def mcp(self) -> AppMcp:
        """The MCP servers of this project, to be looked at and changed; it need not be open.

        Raises:
            UsageError: what `mcp_config` names cannot be read.
        """
        from weft.api.mcp.mcp_servers import AppMcp  # only for those who look

        return AppMcp(self._mcp_access().loaded(self.project_path))

    def _session_hooks(self, session_id: SessionId, project: str) -> HookProvider | None:
        """The hooks of a session; None, and nothing is loaded, where no hook is configured and no
        program may hand one over."""
        is_configured = any(layer.value for layer in self.config.layers("hooks"))
        if not is_configured and self._more_hooks is None:
            return None
        from weft.runtime.ports.hooked import HookSource

        if self._hooks is None:
            # The user's own programs run as they are: the sandbox is for what a model asks for.
            self._hooks = HookSource(
                self.config,
                self._seen,
                runner=self._workspaces.runner,
                redact=self._redact,
                more=self._more_hooks,
            )
        return self._hooks.of(session_id, project)

    @property
    def is_sandboxed(self) -> bool:
        """Whether it is known that commands run in a sandbox; the first one shows it."""
        return self._workspaces.is_sandboxed

    def _standing_rules(self) -> tuple[PermissionRule, ...]:
        saved = SavedRules(self.places.config).of(self.project_path)
        return (*standing_rules(self.config, str(self.places.user)), *saved)

    async def probe_sandbox(self) -> SandboxReport:
        """Try the sandbox on this project with its settings, whether or not the app is open."""
        from weft.runtime.workspaces.sandbox import SandboxFactory  # only for those who ask

        confinement = SandboxFactory(self.config, environ=self._environ, places=self.places)
        try:
            return await confinement.probe(self.project_path, self._standing_rules())
        finally:
            await confinement.aclose()

    async def probe_keeper(self) -> str:
        """Why commands outside the sandbox have no keeper here; empty where they have one."""
        return await self._workspaces.why_no_keeper()

    async def language_servers(self) -> list[ServerStatus]:
        """The language servers that are there for this project, and those that run in any process
        of this user's, whether or not the app is open.

        Raises:
            UsageError: the settings of a server are not right.
        """
        from weft.runtime.workspaces.language_servers import server_status  # as above

        return await server_status(
            self.config,
            environ=self._environ,
            places=self.places,
            project=self.project_path,
            is_trusted=await self.is_trusted(),
        )

    def restart_language_servers(self) -> None:
        """Have every process stop its language servers before it next uses one; those that had
        failed are tried again."""
        from weft.runtime.workspaces.language_status import StatusFolder  # as above

        StatusFolder(self.places.servers_restart).ask_restart()

    # -- life

    async def __aenter__(self) -> Self:
        await self._supervisor.open()
        try:
            await self._open()
        except BaseException:
            # What `_open` may have started runs in the supervisor; nothing of it must outlive a
            # failed start.
            await self._supervisor.aclose()
            if self._store is not None and self._store is not self._given_store:
                await self._store.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all sessions (their records stay), then everything else.

        Turns that run are suspended: they are interrupted, and can go on.
        """
        was_used = self._host is not None and self._host.last_used > 0
        projects = set() if self._host is None else self._host.projects
        try:
            await self._stop_accepting()
            if self._loom is not None:
                # Plain calls of views need not be awaited: what they have changed is stored now.
                await self._loom.trees.aclose()
            if self._host is not None:
                # From the top down: sessions end first, because they append their last facts
                # through the store.
                await self._host.aclose()
            if self._socket is not None:
                await self._socket.aclose()
            if self._stores is not None:
                await self._stores.aclose()
        finally:
            if was_used:
                # For the next session: what this one changed, or all of it where it was too short.
                self._source_asked_at = -SOURCE_EVERY_SECONDS
                await anyio.to_thread.run_sync(self._update_indexes, projects)
            # The sandbox and the store after the tasks: a task that is being cancelled may still
            # need both.
            await self._supervisor.aclose()
            if self._repo_topic is not None:
                self._repo_topic.close()
            if self._index_access is not None:
                self._index_access.close()
            await self._workspaces.aclose()
            if self._models is not None:
                await self._models.aclose()
            is_lent = self._serves and self._store is self._given_store
            if self._store is not None and not is_lent:
                await self._store.aclose()

    async def _stop_accepting(self) -> None:
        """Say before the first session is given back that it must not come back here."""
        if self._socket is None or self._store is None:
            return
        try:
            await self._store.register_address(self._store.owner.address, accepting=False)
        except StoreError:
            # It only spares others a try: closing goes on.
            logger.warning("others do not know that this process closes", exc_info=True)

    async def _open(self) -> None:
        given, place = self._given_store, location_of(self._given_store, self.places)
        # Before the first session exists: commands must not see where conversations are stored.
        self._workspaces.hide([] if place is None else place.files)
        if isinstance(given, str | os.PathLike):
            assert place is not None
            self._store = await open_location(place)
        else:
            self._store = given
        if self._store.meeting_folder is not None:
            self._workspaces.hide([self._store.meeting_folder])
        self._stores = StoreRegistry(
            self._store, place, places=self.places, listen=self._listen, hide=self._workspaces.hide
        )
        self._models = ModelRegistry(
            self._providers or default_providers(self._environ, self.config, self._clock)
        )
        self._check_models()
        self._check_fallbacks(self._models)
        self._shared = Services(
            stores=self._stores,
            supervisor=self._supervisor,
            config=self.config,
            models=self._models,
            clock=self._clock,
            sleep=self._sleep,
            workspaces=self._workspaces,
            prompter=self._prompter,
            redact=self._redact,
            places=self.places,
            saved_rules=SavedRules(self.places.config),
            hooks=self._session_hooks,
            is_trusted=self.is_trusted,
            indexes=ProjectIndexes(
                exists=self._has_index, may_make=self._may_index, access=self._indexes
            ),
            mcp=self._mcp_access(),
            project_path=self.project_path,
            seal=UnattendedKey(self.places.unattended_key, self._environ).seal,
        )
        self._host = SessionHost(self._shared)
        self._sessions = SessionManager(self._host)
        self._supervisor.start(self._unload_idle, "unload idle sessions")
        self._supervisor.start(self._trim_heap, "trim the heap")
        self._supervisor.start(self._keep_index, "keep the index")
        if self._wakes_due:
            self._supervisor.start(self._wake_due, "wake sessions that are due")
        if _has_any(self.places.unsettled_fans):
            from weft.runtime.fan.stored_fans import settle_fans  # few starts have any

            await settle_fans(self._host)
        if _has_any(self.places.sandbox / "bisect"):
            from weft.runtime.bisect.check_ground import bisect_places, sweep_places  # the same

            # What a killed process left; the places of those that live are locked.
            await anyio.to_thread.run_sync(sweep_places, bisect_places(self._shared))
        if self._store.liveness == "time":
            from weft.runtime.ports.lease_guard import guard_leases  # only over a network

            guard = partial(guard_leases, self._store, self._host.suspend_all)
            self._supervisor.start(guard, "guard leases")
        if not self._store.is_shared or (self._serves and self._store.liveness == "time"):
            return
        if self._listen_after:
            self._supervisor.start(self._listen_later, "listen")
        else:
            # Last, because another process may send a command the moment the socket is known.
            self._socket = await self._listen(self._store)

    async def _listen_later(self) -> None:
        await anyio.sleep(self._listen_after)
        while self._socket is None:
            try:
                self._socket = await self._listen(self.store)
                return
            except StoreError:
                # Others wait for the address of the socket, which could not be written down.
                logger.warning("the address of the socket could not be stored", exc_info=True)
                await anyio.sleep(self._listen_after)

    async def _listen(self, store: Store) -> AsyncCloseable | None:
        """Let other processes drive our sessions of a store.

        None where no other process can have it, or no socket can be had.
        """
        if not store.is_shared:
            return None
        from weft.runtime.ports.command_socket import CommandSocket  # late: it costs start-up time

        socket = CommandSocket(
            self.host.local_port, summarize=self._summarize_for, owns=self.host.is_owned_by
        )
        folder = store.meeting_folder
        if folder is None:
            # One of our own does: the other processes of this machine find it by the lease.
            # Hidden like the others: commands must not drive the sessions of their user.
            folder = self.places.sockets
            self._workspaces.hide([folder])
        path = await socket.open(folder, store.owner.process_id)
        if not path:
            return None
        try:
            # The socket listens before its address is published, so that the first connection finds
            # it open.
            await store.register_address(unix_address(path))
        except BaseException:
            await socket.aclose()
            raise
        self._supervisor.start(socket.serve, "command socket")
        return socket

    async def _summarize_for(
        self, session_id: SessionId, wanted: SummaryRequest
    ) -> tuple[str, str]:
        """Make a summary that another process asks for."""
        session = await self.sessions.get(session_id)
        if wanted.node is None:
            return await session.summarize()
        return await session.summarize_branch(wanted.node, input_id=wanted.input_id), ""

    async def _keep_index(self) -> None:
        """Have what changes while sessions are used read, off the way of their turns."""
        updated_at = 0.0
        await anyio.sleep(INDEX_AFTER_SECONDS)
        while True:
            if self.host.last_used > updated_at:
                updated_at = self._clock.monotonic()
                await anyio.to_thread.run_sync(self._update_indexes, self.host.projects)
            await anyio.sleep(INDEX_EVERY_SECONDS)
            # What lives so long is a chat or a server: from here on changes are told, not looked
            # for.
            is_due = updated_at and self._repo_topic is None and self.config.get("repo.watch")
            if is_due and await anyio.to_thread.run_sync(self._may_index, self.project_path):
                self._watch_project()

    async def _trim_heap(self) -> None:
        # A single run on the command line is over before; it does without what is loaded here.
        await anyio.sleep(self._listen_after)
        from weft.runtime import heap  # late: it costs start-up time

        heap.settle(os.environ)  # the one that the C library has read
        trimmed_at = 0.0
        while True:
            await anyio.sleep(TRIM_EVERY_SECONDS)
            # Turns leave holes, also of sessions that stay; where none ran there are no new ones.
            if self.host.last_used > trimmed_at:
                trimmed_at = self._clock.monotonic()
                await anyio.to_thread.run_sync(heap.trim)

    async def _wake_due(self) -> None:
        while True:
            await anyio.sleep(WAKE_EVERY_SECONDS)
            try:
                await self.host.wake_due()
            except WeftError:
                logger.exception("the store could not be asked what is due")

    async def _unload_idle(self) -> None:
        seconds = UNLOAD_EVERY_SECONDS
        while True:
            await anyio.sleep(seconds)
            try:
                await self.host.unload_idle(self.config.get("session.idle_unload"))
            except WeftError:
                # A full disk or a locked file passes; without this loop nothing would be unloaded
                # any more.
                seconds = min(2 * seconds, MOST_UNLOAD_SECONDS)
                logger.exception("unused sessions could not be unloaded")
            else:
                seconds = UNLOAD_EVERY_SECONDS


def _has_any(folder: os.PathLike[str]) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


def open_app(
    project_path: str | os.PathLike[str] = ".",
    store: StoreArgument | None = None,
    config: Mapping[str, Any] | None = None,
    **parts: Any,
) -> App:
    """The whole application, as an async context manager.

    `store` is a `Store`, "memory", "jsonl" or "sqlite" (kept with our data), "jsonl:FOLDER",
    "sqlite:FILE" or a path (a folder is a JSONL store); left out, it is the user's own database.
    `config` sets settings over all files.  `added` names further folders that sessions may work in.
    """
    return App(project_path, store, config, **parts)
