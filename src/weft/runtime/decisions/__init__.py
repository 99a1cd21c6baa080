"""The decision graph in stores and sessions: read, added to, told, and noted by itself."""
