#!/usr/bin/env bash
# Guess: a PATCH that has no path and gives an extension as it stands in a user, an object below its URN, changes the
# attributes of that extension (RFC 7644, section 3.5.2: the value is a part of the resource).
# So it is: scim-patch cuts the URN at its last colon and writes the object to `urn:...:enterprise:2.0`, `User`, an attribute
# that nobody reads; the department stays as it was, and the answer is a success. A path that is the URN alone ends there,
# too. A path to the attribute works, and so does `URN:department` as a name in the value. scimmy and scim2-models change
# the extension in all four.
# Versions: scim-patch 0.8.3, scimmy 1.3.5, Node 20; scim2-models 0.12.3, Python 3.11. Seen, of an old department:
# scim-patch: object old, path of the URN old, path of the attribute new, name in the value new
# scimmy and scim2-models: new, new, new, new
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scim-patch@0.8.3 scimmy@1.3.5
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check scim2-models==0.12.3

cat > operations.json <<'JSON'
{"object": {"op": "replace", "value": {"URN": {"department": "new"}}},
 "path of the URN": {"op": "replace", "path": "URN", "value": {"department": "new"}},
 "path of the attribute": {"op": "replace", "path": "URN:department", "value": "new"},
 "name in the value": {"op": "replace", "value": {"URN:department": "new"}}}
JSON
sed -i 's/"URN/"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User/' operations.json
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs';
import { scimPatch } from 'scim-patch';
import SCIMMY from 'scimmy';

const core = 'urn:ietf:params:scim:schemas:core:2.0:User';
const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
const user = () => ({ schemas: [core, enterprise], userName: 'ada', [enterprise]: { department: 'old' } });
SCIMMY.Schemas.User.definition.extend(SCIMMY.Schemas.EnterpriseUser.definition);
for (const [name, operation] of Object.entries(JSON.parse(readFileSync('operations.json', 'utf8')))) {
  const patched = scimPatch({ ...user(), meta: {} }, [structuredClone(operation)]);
  const nowhere = JSON.stringify(patched['urn:ietf:params:scim:schemas:extension:enterprise:2.0']) ?? '';
  console.log(`scim-patch, ${name}: ${patched[enterprise].department} ${nowhere}`.trim());
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
  const request = new SCIMMY.Messages.PatchOp({ schemas, Operations: [operation] });
  const other = JSON.parse(JSON.stringify(await request.apply(new SCIMMY.Schemas.User(user()))));
  console.log(`scimmy, ${name}: ${other[enterprise].department}`);
}
PROGRAM
cat > program.py <<'PROGRAM'
import json

from scim2_models import EnterpriseUser, PatchOp, User

for name, operation in json.load(open("operations.json")).items():
    user = User[EnterpriseUser](user_name="ada")
    user[EnterpriseUser] = EnterpriseUser(department="old")
    request = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [operation]}
    PatchOp[User[EnterpriseUser]].model_validate(request).patch(user)
    print(f"scim2-models, {name}: {user[EnterpriseUser].department}")
PROGRAM
(node program.mjs; python/bin/python program.py) | tee seen

diff seen - <<'EXPECTED'
scim-patch, object: old {"User":{"department":"new"}}
scimmy, object: new
scim-patch, path of the URN: old {"User":{"department":"new"}}
scimmy, path of the URN: new
scim-patch, path of the attribute: new
scimmy, path of the attribute: new
scim-patch, name in the value: new
scimmy, name in the value: new
scim2-models, object: new
scim2-models, path of the URN: new
scim2-models, path of the attribute: new
scim2-models, name in the value: new
EXPECTED
