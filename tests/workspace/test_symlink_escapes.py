"""Random trees full of links, random paths: nothing outside is ever read, listed or written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.example_count import examples
from weft.errors import ToolError
from weft.workspace import LocalWorkspace

CANARY = b"the canary sings"
NAMES = ["a", "b", "c"]
inner = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
targets = st.one_of(
    inner,
    st.sampled_from(
        [
            "..",
            "../..",
            "../../out",
            "../out",
            "../out/secret",
            ".",
            "/",
            "/proc/self/root",
            "/proc/self/cwd",
        ]
    ),
    st.lists(st.sampled_from([*NAMES, "..", "."]), min_size=1, max_size=4).map("/".join),
    st.just("{out}"),
    st.just("{out}/secret"),
    st.just("{root}/a"),
    st.just("{root}/../out"),
)
things = st.lists(st.tuples(st.sampled_from(["dir", "file", "link"]), inner, targets), max_size=8)
paths = st.lists(
    st.sampled_from([*NAMES, "..", ".", "secret", "out", ""]), min_size=1, max_size=5
).map("/".join)


def build(root: Path, out: Path, plan: list[tuple[str, str, str]]) -> None:
    for kind, name, target in plan:
        place = root / name
        with suppress(OSError):
            # Never through a link that was made before: the tree itself must not reach outside.
            if os.path.realpath(place.parent) != str(place.parent):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "dir":
                place.mkdir()
            elif kind == "file":
                place.write_bytes(b"inside")
            else:
                place.symlink_to(target.format(out=out, root=root))


def outside_now(top: Path) -> list[tuple[str, bytes]]:
    found = sorted((top / "out").rglob("*"))
    return [(str(each), each.read_bytes() if each.is_file() else b"") for each in found] + [
        (name, b"") for name in sorted(os.listdir(top))
    ]


async def attack(workspace: LocalWorkspace, path: str) -> None:
    with suppress(ToolError):
        if workspace.is_outside(path):
            return  # as written: whoever calls has asked for leave
    with suppress(ToolError):
        state = await workspace.peek(path)
        assert state is None or CANARY not in state.data
    with suppress(ToolError):
        assert "marker" not in [name for name, _ in await workspace.list(path)]
    with suppress(ToolError):
        state = await workspace.peek(path)
        await workspace.write(path, b"written", expected=None if state is None else state.hash)
    with suppress(ToolError):
        assert not workspace.is_outside(await workspace.resolve(path))


@settings(max_examples=examples(150))
@given(plan=things, asked=st.lists(paths, min_size=1, max_size=4))
def test_no_tree_of_links_and_no_path_leads_outside(
    plan: list[tuple[str, str, str]], asked: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        root, out = top / "project", top / "out"
        root.mkdir()
        (out / "deep").mkdir(parents=True)
        (out / "secret").write_bytes(CANARY)
        (out / "marker").touch()
        build(root, out, plan)
        before = outside_now(top)

        async def attack_all() -> None:
            workspace = LocalWorkspace(str(root))
            for path in asked:
                await attack(workspace, path)

        anyio.run(attack_all)
        assert outside_now(top) == before
