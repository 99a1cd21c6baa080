"""Several servers on one database: each is a gateway to the sessions of all.

Owns the routes to sessions, the hop from one server to another and its token, the drain before a
deploy, and what is taken over from a server that died.  Who owns a session says the store alone.
"""
