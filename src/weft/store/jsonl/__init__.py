"""A store of readable files: one for each session, one line for each append.

`open_jsonl` is the way in.  Inside: `names` says which file holds what, `gate` lets one through at a time, `lines` is the file of a
stream, `journal` makes a batch over several of them atomic, `appending`, `leasing`, `listing` and `beside` are what is done under the
gate, `ground` is what they stand on, `store` puts them together.
"""

from weft.store.jsonl.store import JsonlStore, open_jsonl

__all__ = ["JsonlStore", "open_jsonl"]
