#!/usr/bin/env bash
# Guess: a filter that a SCIM program writes with the whole name of an attribute finds what the short
# name finds: RFC 7644, section 3.10, has both.
# So it is: scim2-parse-filter finds attributes of an extension by the whole name, and nobody by
# `urn:ietf:params:scim:schemas:core:2.0:User:userName`. It also compares `userName` by case,
# although RFC 7643 has it as `caseExact: false`.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scim2-parse-filter@0.2.10

cat > program.mjs <<'PROGRAM'
import { filter, parse } from 'scim2-parse-filter';

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
const user = { userName: 'Alice', [enterprise]: { department: 'Sales' } };
for (const [text, expected] of [
  ['userName eq "Alice"', true],
  ['username eq "Alice"', true],
  [`${enterprise}:department eq "Sales"`, true],
  ['urn:ietf:params:scim:schemas:core:2.0:User:userName eq "Alice"', false],
  ['userName eq "alice"', false],
]) {
  const found = filter(parse(text))(user);
  console.log('scim2-parse-filter 0.2.10:', text, '->', found);
  if (found !== expected) process.exit(1);
}
PROGRAM
node program.mjs
