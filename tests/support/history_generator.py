"""Writes plausible histories: what a session could really have put into its log, in order, with
right `seq` numbers.

A list of numbers means a history: each number chooses among what is possible at that moment, so
that short lists are short histories.  While it writes, the generator keeps a **plain model** of
what it did (lists and sets, no fold), which tests compare with the folds.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from weft.events import (
    AnyFact,
    ArchitectPlan,
    ArchitectStep,
    AsideAnswered,
    BoundaryChanged,
    BranchesEnded,
    BranchesStarted,
    BranchFailed,
    BranchSlot,
    ChildFinished,
    ChildStarted,
    CommandCause,
    CommandEnd,
    Compacted,
    CompactionUndone,
    DecisionLogged,
    ErrorRaised,
    Fact,
    FanCandidateDropped,
    FanCandidateEnded,
    FanCandidateRestored,
    FanCandidateStarted,
    FanClosed,
    FanJudged,
    FanKept,
    FanSlot,
    FanStarted,
    FanVerified,
    FileTouched,
    ForkPoint,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    HeadMoved,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputScheduled,
    InputsReordered,
    ModeChanged,
    ModelCallStarted,
    MovedNode,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    PlanEdited,
    PrefixFrozen,
    QuestionAnswered,
    QuestionAsked,
    QueuesRecalled,
    RefDeleted,
    RefMoved,
    ResultsCleared,
    Rewound,
    ScheduleEnded,
    ScheduleFired,
    SessionCreated,
    SessionHosted,
    SessionRestarted,
    SettingChanged,
    SkillChanged,
    StoredReason,
    SubtreeDeleted,
    SubtreeRestored,
    SystemNote,
    Todo,
    TodoChanged,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnParked,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
    UnknownFact,
    UsageRecorded,
    WaitSubject,
    WorkspaceSaved,
    WorkspaceSnapshot,
)
from weft.ids import (
    BlobId,
    CallUid,
    DecisionId,
    EntryId,
    GoalId,
    InputId,
    NodeId,
    RequestId,
    ScheduleId,
    SessionId,
    TurnId,
    WaitId,
)
from weft.messages import Node, Text, ToolCall, ToolResult, Usage
from weft.state import SessionState

T = TypeVar("T")

A, B = SessionId("ses_a"), SessionId("ses_b")


class PlainState:
    """What a history comes to, kept in the plainest way: the model that folds are compared with."""

    def __init__(self) -> None:
        self.parents: dict[NodeId, NodeId | None] = {}
        self.calls: dict[CallUid, NodeId] = {}
        self.settled: dict[CallUid, tuple[SessionId, int]] = {}
        self.head: NodeId | None = None
        self.refs: dict[str, NodeId | None] = {}
        self.deleted: list[NodeId] = []
        self.marks: dict[tuple[NodeId, str], Any] = {}
        self.revisions: dict[NodeId, int] = {}
        self.compactions: list[tuple[SessionId, int]] = []
        self.clearings: list[tuple[SessionId, int]] = []
        """Those of `compactions` that cleared results."""
        self.settings: dict[str, Any] = {}
        self.todos: tuple[Todo, ...] = ()
        self.files: list[str] = []
        """Paths that the session changed, last touched last."""
        self.absent: set[str] = set()
        """Paths that did not exist before the session."""
        self.gone: set[str] = set()
        """Paths that do not exist now."""
        # A fork inherits nothing from here on.
        self.queue: list[EntryId] = []
        self.turn: TurnId | None = None
        self.intents: list[CallUid] = []
        self.requests: dict[RequestId, CallUid] = {}
        self.usages: list[UsageRecorded | ChildFinished] = []
        self.inputs: list[InputId] = []
        self.messages = 0
        self.turns = 0

    def forked(self, at: NodeId | None) -> PlainState:
        """The model of a fork at this moment."""
        fresh = PlainState()
        for name in _INHERITED:
            value = getattr(self, name)
            setattr(fresh, name, value if isinstance(value, tuple) else value.copy())
        fresh.head = at
        return fresh


_INHERITED = (
    *("parents", "calls", "settled", "refs", "deleted", "marks", "revisions", "compactions"),
    *("clearings", "settings", "todos", "files", "absent", "gone"),
)


class HistoryGenerator:
    """Writes a plausible history, one step at a time."""

    def __init__(self, session_id: SessionId, plain: PlainState | None = None) -> None:
        self.session_id = session_id
        self.facts: list[AnyFact] = []
        self.plain = plain or PlainState()
        self._made = 0
        self._choice = 0

    # -- choosing and stamping

    def step(self, number: int) -> None:
        """Do one of the things that are possible now."""
        self._choice = number
        possible = _IN_TURN if self.plain.turn is not None else _IDLE
        self._pick(possible)(self)

    def _pick(self, options: Sequence[T]) -> T:
        """One of the options; every pick of a step uses up a part of its number."""
        self._choice, index = divmod(self._choice, len(options))
        return options[index]

    def _new(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}_{self.session_id}_{self._made}"

    def write(self, fact: Fact) -> int:
        """Stamp a fact and put it down; returns its `seq`."""
        seq = len(self.facts) + 1
        cause = None
        if seq % 5 == 1:
            cause = CommandCause(
                input_id=InputId(f"inp_{seq}"), digest=f"d{seq}", answer={"seq": seq}
            )
            self.plain.inputs.append(cause.input_id)
        self.facts.append(
            msgspec.structs.replace(
                fact, session_id=self.session_id, seq=seq, at=1.8e9 + seq / 8, cause=cause
            )
        )
        return seq

    def unknown(self) -> None:
        """A fact of a newer program."""
        seq, at = len(self.facts) + 1, 1.8e9
        raw = f'{{"kind":"dreamt@3","session_id":"{self.session_id}","seq":{seq},"at":{at}}}'
        self.facts.append(
            UnknownFact(
                kind="dreamt@3", session_id=self.session_id, seq=seq, at=at, raw=raw.encode()
            )
        )

    # -- the session

    def create(self, fork: ForkPoint | None = None) -> None:
        """The first fact."""
        self.write(
            SessionCreated(
                project_path="/p",
                model="scripted:a",
                title="" if fork is None else "a (fork)",
                settings={"thinking": "low"},
                fork=fork,
            )
        )
        self.plain.settings |= {"thinking": "low", "model": "scripted:a"}
        if fork is not None:
            self.plain.settings["title"] = "a (fork)"

    def set_setting(self) -> None:
        name = self._pick(("model", "thinking", "budget", "permission_mode"))
        value = self._pick((None, "x", 3, {"usd": 2**70}, ["y", 1.5]))
        self.write(SettingChanged(name=name, value=value))
        if value is None:
            self.plain.settings.pop(name, None)
        else:
            self.plain.settings[name] = value

    def set_mode(self) -> None:
        mode = self._pick(("normal", "architect"))
        self.write(ModeChanged(mode=mode))
        self.plain.settings["mode"] = mode

    def note(self) -> None:
        self.write(
            SystemNote(
                text="n",
                to_model=self._pick((False, True)),
                node=self.plain.head,
                background=self._pick((None, CommandEnd(id="bg_1"), CommandEnd(id="bg_2"))),
            )
        )

    def todo(self) -> None:
        count = self._pick((0, 1, 2))
        self.plain.todos = tuple(Todo(id=str(n), text="t") for n in range(count))
        self.write(TodoChanged(items=self.plain.todos))

    def mention(self) -> None:
        """A fact that the plain state knows nothing of."""
        self.write(self._pick(_MENTIONS))

    def child_ends(self) -> None:
        fact = ChildFinished(
            child=SessionId("ses_child"),
            reason="stop",
            usage=self._pick((None, *_USAGES)),
            node=self._paid_for(),
        )
        self.write(fact)
        self.plain.usages.append(fact)

    # -- the turn

    def _say(self, node: Node, *, advance: bool = True) -> None:
        self.write(NewMessage(node=node, advance=advance))
        self.plain.parents[node.id] = node.parent
        self.plain.revisions[node.id] = 0
        for call in node.calls:
            self.plain.calls[call.call_uid] = node.id
        for mark, value in node.metadata.items():
            self.plain.marks[node.id, mark] = value
        self.plain.messages += 1
        if advance:
            self.plain.head = node.id

    def _user_says(self) -> None:
        self._say(
            Node(
                id=NodeId(self._new("nod")),
                role="user",
                parts=(Text(text="do it"),),
                parent=self.plain.head,
            )
        )

    def prompt(self) -> None:
        self._user_says()
        self.start_turn(continued=False)

    def start_turn(self, continued: bool = True) -> None:
        turn_id = TurnId(self._new("trn"))
        self.write(TurnStarted(turn_id=turn_id, node=self.plain.head, continued=continued))
        self.plain.turn = turn_id
        self.plain.turns += not continued

    def answer(self) -> None:
        assert self.plain.turn is not None
        node_id = NodeId(self._new("nod"))
        calls = tuple(
            ToolCall(
                call_uid=CallUid(self._new("cal")),
                name=self._pick(("read", "write", "shell")),
                args={"n": self._pick((1, 2**80, "x"))},
            )
            for _ in range(self._pick((0, 1, 2, 3)))
        )
        self.write(ModelCallStarted(turn_id=self.plain.turn, node=node_id, model="scripted:a"))
        partial = {"partial": True} if self._pick((False, False, True)) else {}
        self._say(
            Node(
                id=node_id,
                role="assistant",
                parts=(Text(text="yes"), *calls),
                parent=self.plain.head,
                metadata=partial,
            )
        )
        for call in calls:
            if call.name != "read":
                self.intend(call)
        self.record_usage()

    def intend(self, call: ToolCall) -> None:
        self.write(
            ToolExecuting(
                call_uid=call.call_uid,
                node=self.plain.calls[call.call_uid],
                tool_name=call.name,
                args=call.args,
                effect="checkable",
            )
        )
        self.plain.intents.append(call.call_uid)

    def record_usage(self) -> None:
        fact = UsageRecorded(
            usage=self._pick(_USAGES),
            model=self._pick(("scripted:a", "scripted:b")),
            purpose=self._pick(("turn", "title")),
            turn_id=self._pick((self.plain.turn, None)),
            node=self._paid_for(),
            request_estimate=self._pick((0, 600)),
        )
        self.write(fact)
        self.plain.usages.append(fact)

    def _paid_for(self) -> NodeId | None:
        """The node that a call was for: mostly the last one, seldom one that comes later."""
        to_come = NodeId(f"nod_{self.session_id}_{self._made + 1}")
        return self._pick((self.plain.head, self.plain.head, self._somewhere(), to_come))

    def _open_calls(self) -> list[CallUid]:
        return [uid for uid in self.plain.calls if uid not in self.plain.settled]

    def settle(self) -> None:
        """Any open call gets its result, in any order.

        Sometimes a second one, which counts for nothing.
        """
        calls = self._pick((self._open_calls(), list(self.plain.calls))) or self._open_calls()
        if not calls:
            return self.note()
        uid = self._pick(calls)
        if self._pick((False, True)):
            self.touch(uid)
        seq = self.write(
            ToolComplete(
                call_uid=uid,
                node=self.plain.calls[uid],
                result=ToolResult(call_uid=uid, text="done", data=self._pick(_DATA)),
            )
        )
        self.plain.settled.setdefault(uid, (self.session_id, seq))
        self.plain.intents = [each for each in self.plain.intents if each != uid]
        self.plain.requests = {k: v for k, v in self.plain.requests.items() if v != uid}
        return None

    def touch(self, uid: CallUid | None = None) -> None:
        """A tool changes a file as the disk allows: what is there cannot be created again."""
        plain, path = self.plain, self._pick(("a.py", "b.py", "c.py", "d.py"))
        known = path in plain.files or path in plain.absent or path in plain.gone
        exists = path not in plain.gone if known else self._pick((True, False))
        if not known and not exists:
            plain.absent.add(path)
        action: Literal["created", "modified", "deleted"] = "created"
        if exists:
            action = "deleted" if self._pick((False, True)) else "modified"
        self.write(FileTouched(path=path, action=action, call_uid=uid))
        plain.gone.discard(path)
        if action == "deleted":
            plain.gone.add(path)
        if path in plain.files:
            plain.files.remove(path)
        plain.files.append(path)

    def ask(self) -> None:
        calls = self._open_calls()
        if not calls:
            return self.note()
        uid, request_id = self._pick(calls), RequestId(self._new("req"))
        node = self.plain.calls[uid]
        forms: tuple[Fact, ...] = (
            PermissionRequest(request_id=request_id, call_uid=uid, node=node, tool_name="shell"),
            QuestionAsked(request_id=request_id, call_uid=uid, node=node, question="?"),
        )
        self.write(self._pick(forms))
        self.plain.requests[request_id] = uid
        return None

    def reply(self) -> None:
        if not self.plain.requests:
            return self.note()
        request_id = self._pick(list(self.plain.requests))
        forms: tuple[Fact, ...] = (
            PermissionResolved(request_id=request_id, action="allow_once", by="me"),
            QuestionAnswered(request_id=request_id, answer="yes"),
        )
        self.write(self._pick(forms))
        del self.plain.requests[request_id]
        return None

    def finish(self) -> None:
        assert self.plain.turn is not None
        reasons: tuple[StoredReason, ...] = ("stop", "aborted", "max_turns", "provider_error")
        self.write(TurnFinished(turn_id=self.plain.turn, reason=self._pick(reasons)))
        self.plain.turn = None
        self.plain.intents = []
        self.plain.requests = {}

    # -- the queue

    def queue_input(self) -> None:
        entry_id = EntryId(self._new("ent"))
        self.write(
            InputQueued(
                entry_id=entry_id,
                delivery=self._pick(("steering", "follow_up")),
                parts=(Text(text="and"),),
            )
        )
        self.plain.queue.append(entry_id)

    def change_queue(self) -> None:
        if not self.plain.queue:
            return self.queue_input()
        entry = self._pick(self.plain.queue)
        match self._pick(("edit", "remove", "promote", "reorder", "recall")):
            case "edit":
                self.write(InputEdited(entry_id=entry, parts=(Text(text="or"),)))
            case "remove":
                self.write(InputRemoved(entry_id=entry))
                self.plain.queue.remove(entry)
            case "promote":
                self.write(InputPromoted(entries=(entry,)))
                self.plain.queue.remove(entry)
                self._user_says()
            case "reorder":
                first = (entry, *self._pick(((), tuple(reversed(self.plain.queue)))))
                order = tuple(dict.fromkeys(first))
                self.write(InputsReordered(entries=order))
                rest = [each for each in self.plain.queue if each not in order]
                self.plain.queue = [*order, *rest]
            case _:
                self.write(QueuesRecalled(entries=tuple(self.plain.queue)))
                self.plain.queue = []
        return None

    # -- the tree

    def _somewhere(self) -> NodeId | None:
        return self._pick((None, *self.plain.parents))

    def move_head(self) -> None:
        to = self._somewhere()
        if self._pick((True, False)):
            self.write(HeadMoved(node=to))
            self.plain.head = to
            return
        conversation = self._pick((True, False))
        self.write(Rewound(to=to, conversation=conversation))
        if conversation:
            self.plain.head = to

    def move_ref(self) -> None:
        name = self._pick(("main", "try", "safe"))
        if name in self.plain.refs and self._pick((False, True)):
            self.write(RefDeleted(name=name))
            del self.plain.refs[name]
            return
        node = self._somewhere()
        self.write(RefMoved(name=name, node=node, ref=self._pick(("branch", "checkpoint"))))
        self.plain.refs[name] = node

    def change_node(self) -> None:
        if not self.plain.parents:
            return self._user_says()
        node = self._pick(list(self.plain.parents))
        match self._pick(("edit", "mark", "delete", "split", "join", "restore")):
            case "edit":
                self.plain.revisions[node] += 1
                revision = self.plain.revisions[node]
                carries = tuple(self._below(node)[: self._pick((0, 1))])
                self.write(
                    NodeEdited(
                        node=node, revision=revision, parts=(Text(text="e"),), carries=carries
                    )
                )
            case "split":
                self._split(node)
            case "join":
                self._join(node)
            case "mark":
                mark = self._pick(("bookmark", "rating", "label"))
                value = self._pick((None, True, 5, "good"))
                self.write(NodeMarked(node=node, mark=mark, value=value))
                self.plain.marks.pop((node, mark), None)
                if value is not None:
                    self.plain.marks[node, mark] = value
            case "delete":
                self.write(SubtreeDeleted(node=node))
                if node not in self.plain.deleted:
                    self.plain.deleted.append(node)
            case _:
                self.write(SubtreeRestored(node=node))
                if node in self.plain.deleted:
                    self.plain.deleted.remove(node)
        return None

    def _below(self, node: NodeId) -> list[NodeId]:
        return [each for each, parent in self.plain.parents.items() if parent == node]

    def _split(self, node: NodeId) -> None:
        """A node in two; or one that was joined is parted again."""
        joined = [each for each in self._below(node) if each in self.plain.deleted]
        again: bool = self._pick((False, True))
        tail = Node(
            id=joined[0] if joined and again else NodeId(self._new("nod")),
            role="assistant",
            parts=(Text(text="t"),),
            parent=node,
        )
        moves = tuple(
            MovedNode(node=each, revision=self.plain.revisions.get(tail.id, 0))
            for each in self._below(node)
            if each != tail.id
        )[: self._pick((0, 1, 9))]
        self.plain.revisions[node] += 1
        revision = self.plain.revisions[node]
        self.write(
            NodeSplit(node=node, revision=revision, tail=tail, parts=(Text(text="h"),), moves=moves)
        )
        self.plain.parents.setdefault(tail.id, node)
        self.plain.revisions.setdefault(tail.id, 0)
        if tail.id in self.plain.deleted:
            self.plain.deleted.remove(tail.id)
        for each in moves:
            self.plain.parents[each.node] = tail.id
        self._move_ends(node, tail.id)

    def _join(self, node: NodeId) -> None:
        parent = self.plain.parents[node]
        if parent is None:
            return
        self.plain.revisions[parent] += 1
        revision = self.plain.revisions[parent]
        moves = tuple(
            MovedNode(node=each, revision=self._pick((revision, revision - 1)))
            for each in self._below(node)
        )
        self.write(
            NodesJoined(
                node=parent, revision=revision, child=node, parts=(Text(text="j"),), moves=moves
            )
        )
        for each in moves:
            self.plain.parents[each.node] = parent
        self._move_ends(node, parent)
        if node not in self.plain.deleted:
            self.plain.deleted.append(node)

    def _move_ends(self, old: NodeId, new: NodeId) -> None:
        if self.plain.head == old:
            self.plain.head = new
        for name, node in self.plain.refs.items():
            if node == old:
                self.plain.refs[name] = new

    def generate(self) -> None:
        """Branches that are generated, as far as they get."""
        gen = self._new("gen")
        self.write(
            BranchesStarted(
                gen_id=gen,
                source=self.plain.head or NodeId("nod_none"),
                plan=(BranchSlot(node_id=NodeId(f"nod_of_{gen}"), model="m"),),
            )
        )
        if self._pick((False, True)):
            self.write(BranchFailed(gen_id=gen, slot=0, category="network"))
        if self._pick((False, True)):
            self.write(BranchesEnded(gen_id=gen, reason="failed"))

    def compact(self) -> None:
        undo = self._pick((False, True))
        if undo and self.plain.compactions:
            undone = self._pick(self.plain.compactions)
            log = None if undone[0] == self.session_id else undone[0]
            self.write(CompactionUndone(compaction=undone[1], log=log))
            self.plain.compactions.remove(undone)
            return None
        if self.plain.head is None:
            return self._user_says()
        if self._pick((False, False, True)):
            cleared = dict.fromkeys(list(self.plain.settled)[:2], 0)
            seq = self.write(ResultsCleared(upto=self.plain.head, results=cleared))
            self.plain.clearings.append((self.session_id, seq))
        else:
            seq = self.write(Compacted(upto=self.plain.head, summary="s"))
        self.plain.compactions.append((self.session_id, seq))
        return None


_DATA: tuple[dict[str, Any], ...] = (
    {},
    {"background": {"id": "bg_1", "command": "serve"}},
    {"background": {"id": "bg_2"}},
    {"background": True},
)
"""What results say of commands in the background."""
_MENTIONS: tuple[Fact, ...] = (
    TurnParked(turn_id=TurnId("t"), restarts=3),
    AsideAnswered(call=NodeId("c"), answer="a"),
    TurnWaiting(wait_id=WaitId("w"), turn_id=TurnId("t"), on=WaitSubject(kind="time")),
    TurnWoken(wait_id=WaitId("w"), turn_id=TurnId("t"), by="time"),
    InputScheduled(schedule_id=ScheduleId("s"), due=9.0, parts=(Text(text="look"),), every=5.0),
    ScheduleFired(schedule_id=ScheduleId("s"), round=1, due=9.0),
    ScheduleEnded(schedule_id=ScheduleId("s"), reason="cancelled"),
    GoalSet(goal_id=GoalId("g"), text="reach it", check="make"),
    GoalChecked(goal_id=GoalId("g"), round=1, progress=False),
    GoalPaused(goal_id=GoalId("g"), reason="user"),
    GoalEnded(goal_id=GoalId("g"), reason="cleared"),
    ErrorRaised(message="m", where="hook"),
    SessionRestarted(reason="crash"),
    SessionHosted(host="https://one:7717", fence=3, trusted_mode=True),
    BoundaryChanged(path="a.py", first=0, last=9),
    SkillChanged(name="s", active=True),
    PrefixFrozen(prefix=BlobId("b" * 64)),
    WorkspaceSnapshot(tree=BlobId("c" * 64)),
    WorkspaceSaved(tree=BlobId("c" * 64), repository=BlobId("d" * 64), folder="1:2"),
    DecisionLogged(ids=(DecisionId("dec_1"),)),
    ChildStarted(child=SessionId("ses_child")),
    ArchitectPlan(plan_id="p", plan={"steps": []}),
    PlanEdited(plan_id="p", plan={}),
    PlanDecided(plan_id="p", approved=True),
    ArchitectStep(plan_id="p", index=0, status="started"),
    FanStarted(fan_id="f", plan=(FanSlot(model="m", n=2),)),
    FanCandidateStarted(fan_id="f", index=1, child=SessionId("ses_child")),
    FanCandidateEnded(fan_id="f", index=1),
    FanVerified(fan_id="f", index=1, passed=True),
    FanJudged(fan_id="f", order=(1,)),
    FanKept(fan_id="f", index=1),
    FanCandidateDropped(fan_id="f", index=1),
    FanCandidateRestored(fan_id="f", index=1),
    FanClosed(fan_id="f"),
)

_USAGES = (
    Usage(input_tokens=100, output_tokens=10, cost_usd=0.25),
    Usage(cache_read_tokens=7, cache_write_tokens=3, reasoning_tokens=2, cost_usd=0.125),
    Usage(input_tokens=1, output_tokens=1),
)
"""The costs are sums of halves, so that no order of adding changes them.

