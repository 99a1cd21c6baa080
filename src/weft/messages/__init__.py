"""What is said: nodes, content parts, results and usage, in no vendor's words.

Pure values.  This folder knows no facts, no store and no provider.
"""

from weft.messages.conversation import CallResult, CallResults, ChatMessage, Message
from weft.messages.images import (
    IMAGE_NAMES,
    IMAGE_TYPES,
    MAX_IMAGE_BYTES,
    MAX_IMAGE_SIDE,
    ImageInfo,
    image_info,
    image_problem,
)
from weft.messages.model_name import ModelName, parse_model_name
from weft.messages.node import Content, Node, Role, ToolResult, as_parts
from weft.messages.parts import File, Image, Part, Text, Thinking, ToolCall, clean_text, clean_value
from weft.messages.usage import NOTHING_USED, Usage

__all__ = [
    "IMAGE_NAMES",
    "IMAGE_TYPES",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_SIDE",
    "NOTHING_USED",
    "CallResult",
    "CallResults",
    "ChatMessage",
    "Content",
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
]
