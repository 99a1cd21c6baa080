"""Which changes of a repository's settings only say what branches follow."""

from __future__ import annotations

import pytest

from weft.workspace.git_settings import only_plain

BASE = b'[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.com/x\n'
BRANCH = b'[branch "x"]\n\tremote = origin\n\tmerge = refs/heads/x\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BASE, BASE + BRANCH),
        (BASE + BRANCH, BASE),
        (BASE + BRANCH, BASE + BRANCH.replace(b'"x"', b'"feature/y"')),
        (BASE + BRANCH, BASE + BRANCH + b"\trebase = true\n"),
        (BASE, BASE + b'[branch "x"]\n\tremote = .\n\tmerge = refs/heads/main\n'),
        (BASE, BASE + b'[branch "x"]\n\tpushRemote = origin\n'),
        (BASE, BASE.replace(b"false\n", b"false\n\tsparseCheckout = true\n")),
        (BASE, BASE + b"[extensions]\n\tworktreeConfig = true\n"),
        (BASE + b"[index]\n\tsparse = true\n", BASE),
        (b"", b"[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n"),
        (
            b"",
            b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
            b"\tlogallrefupdates = true\n",
        ),
        (
            BASE + b'[branch "o"]\n\tmergeoptions = x\n',
            BASE + b'[branch "o"]\n\tmergeoptions = x\n',
        ),
    ],
)
def test_what_a_branch_follows_is_let_through(before: bytes, after: bytes) -> None:
    assert only_plain(before, after)


@pytest.mark.parametrize(
    "after",
    [
        BASE.replace(b"false", b"true"),
        BASE + b"[core]\n\tfsmonitor = ./x\n",
        BASE + b"[core]\n\tfilemode = false\n",
        BASE + b"[core]\n\tsparseCheckout = true ; \\\n",
        BASE + b"[core] sparseCheckout = true\n",
        BASE + b"[extensions]\n\tworktreeConfig = true\n\tpartialClone = evil\n",
        BASE + b"[index]\n\tsparse = true\n\tfsmonitor = x\n",
        BASE.replace(b"[core]\n", b"[index]\n"),
        BASE.replace(b"[core]\n", b"[core]\n[index]\n"),
        BASE + b'[branch "x"]\n\tremote = elsewhere\n',
        BASE + b'[branch "x"]\n\tremote = ext::sh -c x\n',
        BASE + b'[branch "x"]\n\tremote = ../evil\n',
        BASE + b'[branch "x"]\n\tmergeoptions = --no-verify\n',
        BASE + b'[branch "x"] remote = origin\n',
        BASE + b'[branch "x"]\n\tmerge = refs/heads/x\n [core]\n\tpager = x\n',
        BASE + b'[branch "x"]\n\tmerge = refs/heads/x\\\n[core]\n\tpager = x\n',
        BASE + b'[branch "x"]\r\n\tmerge = refs/heads/x\r\n',
        BASE + b'[branch "x"]\n\tmerge = refs/heads/x ; y\n',
        BASE + b'[branch "x"]\n[include]\n\tpath = evil\n',
        BASE + b'[remote "evil"]\n\turl = x\n[branch "x"]\n\tremote = evil\n',
        BASE.replace(b"[remote", b'[branch "x"]\n\tmerge = refs/heads/x\n[REMOTE'),
        b'[branch "x"]\n\tmerge = refs/heads/x\n\tbare = false\n',
    ],
)
def test_anything_else_is_not(after: bytes) -> None:
    assert not only_plain(BASE, after)


@pytest.mark.parametrize(
    "after",
    [
        b"[core]\n\tbare = true\n",
        b"[core]\n\tfsmonitor = ./x\n",
        b"[core]\n\tworktree = /elsewhere\n",
        b"[include]\n\tpath = evil\n",
        b"[core]\n\tfilemode = true\n\thooksPath = x\n",
        b'[remote "x"]\n\turl = ext::sh\n',
    ],
)
def test_a_new_repository_starts_with_what_git_writes_and_nothing_else(after: bytes) -> None:
    assert not only_plain(b"", after)


CLONED = (
    b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    b'[remote "origin"]\n\turl = %b\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    b'[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n'
)


def is_in_project(path: str) -> bool:
    return path.startswith("/project")


@pytest.mark.parametrize(
    "url",
    [
        *("/project", "/project/sub/.", "file:///project/sub", "https://example.com/a/b.git"),
        *("http://user@example.com:8080/x", "https://user:word@example.com/x", "git://a.b/c"),
        *("ssh://git@example.com:22/~a/b.git", "ssh://[::1]/x", "git@example.com:a/b.git"),
        *("example.com:/a/b", "https://example.com/a%20b"),
    ],
)
def test_a_new_repository_may_say_where_it_was_cloned_from(url: str) -> None:
    assert only_plain(b"", CLONED % url.encode(), is_in_project)
    assert not only_plain(b"", CLONED % url.encode())
    assert not only_plain(BASE, BASE + CLONED % url.encode(), None)


@pytest.mark.parametrize(
    "url",
    [
        *("ext::sh -c x", "ext::sh", "a.b::c", "https::x", "x::https://example.com/", "/elsewhere"),
        *("file:///elsewhere", "./x", "../x", "-x", "--upload-pack=x", "ssh://-oProxyCommand=x/y"),
        *("ssh://-oX@example.com/y", "-oX@example.com:y", "git@-oX.com:y", "example.com:-y"),
        *("https://example.com/x y", 'https://example.com/"x', "https://example.com/x#y"),
        *("https://example.com/a\\tb", "fd::17/x", "https://example.com", "host:path", ""),
    ],
)
def test_an_address_that_starts_a_program_or_leads_out_of_the_project_is_none(url: str) -> None:
    assert not only_plain(b"", CLONED % url.encode(), is_in_project)


@pytest.mark.parametrize(
    "line",
    [
        *("uploadpack = ./x", "receivepack = ./x", "proxy = x", "vcs = x", "promisor = true"),
        *("mirror = true", "fetch = +refs/*:refs/*", "fetch = refs/heads/x:refs/heads/x"),
        *("pushurl = ext::x", "serverOption = x", "partialclonefilter = blob:none"),
    ],
)
def test_a_remote_of_a_new_repository_names_nothing_else(line: str) -> None:
    text = CLONED % b"/project"
    assert not only_plain(
        b"", text.replace(b"\tfetch", f"\t{line}\n\tfetch".encode()), is_in_project
    )