The last one is unknown.
"""

_ANYTIME: tuple[Callable[[HistoryGenerator], None], ...] = (
    HistoryGenerator.set_setting,
    HistoryGenerator.set_mode,
    HistoryGenerator.note,
    HistoryGenerator.todo,
    HistoryGenerator.mention,
    HistoryGenerator.child_ends,
    HistoryGenerator.record_usage,
    HistoryGenerator.touch,
    HistoryGenerator.queue_input,
    HistoryGenerator.change_queue,
    HistoryGenerator.change_node,
    HistoryGenerator.generate,
    HistoryGenerator.move_ref,
    HistoryGenerator.compact,
    HistoryGenerator.unknown,
)
_IDLE = (
    HistoryGenerator.prompt,
    HistoryGenerator.prompt,
    HistoryGenerator.prompt,
    HistoryGenerator.move_head,
    HistoryGenerator.start_turn,
    *_ANYTIME,
)
_IN_TURN = (
    *(
        HistoryGenerator.answer,
        HistoryGenerator.answer,
        HistoryGenerator.answer,
        HistoryGenerator.settle,
        HistoryGenerator.settle,
        HistoryGenerator.settle,
        HistoryGenerator.settle,
    ),
    *(HistoryGenerator.ask, HistoryGenerator.reply, HistoryGenerator.finish),
    *_ANYTIME,
)


class History(typing.NamedTuple):
    """Facts as they would be read from the store, inherited ones first, and what they come to."""

    session_id: SessionId
    facts: list[AnyFact]
    plain: PlainState

    def empty(self) -> SessionState:
        """The state before the first fact."""
        return SessionState(session_id=self.session_id)


def write_history(numbers: Sequence[int], session_id: SessionId = A) -> History:
    """The history that these numbers mean."""
    generator = HistoryGenerator(session_id)
    generator.create()
    for number in numbers:
        generator.step(number)
    return History(session_id, generator.facts, generator.plain)


def write_fork(parent: Sequence[int], own: Sequence[int], session_id: SessionId = B) -> History:
    """A fork of the history that `parent` means, at its last moment and some node, with steps of
    its own.
    """
    source = write_history(parent)
    last = source.facts[-1]
    places = (source.plain.head, None, *source.plain.parents)
    at = places[sum(own) % len(places)]
    generator = HistoryGenerator(session_id, source.plain.forked(at))
    generator.create(ForkPoint(session_id=last.session_id, seq=last.seq, node=at))
    for number in own:
        generator.step(number)
    return History(session_id, [*source.facts, *generator.facts], generator.plain)
