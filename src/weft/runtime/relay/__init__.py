"""The messages that leave this process, and the relay that hands them to any number of readers.

One codec and one relay for every wire: HTTP (server-sent events, WebSocket) and the command socket.
Knows sessions only as sources of events.
"""
