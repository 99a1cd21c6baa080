"""Completion in the chat: commands at the start of a line, files behind an `@`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from weft.cli.sanitize import clean_line
from weft.config.paths import places
from weft.project.environment import changed_files
from weft.project.file_list import list_files
from weft.project.path_finder import PathFinder
from weft.project.slash_commands import COMMANDS, taken_names
from weft.view import AnyBlock, LookupCard, ToolCard, UserBlock

SHOWN = 50
MOST_NEAR = 50
"""Files of the conversation that come before others."""
FRESH_SECONDS = 10.0


class OfferedCommand(NamedTuple):
    """A command that can be typed."""

    name: str
    shown: str
    about: str
    aliases: tuple[str, ...] = ()


class CompletionItem(NamedTuple):
    """Something that could stand at the cursor."""

    text: str
    replaced: int
    """Characters before the cursor that it takes the place of."""
    shown: str
    about: str = ""


class ChatCompleter:
    """Offers commands and files."""

    def __init__(
        self,
        folder: str,
        offered: Callable[[], list[OfferedCommand]] = list,
        files: ProjectFileList | None = None,
    ) -> None:
        """`offered` gives the commands from files, beside those that every screen has."""
        self._files = files or ProjectFileList(folder)
        self._offered = offered
        self._known: list[OfferedCommand] = []
        """The commands from files, as the last look found them."""
        self._used: list[str] = []
        """What was taken, the newest last."""

    @staticmethod
    def applies(before: str) -> bool:
        """Whether there can be something to offer, by the text before the cursor."""
        return _is_command_name(before) or mention_at_end(before) is not None

    def used(self, text: str) -> None:
        """This was taken, or sent as it is: the next time it comes first."""
        if text in self._used:
            self._used.remove(text)
        self._used.append(text)

    def saw(self, blocks: Iterable[AnyBlock]) -> None:
        """These are shown of the conversation: the files that they name come first from now on."""
        for path in named_files(blocks):
            self._files.near(path)

    def items(self, before: str) -> list[CompletionItem]:
        """What could stand behind this text; may take as long as listing the project does."""
        if _is_command_name(before):
            self._known = self._offered()
            return self.known_commands(before)
        return self._by_use(self._mentions(before))

    def known_commands(self, before: str) -> list[CompletionItem]:
        """The commands that begin so, without a look at the disk: a key press may wait for it."""
        if not _is_command_name(before):
            return []
        built_in = [
            OfferedCommand(each.name, each.shown, each.about, each.aliases)
            for each in COMMANDS
            if not (each.yields and any(own.name == each.name for own in self._known))
        ]
        names = {each.name: (each.name, *each.aliases) for each in [*built_in, *self._known]}
        found = [
            CompletionItem(each.name, len(before), clean_line(each.shown), clean_line(each.about))
            for each in [*built_in, *self._known]
            if any(name.startswith(before) for name in names[each.name])
        ]
        # What is typed whole is what Enter runs, however often a longer name was used.
        return sorted(self._by_use(found), key=lambda item: before not in names[item.text])

    def _by_use(self, found: list[CompletionItem]) -> list[CompletionItem]:
        order = {text: place for place, text in enumerate(reversed(self._used))}
        # Stable: what was never used keeps its order.
        return sorted(found, key=lambda item: order.get(item.text, len(order)))

    def _mentions(self, before: str) -> list[CompletionItem]:
        word = mention_at_end(before)
        if word is None:
            return []
        start = before.rfind("@")
        return [
            # Quoted, as the reader of mentions wants it; without quotes the path would end at its
            # first space.
            CompletionItem(
                f'@"{path}" ' if " " in path else f"@{path} ",
                len(before) - start,
                # A space at an end would not be seen.
                clean_line(path if path == path.strip() else f'"{path}"'),
            )
            for path in self._files.matching(word)
        ]


def _is_command_name(before: str) -> bool:
    """Only while the name itself is typed: the arguments of a command are free text."""
    return before.startswith("/") and not any(letter.isspace() for letter in before)


class FileCommands:
    """The commands from Markdown files, looked for again when the last look is old."""

    def __init__(self, project: str, config: Path) -> None:
        self._project = project
        self._config = config
        self._found: list[OfferedCommand] = []
        self._looked = float("-inf")

    def __call__(self) -> list[OfferedCommand]:
        """Those that there are."""
        if time.monotonic() - self._looked > FRESH_SECONDS:
            # With the first command that is typed.
            from weft.project.markdown_commands import find_commands
            from weft.project.system_prompt import command_folders

            found = find_commands(command_folders(self._project, self._config)).found
            taken = taken_names()
            self._found = [
                OfferedCommand(
                    f"/{name}", f"/{name} {each.argument_hint}".rstrip(), each.description
                )
                for name, each in found.items()
                # A built-in command goes first when it is typed, so a file of the same name could
                # never be run.
                if f"/{name}" not in taken
            ]
            self._looked = time.monotonic()
        return self._found


def mention_at_end(text: str) -> str | None:
    """What stands behind the `@` that is being written; None when none is."""
    start = max(text.rfind(" "), text.rfind("\n"), text.rfind("\t")) + 1
    word = text[start:]
    return word[1:].strip('"') if word.startswith("@") else None


def named_files(blocks: Iterable[AnyBlock]) -> Iterator[str]:
    """The paths that blocks name: files that the user has attached, and those of tool calls."""
    for block in blocks:
        if isinstance(block, UserBlock):
            yield from block.attached
        elif isinstance(block, ToolCard | LookupCard):
            for card in block.cards if isinstance(block, LookupCard) else (block,):
                if isinstance(path := card.args.get("path"), str):
                    yield path


class ProjectFileList:
    """The files of a folder, looked for again when the last look is old.

    From the index, where the project has one and the setting is on: it knows all of them, and what
    is ignored.
    """

    def __init__(self, folder: str, uses_index: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._uses_index = uses_index
        self._listing = ""
        self._finder = PathFinder("")
        self._changed: list[str] = []
        """Files that differ from the newest commit."""
        self._near: dict[str, None] = {}
        """Files of the conversation, the newest last."""
        self._looked = float("-inf")

    def near(self, path: str) -> None:
        """This file is one of the conversation."""
        if os.path.isabs(path):
            path = os.path.relpath(path, self._folder)
        path = os.path.normpath(path)
        # Out and in again, because a dict keeps the place of a key that is only set.
        self._near.pop(path, None)
        self._near[path] = None
        if len(self._near) > MOST_NEAR:
            del self._near[next(iter(self._near))]

    def matching(self, word: str) -> list[str]:
        """Files for what was typed: those of the conversation and those that were changed first;
        then by name, then anywhere in the path, then letters in order; shorter first.
        """
        if os.path.isabs(word):
            # Its letters are in paths of the project by chance alone.
            inside = word.removeprefix(f"{self._folder.rstrip('/')}/")
            return [] if inside == word else self.matching(inside.lstrip("/"))
        if time.monotonic() - self._looked > FRESH_SECONDS:
            listing = self._indexed() or "".join(f"{path}\0" for path in list_files(self._folder))
            # The same finder as long as the files are the same: it goes on from key to key.
            if listing != self._listing:
                self._listing, self._finder = listing, PathFinder(listing)
            self._changed = changed_files(self._folder)
            self._looked = time.monotonic()
        # A copy: this runs in a thread, while the conversation goes on.
        first = [*reversed(self._near.copy()), *self._changed]
        found = self._finder.find(word, first, most=SHOWN)
        # What a tool was called with need not be there, nor what was there a while ago.
        known = set(first)
        return [path for path in found if path not in known or self._can_be_picked(path)]

    def _can_be_picked(self, path: str) -> bool:
        return path.isprintable() and os.path.isfile(os.path.join(self._folder, path))

    def _indexed(self) -> str:
        where = places(os.environ)
        if not self._uses_index() or not (where.index_of(self._folder) / "cache.db").exists():
            return ""
        from weft.app.index import listed_paths  # only with an index

        # What cannot be shown cannot be picked.
        paths = listed_paths(self._folder, where).split("\0")
        return "".join(f"{path}\0" for path in paths if path.isprintable() and path)
