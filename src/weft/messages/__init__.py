"""What is said: nodes, content parts, results and usage, in no vendor's words.

Pure values.  This folder knows no facts, no store and no provider.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.messages.conversation import CallResult, CallResults, ChatMessage, Message
from weft.messages.model_name import ModelName, parse_model_name
from weft.messages.node import Content, Node, Role, ToolResult, as_parts
from weft.messages.parts import (
    PDF_TYPE,
    DraftPart,
    File,
    Image,
    Part,
    Text,
    Thinking,
    ToolCall,
    clean_text,
    clean_value,
    typed_text,
)
from weft.messages.usage import NOTHING_USED, Usage

if TYPE_CHECKING:  # loaded when they are first used
    from weft.messages.images import (
        IMAGE_NAMES,
        IMAGE_TYPES,
        MAX_IMAGE_BYTES,
        MAX_IMAGE_SIDE,
        ImageInfo,
        image_info,
        image_problem,
    )

__all__ = [
    "IMAGE_NAMES",
    "IMAGE_TYPES",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_SIDE",
    "NOTHING_USED",
    "PDF_TYPE",
    "CallResult",
    "CallResults",
    "ChatMessage",
    "Content",
    "DraftPart",
    "File",
    "Image",
    "ImageInfo",
    "Message",
    "ModelName",
    "Node",
    "Part",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "Usage",
    "as_parts",
    "clean_text",
    "clean_value",
    "image_info",
    "image_problem",
    "parse_model_name",
    "typed_text",
]

_HOMES = {
    "IMAGE_NAMES": "images",
    "IMAGE_TYPES": "images",
    "MAX_IMAGE_BYTES": "images",
    "MAX_IMAGE_SIDE": "images",
    "ImageInfo": "images",
    "image_info": "images",
    "image_problem": "images",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
