#!/usr/bin/env bash
# Guess: a client library redeems a code with the redirect URI that the request for it had: RFC 6749, section 4.1.3, wants
# the very same.
# So it is: openid-client makes it of the address that the browser came back to, without its query. For a registered
# redirect URI with a query, which section 3.1.2 allows, it sends another one, and the server refuses the code.
# Versions: openid-client 6.9.0, Node 20. Seen: registered http://127.0.0.1/callback?tenant=acme, redeemed with
# http://127.0.0.1/callback
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund openid-client@6.9.0

cat > program.mjs <<'PROGRAM'
import http from 'node:http';
import * as client from 'openid-client';

const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  console.log(`redeemed with ${new URLSearchParams(body).get('redirect_uri')}`);
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ access_token: 'access', token_type: 'Bearer' }));
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const configuration = new client.Configuration({ issuer, token_endpoint: `${issuer}/token` }, 'shop', 'secret');
client.allowInsecureRequests(configuration);
const registered = 'http://127.0.0.1/callback?tenant=acme';
console.log(`registered ${registered}`);
await client.authorizationCodeGrant(configuration, new URL(`${registered}&code=code`));
server.close();
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
registered http://127.0.0.1/callback?tenant=acme
redeemed with http://127.0.0.1/callback
EXPECTED
