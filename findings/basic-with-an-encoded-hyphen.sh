#!/usr/bin/env bash
# Guess: a client called `web-app` is called so in HTTP Basic, too: RFC 6749, section 2.3.1, has its name encoded as in a
# form, and forms of today leave a hyphen, a dot and an underscore as they are.
# So it is: openid-client and @badgateway/oauth2-client send `web%2Dapp`, and encode the secret so. That is right as well:
# HTML 4.01, to which the RFC leads, encodes all but letters and digits, and a server decodes either. node-oauth2-server,
# passport-http (usual with oauth2orize) and idpyoidc do not, and know no such client; Authlib does. Who writes a provider
# decodes even where no name has anything special in it; for one that does not, the client sends its secret in the body.
# Versions: openid-client 6.9.0, @badgateway/oauth2-client 3.3.1, @node-oauth/oauth2-server 5.3.0, passport-http 0.3.0,
# Node 20; idpyoidc 5.0.0, Authlib 1.9.10, Python 3.11. Seen:
# openid-client sends web%2Dapp:s%2De%5Fc%2Er
# @badgateway/oauth2-client sends web%2Dapp:s%2De%5Fc%2Er
# node-oauth2-server reads web%2Dapp, passport-http web%2Dapp, idpyoidc web%2Dapp, Authlib web-app
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund openid-client@6.9.0 @badgateway/oauth2-client@3.3.1 \
  @node-oauth/oauth2-server@5.3.0 passport-http@0.3.0
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check idpyoidc==5.0.0 Authlib==1.9.10

cat > program.mjs <<'PROGRAM'
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { OAuth2Client } from '@badgateway/oauth2-client';
import OAuth2Server from '@node-oauth/oauth2-server';
import * as client from 'openid-client';
import { BasicStrategy } from 'passport-http';

let authorization;
const server = http.createServer((request, answer) => {
  authorization = request.headers.authorization;
  answer.writeHead(200, { 'Content-Type': 'application/json' });
  answer.end(JSON.stringify({ access_token: 'a', token_type: 'Bearer' }));
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const [id, secret] = ['web-app', 's-e_c.r'];
const sent = () => Buffer.from(authorization.split(' ')[1], 'base64').toString();

const proof = client.ClientSecretBasic(secret);
const configuration = new client.Configuration({ issuer, token_endpoint: issuer + '/token' }, id, undefined, proof);
client.allowInsecureRequests(configuration);
await client.clientCredentialsGrant(configuration);
console.log('openid-client sends', sent());
const authenticationMethod = 'client_secret_basic';
const settings = { server: issuer, tokenEndpoint: '/token', clientId: id, clientSecret: secret, authenticationMethod };
await new OAuth2Client(settings).clientCredentials();
console.log('@badgateway/oauth2-client sends', sent());
server.close();
writeFileSync('authorization', authorization);

const model = {
  getClient: async (id) => console.log('node-oauth2-server reads', id), saveToken() {}, getUserFromClient() {} };
const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded', 'content-length': '1' };
const body = { grant_type: 'client_credentials' };
const request = new OAuth2Server.Request({ method: 'POST', query: {}, headers, body });
await new OAuth2Server({ model }).token(request, new OAuth2Server.Response()).catch((error) => console.log(error.name));
const strategy = new BasicStrategy((id, secret, done) => done(null, console.log('passport-http reads', id)));
strategy.fail = () => {};
strategy.authenticate({ headers: { authorization } });
PROGRAM
cat > program.py <<'PROGRAM'
from authlib.oauth2.rfc6749.util import extract_basic_authorization
from idpyoidc.server.client_authn import basic_authn

authorization = open("authorization").read()
print("idpyoidc reads", basic_authn(authorization)["id"])
print("Authlib reads", extract_basic_authorization({"Authorization": authorization})[0])
PROGRAM
(node --no-warnings program.mjs; python/bin/python -W ignore program.py) | tee seen

diff seen - <<'EXPECTED'
openid-client sends web%2Dapp:s%2De%5Fc%2Er
@badgateway/oauth2-client sends web%2Dapp:s%2De%5Fc%2Er
node-oauth2-server reads web%2Dapp
invalid_client
passport-http reads web%2Dapp
idpyoidc reads web%2Dapp
Authlib reads web-app
EXPECTED
