"""Sessions that are due, of whichever project of the store: what a server wakes."""
