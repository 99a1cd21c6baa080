"""A program that drives Weft over HTTP with Python's standard library alone.

Written from docs/http.md: it starts a session, sends a prompt, follows the events, allows what is
asked for, and rewinds.

    python http_client.py http://127.0.0.1:7717 ~/.local/share/weft/server/7717.token "Write a file"
"""

import json
import sys
import urllib.request


class Weft:
    """A server: its address, and the token for it."""

    def __init__(self, url, token):
        self.base = url + "/api"
        self.token = token

    def open(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        return urllib.request.urlopen(request)

    def call(self, method, path, body=None):
        with self.open(method, path, body) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def events(self, session, after):
        """Server-sent events: each is a block of lines that ends with an empty one."""
        with self.open("GET", f"/sessions/{session}/events?after={after}") as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])


def main(url, token_file, prompt):
    with open(token_file, encoding="ascii") as file:
        weft = Weft(url, file.read().strip())
    session = weft.call("POST", "/sessions", {"title": "From the example"})["id"]
    print("session", session)
    weft.call("POST", f"/sessions/{session}/prompt", {"content": prompt})
    for event in weft.events(session, after=0):
        if event["kind"] == "text_delta":
            print(event["text"], end="")
        elif event["kind"] == "permission_request":
            print("allowing", event["tool_name"], event.get("tool_path", ""))
            path = f"/sessions/{session}/requests/{event['request_id']}"
            weft.call("POST", path, {"action": "allow_once"})
        elif event["kind"] == "turn_finished":
            break
    print()
    plan = weft.call("POST", f"/sessions/{session}/rewind", {"to": None, "preview": True})
    for item in plan["files"]:
        print("rewind would", item["action"], item["path"])
    weft.call("POST", f"/sessions/{session}/rewind", {"to": None})
    print("messages left:", len(weft.call("GET", f"/sessions/{session}/messages")["messages"]))


main(*sys.argv[1:4])
