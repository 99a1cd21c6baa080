"""JSON-RPC 2.0: framing and a peer that sends and answers requests, over any pair of byte streams.

Knows no protocol that is spoken in it: language servers and MCP servers are spoken to by it.
"""

from weft.jsonrpc.frames import FrameDecoder, FramingError, framed
from weft.jsonrpc.lines import TOO_LONG, LineDecoder, line_framed
from weft.jsonrpc.peer import CancelNotice, ErrorAnswer, JsonRpcPeer, PeerClosed, UnknownMethod

__all__ = [
    "TOO_LONG",
    "CancelNotice",
    "ErrorAnswer",
    "FrameDecoder",
    "FramingError",
    "JsonRpcPeer",
    "LineDecoder",
    "PeerClosed",
    "UnknownMethod",
    "framed",
    "line_framed",
]
