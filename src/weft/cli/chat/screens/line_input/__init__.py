"""The input line without a screen: text and cursor, the keys that edit it, earlier lines, rows."""
