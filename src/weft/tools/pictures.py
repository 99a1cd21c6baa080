"""Pictures, made fit for every model: the one place that checks what `-i`, `@file`, a paste, a
program and `read` bring.

A vendor that cannot decode a picture refuses the whole conversation, and would again with each
further message.  So a picture is decoded here first; what is no picture, is damaged or would fill
the memory is refused with a sentence, and what is too large for the strictest vendor is shrunk.

Pillow is loaded with the first picture: it costs as much as half of a start.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import anyio.to_thread
import msgspec

from weft.errors import ToolError, UsageError
from weft.messages import (
    IMAGE_NAMES,
    IMAGE_TYPES,
    MAX_IMAGE_BYTES,
    MAX_IMAGE_SIDE,
    Image,
    ImageInfo,
    Part,
    image_info,
)

if TYPE_CHECKING:
    from PIL.Image import Image as DecodedImage

MAX_PICTURE_FILE: Final = 50 * 1024 * 1024
"""Bytes of a file that is looked at at all."""
MAX_PIXELS: Final = 100_000_000
"""Pixels that are decoded: some 400 MB.  A file of a few kilobytes can claim far more."""
SHRUNK_SIDE: Final = 2_000
"""Pixels on the longer side of a picture that is shrunk: what vendors look at, and what they take
even where there are many pictures.
"""
_QUALITIES: Final = (90, 75, 50)
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")


class FittedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that every vendor with eyes takes."""

    data: bytes
    info: ImageInfo
    """Of `data`: the type is what the bytes are, whatever name or media type came with them."""
    before: ImageInfo
    """As it came."""

    @property
    def note(self) -> str:
        """What was changed; empty when nothing was."""
        if self.info == self.before:
            return ""
        old, new = (f"{each.width} x {each.height}" for each in (self.before, self.info))
        if old == new:
            return f"as {IMAGE_TYPES[self.info.media_type]}, which takes fewer bytes"
        return f"shrunk from {old} to {new}"


class PictureProblem(msgspec.Struct, frozen=True):
    """Why something cannot be shown to models."""

    text: str
    """To stand behind a name: `is damaged …`."""


async def fitted(data: bytes) -> FittedPicture | PictureProblem:
    """The picture that these bytes are, made fit; or why it cannot be."""
    # Decoding takes up to a second, and lets go of the interpreter meanwhile.
    return await anyio.to_thread.run_sync(fit, data)


def fit(data: bytes) -> FittedPicture | PictureProblem:
    """The same, here and now."""
    info = image_info(data)
    if info is None:
        return PictureProblem(f"is not an image that models take; those are {IMAGE_NAMES}")
    if info.width * info.height > MAX_PIXELS:
        size = f"{info.width} x {info.height} pixels"
        return PictureProblem(f"is an image of {size}; at most {MAX_PIXELS:,} pixels are taken")
    from PIL import Image as Pillow
    from PIL import ImageFile, UnidentifiedImageError

    try:
        # The formats are named: Pillow knows dozens more, and each is a parser to attack.
        with Pillow.open(io.BytesIO(data), formats=_FORMATS) as picture:
            picture.load()
            if _is_fit(info, len(data)):
                return FittedPicture(data=data, info=info, before=info)
            return _shrunk(picture, info)
    except UnidentifiedImageError:
        return PictureProblem("is a damaged image: nothing in it can be decoded")
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        return PictureProblem(f"is a damaged image: {str(error) or type(error).__name__}")
    except (Pillow.DecompressionBombError, MemoryError):
        return PictureProblem("is an image that needs too much memory")
    finally:
        assert not ImageFile.LOAD_TRUNCATED_IMAGES  # or half a picture would pass for a whole one


def _is_fit(info: ImageInfo, size: int) -> bool:
    return size <= MAX_IMAGE_BYTES and max(info.width, info.height) <= MAX_IMAGE_SIDE


def _shrunk(picture: DecodedImage, before: ImageInfo) -> FittedPicture | PictureProblem:
    from PIL import ImageOps

    # What a camera wrote beside the picture is lost when it is written anew; how it was held must
    # not be.
    upright = ImageOps.exif_transpose(picture)
    small = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    small.thumbnail((SHRUNK_SIDE, SHRUNK_SIDE))
    for data in _encodings(small):
        info = image_info(data)
        if info is not None and _is_fit(info, len(data)):
            return FittedPicture(data=data, info=info, before=before)
    return PictureProblem("is an image that cannot be made small enough")


def _encodings(picture: DecodedImage) -> Iterator[bytes]:
    """The picture as bytes, best first."""
    yield _encoded(picture, "PNG")
    flat = picture.convert("RGB")
    for quality in _QUALITIES:
        yield _encoded(flat, "JPEG", quality=quality)


def _encoded(picture: DecodedImage, kind: str, **options: int) -> bytes:
    target = io.BytesIO()
    picture.save(target, kind, **options)
    return target.getvalue()


async def fitted_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of a message that a program hands in, every picture of them one that models take.

    A PDF gets its text beside it, unless it came with it.

    Raises:
        UsageError: one is no picture and no PDF, or cannot be made fit.
    """
    fit_parts: list[Part] = []
    for part in parts:
        if not isinstance(part, Image) or not part.data:
            fit_parts.append(part)
        elif part.is_pdf and part.text_beside:
            fit_parts.append(_checked_document(part))
        elif part.is_pdf:
            fit_parts += await _as_document(part)
        else:
            fit_parts.append(await _as_sent(part))
    return tuple(fit_parts)


def _checked_document(image: Image) -> Image:
    """A PDF that came with its text, which is not extracted again.

    That its text is there is a claim of the program's, and says nothing of the bytes.
    """
    from weft.tools.pdf import MAX_SHOWN_FILE  # only where there is a document

    content = _pdf_bytes(image)
    if len(content) > MAX_SHOWN_FILE:
        size = MAX_SHOWN_FILE // 1024**2
        raise UsageError(f"{image.name or 'the document'} is larger than {size} MB")
    return msgspec.structs.replace(image, data="".join(image.data.split()))


def _pdf_bytes(image: Image) -> bytes:
    from weft.tools.text import is_pdf

    shown = image.name or "the document"
    content = _decoded(image, shown)
    if not is_pdf(content):
        raise UsageError(f"{shown} is not a PDF")
    return content


async def _as_document(image: Image) -> list[Part]:
    from weft.tools.pdf import document_parts  # only where there is a document
    from weft.workspace import LocalRunner

    content = _pdf_bytes(image)
    try:
        found = await document_parts(content, image.name or "document.pdf", runner=LocalRunner())
    except ToolError as error:
        raise UsageError(str(error)) from error
    return list(found)


async def _as_sent(image: Image) -> Image:
    shown = image.name or "the image"
    found = await fitted(_decoded(image, shown))
    if isinstance(found, PictureProblem):
        raise UsageError(f"{shown} {found.text}")
    data = base64.b64encode(found.data).decode()
    return msgspec.structs.replace(image, media_type=found.info.media_type, data=data)


def _decoded(image: Image, shown: str) -> bytes:
    try:
        # Line breaks are usual in base64, and vendors refuse them.
        content = base64.b64decode("".join(image.data.split()), validate=True)
    except ValueError as error:
        raise UsageError(f"the content of {shown} is not base64: {error}") from error
    if not content:
        raise UsageError(f"{shown} has no content")
    return content
