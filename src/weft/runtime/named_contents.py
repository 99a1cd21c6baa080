"""Contents that the parts of a message name by their hash, in the place of bringing them along.

They are read and handed in again, so that the message names them as its own: what only another
session names is gone when that is deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec

from weft.errors import UsageError
from weft.ids import BlobId
from weft.messages import File, Image, Part, Text
from weft.runtime.session_host import SessionHost


async def with_contents(parts: Iterable[Part], host: SessionHost) -> tuple[Part, ...]:
    """The parts, each with its content.

    Raises:
        UsageError: a content is not stored, may not be read, or is no text where that is needed.
    """
    return tuple([await _with_content(part, host) for part in parts])


async def _with_content(part: Part, host: SessionHost) -> Part:
    match part:
        case Image(data="", blob=blob) if blob is not None:
            data = base64.b64encode(await host.read_blob(blob)).decode()
            return msgspec.structs.replace(part, data=data, blob=None)
        case Image():
            return msgspec.structs.replace(part, blob=None)
        case Text(blob=blob) | File(blob=blob) if blob is not None:
            return msgspec.structs.replace(part, text=await _text(blob, host), blob=None)
        case _:
            return part


async def _text(blob: BlobId, host: SessionHost) -> str:
    try:
        return (await host.read_blob(blob)).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the content {blob!r:.80} is no text") from error
