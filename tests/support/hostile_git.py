"""Repositories that name a program, each in another way, and a plain git call that runs it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")
SMALL = {"a.txt": "one\n", "sub/b.txt": "two\n"}


def git(folder: Path, *args: str, check: bool = True, stdin: str = "") -> str:
    """Run plain git, with no settings but the repository's own."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    done = subprocess.run(
        ["git", *IDENTITY, *args],
        cwd=folder,
        env=environ,
        check=check,
        capture_output=True,
        text=True,
        input=stdin,
        timeout=30,
    )
    return done.stdout.strip()


def git_version() -> tuple[int, int]:
    """Which git there is."""
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = said.split()[2].split(".")[:2]
    return int(major), int(minor)


def make_repository(folder: Path, files: dict[str, str] = SMALL, *options: str) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", *options)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    commit_all(folder, "first")
    return folder


def commit_all(folder: Path, message: str) -> str:
    """Commit everything; the commit's name."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message, "--no-verify")
    return git(folder, "rev-parse", "HEAD")


def add_submodule(folder: Path, inner: Path, name: str) -> None:
    """Make a repository a submodule of another, and check it out."""
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), name)


def drop_object(folder: Path, name: str) -> None:
    """Take a loose object out of the store, as a partial clone lacks it."""
    digest = git(folder, "rev-parse", name)
    (folder / ".git/objects" / digest[:2] / digest[2:]).unlink()


class Bait(msgspec.Struct, frozen=True):
    """A repository and the program that must not run."""

    repository: Path
    program: Path
    marker: Path

    @property
    def records(self) -> Path:
        return self.repository / ".git"

    def config(self, *pairs: str) -> None:
        """Set `name=value` in the repository's own file."""
        for pair in pairs:
            name, _, value = pair.partition("=")
            git(self.repository, "config", name, value)

    def config_text(self, text: str, file: str = "config") -> None:
        """Add lines to the repository's own file as they are."""
        with (self.records / file).open("a") as config:
            config.write(text)

    def hook(self, folder: Path, *names: str) -> None:
        """The program as hooks."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copy(self.program, folder / name)

    def provoke(self, *args: str, at: Path | None = None, stdin: str = "") -> None:
        """Call plain git, however it ends."""
        git(at or self.repository, *args, check=False, stdin=stdin)

    def checkout_anew(self) -> None:
        """Have plain git write every file anew, and look at every file's content."""
        for name in SMALL:
            os.utime(self.repository / name, (1, 1))
        self.provoke("status")
        for name in SMALL:
            (self.repository / name).unlink()
        self.provoke("checkout", "-f", "HEAD", "--", ".")


def make_bait(base: Path) -> Bait:
    """A repository that is honest so far, and a program that leaves a mark."""
    base.mkdir(parents=True, exist_ok=True)
    marker = base / "ran"
    program = base / "canary"
    program.write_text(f"#!/bin/sh\n: > {marker}\nexit 1\n")
    program.chmod(0o755)
    return Bait(make_repository(base / "project"), program, marker)


Trap = Callable[[Bait], None]
TRAPS: dict[str, tuple[Trap, Trap]] = {}
"""By name: what is laid, and the plain call that shows that it works."""


def trap(name: str, provoked_by: Trap) -> Callable[[Trap], Trap]:
    def keep(lay: Trap) -> Trap:
        TRAPS[name] = (lay, provoked_by)
        return lay

    return keep


def _checkout(bait: Bait) -> None:
    bait.checkout_anew()


def _status(bait: Bait) -> None:
    bait.provoke("status")


# --- transports: a promised object that is not there ----------------------------------------------


def _promised(bait: Bait, *pairs: str) -> None:
    bait.config("core.repositoryformatversion=1", "extensions.partialClone=origin", *pairs)
    bait.config("remote.origin.promisor=true")
    drop_object(bait.repository, "HEAD:sub/b.txt")


@trap("promised blob, upload-pack program", _checkout)
def _(bait: Bait) -> None:
    other = make_repository(bait.marker.parent / "other")
    _promised(bait, f"remote.origin.url={other}", f"remote.origin.uploadpack={bait.program}")


@trap("promised commit, upload-pack program", lambda bait: bait.provoke("log", "HEAD"))
def _(bait: Bait) -> None:
    other = make_repository(bait.marker.parent / "other")
    _promised(bait, f"remote.origin.url={other}", f"remote.origin.uploadpack={bait.program}")
    drop_object(bait.repository, "HEAD")


@trap("promised blob, ext transport", _checkout)
def _(bait: Bait) -> None:
    _promised(bait, f"remote.origin.url=ext::{bait.program} x", "protocol.ext.allow=always")


