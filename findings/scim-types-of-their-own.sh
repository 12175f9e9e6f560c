#!/usr/bin/env bash
# Guess: the `canonicalValues` of SCIM's schemas, which RFC 7643, section 7, calls suggested, keep
# nobody from the type `private` or `Mobile`.
# So it is: scimmy refuses the user for a type of its own choosing. scim2-models takes it, and writes
# `Mobile` small.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scimmy@1.3.5

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check scim2-models==0.12.3

cat > program.mjs <<'PROGRAM'
import scimmy from 'scimmy';

const { User } = scimmy.Schemas;
for (const [type, taken] of [['work', true], ['private', false]]) {
  let told = 'taken';
  try {
    const emails = [{ value: 'alice@example.com', type }];
    new User({ schemas: [User.definition.id], userName: 'alice', emails });
  } catch (error) {
    told = error.message;
  }
  console.log('scimmy 1.3.5:', type, '->', told);
  if ((told === 'taken') !== taken) process.exit(1);
}
PROGRAM
node program.mjs

cat > program.py <<'PROGRAM'
import sys
from scim2_models import User

user = User.model_validate({
    "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
    "userName": "alice",
    "emails": [{"value": "alice@example.com", "type": "private"}],
    "phoneNumbers": [{"value": "+1 555 0100", "type": "Mobile"}],
})
shown = user.model_dump(exclude_none=True)
types = [shown["emails"][0]["type"], shown["phoneNumbers"][0]["type"]]
print("scim2-models 0.12.3: private, Mobile ->", types)
sys.exit(0 if types == ["private", "mobile"] else 1)
PROGRAM
python/bin/python program.py
