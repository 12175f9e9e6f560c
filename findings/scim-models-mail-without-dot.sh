#!/usr/bin/env bash
# Guess: a SCIM library takes an address that mail servers deliver to, such as `alice@mailhub`: RFC 7643
# says that a value SHOULD be as in RFC 5321, which needs no dot in the domain.
# So it is: scim2-models refuses the whole user for it, while it takes a `locale` that is no language
# tag, although RFC 7643 asks for one there.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check scim2-models==0.12.3

cat > program.py <<'PROGRAM'
import sys
from scim2_models import User

schemas = ["urn:ietf:params:scim:schemas:core:2.0:User"]
for attributes, expected in [
    ({"emails": [{"value": "alice@mailhub.example"}]}, True),
    ({"emails": [{"value": "alice@mailhub"}]}, False),
    ({"locale": "de_DE.UTF-8"}, True),
]:
    try:
        User.model_validate({"schemas": schemas, "userName": "alice", **attributes})
        told = "taken"
    except ValueError as error:
        told = "refused: " + str(error).splitlines()[2].strip()
    print("scim2-models 0.12.3:", attributes, "->", told)
    if (told == "taken") != expected:
        sys.exit(1)
PROGRAM
python/bin/python program.py
