"""Errors of the operating system, as sentences that tell a model what to do."""

from __future__ import annotations

import errno
import stat

from weft.errors import FinalToolError, RetryableToolError, ToolError

_LATER = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EIO,
    errno.EAGAIN,
    errno.EINTR,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ETIMEDOUT,
    errno.ESTALE,
}
"""Another time it may work."""
_SENTENCES = {
    errno.ENOENT: "there is no file {path!r}",
    errno.ENOTDIR: "a part of the path {path!r} is a file, not a folder",
    errno.EISDIR: "{path!r} is a folder, not a file; use the list tool to see what is in it",
    errno.ELOOP: "{path!r} goes through a symbolic link that cannot be followed; name the file by "
    "its real path",
    errno.EXDEV: "{path!r} leads out of the project",
    errno.EACCES: "the system does not allow access to {path!r}",
    errno.EPERM: "the system does not allow that on {path!r}",
    errno.EROFS: "{path!r} lies on a disk that is read-only",
    errno.ENAMETOOLONG: "the path {path!r} is too long",
    errno.ENXIO: "{path!r} is a pipe or device, not a regular file",
    errno.ENOSPC: "the disk is full; {path!r} was not written",
    errno.EDQUOT: "the disk quota is used up; {path!r} was not written",
}
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a symbolic link"),
)


def explain(error: OSError, path: str) -> ToolError:
    """The tool error that tells what `error` means for `path`."""
    # Whether a retry may help is decided by the number: the text depends on the locale and the C
    # library.
    code = error.errno or 0
    sentence = _SENTENCES.get(code, "{path!r}: {reason}")
    message = sentence.format(path=path, reason=error.strerror or str(error))
    return RetryableToolError(message) if code in _LATER else FinalToolError(message)


def kind_of(mode: int) -> str:
    """What something is that is no regular file."""
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "a device")


def refusal(mode: int, path: str) -> str:
    """Why something that is no regular file is not opened."""
    if stat.S_ISDIR(mode):
        return f"{path!r} is a folder, not a file; use the list tool to see what is in it"
    if stat.S_ISLNK(mode):
        return f"{path!r} is a symbolic link; name the file that it points to"
    return f"{path!r} is {kind_of(mode)}, not a regular file; it is not opened"
