"""The prompt of a session: the prefix of its epoch, and the notes on what has changed since.

Vendors cache a request by the bytes of its beginning.  So the prefix stays the same, byte for byte,
until the model, the tools or what the user has set for the prompt change; everything else (the
date, the git branch, the permission mode, an edit of an instruction file) is told in notes on the
line.  A switch to or from plan mode changes the tools, and begins an epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from weft.context import (
    INSTRUCTIONS_VERSION,
    MEMORY_VERSION,
    PrefixTool,
    PromptPrefix,
    RenderedPrefix,
    environment_text,
    fitted,
    is_same_prefix,
    load_prefix,
    render_prefix,
    told_on,
    zone_budget,
)
from weft.errors import WeftError
from weft.events import Fact, NewMessage, SystemNote
from weft.ids import BlobId, NodeId
from weft.loop import tip_after
from weft.messages import Text, typed_text
from weft.permissions import PermissionRule
from weft.project.environment import (
    SandboxTerms,
    SessionSurroundings,
    environment_of,
    mode_sentence,
)
from weft.runtime.agent_host import SessionAgentHost
from weft.runtime.services import Services
from weft.runtime.turns.tool_contexts import DecisionsOnDemand
from weft.runtime.turns.turn_settings import is_planned
from weft.sha256 import sha256
from weft.state import SessionState
from weft.tools import (
    ALL,
    COMPANIONS,
    DECISIONS,
    EDITS,
    INDEX_TOOLS,
    BuiltinTool,
    DelegateTool,
    Tool,
)

logger = logging.getLogger(__name__)

HINT_SECONDS: Final = 0.045
"""How long a message waits for its hint, and a session for its map.  No message waits longer than
50 ms for the index, and timers are late.
"""
HURRY_SECONDS: Final = 0.02
"""After so long the bodies of files are no longer read for a hint: on a machine that is busy with
other things, a plain one in time is worth more than a better one that is dropped.
"""
_WINDOW_SHARE: Final = 64
"""A map takes at most so small a part of what a model can take in."""


class EpochTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What of the prefix stays as it was when the epoch began, though its source has changed."""

    instructions: str = ""
    memory: str = ""
    map: str = ""

    @classmethod
    def of(cls, prefix: PromptPrefix) -> EpochTexts:
        """As they stand in a prefix."""
        return cls(
            instructions=prefix.instructions_text,
            memory=prefix.zone_text("memory"),
            map=prefix.zone_text("map"),
        )


