"""A store of readable files: one for each session, one line for each append.

`open_jsonl` is the way in.  Inside: `paths` says which file holds what, `lock` lets one process in
at a time, `log_file` is the file of a stream, `journal` makes a batch over several of them atomic,
`append`, `leases`, `session_list`, `draft_file` and `sidecars` are what is done under the lock,
`folder` is what they share, `store` puts them together.
"""

from weft.store.jsonl.store import JsonlStore, open_jsonl

__all__ = ["JsonlStore", "open_jsonl"]
