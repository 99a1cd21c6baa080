"""The export of ChatGPT: a list of conversations, each a map of messages that name a parent."""

from __future__ import annotations

from typing import Any, Final

from weft.loom.formats.assembly import assembled, with_facts
from weft.loom.formats.plain_json import (
    Json,
    as_id,
    as_table,
    as_text,
    seconds,
    short_text,
)
from weft.loom.node_record import NodeRecord, TreeRecord

NAME: Final = "chatgpt"


def is_chatgpt(value: Any) -> bool:
    """Whether the value looks like such a conversation, or a list of them."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and isinstance(first.get("mapping"), dict)


def parse_chatgpt(value: Any) -> tuple[TreeRecord, ...]:
    """One tree for each conversation that has messages.

    Raises:
        UsageError: the messages of one make no tree.
    """
    talks = value if isinstance(value, list) else [value]
    return tuple(tree for talk in talks for tree in _trees(as_table(talk, "a conversation")))


def _trees(talk: Json) -> tuple[TreeRecord, ...]:
    rows = as_table(talk.get("mapping"), "the mapping of a conversation")
    if not rows:
        return ()
    talk_id = short_text(talk.get("conversation_id")) or short_text(talk.get("id"))
    # Roots without a message have the same name in many conversations.
    names = {key: talk_id for key, row in rows.items() if talk_id and _is_bare_root(row)}
    ordered = _in_order(rows)
    nodes = [_node(key, as_table(rows[key], f"message {key!r}"), names) for key in ordered]
    current = short_text(talk.get("current_node"))
    facts = {
        "name": short_text(talk.get("title")),
        "created_at": seconds(talk.get("create_time")),
        "current_id": names.get(current, current),
    }
    return tuple(with_facts(tree, **facts) for tree in assembled(nodes, NAME))


def _is_bare_root(row: Any) -> bool:
    return isinstance(row, dict) and row.get("message") is None and row.get("parent") is None


def _in_order(rows: Json) -> list[str]:
    """The messages in the order in which their parents list them."""
    ordered = dict.fromkeys(rows)
    for row in rows.values():
        listed = row.get("children") if isinstance(row, dict) else None
        for child in listed if isinstance(listed, list) else ():
            # Behind its elder siblings; what a parent does not list keeps its place.
            if isinstance(child, str) and child in ordered:
                ordered.pop(child)
                ordered[child] = None
    return list(ordered)


def _node(key: str, row: Json, names: dict[str, str]) -> NodeRecord:
    node_id = names.get(key, as_id(key, "a message"))
    where = f"message {key!r}"
    parent = row.get("parent")
    message = row.get("message")
    said = as_table(message, where) if message is not None else {}
    details = said.get("metadata")
    more = details if isinstance(details, dict) else {}
    author = said.get("author")
    role = short_text(author.get("role")) if isinstance(author, dict) else ""
    return NodeRecord(
        id=node_id,
        parent_id=None if parent is None else names.get(str(parent), as_id(parent, where)),
        text=as_text(_words(said.get("content")), where),
        kind="message" if said else "text",
        role=role,
        model=short_text(more.get("model_slug")),
        created_at=seconds(said.get("create_time")),
        hidden=more.get("is_visually_hidden_from_conversation") is True,
    )


def _words(content: Any) -> str:
    """What a message says; what is no text is named in brackets."""
    if not isinstance(content, dict):
        return ""
    if isinstance(content.get("parts"), list):
        return "\n".join(filter(None, map(_part, content["parts"])))
    if content.get("content_type") == "thoughts":
        thoughts = content.get("thoughts")
        rows = thoughts if isinstance(thoughts, list) else ()
        return "\n\n".join(str(row.get("content", "")) for row in rows if isinstance(row, dict))
    for field in ("text", "result", "content", "user_instructions"):
        if isinstance(content.get(field), str):
            return str(content[field])
    return ""


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = str(part.get("content_type", "part"))
    # What was spoken comes with its words.
    return str(part["text"]) if isinstance(part.get("text"), str) else f"[{kind[:64]}]"