@trap("promised blob, ssh program", _checkout)
def _(bait: Bait) -> None:
    _promised(bait, "remote.origin.url=ssh://nowhere.invalid/x", f"core.sshCommand={bait.program}")


@trap("promised blob, git proxy", _checkout)
def _(bait: Bait) -> None:
    _promised(bait, "remote.origin.url=git://nowhere.invalid/x", f"core.gitProxy={bait.program}")


@trap("promised blob, foreign remote helper", _checkout)
def _(bait: Bait) -> None:
    _promised(bait, f"remote.origin.url={bait.program} x", "protocol.ext.allow=always")
    bait.config("remote.origin.vcs=ext")


@trap("promised blob, pack-objects hook of the other side", _checkout)
def _(bait: Bait) -> None:
    other = make_repository(bait.marker.parent / "other")
    git(other, "config", "uploadpack.packObjectsHook", str(bait.program))
    _promised(bait, f"remote.origin.url={other}", f"remote.origin.uploadpack={bait.program}")


@trap("promised blob, rewritten address", _checkout)
def _(bait: Bait) -> None:
    _promised(bait, "remote.origin.url=https://nowhere.invalid/x", "protocol.ext.allow=always")
    bait.config_text(f'[url "ext::{bait.program} "]\n\tinsteadOf = https://nowhere.invalid/\n')


# --- monitors and hooks ---------------------------------------------------------------------------


@trap("file-system monitor", _status)
def _(bait: Bait) -> None:
    bait.config(f"core.fsmonitor={bait.program}")


HOOKS = (
    "post-checkout",
    "reference-transaction",
    "post-index-change",
    "pre-auto-gc",
    "post-rewrite",
)


@trap("hooks in the repository", _checkout)
def _(bait: Bait) -> None:
    bait.hook(bait.records / "hooks", *HOOKS)


@trap("hooks elsewhere", _checkout)
def _(bait: Bait) -> None:
    bait.hook(bait.marker.parent / "hooks", *HOOKS)
    bait.config(f"core.hooksPath={bait.marker.parent / 'hooks'}")


@trap("hooks in the tree", _checkout)
def _(bait: Bait) -> None:
    bait.hook(bait.repository / "hooks", *HOOKS)
    commit_all(bait.repository, "hooks")
    bait.config("core.hooksPath=hooks")


def _run_hook(bait: Bait) -> None:
    bait.provoke("hook", "run", "post-checkout")
    if git_version() < (2, 54):
        bait.marker.touch()  # such a git knows hooks as files alone, and cannot be provoked


@trap("hooks as settings", _run_hook)
def _(bait: Bait) -> None:
    for name in HOOKS:
        bait.config(f"hook.{name}-x.event={name}", f"hook.{name}-x.command={bait.program}")


# --- filters --------------------------------------------------------------------------------------


def _filtered(bait: Bait, driver: str = "x") -> None:
    (bait.repository / ".gitattributes").write_text(f"*.txt filter={driver}\n")
    commit_all(bait.repository, "attributes")


def _driver(bait: Bait, driver: str, *parts: str) -> str:
    quoted = driver.replace("\\", "\\\\").replace('"', '\\"')
    lines = "".join(f"\t{part} = {bait.program}\n" for part in parts)
    return f'[filter "{quoted}"]\n{lines}'


for _part in ("clean", "smudge", "process"):
    for _required in ("", ", required"):

        @trap(f"{_part} filter{_required}", _checkout)
        def _(bait: Bait, part: str = _part, required: str = _required) -> None:
            _filtered(bait)
            bait.config_text(_driver(bait, "x", part))
            if required:
                bait.config("filter.x.required=true")


ODD_NAMES = {
    "dots": "a.b..c",
    "an equals sign": "a=b",
    "a no-break space": "a\u00a0b",
    "a vertical tab": "a\x0bb",
    "a unit separator": "a\x1fb",
    "a wide space": "a\u3000b",
    "a line separator": "a\u2028b",
    "quotes": "a\"'b",
    "a backslash": "a\\b",
    "capitals": "LFS",
    "a bracket": "a]b[c",
    "a dollar": "$(touch x)",
    "bytes that are no text": "a\udcffb",
}


for _label, _odd in ODD_NAMES.items():

    @trap(f"filter whose name has {_label}", _checkout)
    def _(bait: Bait, driver: str = _odd) -> None:
        if "(" in driver:
            driver = driver.replace(" ", "_")
        data = f"*.txt filter={driver}\n".encode("utf-8", "surrogateescape")
        (bait.repository / ".gitattributes").write_bytes(data)
        commit_all(bait.repository, "attributes")
        with (bait.records / "config").open("ab") as config:
            text = _driver(bait, driver, "clean", "smudge")
            config.write(text.encode("utf-8", "surrogateescape"))


