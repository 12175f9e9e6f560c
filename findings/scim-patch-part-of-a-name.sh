#!/usr/bin/env bash
# Guess: a PATCH that replaces `name` by a part of it, `{"givenName": "Augusta"}`, leaves the family name, with a path and
# without one: RFC 7644, section 3.5.2.3, has the sub-attributes that are given replaced, or added where they were not. And
# a path may be the whole name of an attribute (section 3.10).
# So it is: the libraries disagree, and all answer with success. scimmy takes the family name away where there is a path,
# scim-patch where there is none, scim2-models never. A client that wants to be sure names `name.givenName`. scimmy also
# refuses the whole name of an attribute of the core as a path, though it takes one of an extension.
# Versions: scimmy 1.3.5, scim-patch 0.8.3, Node 20; scim2-models 0.12.3, Python 3.11. Seen, of Ada King:
# scim-patch: with a path Augusta King; without a path Augusta -; sub-attribute Augusta King; whole name Countess
# scimmy: with a path Augusta -; without a path Augusta King; sub-attribute Augusta King; whole name SCIMError
# scim2-models: with a path Augusta King; without a path Augusta King; sub-attribute Augusta King; whole name Countess
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scim-patch@0.8.3 scimmy@1.3.5
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check scim2-models==0.12.3

cat > operations.json <<'JSON'
{"with a path": {"op": "replace", "path": "name", "value": {"givenName": "Augusta"}},
 "without a path": {"op": "replace", "value": {"name": {"givenName": "Augusta"}}},
 "sub-attribute": {"op": "replace", "path": "name.givenName", "value": "Augusta"},
 "whole name": {"op": "add", "path": "urn:ietf:params:scim:schemas:core:2.0:User:title", "value": "Countess"}}
JSON
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs';
import { scimPatch } from 'scim-patch';
import SCIMMY from 'scimmy';

const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
const user = () => ({ schemas, userName: 'ada', name: { givenName: 'Ada', familyName: 'King' } });
const told = (user) => user.title ?? `${user.name.givenName} ${user.name.familyName ?? '-'}`;
for (const [name, operation] of Object.entries(JSON.parse(readFileSync('operations.json', 'utf8')))) {
  console.log(`scim-patch, ${name}: ${told(scimPatch({ ...user(), meta: {} }, [structuredClone(operation)]))}`);
  try {
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
    const request = new SCIMMY.Messages.PatchOp({ schemas, Operations: [operation] });
    console.log(`scimmy, ${name}: ${told(await request.apply(new SCIMMY.Schemas.User(user())))}`);
  } catch (error) {
    console.log(`scimmy, ${name}: ${error.name}`);
  }
}
PROGRAM
cat > program.py <<'PROGRAM'
import json

from scim2_models import Name, PatchOp, User

for name, operation in json.load(open("operations.json")).items():
    user = User(user_name="ada", name=Name(given_name="Ada", family_name="King"))
    request = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [operation]}
    PatchOp[User].model_validate(request).patch(user)
    print(f"scim2-models, {name}: {user.title or user.name.given_name + ' ' + (user.name.family_name or '-')}")
PROGRAM
(node program.mjs; python/bin/python program.py) | tee seen

diff seen - <<'EXPECTED'
scim-patch, with a path: Augusta King
scimmy, with a path: Augusta -
scim-patch, without a path: Augusta -
scimmy, without a path: Augusta King
scim-patch, sub-attribute: Augusta King
scimmy, sub-attribute: Augusta King
scim-patch, whole name: Countess
scimmy, whole name: SCIMError
scim2-models, with a path: Augusta King
scim2-models, without a path: Augusta King
scim2-models, sub-attribute: Augusta King
scim2-models, whole name: Countess
EXPECTED
