#!/usr/bin/env bash
# Guess: a browser library that binds its tokens to a key (RFC 9449) also asks UserInfo with a proof of it, where it is told
# to load the user's claims (`loadUserInfo`).
# So it is: oidc-client-ts sends the bound access token to UserInfo as `Bearer`, without a proof. RFC 9449, section 7.1, has
# a server refuse that, so the sign-in fails at its last step.
# Versions: oidc-client-ts 3.5.0, Node 20. Seen: token endpoint: proof, token_type DPoP; UserInfo: Bearer, no proof
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund oidc-client-ts@3.5.0

cat > program.mjs <<'PROGRAM'
import { InMemoryWebStorage, OidcClient, WebStorageStateStore } from 'oidc-client-ts';

globalThis.window = globalThis;
const kept = new Map();
const store = { set: async (name, value) => kept.set(name, value), get: async (name) => kept.get(name), remove: async () => {}, getAllKeys: async () => [...kept.keys()] };
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = Math.floor(Date.now() / 1000);
const idToken = `${part({ alg: 'RS256' })}.${part({ iss: 'https://login.example', aud: 'shop', sub: 'ada', iat: now, exp: now + 60 })}.AAAA`;
const proofOf = (headers) => (new Headers(headers).has('DPoP') ? 'proof' : 'no proof');
globalThis.fetch = async (address, { headers }) => {
  if (String(address).endsWith('/userinfo')) {
    console.log(`UserInfo: ${new Headers(headers).get('Authorization').split(' ')[0]}, ${proofOf(headers)}`);
    return Response.json({ sub: 'ada' });
  }
  console.log(`token endpoint: ${proofOf(headers)}, token_type DPoP`);
  return Response.json({ access_token: 'access', token_type: 'DPoP', id_token: idToken, expires_in: 60 });
};
const client = new OidcClient({
  authority: 'https://login.example', client_id: 'shop', redirect_uri: 'https://shop.example/', scope: 'openid', loadUserInfo: true,
  metadata: {
    issuer: 'https://login.example', authorization_endpoint: 'https://login.example/authorize',
    token_endpoint: 'https://login.example/token', userinfo_endpoint: 'https://login.example/userinfo',
  },
  stateStore: new WebStorageStateStore({ store: new InMemoryWebStorage() }), dpop: { store },
});
const { state } = await client.createSigninRequest({});
await client.processSigninResponse(`https://shop.example/?code=code&state=${state.id}`);
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
token endpoint: proof, token_type DPoP
UserInfo: Bearer, no proof
EXPECTED
