#!/usr/bin/env bash
# Guess: while the cookie of a device-bound session (DBSC) is missing, Chromium holds each navigation to its pages until the
# cookie is refreshed: a link from a mail or from an application is a navigation to the site itself.
# So it is: the origin of a navigation is that of the page with the link. From another site it is not held: the page is asked
# for without the cookie and without `Secure-Session-Skipped`, and nothing refreshes. `allowed_refresh_initiators` of the
# session must name the host, or `*`. So a provider that people are sent to sees them signed out without it.
# Versions: Chromium 156.0.8078.108 (Debian: `apt install chromium`), playwright-core 1.61.1, Node 20. Seen:
# link, no initiators: cookie missing, skipped -
# link, initiators ["*"]: cookie there, skipped -
# typed, no initiators: cookie there, skipped -
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

for (const [by, allowed_refresh_initiators] of [['link'], ['link', ['*']], ['typed']]) {
  let seen;
  const server = createServer({ key, cert }, ({ url, headers }, response) => {
    if (url === '/sign-in') {
      response.setHeader('Secure-Session-Registration', '(ES256);path="/register";challenge="c"');
    } else if (url === '/register') {
      response.setHeader('Set-Cookie', `bound=1; Max-Age=600; ${attributes}`);
      return response.end(JSON.stringify({
        session_identifier: 'id', refresh_url: '/refresh', scope: { include_site: false }, allowed_refresh_initiators,
        credentials: [{ type: 'cookie', name: 'bound', attributes }],
      }));
    } else if (url === '/refresh') {
      response.setHeader('Set-Cookie', `bound=2; Max-Age=600; ${attributes}`);
    } else if (url === '/page') {
      seen = `cookie ${headers.cookie ? 'there' : 'missing'}, skipped ${headers['secure-session-skipped'] ?? '-'}`;
    }
    response.end(`<!doctype html><link rel="icon" href="data:,"><a href="${origin}/page">go</a>`);
  }).listen(0);
  const { port } = server.address();
  const origin = `https://login.test:${port}`;
  const options = { executablePath: '/usr/bin/chromium', args };
  const profile = `profile-${by}-${allowed_refresh_initiators ?? ''}`.replace('*', 'all');
  const context = await chromium.launchPersistentContext(profile, options);
  const page = await context.newPage();
  await page.goto(`${origin}/sign-in`);
  while ((await context.cookies(origin)).length === 0) await pause(100);
  await context.clearCookies({ name: 'bound' });
  if (by === 'link') {
    await page.goto(`https://mail.test:${port}/`);
    await page.getByText('go').click();
    await page.waitForURL(`${origin}/page`);
  } else {
    await page.goto(`${origin}/page`);
  }
  const initiators = allowed_refresh_initiators ? `initiators ${JSON.stringify(allowed_refresh_initiators)}` : 'no initiators';
  console.log(`${by}, ${initiators}: ${seen}`);
  await context.close();
  server.close();
}
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
link, no initiators: cookie missing, skipped -
link, initiators ["*"]: cookie there, skipped -
typed, no initiators: cookie there, skipped -
EXPECTED
