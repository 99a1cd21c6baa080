"""What a compaction carries, without the words of messages that were excluded after it was made.

The summary itself is a model's text and stays as it is; what is carried word for word can be told
apart, and is left out as long as its message is excluded.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.context.build import LineEntry
from weft.context.carried_record import bounded_message, failed_runs
from weft.context.compaction import pin_block
from weft.context.user_rules import rules_of, sentences
from weft.events import Compacted
from weft.messages import typed_text


def without_excluded(fact: Compacted, excluded: Sequence[LineEntry]) -> Compacted:
    """The compaction without what it carries of these messages."""
    blocks = {pin_block(entry) for entry in excluded}
    carried = tuple(block for block in fact.carried if block not in blocks)
    kept = fact.kept
    if kept is not None:
        texts = [typed_text(entry.node.parts) for entry in excluded if entry.node.role == "user"]
        # A rule may be carried with the sentence before it.
        said = {each for text in texts for each in (*sentences(text), *rules_of(text))}
        whole = {bounded_message(text) for text in texts}
        # Not by the output: of a result that was cleared it is not the output's any more.
        failed = failed_runs(excluded)
        kept = msgspec.structs.replace(
            kept,
            rules=tuple(each for each in kept.rules if each not in said),
            values=tuple(each for each in kept.values if each not in said),
            messages=tuple(each for each in kept.messages if each not in whole),
            failures=tuple(
                each for each in kept.failures if (each.command, each.exit_code) not in failed
            ),
        )
    return msgspec.structs.replace(fact, carried=carried, kept=kept)
