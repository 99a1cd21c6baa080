"""The language servers that we know, and how each is started.

Only a program on the user's `PATH`, or one that the settings name, is ever started; which of them
is there is found out when a file of its language is edited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

_PYTHON: Final = {".py": "python", ".pyi": "python"}
_SCRIPT: Final = {
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "typescriptreact",
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".jsx": "javascriptreact",
}
_C: Final = {
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    ".m": "objective-c",
}
_TYPESCRIPT: Final = {
    # There is no network in the sandbox.
    "disableAutomaticTypingAcquisition": True,
    # The second process would answer before the project is read, and know of one file only.
    "tsserver": {"useSyntaxServer": "never"},
    # Else a rename where a name is imported only gives it another name there.
    "preferences": {"providePrefixAndSuffixTextForRename": False},
}
# All of these run programs of the project.
_NO_BUILDS: Final = {
    "checkOnSave": False,
    "cargo": {"buildScripts": {"enable": False}},
    "procMacro": {"enable": False},
}


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One language server."""

    name: str
    command: tuple[str, ...]
    """The program and its arguments."""
    languages: Mapping[str, str]
    """The protocol's name of the language for each suffix."""
    role: Literal["main", "beside"] = "main"
    """Of the main ones of a language the first that is there is used; the others run beside any."""
    settings: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    own_library: str = ""
    """A file that it would otherwise take from the project's `node_modules`, where it lies next to
    the server's own package."""

    @property
    def program(self) -> str:
        """What is looked for on `PATH`."""
        return self.command[0]


KNOWN: Final = (
    ServerSpec(name="ty", command=("ty", "server"), languages=_PYTHON),
    ServerSpec(name="pyright", command=("pyright-langserver", "--stdio"), languages=_PYTHON),
    ServerSpec(
        name="basedpyright", command=("basedpyright-langserver", "--stdio"), languages=_PYTHON
    ),
    ServerSpec(name="pyrefly", command=("pyrefly", "lsp"), languages=_PYTHON),
    ServerSpec(name="ruff", command=("ruff", "server"), languages=_PYTHON, role="beside"),
    ServerSpec(
        name="typescript-language-server",
        command=("typescript-language-server", "--stdio"),
        languages=_SCRIPT,
        options=_TYPESCRIPT,
        own_library="typescript/lib/tsserver.js",
    ),
    ServerSpec(name="vtsls", command=("vtsls", "--stdio"), languages=_SCRIPT),
    # It would write its index into the project.
    ServerSpec(name="clangd", command=("clangd", "--background-index=0"), languages=_C),
    ServerSpec(name="gopls", command=("gopls",), languages={".go": "go"}),
    ServerSpec(
        name="rust-analyzer",
        command=("rust-analyzer",),
        languages={".rs": "rust"},
        settings={"rust-analyzer": _NO_BUILDS},
        options=_NO_BUILDS,
    ),
    ServerSpec(name="zls", command=("zls",), languages={".zig": "zig"}),
    ServerSpec(name="lua", command=("lua-language-server",), languages={".lua": "lua"}),
    ServerSpec(name="intelephense", command=("intelephense", "--stdio"), languages={".php": "php"}),
    ServerSpec(
        name="bash",
        command=("bash-language-server", "start"),
        languages={".sh": "shellscript", ".bash": "shellscript"},
    ),
)
"""In the order of preference."""


def programs_by_suffix(specs: Iterable[ServerSpec] = KNOWN) -> dict[str, tuple[str, ...]]:
    """The programs that could serve each suffix."""
    found: dict[str, list[str]] = {}
    for spec in specs:
        for suffix in spec.languages:
            found.setdefault(suffix, []).append(spec.program)
    return {suffix: tuple(programs) for suffix, programs in found.items()}


def suffix_of(path: str) -> str:
    """The suffix of a file's name, in small letters; empty without one."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem else ""


def chosen(
    suffix: str, specs: Iterable[ServerSpec], find: Callable[[str], str | None]
) -> list[ServerSpec]:
    """The servers for files of a suffix: the first main one that is there, and all that run beside
    it."""
    found: list[ServerSpec] = []
    for spec in specs:
        if suffix not in spec.languages:
            continue
        if spec.role == "main" and any(each.role == "main" for each in found):
            continue
        if find(spec.program) is not None:
            found.append(spec)
    return found
