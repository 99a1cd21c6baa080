"""Automatic entries of a session in its project's decision graph.

They are made of facts that are about to be appended, and go on record in the same append: either
both are stored or neither.  Loaded when something happens that could be one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from weft.decisions import (
    DecisionAdded,
    DecisionChanged,
    DecisionFact,
    DecisionGraph,
    TurnEvidence,
    returning_options,
)
from weft.decisions.corrections import find_correction
from weft.decisions.goal_entries import GoalAttempt, goal_entries
from weft.decisions.masked_facts import masked_facts, masked_texts
from weft.decisions.note import noted_text
from weft.decisions.sound_values import one_line
from weft.decisions.writers import (
    abandoned_attempt,
    commit_links,
    correction_entry,
    fixed_test,
    plan_decided,
    plan_facts,
    proven_by_test,
    removed_steps,
    step_outcome,
)
from weft.events import (
    ArchitectPlan,
    ArchitectStep,
    DecisionLogged,
    Fact,
    GoalChecked,
    GoalEnded,
    GoalSet,
    NewMessage,
    PlanDecided,
    PlanEdited,
    RefDeleted,
    RefMoved,
    Rewound,
    SystemNote,
    ToolComplete,
    TurnStarted,
)
from weft.evidence.command_kinds import is_test, made_commit
from weft.ids import DecisionId, NodeId
from weft.loop import Commit, ProjectFacts
from weft.messages import Part, Text, typed_text
from weft.runtime.decisions.proposal import proposal_above, text_of
from weft.runtime.decisions.session_decisions import SessionDecisions
from weft.session import LineReader, current_branch
from weft.session.decide.branches import REWOUND
from weft.state import GOAL_OPTION, SessionState

logger = logging.getLogger(__name__)

MOST_LEFT: Final = 200
"""Nodes of a line that was left which are looked at."""
MOST_FAILURES: Final = 20
LONGEST_SUMMARY: Final = 200
LONGEST_LOOK: Final = 20_000
"""Characters of a message that are looked at for what it says."""
MOST_MENTIONED: Final = 5
OURSELVES: Final = "weft"
"""Who decides on a plan where no user was asked."""
_AROUND: Final = "`'\"“”‘’()[]<>*_,.;:!?"


class _Found(msgspec.Struct):
    """What is to be added."""

    facts: list[DecisionFact] = []
    notes: list[SystemNote] = []
    summary: str = ""

    def add(self, facts: Iterable[DecisionFact], summary: str) -> None:
        more = list(facts)
        self.facts += more
        if more and not self.summary:
            self.summary = summary

    @property
    def ids(self) -> tuple[DecisionId, ...]:
        named = [
            fact.node.id if isinstance(fact, DecisionAdded) else fact.id
            for fact in self.facts
            if isinstance(fact, DecisionAdded | DecisionChanged)
        ]
        return tuple(dict.fromkeys(named))


class DecisionWriters:
    """Makes the entries of one session."""

    def __init__(self, decisions: SessionDecisions, since: float = 0.0) -> None:
        """Files that were changed before `since` are in no commit that is seen here."""
        self._decisions = decisions
        self.failed: dict[str, tuple[int, float]] = {}
        """Tests that failed, with their exit code and when."""
        self._committed = since

    async def enriched(self, commit: Commit, state: SessionState, line: LineReader) -> Commit:
        """The commit, with what it comes to as decisions.

        A fault in here costs the entry and never the commit.
        """
        found = _Found()
        try:
            graph = await self._decisions.book.refresh()
            for fact in commit.facts:
                await self._take(fact, commit, found, graph, state, line)
        except Exception:
            logger.exception("decisions were not noted", extra={"session": state.session_id})
            return commit
        if not found.facts:
            if not found.notes:
                return commit
            return msgspec.structs.replace(commit, facts=(*commit.facts, *found.notes))
        project = self._decisions.project_id
        logged = DecisionLogged(ids=found.ids, project_id=project, summary=found.summary)
        noted = masked_facts(found.facts, self._decisions.redact)
        added = ProjectFacts(project_id=project, facts=noted)
        return msgspec.structs.replace(
            commit,
            facts=(*commit.facts, logged, *found.notes),
            projects=(*commit.projects, added),
        )

    async def _take(
        self,
        fact: Fact,
        commit: Commit,
        found: _Found,
        graph: DecisionGraph,
        state: SessionState,
        line: LineReader,
    ) -> None:
        match fact:
            case NewMessage() if _is_of_goal(commit):
                pass  # Weft says it, and no user corrects anything
            case NewMessage(node=node) if node.role == "user" and node.parent is not None:
                await self._correction(fact, commit, found, graph, state, line)
            case ArchitectPlan() if not _is_noted_plan(fact, commit.facts):
                pass
            case ArchitectPlan(plan_id=plan_id, plan=plan) | PlanEdited(plan_id=plan_id, plan=plan):
                plan = masked_texts(plan, self._decisions.redact)
                evidence = self._evidence(state, commit)
                facts = plan_facts(plan_id, plan, evidence, at=self._decisions.now)
                found.add(
                    [*_as_changes(facts, graph), *removed_steps(graph, plan_id, plan)],
                    one_line(f"plan: {plan.get('summary', '')}", LONGEST_SUMMARY),
                )
                self._warn(found, graph, plan)
            case PlanDecided(plan_id=plan_id, approved=approved, reason=reason, by=by):
                facts = plan_decided(
                    graph,
                    plan_id,
                    approved=approved,
                    reason=reason,
                    by="auto" if by == OURSELVES else "user",
                    new=found.ids,
                )
                found.add(facts, "plan approved" if approved else "plan rejected")
            case ArchitectStep(status="passed" | "failed"):
                found.add(_outcome_of(fact, graph, state), f"step {fact.index + 1}: {fact.status}")
            case Rewound(conversation=True, settles=0):
                await self._rewound(fact, found, graph, state, line)
            case RefDeleted(name=name) if _is_deleted_branch(name, commit.facts, state):
                tip = state.tree.refs[name].node
                await self._left_line(tip, state.tree.head, name, (), found, graph, state, line)
            case GoalEnded() if fact.reason != "cleared":
                self._goal(fact, commit, found, graph, state)
            case ToolComplete():
                self._command(fact, found, graph, state)
            case _:
                pass

    # -- corrections

    async def _correction(
        self,
        fact: NewMessage,
        commit: Commit,
        found: _Found,
        graph: DecisionGraph,
        state: SessionState,
        line: LineReader,
    ) -> None:
        # Before it is cut into titles and quotes: no shape fits half a secret.
        redact = self._decisions.redact
        proposal = redact(await proposal_above(fact.node.parent, state, line))
        # The text of a command is Weft's: `/plan go` takes a plan as it is.
        own = [each for each in fact.node.parts if not _is_command(each)]
        correction = find_correction(proposal, redact(typed_text(own)))
        if correction is None:
            return
        evidence = self._evidence(state, commit, fact.node.id)
        logged = correction_entry(
            correction,
            graph,
            evidence,
            seed=f"{state.session_id} {fact.node.id}",
            scope=_mentioned_files(proposal, state),
            at=self._decisions.now,
        )
        if logged.node.id in graph.nodes:
            return
        found.add(logged.facts, f"{logged.node.kind}: {logged.node.title}")
        found.notes.append(SystemNote(text=noted_text(logged.node.title, logged.node.id)))

    # -- plans

    def _warn(self, found: _Found, graph: DecisionGraph, plan: dict[str, object]) -> None:
        """Say before the user approves it that a plan goes back to something rejected."""
        text = msgspec.json.encode(plan)[:LONGEST_LOOK].decode(errors="replace")
        for decision, option in returning_options(graph, text)[:3]:
            said = f"The plan goes back to {option.title}, which was rejected: {decision.title}"
            found.notes.append(SystemNote(text=f"{said} ({decision.id})", level="warning"))

    # -- goals

    def _goal(
        self,
        fact: GoalEnded,
        commit: Commit,
        found: _Found,
        graph: DecisionGraph,
        state: SessionState,
    ) -> None:
        """A goal that has ended, with the rounds that did not reach it."""
        stands, goal = state.goal, state.goal.goal
        if goal is None:
            return
        new = tuple(each for each in commit.facts if isinstance(each, GoalChecked))
        checked, redact = (*stands.checked, *new), self._decisions.redact
        evidence = self._evidence(state, commit, state.tree.head)
        attempts = [
            GoalAttempt(each.round, redact(_last_line(each.detail)), _round_evidence(each, state))
            for each in checked
            if not each.done
        ]
        last = checked[-1] if checked else None
        code = last.exit_code if last is not None else None
        facts = goal_entries(
            fact.goal_id,
            redact(goal.text),
            is_done=fact.reason == "done",
            why=fact.reason.replace("_", " "),
            check=(redact(goal.check), code) if goal.check and code is not None else None,
            attempts=attempts,
            evidence=evidence,
            at=self._decisions.now,
        )
        if not any(_is_known(each, graph) for each in facts):
            found.add(facts, one_line(f"goal: {goal.text}", LONGEST_SUMMARY))

    # -- attempts

    async def _rewound(
        self,
        fact: Rewound,
        found: _Found,
        graph: DecisionGraph,
        state: SessionState,
        line: LineReader,
    ) -> None:
        if fact.undoes:
            again = [
                DecisionChanged(
                    id=node.id, status="superseded", by="auto", reason="the rewind was undone"
                )
                for node in graph.of_session(state.session_id)
                if node.status == "abandoned"
                and "attempt" in node.tags
                and any(isinstance(e, TurnEvidence) and e.node == fact.to for e in node.evidence)
            ]
            found.add(again, "rewind undone")
            return
        tip = fact.left or state.tree.head
        files = [change.path for change in fact.files]
        await self._left_line(tip, fact.to, "", files, found, graph, state, line)

    async def _left_line(
        self,
        tip: NodeId | None,
        to: NodeId | None,
        branch: str,
        files: Sequence[str],
        found: _Found,
        graph: DecisionGraph,
        state: SessionState,
        line: LineReader,
    ) -> None:
        """An attempt of the part of a line that no other line has."""
        left = _nodes_left(tip, to, branch, state)
        if tip is None or not any(state.tree.nodes[name].role == "assistant" for name in left):
            return
        entries = await line.nodes(left)
        asked = next((typed_text(e.node.parts) for e in entries if e.node.role == "user"), "")
        answers = [text_of(entry) for entry in entries if entry.node.role == "assistant"]
        said = next((text for text in reversed(answers) if text), "")
        redact = self._decisions.redact
        asked, said = redact(asked[:LONGEST_LOOK]), redact(said[:LONGEST_LOOK])
        how = f"The branch {branch} was deleted." if branch else "The user went back."
        facts = abandoned_attempt(
            # Not the request: the user gave up an answer to it, and may well ask for it again.
            said or (f"An attempt at: {asked}" if asked else "An attempt"),
            f"{how} The request: {' '.join(asked.split())[:400]}" if asked else how,
            TurnEvidence(session_id=state.session_id, node=tip),
            seed=f"{state.session_id} {tip}",
            files=files,
            at=self._decisions.now,
        )
        found.add(_abandoned_again(facts, graph), "abandoned attempt")

    # -- commands

    def _command(
        self, fact: ToolComplete, found: _Found, graph: DecisionGraph, state: SessionState
    ) -> None:
        code = fact.result.data.get("exit_code")
        intent = state.turn.intents.get(fact.call_uid)
        whole = str(intent.args.get("command", "")) if intent is not None else ""
        if not isinstance(code, int) or not whole:
            return
        # Judged whole: what stands for a secret has blanks in it, which a shell's word has not.
        command, tests = self._decisions.redact(whole), is_test(whole)
        evidence = self._decisions.turn()
        now, session = self._decisions.now, state.session_id
        if tests and code:
            self.failed[command] = (code, now)
            while len(self.failed) > MOST_FAILURES:
                del self.failed[next(iter(self.failed))]
        elif tests and command in self.failed:
            was, since = self.failed.pop(command)
            files = _touched_since(state, since)
            if files:
                # The same test over the same files is one outcome, however often it comes to pass.
                seed = " ".join(sorted(files))
                facts = fixed_test(command, was, files, evidence, seed=seed, at=now)
                if not any(_is_known(each, graph) for each in facts):
                    found.add(facts, one_line(f"outcome: {command} passes", LONGEST_SUMMARY))
                found.add(proven_by_test(graph, session, command, files), "")
        if not code and (commit := made_commit(whole, fact.result.text)):
            files = _touched_since(state, self._committed)
            found.add(commit_links(graph, session, commit, files), f"commit {commit}")
            self._committed = now

    def _evidence(
        self, state: SessionState, commit: Commit, node: NodeId | None = None
    ) -> TurnEvidence:
        started = next((fact for fact in commit.facts if isinstance(fact, TurnStarted)), None)
        running = started or state.turn.open
        return TurnEvidence(
            session_id=state.session_id,
            turn_id=running.turn_id if running is not None else None,
            node=node,
        )


def _as_changes(facts: Sequence[DecisionFact], graph: DecisionGraph) -> list[DecisionFact]:
    """The facts of a plan; where its nodes are there already, the user has edited them."""
    return [
        DecisionChanged(
            id=fact.node.id,
            title=fact.node.title,
            scope=fact.node.scope,
            # A step that an edit took out comes back with another.
            status="proposed" if graph.nodes[fact.node.id].status == "superseded" else None,
            reason="edited",
        )
        if isinstance(fact, DecisionAdded) and fact.node.id in graph.nodes
        else fact
        for fact in facts
    ]


def _is_noted_plan(fact: ArchitectPlan, facts: Sequence[Fact]) -> bool:
    """Whether a plan says what is to be done, and was not refused without the user."""
    is_refused = any(
        isinstance(each, PlanDecided) and each.by == OURSELVES and not each.approved
        for each in facts
    )
    return bool(fact.plan.get("steps")) and not is_refused


def _is_of_goal(commit: Commit) -> bool:
    """Whether the message is that of a later round of a goal."""
    facts = commit.facts
    rounds = [
        fact for fact in facts if isinstance(fact, TurnStarted) and GOAL_OPTION in fact.options
    ]
    return bool(rounds) and not any(isinstance(fact, GoalSet) for fact in facts)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _round_evidence(checked: GoalChecked, state: SessionState) -> TurnEvidence:
    return TurnEvidence(session_id=state.session_id, turn_id=checked.turn_id)


def _is_known(fact: DecisionFact, graph: DecisionGraph) -> bool:
    return isinstance(fact, DecisionAdded) and fact.node.id in graph.nodes


def _abandoned_again(facts: Sequence[DecisionFact], graph: DecisionGraph) -> list[DecisionFact]:
    """The facts of an attempt; one that was taken back by an undo is given up once more."""
    return [
        DecisionChanged(id=fact.node.id, status="abandoned", by="auto", reason="left again")
        if isinstance(fact, DecisionAdded) and fact.node.id in graph.nodes
        else fact
        for fact in facts
        if not isinstance(fact, DecisionAdded) or not _is_abandoned(fact.node.id, graph)
    ]


def _is_abandoned(name: DecisionId, graph: DecisionGraph) -> bool:
    return name in graph.nodes and graph.nodes[name].status == "abandoned"


def _outcome_of(
    fact: ArchitectStep, graph: DecisionGraph, state: SessionState
) -> list[DecisionFact]:
    steps = list((state.plan.plan or {}).get("steps") or ())
    check = str(steps[fact.index].get("check") or "") if fact.index < len(steps) else ""
    return step_outcome(
        graph,
        fact.plan_id,
        fact.index,
        passed=fact.status == "passed",
        check=check,
        detail=fact.detail,
    )


def _is_deleted_branch(name: str, facts: Sequence[Fact], state: SessionState) -> bool:
    """Whether a name goes because the user deleted its branch, and not for a new name of it."""
    ref = state.tree.refs.get(name)
    others = any(isinstance(fact, RefMoved | Rewound) for fact in facts)
    return ref is not None and ref.ref == "branch" and not others


def _nodes_left(
    tip: NodeId | None, to: NodeId | None, branch: str, state: SessionState
) -> list[NodeId]:
    """The nodes of a line above `tip` that neither the line to `to` nor another name has, oldest
    first.
    """
    kept: set[NodeId] = set()
    for end in (to, *_other_ends(branch, state)):
        for name in state.tree.ancestors(end):
            if name in kept:
                break  # all above it are, too
            kept.add(name)
    left: list[NodeId] = []
    for name in state.tree.ancestors(tip):
        if name in kept or len(left) >= MOST_LEFT:
            break
        left.append(name)
    return left[::-1]


def _other_ends(branch: str, state: SessionState) -> list[NodeId | None]:
    """Where lines and places end that the user still has a name for, but for a branch that goes.

    The present branch is where the head goes, whatever its name pointed at before; and what an
    earlier rewind left keeps nothing, though it got a name.
    """
    gone = {branch, current_branch(state)}
    return [
        ref.node
        for name, ref in state.tree.refs.items()
        if name not in gone and not name.startswith(f"{REWOUND}-")
    ]


def _mentioned_files(proposal: str, state: SessionState) -> list[str]:
    """Files of the session that a proposal names."""
    known = {**dict.fromkeys(state.reads.seen), **dict.fromkeys(state.files.touched)}
    # Whole words: a file may be called `a`.
    words = {word.strip(_AROUND) for word in proposal.split()}
    return [path for path in known if path in words and len(path) > 1][:MOST_MENTIONED]


def _touched_since(state: SessionState, since: float) -> list[str]:
    touched = [each for each in state.files.touched.values() if each.at >= since]
    return [each.path for each in touched if not each.path.startswith("/")]


def _is_command(part: Part) -> bool:
    return isinstance(part, Text) and part.typed.startswith("/")
