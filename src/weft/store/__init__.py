"""Where facts are kept: the `Store` contract and its implementations.

Moves bytes, grants leases, keeps rows, blobs, drafts and snapshots.  Folds nothing and decodes no fact.
"""
