#!/usr/bin/env bash
# Guess: a verifier that is given nothing but an issuer asks discovery where the keys are.
# So it is: aws-jwt-verify and get-jwks ask /.well-known/jwks.json below the issuer at once.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund aws-jwt-verify@5.2.1 get-jwks@11.0.3

cat > program.mjs <<'PROGRAM'
import http from 'node:http';
import { JwtVerifier } from 'aws-jwt-verify';
import { SimpleJwksCache } from 'aws-jwt-verify/jwk';
import buildGetJwks from 'get-jwks';

const seen = [];
const server = http.createServer((request, response) => {
  seen.push(request.url);
  response.writeHead(404).end();
});
await new Promise((listening) => server.listen(0, listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const fetcher = {
  fetch: async (uri) => {
    seen.push(new URL(uri).pathname);
    return new TextEncoder().encode('{"keys":[]}').buffer;
  },
};
const verifier = JwtVerifier.create(
  { issuer: 'https://issuer.example', audience: 'api' },
  { jwksCache: new SimpleJwksCache({ fetcher }) },
);
await verifier.hydrate();
console.log('aws-jwt-verify 5.2.1 asks', seen);
await buildGetJwks().getPublicKey({ kid: '1', alg: 'RS256', domain: issuer }).catch(() => {});
console.log('get-jwks 11.0.3 asks', seen.slice(1));
server.close();
const asThen = seen.length === 2 && seen.every((path) => path === '/.well-known/jwks.json');
process.exit(asThen ? 0 : 1);
PROGRAM
node program.mjs
