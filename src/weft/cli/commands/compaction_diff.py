"""`weft context --diff`: what the last compaction took, and what it put there."""

from __future__ import annotations

import msgspec

from weft.api.session import Session
from weft.api.summaries.compaction_diff import compaction_diff
from weft.app import App
from weft.cli.exit_codes import OK
from weft.cli.stdio import tell, write_line, write_pretty


async def show_diff(app: App, session: Session, *, as_json: bool) -> int:
    """Print the diff of the session's last compaction."""
    diff = await compaction_diff(session, app.store)
    if as_json:
        write_pretty({"session": session.id} if diff is None else msgspec.to_builtins(diff))
        return OK
    if diff is None:
        tell("nothing on this line was compacted; the model reads all messages")
        return OK
    what = "summarized" if diff.kind == "summary" else "cleared"
    tell(f"{diff.tokens_before:,} tokens {what}, {diff.tokens_after:,} in their place")
    for line in diff.lines():
        write_line(line)
    return OK
