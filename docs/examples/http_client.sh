#!/bin/sh
# The same as http_client.py, with curl and sed alone:
#
#     sh http_client.sh http://127.0.0.1:7717 ~/.local/share/weft/server/7717.token "Write a file"
set -eu
BASE=$1/api
TOKEN=$(cat "$2")
weft() {
    curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" \
        -H 'Content-Type: application/json' "$@"
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1; }

S=$(weft "$BASE/sessions" -d '{"title": "From the example"}' | sed 's/"project".*//' | field id)
echo "session $S"
weft "$BASE/sessions/$S/prompt" -d "{\"content\": \"$3\"}" > /dev/null
weft -N "$BASE/sessions/$S/events?after=0" | while read -r line; do
    case $line in
    *'"kind":"permission_request"'*)
        R=$(echo "$line" | field request_id)
        echo "allowing $R"
        weft "$BASE/sessions/$S/requests/$R" -d '{"action": "allow_once"}'
        ;;
    *'"kind":"turn_finished"'*) break ;;
    esac
done
weft "$BASE/sessions/$S/rewind" -d '{"to": null, "preview": true}' | field action
weft "$BASE/sessions/$S/rewind" -d '{"to": null}' > /dev/null
weft "$BASE/sessions/$S/messages"
echo