@trap("filter in config.worktree", _checkout)
def _(bait: Bait) -> None:
    _filtered(bait)
    bait.config("core.repositoryformatversion=1", "extensions.worktreeConfig=true")
    bait.config_text(_driver(bait, "x", "clean", "smudge"), "config.worktree")


@trap("filter in an included file", _checkout)
def _(bait: Bait) -> None:
    _filtered(bait)
    (bait.records / "more").write_text(_driver(bait, "x", "clean", "smudge"))
    bait.config("include.path=more")


def _copy_by_git(bait: Bait) -> None:
    bait.provoke("worktree", "add", "--detach", str(bait.marker.parent / "plain"))


@trap("filter included for worktrees alone", _copy_by_git)
def _(bait: Bait) -> None:
    _filtered(bait)
    (bait.records / "more").write_text(_driver(bait, "x", "clean", "smudge"))
    bait.config_text('[includeIf "gitdir:**/worktrees/**"]\n\tpath = more\n')


@trap("monitor and hooks included for worktrees alone", _copy_by_git)
def _(bait: Bait) -> None:
    bait.hook(bait.marker.parent / "hooks", *HOOKS)
    (bait.records / "more").write_text(
        f"[core]\n\tfsmonitor = {bait.program}\n\thooksPath = {bait.marker.parent}/hooks\n"
    )
    bait.config_text('[includeIf "gitdir:**/worktrees/**"]\n\tpath = more\n')


@trap("filter by an attributes file of the settings", _checkout)
def _(bait: Bait) -> None:
    (bait.marker.parent / "attributes").write_text("* filter=x\n")
    bait.config(f"core.attributesFile={bait.marker.parent / 'attributes'}")
    bait.config_text(_driver(bait, "x", "clean", "smudge"))


@trap("filter by info/attributes", _checkout)
def _(bait: Bait) -> None:
    (bait.records / "info").mkdir(exist_ok=True)
    (bait.records / "info/attributes").write_text("* filter=x\n")
    bait.config_text(_driver(bait, "x", "clean", "smudge"))


# --- programs that only show or ask ---------------------------------------------------------------


def _show(bait: Bait) -> None:
    (bait.repository / "a.txt").write_text("changed\n")
    bait.provoke("diff")


@trap("external diff", _show)
def _(bait: Bait) -> None:
    bait.config(f"diff.external={bait.program}")


@trap("text conversion", _show)
def _(bait: Bait) -> None:
    (bait.repository / ".gitattributes").write_text("*.txt diff=x\n")
    commit_all(bait.repository, "attributes")
    bait.config(f"diff.x.textconv={bait.program}", f"diff.x.command={bait.program}")


def _merge(bait: Bait) -> None:
    git(bait.repository, "checkout", "-qb", "side")
    (bait.repository / "a.txt").write_text("side\n")
    commit_all(bait.repository, "side")
    git(bait.repository, "checkout", "-q", "main")
    (bait.repository / "a.txt").write_text("main\n")
    commit_all(bait.repository, "main")
    bait.provoke("merge", "side")


@trap("merge driver", _merge)
def _(bait: Bait) -> None:
    (bait.repository / ".gitattributes").write_text("*.txt merge=x\n")
    commit_all(bait.repository, "attributes")
    bait.config(f"merge.x.driver={bait.program} %A")


@trap("editor", lambda bait: bait.provoke("commit", "--allow-empty"))
def _(bait: Bait) -> None:
    bait.config(f"core.editor={bait.program}", f"sequence.editor={bait.program}")


def _on_a_terminal(bait: Bait) -> None:
    ours, theirs = pty.openpty()
    subprocess.run(["git", "log"], cwd=bait.repository, stdout=theirs, check=False, timeout=30)
    os.close(theirs)
    os.close(ours)


@trap("pager", _on_a_terminal)
def _(bait: Bait) -> None:
    bait.config(f"core.pager={bait.program}")
    for name in ("config", "status", "branch", "worktree", "rev-parse", "for-each-ref", "log"):
        bait.config(f"pager.{name}={bait.program}")


@trap("signing program", lambda bait: bait.provoke("commit", "--allow-empty", "-m", "x", "-S"))
def _(bait: Bait) -> None:
    bait.config(f"gpg.program={bait.program}", f"gpg.ssh.program={bait.program}")
    bait.config("commit.gpgSign=true", "log.showSignature=true", "user.signingKey=x")


