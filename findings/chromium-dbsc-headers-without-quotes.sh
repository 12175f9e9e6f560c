#!/usr/bin/env bash
# Guess: a server reads `Secure-Session-Response` and `Sec-Secure-Session-Id` of device-bound sessions (DBSC) as structured
# fields: each is a string, in quotes (the draft of 17 February 2026: "a structured header. Its value must be a string").
# So it is: Chromium sends both without quotes. A proof is then read as a token and not as a string, and an identifier that
# begins with a digit is no structured field at all: a strict reader fails.
# Versions: Chromium 156.0.8078.108 (Debian: `apt install chromium`), playwright-core 1.61.1, structured-headers 2.1.0,
# Node 20. Seen:
# proof: quotes false, read as Token
# identifier: a1b2, read as Token
# proof: quotes false, read as Token
# identifier: 1a2b, read as ParseError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund playwright-core@1.61.1 structured-headers@2.1.0
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=login.test \
  -keyout key -out certificate 2>/dev/null
chromium --version

cat > program.mjs <<'PROGRAM'
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { chromium } from 'playwright-core';
import { parseItem } from 'structured-headers';

const [key, cert] = [readFileSync('key'), readFileSync('certificate')];
const spki = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
const features = 'DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting';
const args = [
  '--no-sandbox', '--host-resolver-rules=MAP *.test 127.0.0.1', `--enable-features=${features}`,
  `--ignore-certificate-errors-spki-list=${createHash('sha256').update(spki).digest('base64')}`,
];
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Lax';
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function kind(header) {
  try {
    return parseItem(header)[0].constructor.name;
  } catch (error) {
    return error.constructor.name;
  }
}

for (const session_identifier of ['a1b2', '1a2b']) {
  const server = createServer({ key, cert }, ({ url, headers }, response) => {
    const proof = headers['secure-session-response'];
    if (url === '/sign-in') {
      response.setHeader('Secure-Session-Registration', '(ES256);path="/register";challenge="c"');
    } else if (url === '/register') {
      console.log(`proof: quotes ${proof.includes('"')}, read as ${kind(proof)}`);
      response.setHeader('Set-Cookie', `bound=1; Max-Age=600; ${attributes}`);
      return response.end(JSON.stringify({
        session_identifier, refresh_url: '/refresh', scope: { include_site: false },
        credentials: [{ type: 'cookie', name: 'bound', attributes }],
      }));
    } else if (url === '/refresh') {
      const identifier = headers['sec-secure-session-id'];
      console.log(`identifier: ${identifier}, read as ${kind(identifier)}`);
      response.setHeader('Set-Cookie', `bound=2; Max-Age=600; ${attributes}`);
    }
    response.end('<!doctype html><link rel="icon" href="data:,">');
  }).listen(0);
  const origin = `https://login.test:${server.address().port}`;
  const options = { executablePath: '/usr/bin/chromium', args };
  const context = await chromium.launchPersistentContext(`profile-${session_identifier}`, options);
  const page = await context.newPage();
  await page.goto(`${origin}/sign-in`);
  while ((await context.cookies(origin)).length === 0) await pause(100);
  await context.clearCookies({ name: 'bound' });
  await page.goto(`${origin}/page`);
  await context.close();
  server.close();
}
PROGRAM
node program.mjs | tee seen

diff seen - <<'EXPECTED'
proof: quotes false, read as Token
identifier: a1b2, read as Token
proof: quotes false, read as Token
identifier: 1a2b, read as ParseError
EXPECTED
