#!/usr/bin/env bash
# Guess: a rate limiter does no harm where a browser refreshes a device-bound session (DBSC): after a 429 the session stays, as
# after a 503 or no answer at all (the draft of 17 February 2026: "network error, or 407 or 429, return"). Nor does a redirect
# ("at least 300 and below 400, return").
# So it is: 429 ends the session in Chromium, as 404 does, and so does a redirect, which it follows: no refresh any more, and
# requests go on without the cookie and without a word. 503 keeps it, and 407.
# Versions: Chromium 156.0.8078.108 (Debian: `apt install chromium`), playwright-core 1.61.1, Node 20. Seen, for two requests
# after the cookie was gone:
# 503: kept, server_error
# 407: kept, unreachable
# 429: ended, -
# 404: ended, -
# 302: ended, -
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

for (const status of [503, 407, 429, 404, 302]) {
  let refreshes = 0;
  let skipped = '-';
  const server = createServer({ key, cert }, ({ url, headers }, response) => {
    if (url === '/sign-in') {
      response.setHeader('Secure-Session-Registration', '(ES256);path="/register";challenge="c"');
    } else if (url === '/register') {
      response.setHeader('Set-Cookie', `bound=1; Max-Age=600; ${attributes}`);
      return response.end(JSON.stringify({
        session_identifier: 'id', refresh_url: '/refresh', scope: { include_site: false },
        credentials: [{ type: 'cookie', name: 'bound', attributes }],
      }));
    } else if (url === '/refresh') {
      refreshes += 1;
      response.writeHead(status, status === 302 ? { Location: '/elsewhere' } : {});
    } else if (url.startsWith('/page')) {
      skipped = headers['secure-session-skipped']?.split(';')[0] ?? '-';
    }
    response.end('<!doctype html><link rel="icon" href="data:,">');
  }).listen(0);
  const origin = `https://login.test:${server.address().port}`;
  const options = { executablePath: '/usr/bin/chromium', args };
  const context = await chromium.launchPersistentContext(`profile-${status}`, options);
  const page = await context.newPage();
  await page.goto(`${origin}/sign-in`);
  while ((await context.cookies(origin)).length === 0) await pause(100);
  await context.clearCookies({ name: 'bound' });
  for (const path of ['/page-1', '/page-2']) await page.goto(origin + path);
  console.log(`${status}: ${refreshes > 1 ? 'kept' : 'ended'}, ${skipped}`);
  await context.close();
  server.close();
}
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
503: kept, server_error
407: kept, unreachable
429: ended, -
404: ended, -
302: ended, -
EXPECTED
