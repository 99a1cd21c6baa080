"""The export of Claude: a list of conversations, each a list of messages.

The vendor's own export is a line; those that browsers save name each message's parent, and so hold
the branches, too.
"""

from __future__ import annotations

from typing import Any, Final

from weft.loom.formats.assembly import assembled, with_facts
from weft.loom.formats.plain_json import (
    Json,
    as_id,
    as_list,
    as_table,
    as_text,
    seconds,
    short_text,
)
from weft.loom.node_record import NodeRecord, TreeRecord

NAME: Final = "claude"
_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}
_NO_PARENT: Final = "00000000-0000-4000-8000-000000000000"
"""What the first message names as its parent."""


def is_claude(value: Any) -> bool:
    """Whether the value looks like such a conversation, or a list of them."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and isinstance(first.get("chat_messages"), list)


def parse_claude(value: Any) -> tuple[TreeRecord, ...]:
    """One tree for each conversation that has messages; its root stands for the conversation.

    Raises:
        UsageError: the messages of one make no tree.
    """
    talks = value if isinstance(value, list) else [value]
    trees = (_tree(as_table(talk, "a conversation")) for talk in talks)
    return tuple(tree for tree in trees if tree is not None)


def _tree(talk: Json) -> TreeRecord | None:
    said = as_list(talk.get("chat_messages"), "the messages of a conversation")
    if not said:
        return None
    root = as_id(talk.get("uuid"), "a conversation")
    at = seconds(talk.get("created_at"))
    nodes = [NodeRecord(id=root, created_at=at)]
    for row in said:
        nodes.append(_node(as_table(row, "a message"), root, nodes[-1].id, talk))
    facts = {
        "name": short_text(talk.get("name")),
        "created_at": at,
        "current_id": short_text(talk.get("current_leaf_message_uuid")) or nodes[-1].id,
    }
    return with_facts(assembled(nodes, NAME)[0], **facts)


def _node(row: Json, root: str, before: str, talk: Json) -> NodeRecord:
    node_id = as_id(row.get("uuid"), "a message")
    named = row.get("parent_message_uuid")
    parent = before if named is None else as_id(named, f"the parent of message {node_id!r}")
    role = _ROLES.get(short_text(row.get("sender")), short_text(row.get("sender")))
    model = short_text(row.get("model")) or short_text(talk.get("model"))
    files = _files(row)
    return NodeRecord(
        id=node_id,
        parent_id=root if parent == _NO_PARENT else parent,
        text=as_text(_words(row), f"message {node_id!r}"),
        kind="message",
        role=role,
        model=model if role == "assistant" else "",
        created_at=seconds(row.get("created_at")),
        metadata={"files": files} if files else {},
    )


def _words(row: Json) -> str:
    blocks = row.get("content")
    said = [
        block["text"]
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    text = row.get("text")
    # Both hold the same; the older field puts notes in the place of what it cannot show.
    return "\n\n".join(said) if said else text if isinstance(text, str) else ""


def _files(row: Json) -> list[str]:
    found: list[str] = []
    for field in ("attachments", "files"):
        listed = row.get(field)
        for each in listed if isinstance(listed, list) else ():
            name = short_text(each.get("file_name")) if isinstance(each, dict) else ""
            found += [name] if name and name not in found else []
    return found
