#!/usr/bin/env bash
# Guess: a client of MCP finds `resource_metadata` and `scope` in the Bearer challenge of a 401 or 403, whatever challenge
# stands before it in `WWW-Authenticate` (RFC 9110, section 11.6.1, has several in one field), and whatever the other
# parameters say.
# So it is: the TypeScript SDK finds nothing where a DPoP or Basic challenge comes first, so the server has to put Bearer
# first; the Python SDK finds both there. Either takes the first `scope=` of the field, also one in the text of
# `error_description`, with the quote behind it, in place of the scope that the server names.
# Versions: @modelcontextprotocol/sdk 1.32.2, Node 20; mcp 2.3.0, Python 3.11. Seen:
# TypeScript, Bearer first: https://a.example/meta, read
# TypeScript, DPoP first: -, -
# TypeScript, scope in a text: -, write"
# Python, Bearer first: https://a.example/meta, read
# Python, DPoP first: https://a.example/meta, read
# Python, scope in a text: -, write"
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @modelcontextprotocol/sdk@1.32.2
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0

cat > fields.json <<'JSON'
{"Bearer first": "Bearer resource_metadata=\"https://a.example/meta\", scope=\"read\", DPoP algs=\"ES256\"",
 "DPoP first": "DPoP algs=\"ES256\", Bearer resource_metadata=\"https://a.example/meta\", scope=\"read\"",
 "scope in a text": "Bearer error=\"insufficient_scope\", error_description=\"try scope=write\", scope=\"read write\""}
JSON
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs';
import { extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js';

for (const [name, field] of Object.entries(JSON.parse(readFileSync('fields.json', 'utf8')))) {
  const answer = new Response('', { status: 401, headers: { 'WWW-Authenticate': field } });
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(answer);
  console.log(`TypeScript, ${name}: ${resourceMetadataUrl ?? '-'}, ${scope ?? '-'}`);
}
PROGRAM
cat > program.py <<'PROGRAM'
import json

import httpx2
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth, extract_scope_from_www_auth

for name, field in json.load(open("fields.json")).items():
    answer = httpx2.Response(401, headers={"WWW-Authenticate": field})
    metadata, scope = extract_resource_metadata_from_www_auth(answer), extract_scope_from_www_auth(answer)
    print(f"Python, {name}: {metadata or '-'}, {scope or '-'}")
PROGRAM
(node program.mjs; python/bin/python program.py) | tee seen

diff seen - <<'EXPECTED'
TypeScript, Bearer first: https://a.example/meta, read
TypeScript, DPoP first: -, -
TypeScript, scope in a text: -, write"
Python, Bearer first: https://a.example/meta, read
Python, DPoP first: https://a.example/meta, read
Python, scope in a text: -, write"
EXPECTED
