"""The lines of earlier chats: a private file, read when the first old line is wanted.

The file is that of prompt_toolkit's `FileHistory`, which wrote it before: a comment with the time,
then each line of an entry behind a `+`.
"""

from __future__ import annotations

import datetime
import os

LARGEST_FILE = 4 * 1024 * 1024
"""Bytes that are read, from the end; the file itself only grows."""
SEARCHED = 2000


class LineHistory:
    """Entries from the oldest to the newest, and where the user is among them."""

    def __init__(self, path: str | None) -> None:
        """`path` is None where nothing may be kept."""
        self._path = path
        self._entries: list[str] | None = None
        self._added: list[str] = []
        self._place = 0
        self._draft = ""
        """What stood in the line before the user went back."""

    def entries(self) -> list[str]:
        """All of them; read from the file with the first call."""
        if self._entries is None:
            self._entries = [*_read(self._path), *self._added]
            self._place = len(self._entries)
        return self._entries

    def add(self, text: str) -> None:
        """One more, unless it repeats the last."""
        self.leave()
        known = self._added if self._entries is None else self._entries
        if not text.strip() or known[-1:] == [text]:
            return
        known.append(text)
        self._place = len(known)
        self._append(text)

    def leave(self) -> None:
        """The next step back begins at the newest again."""
        self._place = len(self._entries) if self._entries is not None else 0

    def back(self, text: str) -> str | None:
        """The entry before; `text` is what stands in the line."""
        entries = self.entries()
        if self._place == len(entries):
            self._draft = text
        # Steps over what looks the same as the line, so that every press changes something.
        place = self._place - 1
        while place >= 0 and entries[place] == text:
            place -= 1
        if place < 0:
            return None
        self._place = place
        return entries[place]

    def forth(self) -> str | None:
        """The entry behind, in the end the draft; None where there is no further one."""
        entries = self.entries()
        if self._place >= len(entries):
            return None
        self._place += 1
        return self._draft if self._place == len(entries) else entries[self._place]

    def matching(self, words: str) -> list[str]:
        """Entries that hold this, the newest first, each once."""
        wanted = words.casefold()
        found = dict.fromkeys(
            each for each in reversed(self.entries()[-SEARCHED:]) if wanted in each.casefold()
        )
        return list(found)

    def _append(self, text: str) -> None:
        if self._path is None:
            return
        lines = "".join(f"+{line}\n" for line in text.split("\n"))
        entry = f"\n# {datetime.datetime.now()}\n{lines}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            # One write of an appended file is not mixed with that of another chat.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            fd = os.open(self._path, flags, 0o600)
            try:
                os.write(fd, entry.encode("utf-8", "replace"))
            finally:
                os.close(fd)
        except OSError:
            self._path = None  # it is a comfort: a full disk must not end the chat


def _read(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LARGEST_FILE))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    entries: list[list[str]] = []
    is_open = False
    for line in text.split("\n"):
        if not line.startswith("+"):
            is_open = False
        elif is_open:
            entries[-1].append(line[1:])
        else:
            entries.append([line[1:]])
            is_open = True
    return ["\n".join(entry) for entry in entries]
