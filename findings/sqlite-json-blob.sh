#!/usr/bin/env bash
# Guess: what the shell of SQLite writes with -json is JSON, whatever stands in the table.
# So it is: the bytes of a BLOB stand between the quotes as they are. JSON is UTF-8 (RFC 8259 §8.1): Python
# refuses all of it, and jq reads other characters without a word. (Debian's sqlite3 3.40.1 and jq 1.6;
# `apt install sqlite3 jq`.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

sqlite3 --version
sqlite3 -json :memory: "SELECT x'41ff8042' AS password" > rows.json
od -c rows.json
python3 -c 'import json; json.load(open("rows.json", encoding="utf-8"))' 2> refused && exit 1
tail -n 1 refused
jq -c . rows.json

grep -q UnicodeDecodeError refused
[ "$(jq -r '.[0].password' rows.json)" = "$(printf 'A\357\277\275\357\277\275B')" ]
