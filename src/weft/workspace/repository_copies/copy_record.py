"""What is known of a repository at one moment, so that it can be made again elsewhere.

Everything in it is data.  Settings that could name a program are not in it, and what comes out of a
log is checked again before it becomes a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from weft.errors import FinalToolError
from weft.ids import BlobId
from weft.workspace.git import plain_lines
from weft.workspace.git_settings import is_plain_address

FIRST_FILES: Final = (
    *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG"),
    *("ORIG_HEAD", "shallow", "info/exclude", "info/sparse-checkout", "logs/refs/stash"),
)
"""Small files of a git directory that are part of its state, and nothing but data."""
LARGEST_FILE: Final = 1024 * 1024
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HEAD: Final = re.compile(r"(?:ref: )?(?P<name>\S+)\n?")
_NAME: Final = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000}")
_REMOTE: Final = re.compile(r"\w[\w.-]{0,99}")
_BRANCH: Final = re.compile(r"\w[\w./+@#=-]{0,255}")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]{1,255}")


class BranchSource(msgspec.Struct, frozen=True, array_like=True):
    """What a branch follows."""

    remote: str
    merge: str


class RepositoryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a repository, but for its work tree."""

    head: str
    """What its HEAD holds: `ref: refs/heads/main`, or a commit."""
    refs: dict[str, str] = {}
    """Name → object."""
    symbolic: dict[str, str] = {}
    """Name → the ref that it stands for."""
    index: BlobId | None = None
    """The index as it was; None where there was none, or one in several files."""
    packs: tuple[tuple[BlobId, ...], ...] = ()
    """Packs that have all of its objects, in the order in which they build on one another; each in
    pieces."""
    first_tips: tuple[str, ...] = ()
    """What the first of the packs leads to."""
    tips: tuple[str, ...] = ()
    """What all of them lead to."""
    settings: dict[str, str] = {}
    """Those that say how data is stored."""
    remotes: dict[str, str] = {}
    """Name → address, without passwords."""
    branches: dict[str, BranchSource] = {}
    user: dict[str, str] = {}
    """`name` and `email` of who commits."""
    files: dict[str, bytes] = {}
    """Those of `FIRST_FILES` that are there."""
    inside: str = ""
    """The way from the top of its work tree to the project; empty where that is the project."""

    @property
    def object_ids(self) -> set[str]:
        """All objects that it names."""
        named = {*self.refs.values(), *_objects_in(self.files)}
        return named if self.head.startswith("ref:") else {*named, self.head.strip()}


def is_ref_name(name: str) -> bool:
    """Whether a name is one that git takes for a ref, and that stays below `refs` as a path."""
    if _NAME.fullmatch(name) is None or ".." in name or "@{" in name or name.endswith("."):
        return False
    return all(
        part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/")
    )


def check_record(record: RepositoryRecord) -> None:
    """See that a record holds nothing but what `RepositoryRecord` says.

    Raises:
        FinalToolError: it does.
    """
    head = _HEAD.fullmatch(record.head)
    is_ref = record.head.startswith("ref: ")
    names = (*record.refs, *record.symbolic, *record.symbolic.values())
    is_right = (
        head is not None
        and (is_ref_name(head["name"]) if is_ref else bool(_OBJECT.fullmatch(head["name"])))
        and all(map(is_ref_name, names))
        and all(map(_OBJECT.fullmatch, (*record.refs.values(), *record.tips)))
        and record.files.keys() <= set(FIRST_FILES)
        and not {"..", ".git"} & set(record.inside.lower().split("/"))
        and not record.inside.startswith("/")
    )
    if not is_right:
        raise FinalToolError("what is stored of a repository is not what Weft writes")


def config_text(record: RepositoryRecord) -> str:
    """The `config` of a repository that is made again."""
    lines = ["[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tlogallrefupdates = true\n"]
    lines.append(plain_lines(record.settings))
    remotes = {
        name: url
        for name, url in record.remotes.items()
        if _REMOTE.fullmatch(name) and is_plain_address(url)
    }
    for name, url in sorted(remotes.items()):
        fetch = f"+refs/heads/*:refs/remotes/{name}/*"
        lines.append(f'[remote "{name}"]\n\turl = {_quoted(url)}\n\tfetch = {fetch}\n')
    for name, source in sorted(record.branches.items()):
        if source.remote in (".", *remotes) and _is_branch(name, source.merge):
            follows = f"\tremote = {source.remote}\n\tmerge = {_quoted(source.merge)}\n"
            lines.append(f'[branch "{name}"]\n{follows}')
    told = {name: record.user.get(name, "") for name in ("name", "email")}
    lines += [
        f"[user]\n\t{name} = {_quoted(text)}\n"
        for name, text in told.items()
        if _TEXT.fullmatch(text)
    ]
    return "".join(lines)


def read_settings(found: Iterable[tuple[str, str]]) -> Mapping[str, dict[str, str]]:
    """Remotes, branches and the user in pairs of a setting's name and value, by kind."""
    kinds: dict[str, dict[str, str]] = {"remote": {}, "branch": {}, "user": {}}
    for name, value in found:
        kind, _, rest = name.partition(".")
        if kind in kinds:
            kinds[kind][rest] = value
    return kinds


def without_password(url: str) -> str:
    """An address without what is secret in it."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    host, slash, path = rest.partition("/")
    user, _, name = host.rpartition("@")
    # Hosts take tokens for names of users, too; ssh needs its user, and no password stands there.
    kept = f"{user}@" if scheme == "ssh" and user and ":" not in user else ""
    return f"{scheme}://{kept}{name}{slash}{path}"


def _is_branch(name: str, merge: str) -> bool:
    return _BRANCH.fullmatch(name) is not None and is_ref_name(merge)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _objects_in(files: Mapping[str, bytes]) -> set[str]:
    """The objects that small files name."""
    found: set[str] = set()
    for name, data in files.items():
        if name.endswith("_HEAD") or name == "logs/refs/stash":
            words = data.decode(errors="replace").split()
            found |= {word for word in words if _OBJECT.fullmatch(word) and word.strip("0")}
    return found
