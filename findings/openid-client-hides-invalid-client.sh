#!/usr/bin/env bash
# Guess: where a client proved itself by Basic and its secret is wrong, openid-client throws an error whose `error` is
# `invalid_client`, as it does for all errors of the token endpoint (ResponseBodyError).
# So it is: that holds only where the server leaves out `WWW-Authenticate`. With it, which RFC 6749, section 5.2, demands in
# just that case, the error is a WWWAuthenticateChallengeError: it has no `error` and no `error_description`, and the body
# is still to be read from its `response`. Programs that look at `error.error` see nothing; the better the server, the less.
# Versions: openid-client 6.9.0, Node 20. Seen:
# 401 without the header: ResponseBodyError, invalid_client, the secret has expired
# 401 with the header: WWWAuthenticateChallengeError, undefined, undefined; read from the response: the secret has expired
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund openid-client@6.9.0

cat > program.mjs <<'PROGRAM'
import http from 'node:http';
import * as client from 'openid-client';

let headers;
const server = http.createServer((request, answer) => {
  answer.writeHead(401, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers });
  answer.end(JSON.stringify({ error: 'invalid_client', error_description: 'the secret has expired' }));
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const metadata = { issuer, token_endpoint: issuer + '/token' };
const configuration = new client.Configuration(metadata, 'web', undefined, client.ClientSecretBasic('old'));
client.allowInsecureRequests(configuration);
for (headers of [{}, { 'WWW-Authenticate': 'Basic realm="tokens"' }]) {
  const name = headers['WWW-Authenticate'] ? 'with' : 'without';
  try {
    await client.clientCredentialsGrant(configuration);
  } catch (error) {
    console.log(`401 ${name} the header: ${error.name}, ${error.error}, ${error.error_description}`);
    if (!error.error) console.log('read from the response:', (await error.response.json()).error_description);
  }
}
server.close();
PROGRAM
node --no-warnings program.mjs | tee seen

diff seen - <<'EXPECTED'
401 without the header: ResponseBodyError, invalid_client, the secret has expired
401 with the header: WWWAuthenticateChallengeError, undefined, undefined
read from the response: the secret has expired
EXPECTED
