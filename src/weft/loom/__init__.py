"""Trees of text: continuations of a text, several at a time, on the same log as coding sessions.

The parts that touch no store: how models are made to continue (`continuation`), how what they write
is joined to the text (`boundary_repair`, `token_cap`), trees in files (`formats`), and what a tree
says about its models (`tree_stats`) and to a search (`search_rank`).
"""
