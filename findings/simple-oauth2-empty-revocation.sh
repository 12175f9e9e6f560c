#!/usr/bin/env bash
# Guess: simple-oauth2 takes the empty answer with status 200 by which RFC 7009 lets a server say that
# a token is revoked.
# So it is: it throws, since the answer is no JSON, and `revokeAll` never sends the refresh token.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund simple-oauth2@5.1.0

cat > program.mjs <<'PROGRAM'
import http from 'node:http';
import { AuthorizationCode } from 'simple-oauth2';

const seen = [];
const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  seen.push(body);
  response.writeHead(200, { 'Content-Length': 0 }).end();
});
await new Promise((listening) => server.listen(0, listening));
const auth = { tokenHost: `http://127.0.0.1:${server.address().port}`, revokePath: '/revoke' };
const client = new AuthorizationCode({ client: { id: 'web', secret: 'secret' }, auth });
const token = client.createToken({ access_token: 'ACCESS', refresh_token: 'REFRESH' });
let told = 'no error';
try {
  await token.revokeAll();
} catch (error) {
  told = error.message;
}
server.close();
console.log('simple-oauth2 5.1.0:', told, '- the server saw', seen);
const asThen = told.includes('not JSON') && seen.length === 1 && seen[0].includes('ACCESS');
process.exit(asThen ? 0 : 1);
PROGRAM
node program.mjs
