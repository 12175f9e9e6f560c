#!/usr/bin/env bash
# Guess: a client of which the algorithm of ID tokens is a setting (`OIDC_RP_SIGN_ALGO`), and which is given the address of
# the provider's keys (`OIDC_OP_JWKS_ENDPOINT`), verifies by those keys whatever asymmetric algorithm is set; PyJWT, which
# it is built on, knows PS256 and EdDSA.
# So it is: mozilla-django-oidc asks the key set where the name begins with RS or ES alone. For PS256 and EdDSA it hands the
# client's secret over as the public key, and every sign-in ends in an InvalidKeyError that is not handled. The error says
# nothing of the secret, and the key set is never asked.
# Versions: mozilla-django-oidc 5.0.2, Django 5.2.19, PyJWT 2.15.1, Python 3.11. Seen:
# RS256: taken, key set asked
# ES256: taken, key set asked
# PS256: InvalidKeyError: Could not parse the provided public key., key set not asked
# EdDSA: InvalidKeyError: Not a public or private key, key set not asked
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check mozilla-django-oidc==5.0.2 \
  Django==5.2.19 PyJWT==2.15.1 jwcrypto==1.6.1

cat > program.py <<'PROGRAM'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import django
from django.conf import settings
from jwcrypto.jwk import JWK
from jwcrypto.jwt import JWT

keys = {
    "RS256": JWK.generate(kty="RSA", size=2048, kid="RS256", alg="RS256", use="sig"),
    "ES256": JWK.generate(kty="EC", crv="P-256", kid="ES256", alg="ES256", use="sig"),
    "PS256": JWK.generate(kty="RSA", size=2048, kid="PS256", alg="PS256", use="sig"),
    "EdDSA": JWK.generate(kty="OKP", crv="Ed25519", kid="EdDSA", alg="EdDSA", use="sig"),
}
asked = []


class Provider(BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"keys": [key.export_public(as_dict=True) for key in keys.values()]}).encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
provider = f"http://127.0.0.1:{server.server_port}"
settings.configure(
    SECRET_KEY="x", INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    OIDC_OP_TOKEN_ENDPOINT=provider + "/token", OIDC_OP_USER_ENDPOINT=provider + "/userinfo",
    OIDC_OP_JWKS_ENDPOINT=provider + "/keys", OIDC_RP_CLIENT_ID="web", OIDC_RP_CLIENT_SECRET="s" * 43)
django.setup()
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

for algorithm, key in keys.items():
    settings.OIDC_RP_SIGN_ALGO = algorithm
    asked.clear()
    token = JWT(header={"alg": algorithm, "kid": algorithm}, claims={"sub": "ada", "nonce": "n"})
    token.make_signed_token(key)
    try:
        OIDCAuthenticationBackend().verify_token(token.serialize(), nonce="n")
        told = "taken"
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    print(f"{algorithm}: {told}, key set {'asked' if asked else 'not asked'}")
PROGRAM
python/bin/python program.py | tee seen

diff seen - <<'EXPECTED'
RS256: taken, key set asked
ES256: taken, key set asked
PS256: InvalidKeyError: Could not parse the provided public key., key set not asked
EdDSA: InvalidKeyError: Not a public or private key, key set not asked
EXPECTED