@trap("aliases", lambda bait: bait.provoke("st"))
def _(bait: Bait) -> None:
    for name in ("st", "worktree", "rev-parse", "status", "branch", "config", "for-each-ref"):
        bait.config(f"alias.{name}=!{bait.program}")


@trap(
    "credential helper",
    lambda bait: bait.provoke("credential", "fill", stdin="url=https://nowhere.invalid\n"),
)
def _(bait: Bait) -> None:
    bait.config(f"credential.helper={bait.program}", f"core.askPass={bait.program}")


@trap("refs of an alternate", lambda bait: bait.provoke("rev-list", "--alternate-refs"))
def _(bait: Bait) -> None:
    other = make_repository(bait.marker.parent / "other")
    (bait.records / "objects/info").mkdir(exist_ok=True)
    (bait.records / "objects/info/alternates").write_text(f"{other}/.git/objects\n")
    bait.config(f"core.alternateRefsCommand={bait.program}")


@trap("update of a submodule", lambda bait: bait.provoke("submodule", "update", "--init"))
def _(bait: Bait) -> None:
    inner = make_repository(bait.marker.parent / "inner")
    add_submodule(bait.repository, inner, "inner")
    bait.config(f"submodule.inner.update=!{bait.program}", "submodule.recurse=true")
    commit_all(bait.repository, "submodule")
    git(bait.repository / "inner", "commit", "-q", "--allow-empty", "-m", "ahead of the record")


@trap("monitor of a submodule", _status)
def _(bait: Bait) -> None:
    inner = make_repository(bait.repository / "inner")
    git(inner, "config", "core.fsmonitor", str(bait.program))
    commit_all(bait.repository, "a repository inside")


# --- which repository it is -----------------------------------------------------------------------


def _evil_records(bait: Bait, place: Path) -> Path:
    """The repository's records at another place, with a monitor and hooks."""
    shutil.move(bait.records, place)
    git(place, "--git-dir", ".", "config", "core.fsmonitor", str(bait.program))
    bait.hook(place / "hooks", *HOOKS)
    return place


@trap(".git file that names a folder of the tree", _status)
def _(bait: Bait) -> None:
    _evil_records(bait, bait.repository / "records")
    (bait.repository / ".git").write_text("gitdir: records\n")


@trap(".git link to a folder of the tree", _status)
def _(bait: Bait) -> None:
    _evil_records(bait, bait.repository / "records")
    (bait.repository / ".git").symlink_to("records")


@trap(".git file that names a place outside", _status)
def _(bait: Bait) -> None:
    place = _evil_records(bait, bait.marker.parent / "records")
    (bait.repository / ".git").write_text(f"gitdir: {place}\n")


@trap("forged commondir", _status)
def _(bait: Bait) -> None:
    place = _evil_records(bait, bait.marker.parent / "records")
    bait.records.mkdir()
    shutil.copy(place / "HEAD", bait.records / "HEAD")
    shutil.copy(place / "index", bait.records / "index")
    (bait.records / "commondir").write_text(f"{place}\n")


@trap("work tree elsewhere", _status)
def _(bait: Bait) -> None:
    elsewhere = bait.marker.parent / "elsewhere"
    elsewhere.mkdir()
    bait.config(f"core.worktree={elsewhere}", f"core.fsmonitor={bait.program}")


@trap("bare repository as the project", _status)
def _(bait: Bait) -> None:
    for path in _evil_records(bait, bait.marker.parent / "records").iterdir():
        shutil.move(path, bait.repository / path.name)
    bait.provoke("--git-dir", ".", "config", "core.bare", "false")
    bait.provoke("--git-dir", ".", "config", "core.worktree", ".")


@trap("settings for every program that we know of", _status)
def _(bait: Bait) -> None:
    bait.config(f"core.fsmonitor={bait.program}")
    for name in (
        *("core.askPass", "core.editor", "core.pager", "core.sshCommand", "core.gitProxy"),
        *("core.alternateRefsCommand", "diff.external", "diff.guitool", "merge.tool"),
        *("difftool.x.cmd", "mergetool.x.cmd", "gpg.program", "gpg.openpgp.program"),
        *("gpg.ssh.defaultKeyCommand", "interactive.diffFilter", "man.x.cmd", "browser.x.cmd"),
        *("instaweb.httpd", "sendemail.sendmailCmd", "sequence.editor", "tar.x.command"),
        *("trailer.x.cmd", "trailer.x.command", "uploadpack.packObjectsHook", "guitool.x.cmd"),
        *("web.browser", "imap.tunnel", "credential.helper", "rebase.instructionFormat"),
        *("gc.recentObjectsHook", "ssh.variant", "http.sslCertPasswordProtected"),
    ):
        bait.config(f"{name}={bait.program}")
