"""Contents that the parts of a message name by their hash, in the place of bringing them along.

They are read and handed in again, so that the message names them as its own: what only another
session names is gone when that is deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.ids import BlobId
from weft.messages import File, Image, Part, Text
from weft.runtime.session_host import SessionHost

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all contents that one message names: as many as it could bring along."""


async def with_contents(parts: Iterable[Part], host: SessionHost) -> tuple[Part, ...]:
    """The parts, each with its content.

    Raises:
        UsageError: a content is not stored, may not be read, or is no text where that is needed; or
            they are too large together.
    """
    named = _NamedContents(host)
    return tuple([await named.filled(part) for part in parts])


class _NamedContents:
    """Those of one message.  Each is read once, and counted as often as it is named."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._left = MOST_BYTES
        self._read: dict[BlobId, bytes] = {}
        self._texts: dict[BlobId, str] = {}

    async def filled(self, part: Part) -> Part:
        match part:
            case Image(data="", blob=blob) if blob is not None:
                data = base64.b64encode(await self._content(blob)).decode()
                return msgspec.structs.replace(part, data=data, blob=None)
            case Image():
                return msgspec.structs.replace(part, blob=None)
            case Text(blob=blob) | File(blob=blob) if blob is not None:
                return msgspec.structs.replace(part, text=await self._text(blob), blob=None)
            case _:
                return part

    async def _content(self, blob: BlobId) -> bytes:
        if blob not in self._read:
            self._read[blob] = await self._host.read_blob(blob)
        self._left -= len(self._read[blob])
        if self._left < 0:
            most = f"{MOST_BYTES // 1024**2} MB"
            raise UsageError(f"the contents that the message names have more than {most} together")
        return self._read[blob]

    async def _text(self, blob: BlobId) -> str:
        data = await self._content(blob)
        try:
            if blob not in self._texts:
                # One text for all that name it.
                self._texts[blob] = data.decode()
            return self._texts[blob]
        except UnicodeDecodeError as error:
            raise UsageError(f"the content {blob!r:.80} is no text") from error
