#!/usr/bin/env bash
# Guess: keycloak-js, which takes any OpenID provider (`oidcProvider`), treats access tokens and refresh tokens as what
# they are to a client: texts of which it knows nothing (RFC 6749, sections 1.4 and 1.5).
# So it is: it decodes both as JWTs. A provider that gives either as an opaque text ends `init` with an error, after a
# sign-in that worked.
# Versions: keycloak-js 26.2.4, Node 20. Seen:
# access opaque: Unable to decode token, payload not found.
# refresh opaque: Unable to decode token, payload not found.
# both JWTs: true
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund keycloak-js@26.2.4

cat > program.mjs <<'PROGRAM'
// As much of a browser as it asks for.
const store = new Map();
const storage = {
  getItem: (name) => store.get(name) ?? null, setItem: (name, value) => store.set(name, value), removeItem: (name) => store.delete(name),
  key: (index) => [...store.keys()][index], get length() { return store.size; },
};
globalThis.isSecureContext = true;
globalThis.window = { location: { href: 'https://shop.example/', origin: 'https://shop.example' }, crypto, history: { replaceState() {}, state: null }, isSecureContext: true, localStorage: storage };
Object.assign(globalThis, { location: window.location, localStorage: storage, document: { getElementsByTagName: () => [], cookie: '' } });
window.location.replace = () => {};
window.location.assign = (address) => (window.asked = new URL(address));

const jwt = `e30.${btoa(JSON.stringify({ sub: 'ada', iat: 1, exp: 4e9 }))}.AAAA`;
const provider = {
  authorization_endpoint: 'https://login.example/authorize', token_endpoint: 'https://login.example/token',
};
const { default: Keycloak } = await import('keycloak-js');
for (const [name, access_token, refresh_token] of [
  ['access opaque', 'opaque', undefined], ['refresh opaque', jwt, 'opaque'], ['both JWTs', jwt, jwt],
]) {
  const settings = { useNonce: false, checkLoginIframe: false, pkceMethod: false };
  globalThis.fetch = async () => Response.json({ access_token, refresh_token, token_type: 'Bearer', expires_in: 60 });
  window.location.href = 'https://shop.example/';
  const first = new Keycloak({ oidcProvider: provider, clientId: 'shop' });
  await first.init(settings);
  await Promise.race([first.login(), new Promise((done) => setTimeout(done, 50))]);
  window.location.href = `https://shop.example/#state=${window.asked.searchParams.get('state')}&code=code`;
  const second = new Keycloak({ oidcProvider: provider, clientId: 'shop' });
  console.log(`${name}: ${await second.init(settings).catch((error) => error.message ?? JSON.stringify(error))}`);
}
process.exit();
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
access opaque: Unable to decode token, payload not found.
refresh opaque: Unable to decode token, payload not found.
both JWTs: true
EXPECTED
