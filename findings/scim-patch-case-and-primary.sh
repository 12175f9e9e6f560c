#!/usr/bin/env bash
# Guess: a library for SCIM's PATCH keeps the two rules that are easily forgotten: names of attributes
# have no case (RFC 7643, section 2.1), and of several values one is primary (RFC 7644, section 3.5.2:
# a new primary value takes that from the others).
# So it is: scim-patch adds a `familyname` beside the `familyName`, and leaves two primary addresses.
# It does look at `op` without case.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scim-patch@0.8.3

cat > program.mjs <<'PROGRAM'
import { scimPatch } from 'scim-patch';

const patched = (operation) =>
  scimPatch(
    {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: 'alice',
      name: { familyName: 'Archer' },
      emails: [{ value: 'old@example.com', type: 'work', primary: true }],
    },
    [operation],
  );
const { name } = patched({ op: 'Replace', path: 'name.familyname', value: 'Baker' });
console.log('scim-patch 0.8.3:', name);
const value = [{ value: 'new@example.com', type: 'home', primary: true }];
const { emails } = patched({ op: 'add', path: 'emails', value });
console.log('scim-patch 0.8.3:', emails);
const asThen =
  name.familyName === 'Archer' &&
  name.familyname === 'Baker' &&
  emails.filter((email) => email.primary).length === 2;
process.exit(asThen ? 0 : 1);
PROGRAM
node program.mjs
