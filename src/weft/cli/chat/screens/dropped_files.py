"""Pictures that are pasted or dropped: the path that a terminal pastes for a dropped file, and the
picture in the clipboard.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from weft.errors import UsageError

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
"""What is sent as a picture or a document; any other file is dropped as its path."""
LONGEST_DROP = 8192
LONGEST_LABEL = 24
"""Letters of a name that are shown; a token is not broken at the end of a row."""
CLIPBOARD_SECONDS = 3.0
LARGEST_PICTURE = 32 * 1024 * 1024
_BEGINNINGS = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")


def dropped_files(text: str) -> list[str]:
    """The pictures whose paths a terminal has pasted; empty for any other text.

    Terminals paste a dropped file's path with quotes, with backslashes, or as a `file:` address.
    """
    text = text.strip()
    # Only absolute paths: a word that happens to name a file here was typed somewhere else.
    if not text.startswith(("/", "~/", "'", '"', "file://")) or len(text) > LONGEST_DROP:
        return []
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    paths = [_path_of(word) for word in words]
    # A quote cannot be written in a mention.
    are_pictures = all(
        path.lower().endswith(PICTURES) and '"' not in path and os.path.isfile(path)
        for path in paths
    )
    return paths if are_pictures else []


def _path_of(word: str) -> str:
    if word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    return os.path.realpath(os.path.expanduser(word))


def picture_label(path: str) -> str:
    """What stands in the input line for a picture."""
    kind = "PDF" if path.lower().endswith(".pdf") else "Image"
    name = os.path.basename(path)
    if len(name) > LONGEST_LABEL:
        # Both ends: the beginning tells files apart, the end says what it is.
        name = f"{name[: LONGEST_LABEL - 11]}…{name[-10:]}"
    return f"[{kind} {name}]"


class ClipboardPictures:
    """Pictures from the clipboard, as files of ours until `close`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._folder = ""
        self.count = 0
        """How many there were."""

    def take(self) -> str:
        """The picture in the clipboard, as a file; blocks.

        Raises:
            UsageError: there is none, or no program that could read the clipboard.
        """
        data = _clipboard_picture(self._environ)
        if not self._folder:
            # Only the user may look into it.
            self._folder = os.path.realpath(tempfile.mkdtemp(prefix="weft-pictures-"))
        self.count += 1
        path = Path(self._folder, f"pasted-{self.count}.png")
        path.write_bytes(data)
        return str(path)

    def close(self) -> None:
        """Remove the files; what was sent is in the session."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _clipboard_picture(environ: Mapping[str, str]) -> bytes:
    command = _reader(environ)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CLIPBOARD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"the clipboard cannot be read: {command[0]} failed") from error
    if not done.stdout.startswith(_BEGINNINGS):
        raise UsageError("no picture in the clipboard")
    if len(done.stdout) > LARGEST_PICTURE:
        raise UsageError(f"the picture is larger than {LARGEST_PICTURE // 1024**2} MB")
    return done.stdout


def _reader(environ: Mapping[str, str]) -> list[str]:
    """The command that prints the picture in the clipboard."""
    if sys.platform == "darwin":
        wanted, command = "pngpaste", ["pngpaste", "-"]
    elif environ.get("WAYLAND_DISPLAY"):
        wanted, command = "wl-clipboard", ["wl-paste", "--type", "image/png"]
    elif environ.get("DISPLAY"):
        target = ["-target", "image/png", "-out"]
        wanted, command = "xclip", ["xclip", "-selection", "clipboard", *target]
    else:
        # Over ssh the clipboard is on the other machine, and no terminal hands a picture over.
        raise UsageError("no clipboard here; use @file")
    found = shutil.which(command[0], path=environ.get("PATH"))
    if found is None:
        raise UsageError(f"install {wanted} to paste pictures")
    return [found, *command[1:]]
