"""The session as a tree: section *The tree* of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from weft.api.handle import SessionBase, input_id_of
from weft.errors import UsageError
from weft.ids import NodeId
from weft.messages import Text
from weft.session import (
    Branch,
    BranchAt,
    DeleteBranch,
    EditNode,
    RenameBranch,
    RewindPlan,
    RewindTo,
    SetCheckpoint,
    SwitchBranch,
    ToggleCollapse,
    UndoRewind,
)

if TYPE_CHECKING:  # as below
    from weft.api.branch_files import FileComparison, FileWeave
    from weft.api.branch_files.branch_facts import BranchFacts
    from weft.api.branch_files.comparison import BranchSides
    from weft.api.branch_files.weave import WeavingSession
    from weft.api.fan import Fan
    from weft.api.file_changes import HunkOutcome, NetChange
    from weft.api.file_changes.hunk_turn import HunkSession
    from weft.api.file_changes.session_changes import SessionChanges
    from weft.store import Store
    from weft.view.tree import TreeMessage, TreeView


class BranchCalls(SessionBase):
    """Branches, checkpoints, rewinds and revisions."""

    async def tree(self) -> TreeView:
        """Every message of every branch, the names, and where the conversation stands."""
        from weft.api.tree_view import tree_view  # only for those who look: it costs start-up time

        return await tree_view(await self._port())

    async def nodes(self, ids: Sequence[str]) -> list[TreeMessage]:
        """These messages of the tree with the beginning of their words, which `tree` has of the
        newest messages only.

        Raises:
            UsageError: the session has no such message.
        """
        from weft.api.tree_view import nodes_view  # as above

        return await nodes_view(await self._port(), [NodeId(each) for each in ids])

    async def branch_at(
        self, node_or_index: str | int, name: str | None = None, *, input_id: str | None = None
    ) -> Branch:
        """Let the line end at a message (its id, or its index in `get_history()`) and go on from
        there; nothing is lost.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is no such message, or the name is taken.
        """
        node = await self._node(node_or_index)
        return await self._call(BranchAt(node=node, name=name or "", **self._by(input_id)))

    async def list_branches(self) -> list[Branch]:
        """Every branch; the present one ends at the head."""
        from weft.session import branches  # as above

        return branches((await self._port()).state)

    async def switch_branch(
        self, name_or_index: str | int, *, input_id: str | None = None
    ) -> Branch:
        """Switch to another branch; the line that is left keeps its place."""
        name = await self._branch_name(name_or_index)
        return await self._call(SwitchBranch(name=name, **self._by(input_id)))

    async def rename_branch(
        self, name_or_index: str | int, new_name: str, *, input_id: str | None = None
    ) -> None:
        """Give a branch another name; also while a turn runs, which goes on where it is."""
        name = await self._branch_name(name_or_index)
        await self._call(RenameBranch(name=name, new_name=new_name, **self._by(input_id)))

    async def delete_branch(self, name_or_index: str | int, *, input_id: str | None = None) -> None:
        """Forget a branch's name; its messages stay in the tree.

        Raises:
            UsageError: there is no such branch, or it is the present one.
        """
        name = await self._branch_name(name_or_index)
        await self._call(DeleteBranch(name=name, **self._by(input_id)))

    async def checkpoint(self, label: str | None = None, *, input_id: str | None = None) -> str:
        """Name the place where the conversation stands; returns the name."""
        return await self._call(SetCheckpoint(label=label or "", **self._by(input_id)))

    async def rewind(
        self,
        to: str | int | None,
        files: bool = True,
        conversation: bool = True,
        preview: bool = False,
        *,
        overwrite: Sequence[str] = (),
        input_id: str | None = None,
    ) -> RewindPlan:
        """Let files, the conversation or both go back to what they were at a message: its id, its
        index in `get_history()`, the label of a checkpoint, or None for before the first one.

        Each path that the session changed since goes back to what it was, by tools and commands
        alike, if it still is what the session left; all others are named, and those in `overwrite`
        go back all the same.  `preview` only says what would happen.  What is left of the line
        keeps a name, and `undo_rewind` takes it all back.  A cancel ends the wait; the rewind is
        carried out all the same.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is no such message, or `overwrite` names a path that is not in the
                plan.
        """
        node, checkpoint = await self._place(to)
        command = RewindTo(
            to=node,
            checkpoint=checkpoint,
            files=files,
            conversation=conversation,
            preview=preview,
            overwrite=tuple(overwrite),
            input_id=input_id_of(input_id),
            client=self._client,
        )
        return await self._call(command)

    async def undo_rewind(
        self, preview: bool = False, *, overwrite: Sequence[str] = (), input_id: str | None = None
    ) -> RewindPlan:
        """Take the last rewind back: its files, unless they were changed since, and the place in
        the conversation.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is none.
        """
        command = UndoRewind(preview=preview, overwrite=tuple(overwrite), **self._by(input_id))
        return await self._call(command)

    async def generate_branches(
        self,
        prompt: str,
        n: int = 4,
        models: Sequence[str] = (),
        verify: str | None = None,
        *,
        verify_runs: int = 1,
        base: Literal["now", "head"] = "now",
        stop: Literal["all", "verified"] = "all",
        budget_usd: float | None = None,
        judge: str | None = None,
        input_id: str | None = None,
    ) -> Fan:
        """Begin `n` candidates for one task from the present message, each a session of its own in
        an overlay over the project, and return while they work.

        `models` are taken in turn; without any, all use the session's.  `verify` is a command that
        is run for each when it has ended, and on the base.  `base`: the project as it is, or as its
        last commit has it.  `stop="verified"` stops the others when one has passed; `budget_usd`
        stops all when it is used up.  `judge` is a model that is asked which is better where
        candidates stand equal by the check.  What a candidate changes reaches the project with
        `keep`.

        Raises:
            UsageError: nothing keeps candidates apart on this machine, the session is in plan mode,
                or the arguments are not right.
        """
        from weft.api.fan import begin_fan  # few sessions fan out

        await self._port()
        return await begin_fan(
            self._host,
            self.id,
            prompt=prompt,
            n=n,
            models=models,
            verify=verify or "",
            verify_runs=verify_runs,
            base=base,
            stop=stop,
            budget_usd=budget_usd,
            judge=judge or "",
            input_id=input_id_of(input_id),
        )

    async def compare_files(self, first: str | int, second: str | int) -> FileComparison:
        """The project's files at the ends of two branches, from the message where they part: which
        of them changed what, and the differences between the two.

        Secrets are masked, and files that a rule keeps from being read are named only.

        Raises:
            UsageError: a message is not there, one is above the other, or the session has no
                snapshot that could tell.
        """
        from weft.api.branch_files.comparison import shown_comparison  # few compare

        port, registry = await self._port(), self._host.registry
        await registry.reach_rules(port)
        sides = await self._sides(first, second)
        found = msgspec.structs.replace(sides.comparison, sides=await self._side_facts(sides))
        root, judge = registry.root_of(port), registry.read_judge(port)

        def may_show(path: str) -> bool:
            return judge(f"{root}/{path}").verdict == "allow"

        return shown_comparison(found, self._host.services.redact, may_show)

    async def weave_files(
        self,
        first: str | int,
        second: str | int,
        picks: Mapping[str, Literal["first", "second"]] | None = None,
        *,
        overwrite: Sequence[str] = (),
        preview: bool = False,
        input_id: str | None = None,
    ) -> FileWeave:
        """Put the files of two branches together in the project, as a child of the message where
        the branches part, which becomes the present one and names both.

        What only one branch changed is taken from it; what both changed is merged where the changes
        do not meet, and else `picks` says whose version is taken.  Files are written under the
        rules, hooks and approvals of the session, as by any model; what is on the disk and of
        neither branch is left unless `overwrite` names it.  `preview` only says what would happen.
        A rewind takes it back.  What a crash or an abort cut off is completed by the same call
        under the same `input_id`.

        Raises:
            SessionBusy: a turn runs.
            UsageError: as of `compare_files`, the branches do not agree about a file, or others
                have changed it since; nothing is written.
        """
        from weft.api.branch_files import weave_files  # few weave

        sides = await self._sides(first, second)
        root = (await self._port()).state.about.project_path
        return await weave_files(
            # A session has all calls; this class is a part of it.
            cast("WeavingSession", self),
            sides,
            root,
            picks=picks or {},
            overwrite=overwrite,
            preview=preview,
            input_id=input_id_of(input_id),
        )

    async def net_changes(
        self, since: str | int | None = None, until: str | int | None = None
    ) -> list[NetChange]:
        """What the session changed in files after one message and up to another, as one difference
        for each file: without `since` from its beginning, without `until` up to now.

        What was put back is no change.  Secrets are masked, and files that a rule keeps from being
        read are named only.

        Raises:
            UsageError: there is no such message.
        """
        port = await self._port()
        registry = self._host.registry
        await registry.reach_rules(port)
        async with registry.reading(self.id) as store:
            changes = await self._changes(since, until, store)
            return await changes.net(self._host.services.redact, registry.read_judge(port))

    async def revert_hunk(
        self,
        path: str,
        hunk: str,
        since: str | int | None = None,
        until: str | int | None = None,
        *,
        input_id: str | None = None,
    ) -> HunkOutcome:
        """Put back one hunk (its id) of what `net_changes` shows for the same messages, in the file
        as it is now.

        It is an edit in a turn of its own: the rules, hooks and approvals of the session hold, and
        a rewind undoes it.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is no such hunk any more, or the same lines were changed since;
                nothing is written.
        """
        async with self._host.registry.reading(self.id) as store:
            changes = await self._changes(since, until, store)
            session = cast("HunkSession", self)
            return await changes.put_back(session, path, hunk, input_id_of(input_id))

    async def take_hunk(
        self,
        path: str,
        hunk: str,
        first: str | int,
        second: str | int,
        *,
        input_id: str | None = None,
    ) -> HunkOutcome:
        """Take one hunk (its id) of the differences that `compare_files` shows from the second
        branch into the file as it is now, as `revert_hunk` puts one back.

        Raises:
            SessionBusy: a turn runs.
            UsageError: as of `compare_files` and `revert_hunk`.
        """
        from weft.api.file_changes.session_changes import take_hunk  # few take

        sides = await self._sides(first, second)
        session = cast("HunkSession", self)
        return await take_hunk(session, sides, path, hunk, input_id_of(input_id))

    async def _changes(
        self, since: str | int | None, until: str | int | None, store: Store
    ) -> SessionChanges:
        from weft.api.file_changes.session_changes import SessionChanges  # few look

        first = None if since is None else await self._node(since)
        last = None if until is None else await self._node(until)
        return SessionChanges((await self._port()).state, store, first, last)

    async def _sides(self, first: str | int, second: str | int) -> BranchSides:
        from weft.api.branch_files import compare_files  # few compare

        one, two = await self._node(first), await self._node(second)
        if one is None or two is None:
            raise UsageError("files are compared at messages, and one of these is before the first")
        async with self._host.registry.reading(self.id) as store:
            return await compare_files(one, two, (await self._port()).state, store)

    async def _side_facts(self, sides: BranchSides) -> tuple[BranchFacts, BranchFacts]:
        from weft.api.branch_files.branch_facts import branch_facts  # few compare

        port, redact = await self._port(), self._host.services.redact
        found, tree = sides.comparison, port.state.tree
        one = await port.nodes(tree.line(found.first, found.ancestor))
        two = await port.nodes(tree.line(found.second, found.ancestor))
        return (
            await branch_facts(sides.changed("first"), one, redact),
            await branch_facts(sides.changed("second"), two, redact),
        )

    async def _place(self, to: str | int | None) -> tuple[NodeId | None, str]:
        """The node that is meant, and the checkpoint, where it is meant by that."""
        if to is None:
            return None, ""
        # A checkpoint and not only its node: files go back to the moment at which it was set, which
        # may be in the middle of a turn.
        ref = (await self._port()).state.tree.refs.get(to) if isinstance(to, str) else None
        if ref is not None and ref.ref == "checkpoint":
            return ref.node, str(to)
        return await self._node(to), ""

    async def revisions(self, node: str) -> list[str]:
        """The texts of a message, oldest first; the last one is in force."""
        port = await self._port()
        return [
            "".join(part.text for part in parts if isinstance(part, Text))
            for parts in await port.revisions(NodeId(node))
        ]

    async def restore_revision(self, node: str, n: int, *, input_id: str | None = None) -> None:
        """Put an earlier text of a message in force again, as a new revision."""
        port = await self._port()
        found = await port.revisions(NodeId(node))
        if not 0 <= n < len(found):
            raise UsageError(f"no revision {n}; the message has {len(found)}")
        await port.call(EditNode(node=NodeId(node), parts=found[n], **self._by(input_id)))

    async def toggle_tool_collapse(self, message_id: str, *, input_id: str | None = None) -> bool:
        """Fold or unfold the tool calls of a message; returns whether they are folded now."""
        node = await self._node(message_id)
        if node is None:
            raise UsageError(f"the message {message_id!r} has no tool calls to fold")
        return not await self._call(ToggleCollapse(node=node, **self._by(input_id)))

    async def toggle_all_tool_collapses(self, *, input_id: str | None = None) -> bool:
        """Unfold everything if anything is folded, else fold everything.

        Returns whether all is folded now.
        """
        return not await self._call(ToggleCollapse(**self._by(input_id)))

    async def _node(self, given: str | int) -> NodeId | None:
        """The node that a message id or an index in the history means."""
        from weft.session import node_at  # as above

        return node_at((await self._port()).state, given)

    async def _branch_name(self, given: str | int) -> str:
        if isinstance(given, str):
            return given
        known = await self.list_branches()
        if not -len(known) <= given < len(known):
            raise UsageError(f"no branch {given}; there are {len(known)}")
        return known[given].name
