#!/usr/bin/env bash
# Guess: the instructions for a device-bound session (DBSC) may repeat the line of the cookie, `Max-Age` and all (the draft of
# 17 February 2026: "Attributes Max-Age and Expires will not contribute to whether a request cookie satisfies this
# credential"), and `scope.origin` may be an address as programs print one, with a slash behind it.
# So it is: Chromium registers nothing in either case, and says so to nobody but its developer tools; the cookie is set, so all
# looks well until it runs out.
# Versions: Chromium 156.0.8078.108 (Debian: `apt install chromium`), playwright-core 1.61.1, Node 20. Seen:
# plain: Success, refreshed
# Max-Age: InvalidCredentialsCookieUnpermittedAttribute, not refreshed
# Expires: InvalidCredentialsCookieUnpermittedAttribute, not refreshed
# slash: ScopeOriginContainsPath, not refreshed
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund playwright-core@1.61.1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=login.test \
  -keyout key -out certificate 2>/dev/null
chromium --version

cat > program.mjs <<'PROGRAM'
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { chromium } from 'playwright-core';

const [key, cert] = [readFileSync('key'), readFileSync('certificate')];
const spki = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
const features = 'DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting';
const args = [
  '--no-sandbox', '--host-resolver-rules=MAP *.test 127.0.0.1', `--enable-features=${features}`,
  `--ignore-certificate-errors-spki-list=${createHash('sha256').update(spki).digest('base64')}`,
];
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax';
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

for (const [name, more, slash] of [
  ['plain', '', ''], ['Max-Age', '; Max-Age=600', ''], ['Expires', '; Expires=Tue, 05 Jan 2038 00:00:00 GMT', ''],
  ['slash', '', '/'],
]) {
  let refreshed = false;
  const server = createServer({ key, cert }, ({ url }, response) => {
    if (url === '/sign-in') {
      response.setHeader('Secure-Session-Registration', '(ES256);path="/register";challenge="c"');
    } else if (url === '/register') {
      response.setHeader('Set-Cookie', `bound=1; Max-Age=600; ${attributes}`);
      return response.end(JSON.stringify({
        session_identifier: 'id', refresh_url: '/refresh', scope: { origin: origin + slash, include_site: false },
        credentials: [{ type: 'cookie', name: 'bound', attributes: attributes + more }],
      }));
    } else if (url === '/refresh') {
      refreshed = true;
      response.setHeader('Set-Cookie', `bound=2; Max-Age=600; ${attributes}`);
    }
    response.end('<!doctype html><link rel="icon" href="data:,">');
  }).listen(0);
  const origin = `https://login.test:${server.address().port}`;
  const options = { executablePath: '/usr/bin/chromium', args };
  const context = await chromium.launchPersistentContext(`profile-${name}`, options);
  const page = await context.newPage();
  const tools = await context.newCDPSession(page);
  const told = new Promise((done) => {
    tools.on('Network.deviceBoundSessionEventOccurred', ({ creationEventDetails: created }) => created && done(created));
  });
  await tools.send('Network.enable');
  await tools.send('Network.enableDeviceBoundSessions', { enable: true });
  await page.goto(`${origin}/sign-in`);
  const { fetchResult } = await told;
  while ((await context.cookies(origin)).length === 0) await pause(100);
  await context.clearCookies({ name: 'bound' });
  await page.goto(`${origin}/page`);
  console.log(`${name}: ${fetchResult}, ${refreshed ? 'refreshed' : 'not refreshed'}`);
  await context.close();
  server.close();
}
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
plain: Success, refreshed
Max-Age: InvalidCredentialsCookieUnpermittedAttribute, not refreshed
Expires: InvalidCredentialsCookieUnpermittedAttribute, not refreshed
slash: ScopeOriginContainsPath, not refreshed
EXPECTED
