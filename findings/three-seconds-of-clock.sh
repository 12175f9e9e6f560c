#!/usr/bin/env bash
# Guess: a verifier forgives three seconds between two clocks, or treats `iat` and `nbf` alike.
# So it is: four for Node take a token whose `iat` is three seconds ahead and refuse it for an `nbf`
# that is; two for Python refuse both. None has a tolerance by default.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund jose@6.2.18 jsonwebtoken@9.0.3 fast-jwt@6.3.6 aws-jwt-verify@5.2.1

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check PyJWT==2.15.1 joserfc==1.8.0

cat > make.mjs <<'PROGRAM'
import crypto from 'node:crypto';
import fs from 'node:fs';
import * as jose from 'jose';
import jsonwebtoken from 'jsonwebtoken';
import { createVerifier } from 'fast-jwt';
import { JwtVerifier } from 'aws-jwt-verify';

const { privateKey, publicKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = publicKey.export({ type: 'spki', format: 'pem' });
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: '1', alg: 'RS256', use: 'sig' };
const encode = (object) => Buffer.from(JSON.stringify(object)).toString('base64url');
const sign = (claims) => {
  const text = `${encode({ alg: 'RS256', kid: '1' })}.${encode(claims)}`;
  return `${text}.${crypto.sign('RSA-SHA256', Buffer.from(text), privateKey).toString('base64url')}`;
};
const issuer = 'https://issuer.example';
const now = Math.floor(Date.now() / 1000);
const verifiers = {
  jose: (token) => jose.jwtVerify(token, publicKey, { issuer, audience: 'api' }),
  jsonwebtoken: (token) => jsonwebtoken.verify(token, pem, { issuer, audience: 'api' }),
  'fast-jwt': (token) => createVerifier({ key: pem, allowedIss: issuer, allowedAud: 'api' })(token),
  'aws-jwt-verify': (token) => {
    const verifier = JwtVerifier.create({ issuer, audience: 'api', jwksUri: `${issuer}/keys` });
    verifier.cacheJwks({ keys: [jwk] });
    return verifier.verify(token);
  },
};
for (const [claim, expected] of [['iat', true], ['nbf', false]]) {
  const base = { iss: issuer, aud: 'api', sub: 'alice', iat: now, exp: now + 300 };
  const token = sign({ ...base, [claim]: now + 3 });
  for (const [name, verify] of Object.entries(verifiers)) {
    let told = 'taken';
    try {
      await verify(token);
    } catch (error) {
      told = `refused: ${error.message}`;
    }
    console.log(`${name}: ${claim} 3 s ahead: ${told}`);
    if ((told === 'taken') !== expected) process.exit(1);
  }
}
fs.writeFileSync('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }));
fs.writeFileSync('public.pem', pem);
PROGRAM
node make.mjs

cat > verify.py <<'PROGRAM'
import sys, time
import jwt
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import RSAKey

private, public = open("key.pem").read(), open("public.pem").read()


def by_pyjwt(token):
    jwt.decode(token, public, algorithms=["RS256"])


def by_joserfc(token):
    claims = joserfc_jwt.decode(token, RSAKey.import_key(public)).claims
    joserfc_jwt.JWTClaimsRegistry().validate(claims)


for claim in ["iat", "nbf"]:
    for name, verify in [("PyJWT", by_pyjwt), ("joserfc", by_joserfc)]:
        now = int(time.time())
        token = jwt.encode({"exp": now + 300, claim: now + 3}, private, algorithm="RS256")
        try:
            verify(token)
            sys.exit(f"{name}: {claim} 3 s ahead: taken")
        except Exception as error:
            print(f"{name}: {claim} 3 s ahead: refused: {error}")
PROGRAM
python/bin/python verify.py
