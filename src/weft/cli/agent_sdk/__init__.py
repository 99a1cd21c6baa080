"""Programs that drive us over stream-json, as the Agent SDK does: messages and control requests in,
hooks and permission questions out.

Speaks the SDK's names for tools and arguments; nothing that restricts is passed over.
"""

__all__ = []
