"""Several servers on one database, tried out on this machine."""
