"""The keyboard view of text trees: `weft loom view`.

`ViewScreen` and its panels are pure: a key changes them and gives commands, a size gives rows.
`ViewDriver` carries the commands out on a `LoomSession`, and `terminal_loop` has the terminal.
Nothing else imports this folder but the command that starts it.
"""