class _IndexWait:
    """The wait of a message for the index, which goes on while other things are read."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.is_answered = anyio.Event()
        self._is_over = False

    def end(self) -> None:
        """Do without what is not found by now."""
        self._is_over = True
        if not self.is_answered.is_set():
            self.scope.cancel()

    def is_over(self) -> bool:
        """Whether nobody waits any more; for the thread that looks."""
        return self._is_over


class SessionPrompt:
    """What the models of one session are told before the conversation, and beside it."""

    def __init__(
        self,
        services: Services,
        host: SessionAgentHost,
        blob: Callable[[BlobId], Awaitable[bytes | None]],
        *,
        has_user: bool,
        read_rules: Callable[[], Sequence[PermissionRule]] = tuple,
        network_rules: Callable[[], Sequence[PermissionRule]] = tuple,
        decisions: DecisionsOnDemand,
    ) -> None:
        """`read_rules` says which files are kept from the model, `network_rules` what its commands
        may reach."""
        self._read_rules = read_rules
        self._network_rules = network_rules
        self._hint = ""
        """What goes with the message that begins the next turn."""
        self._overview = ""
        """The map of the project for the first epoch."""
        self._is_indexed: bool | None = None
        """Whether the project had an index when the turn was prepared; None before the first."""
        self._services = services
        self._settings = host.settings
        self._host = host
        self._blob = blob
        self._has_user = has_user
        self._decisions = decisions
        self._epoch: RenderedPrefix | None = None
        """The prefix that the log names, once it is known here."""
        self._files = host.files
        self._window = 0
        """The window of the model that the prefix was made for; 0 where it is not known."""
        self._told: tuple[int, dict[str, str]] | None = None
        """What the model of the turn was told, and how many compactions there were then; None: the
        line says it.
        """
        self._told_at: NodeId | None = None
        """The node where that holds."""

    async def load(self, state: SessionState, facts: Sequence[Fact] = ()) -> None:
        """Read what the next turn needs: the files that are a part of the prompt, the hint that
        goes with its message, and the prefix of the epoch where another process began it.
        """
        self._hint = ""
        request = _request_in(facts)
        is_asked = bool(request) or self._epoch is None
        self._is_indexed = is_asked and self._services.indexes.exists(state.about.project_path)
        if request and self._is_indexed:
            wait = _IndexWait()
            async with anyio.create_task_group() as group:
                group.start_soon(self._ask_index, state, request, wait)
                # Alone at first: a thread that reads a database gives the interpreter's lock away
                # with each row, and while this one works, gets it back only every 5 ms.
                with anyio.move_on_after(HINT_SECONDS):
                    await wait.is_answered.wait()
                await self._files.read(state)
                wait.end()
        else:
            await self._files.read(state)
        await self._decisions.look(state)
        known = self._epoch.id if self._epoch is not None else None
        if state.prefix is None or known == state.prefix:
            return
        data = await self._blob(state.prefix)
        if data is not None:
            self._epoch = RenderedPrefix(prefix=load_prefix(data), data=data, id=state.prefix)

    async def _ask_index(self, state: SessionState, request: str, wait: _IndexWait) -> None:
        """Find the hint for a message, and the map for the first epoch of the session."""
        found: list[str] = []
        # Both are a help and never worth a wait: what comes too late is dropped.
        with wait.scope:
            try:
                ask = self._index_question(state, request, found, wait.is_over)
                await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
            except TimeoutError:
                pass
            except Exception:  # whatever is wrong with a cache, the user's message is not
                logger.warning("the index could not be asked", exc_info=True)
        wait.is_answered.set()
        # A thread that is left alone may add more at any time.
        overview, self._hint = (*found, "", "")[:2]
        self._overview = overview or self._overview

    def _index_question(
        self, state: SessionState, request: str, found: list[str], is_late: Callable[[], bool]
    ) -> Callable[[], None]:
        """What adds the map and then the hint to `found`; blocks."""
        focus, rules = tuple(state.files.touched), self._read_rules()
        redact, tokens = self._services.redact, self._map_tokens(state)
        clock = self._services.clock
        hurries_at = clock.monotonic() + HURRY_SECONDS

        def ask() -> None:
            from weft.runtime.turns.request_hints import overview_map, request_hint  # see `load`

            index = self._services.indexes.access().reader(state.about.project_path)
            # It ends by itself soon after nobody waits for it: it would take the interpreter away
            # from the turn that goes on.
            # The map first: it takes a fifth of the time, and the session keeps it.
            found.append(overview_map(index, tokens, rules, redact, is_late) if tokens else "")
            found.append(
                request_hint(
                    index,
                    request,
                    focus,
                    rules,
                    redact,
                    is_late,
                    lambda: clock.monotonic() >= hurries_at,
                )
            )

        return ask

    def _map_tokens(self, state: SessionState) -> int:
        """How long the map of the project may be; 0 where the session has a prefix, or wants none
        in it.
        """
        if self._epoch is not None or state.prefix is not None:
            return 0
        if state.settings.get("system_prompt") is not None:
            return 0  # a program says itself what its model is told
        wanted = int(self._services.config.get("repo.map_tokens"))
        return min(wanted, self._settings.window(state, {}) // _WINDOW_SHARE)

    # -- the prefix

    def prefix(self, state: SessionState, options: Mapping[str, Any]) -> RenderedPrefix:
        """System prompt and tools of a turn: those of the epoch, unless they have to be others."""
        tools = self._settings.tools_of(state, options)
        window = self._window_of(self._settings.model_name(state, options))
        # A larger window has room for what a smaller one had cut off.
        has_grown, self._window = 0 < self._window < window, window
        epoch = self._epoch
        if epoch is not None and not has_grown:
            kept = self._rendered(state, options, tools, self._fitted(EpochTexts.of(epoch.prefix)))
            # The same object for every call: what is encoded from it is kept beside it.
            if kept.id == epoch.id:
                return epoch
        self._epoch = self._rendered(state, options, tools, self._texts_now(state))
        return self._epoch

    def _texts_now(self, state: SessionState) -> EpochTexts:
        """What the files say now, as far as the model has room for it."""
        files, epoch = self._files.of(state), self._epoch
        # A map is made once for a session: hints tell what has come since, and nobody waits here.
        overview = self._overview if epoch is None else epoch.prefix.zone_text("map")
        return self._fitted(
            EpochTexts(instructions=files.instructions, memory=files.memory, map=overview)
        )

    def _fitted(self, texts: EpochTexts) -> EpochTexts:
        return EpochTexts(
            instructions=self._fit("instructions", texts.instructions),
            memory=self._fit("memory", texts.memory),
            map=texts.map,  # made within its budget: half a map would be none
        )

    def _fit(self, zone: str, text: str) -> str:
        """The text of a zone within its budget."""
        if not text:
            return text
        configured = self._services.config.get(f"context.{zone}")
        return fitted(text, zone, zone_budget(zone, configured, self._window))

    def _window_of(self, model: str) -> int:
        try:
            return self._services.models.resolve(model).info.context_window
        except WeftError:  # its key is gone; the call itself will say so
            return 0

    def is_planning(self, state: SessionState) -> bool:
        """True where the permission mode takes away the tools that change something."""
        return self._host.mode_of(state) == "plan"

    def _rendered(
        self,
        state: SessionState,
        options: Mapping[str, Any],
        tools: Mapping[str, Tool],
        texts: EpochTexts,
    ) -> RenderedPrefix:
        described = self._described(state, options, tools)
        files = self._files.of(state)
        skills = self._fit("skills", files.skills_text(tuple(state.skills.names)))
        agents = self._fit("agents", files.agents)
        text = self._services.prompter.system(
            state,
            texts.instructions,
            memory=texts.memory,
            skills=skills,
            tools=[tool.name for tool in described],
            has_tools=self._settings.can_call_tools(state, options),
        )
        if "agent" in tools and agents:
            text = f"{text}\n\n{agents}"
        if is_planned(options):
            from weft.agents.plan import PLANNER  # loaded with the first plan

            text = f"{text}\n\n{PLANNER}"
        if texts.map and any(tool.name in ALL for tool in described):
            text = f"{text}\n\n{texts.map}"
        places = _places(
            text,
            instructions=texts.instructions,
            memory=texts.memory,
            skills=skills,
            agents=agents,
            map=texts.map,
        )
        prefix = PromptPrefix(
            system=text,
            tools=tuple(
                [
                    PrefixTool(name=tool.name, description=tool.description, schema=tool.schema)
                    for tool in described
                ]
            ),
            instructions=places.pop("instructions", (0, 0)),
            zones=places or msgspec.UNSET,
        )
        # Encoded and hashed once: a turn asks for it when it is opened, and when it begins.
        if self._epoch is not None and is_same_prefix(prefix, self._epoch.prefix):
            return self._epoch
        return render_prefix(prefix)

    def _unused_edits(
        self, state: SessionState, options: Mapping[str, Any], tools: Mapping[str, Tool]
    ) -> Collection[str]:
        """The tools for edits that the model is not told of: it has either patches or exact
        replacements.
        """
        ours = {name for name, tool in tools.items() if isinstance(tool, BuiltinTool)}
        if "apply_patch" not in ours or ours.isdisjoint(EDITS):
            return ()
        return EDITS if self._settings.edits_by_patch(state, options) else ("apply_patch",)

    def _described(
        self, state: SessionState, options: Mapping[str, Any], tools: Mapping[str, Tool]
    ) -> list[Tool]:
        """The tools that the model is told of."""
        # Those that it is not told of can still be called: a model that remembers one is told why
        # it may not use it.
        unused = {*self._unused_edits(state, options, tools)}
        if not self._shows_decisions:
            unused.update(DECISIONS)
        if not self._decisions.is_on:
            unused.add("decision_log")
        own = {name for name in ("ask", *INDEX_TOOLS) if isinstance(tools.get(name), BuiltinTool)}
        if "ask" in own and not self._has_user:
            unused.add("ask")
        own.discard("ask")
        # Asked once for all of them: it is a look at the disk.
        if own and not self._offers_index(state):
            unused |= own
        is_planning = self.is_planning(state)
        return [
            tool
            for name, tool in tools.items()
            if name not in unused
            and (not is_planning or name in own or _may_plan(tool) or self._may_look(tool))
        ]

    def _may_look(self, tool: Tool) -> bool:
        """Whether plan mode leaves a model the shell: for commands that only read, in the sandbox,
        which drops what they change all the same."""
        is_ours = tool.name == "shell" and isinstance(tool, BuiltinTool)
        return is_ours and self._services.workspaces.may_be_sandboxed

    def _offers_index(self, state: SessionState) -> bool:
        """Whether the tools that ask the index are described: as it was when the epoch began, for
        an index that is made meanwhile must not change the prefix.
        """
        if self._epoch is None:
            if self._is_indexed is None:
                return self._services.indexes.exists(state.about.project_path)
            return self._is_indexed
        return any(tool.name in INDEX_TOOLS for tool in self._epoch.prefix.tools)

    @property
    def _shows_decisions(self) -> bool:
        """Whether the model is told of the tools that look at decisions."""
        # Fixed with the epoch: the first decision of a session would otherwise change the bytes
        # that vendors cache.
        if self._epoch is not None:
            return any(tool.name in DECISIONS for tool in self._epoch.prefix.tools)
        return self._decisions.found is not None

    # -- notes

    def opening_notes(
        self, state: SessionState, facts: Sequence[Fact], prefix: PromptPrefix
    ) -> tuple[Fact, ...]:
        """What the model has to be told with the message that begins a turn, which is among
        `facts`.
        """
        if not _reaches_machine(prefix):
            return ()
        # The message is not in the tree yet, and need not follow the head: one that was edited
        # stands beside the one it replaces.  Its line knows what is known above it.
        added = [fact.node for fact in facts if isinstance(fact, NewMessage)]
        above = added[0].parent if added else tip_after(state, ())
        known = None
        if self._told is not None and self._told[0] == len(state.tree.compactions):
            known = (self._told_at, self._told[1])
        told = dict(told_on(state.tree, above, known))
        node = added[-1].id if added else above
        now = self._environment(state, facts)
        if self._decisions.found is not None:
            said = "\n".join(typed_text(each.parts) for each in added if each.role == "user")
            now |= self._decisions.found.environment(said or None, told)
        if (servers := self._settings.mcp_servers(state)) is not None:
            now |= _mcp_subject(servers.note(), told)
        notes = self._notes(state, now, told, node, prefix)
        if not self._hint:
            return notes
        # With what the model knows here: by that the note is one for the model alone.
        return (*notes, SystemNote(text=self._hint, to_model=True, node=node, environment=now))

    def notes_since(
        self, state: SessionState, noted: Sequence[Fact], prefix: PromptPrefix
    ) -> tuple[Fact, ...]:
        """What the model has to be told in the middle of a turn: another permission mode, and all
        of it where a compaction took what it was told.
        """
        if not _reaches_machine(prefix):
            return ()
        # A walk along the line, so it is taken only where something may have been forgotten.
        if self._told is None or self._told[0] != len(state.tree.compactions):
            told = dict(told_on(state.tree, tip_after(state, ())))
            now = self._environment(state)
            if self._decisions.found is not None:
                now |= self._decisions.found.environment(None, told)
            if (servers := self._settings.mcp_servers(state)) is not None:
                now |= _mcp_subject(servers.note(), told)
        else:
            told = self._told[1]
            mode = mode_sentence(self._host.mode_of(state), has_user=self._has_user)
            if told["mode"] == mode:
                return ()
            told, now = dict(told), {**told, "mode": mode}
        tip = tip_after(state, noted)  # may be among what is noted, and not in the tree
        return self._notes(state, now, told, tip, prefix)

    def _notes(
        self,
        state: SessionState,
        now: dict[str, str],
        told: dict[str, str],
        node: NodeId | None,
        prefix: PromptPrefix,
    ) -> tuple[Fact, ...]:
        told.setdefault(INSTRUCTIONS_VERSION, _version(prefix.instructions_text))
        told.setdefault(MEMORY_VERSION, _version(prefix.zone_text("memory")))
        self._told, self._told_at = (len(state.tree.compactions), now), node
        texts = self._texts_now(state)
        text = environment_text(now, told, texts.instructions, texts.memory)
        if not text:
            return ()
        return (SystemNote(text=text, to_model=True, node=node, environment=now),)

    def _allowed_hosts(self) -> tuple[str, ...]:
        rules = self._network_rules()
        if not any(each.verdict == "allow" for each in rules):
            return ()
        from weft.permissions.network_rules import reachable_domains  # few sessions have such rules

        return reachable_domains(rules)

    def _environment(self, state: SessionState, facts: Sequence[Fact] = ()) -> dict[str, str]:
        config = self._services.config
        surroundings = SessionSurroundings(
            git=self._files.of(state).git,
            changes=self._files.of(state).changes,
            now=self._services.clock.now(),
            mode=self._host.mode_of(state, facts),
            sandbox=SandboxTerms(
                is_on=self._services.workspaces.may_be_sandboxed,
                network=config.get("sandbox.network"),
                unix_sockets=config.get("sandbox.unix_sockets"),
                hosts=self._allowed_hosts(),
            ),
            has_user=self._has_user,
        )
        texts = self._texts_now(state)
        return {
            **environment_of(surroundings),
            INSTRUCTIONS_VERSION: _version(texts.instructions),
            MEMORY_VERSION: _version(texts.memory),
        }


def _mcp_subject(note: str, told: Mapping[str, str]) -> dict[str, str]:
    """What a model is told of MCP tools; also that there are none any more."""
    if not note and "mcp" not in told:
        return {}
    return {"mcp": note or "There are no tools of MCP servers to be looked up any more."}


def _request_in(facts: Sequence[Fact]) -> str:
    """What the user says with the message that begins a turn."""
    return "\n".join(
        part.text
        for fact in facts
        if isinstance(fact, NewMessage) and fact.node.role == "user"
        for part in fact.node.parts
        if isinstance(part, Text)
    )


def _may_plan(tool: Tool) -> bool:
    """Whether plan mode leaves a model this tool."""
    # What an agent does is judged by the same mode; and without the shell there is no output of its
    # commands to look at.
    is_pure = tool.effect == "pure" and tool.name not in COMPANIONS
    # Of a server whose word the user takes.
    is_claimed = getattr(tool, "may_plan", False) is True
    return is_pure or is_claimed or isinstance(tool, DelegateTool)


def _reaches_machine(prefix: PromptPrefix) -> bool:
    """Whether the environment matters: a program's own tools need not have one."""
    return any(tool.name in ALL for tool in prefix.tools)


def _places(text: str, **parts: str) -> dict[str, tuple[int, int]]:
    """Where each of these stands in the system prompt, which has them in this order."""
    found: dict[str, tuple[int, int]] = {}
    end = 0
    for name, part in parts.items():
        # Behind the one before: what is remembered may quote the instructions.
        first = text.find(part.strip(), end) if part.strip() else -1
        if first >= 0:
            end = first + len(part.strip())
            found[name] = (first, end)
    return found


def _version(instructions: str) -> str:
    return sha256(instructions.encode()).hexdigest()[:16] if instructions else ""
