#!/usr/bin/env bash
# Guess: a reader of LDIF knows that `mail` and `MAIL` are one attribute (RFC 4512: names are compared
# without case), and gives all values of one type.
# So it is: ldif for Python makes two attributes of them, each with one value. A photo is bytes and a
# name is text, but a name whose bytes are no UTF-8 becomes bytes, too, without a word.
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
givenName:: QWxpY2U=
sn:: TfxsbGVy
"""
entry = dict(next(LDIFParser(io.BytesIO(text)).parse())[1])
print("ldif 4.3.0:", entry)
mail = (entry["mail"], entry["MAIL"]) == (["alice@example.com"], ["alice@example.org"])
types = (type(entry["givenName"][0]), type(entry["sn"][0])) == (str, bytes)
sys.exit(0 if mail and types else 1)
PROGRAM
python/bin/python program.py
