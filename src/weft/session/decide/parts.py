"""Validation of message parts: text that can be stored, and images that are images."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec

from weft.errors import UsageError
from weft.messages import File, Image, Part, Text, clean_text


def clean_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts as they may be stored: text without lone surrogates, nothing empty.

    Raises:
        UsageError: an image is none, or a part has no place in a message of the user.
    """
    cleaned: list[Part] = []
    for part in parts:
        match part:
            case Text(text=text):
                if text.strip():
                    cleaned.append(msgspec.structs.replace(part, text=clean_text(text)))
            case File(text=text):
                cleaned.append(msgspec.structs.replace(part, text=clean_text(text)))
            case Image():
                cleaned.append(_checked_image(part))
            case _:
                raise UsageError("a message is made of text, images and files")
    return tuple(cleaned)


def _checked_image(image: Image) -> Image:
    """The image, its content known to be base64 without any space."""
    shown = image.name or "the image"
    if not image.media_type.startswith("image/"):
        raise UsageError(f"{shown} needs a media_type such as image/png, not {image.media_type!r}")
    if image.blob is not None and not image.data:
        return image
    # Vendors refuse base64 with line breaks, and a refusal comes only after the turn has begun.
    data = "".join(image.data.split())
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise UsageError(f"the content of {shown} is not base64: {error}") from error
    if not content:
        raise UsageError(f"{shown} has no content")
    return msgspec.structs.replace(image, data=data)
