"""Programs for those who work on Weft; nothing that is installed uses them."""
