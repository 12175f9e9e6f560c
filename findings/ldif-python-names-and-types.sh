#!/usr/bin/env bash
# Guess: a reader of LDIF knows that `mail` and `MAIL` are one attribute (RFC 4512: names are compared
# without case), and gives the values of one attribute one type.
# So it is: ldif for Python makes two attributes of them, each with one value. Of two `objectGUID`, one
# is text and one is bytes: what happens to read as UTF-8 becomes text.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check ldif==4.3.0

cat > program.py <<'PROGRAM'
import io, sys
from ldif import LDIFParser

text = b"""dn: uid=alice,dc=example,dc=com
mail: alice@example.com
MAIL: alice@example.org
objectGUID:: S0xNTk9QUVJTVFVWV1hZWg==

dn: uid=bob,dc=example,dc=com
objectGUID:: /wECAwQFBgcICQoLDA0ODw==
"""
alice, bob = [dict(entry) for _, entry in LDIFParser(io.BytesIO(text)).parse()]
print("ldif 4.3.0:", alice, bob)
mail = (alice["mail"], alice["MAIL"]) == (["alice@example.com"], ["alice@example.org"])
types = [type(entry["objectGUID"][0]) for entry in (alice, bob)]
sys.exit(0 if mail and types == [str, bytes] else 1)
PROGRAM
python/bin/python program.py
