"""JSON-RPC 2.0: framing and a peer that sends and answers requests, over any pair of byte streams.

Knows no protocol that is spoken in it: language servers are the first that use it.
"""

from weft.jsonrpc.frames import FrameDecoder, FramingError, framed
from weft.jsonrpc.peer import ErrorAnswer, JsonRpcPeer, PeerClosed, UnknownMethod

__all__ = [
    "ErrorAnswer",
    "FrameDecoder",
    "FramingError",
    "JsonRpcPeer",
    "PeerClosed",
    "UnknownMethod",
    "framed",
]
