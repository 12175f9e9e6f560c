#!/usr/bin/env bash
# Guess: python-jose, given a whole key set and a token with `kid`, takes the key that it names.
# So it is: it tries the keys in order, and the first one of another type than the token's algorithm
# ends it. With the same keys in another order the same token is taken.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check python-jose==3.5.0 jwcrypto==1.6.1

cat > program.py <<'PROGRAM'
import json, sys
from jwcrypto.jwk import JWK
from jwcrypto.jwt import JWT
from jose import jwt

rsa = JWK.generate(kty="RSA", size=2048, kid="rsa", alg="RS256", use="sig")
ec = JWK.generate(kty="EC", crv="P-256", kid="ec", alg="ES256", use="sig")
token = JWT(header={"alg": "RS256", "kid": "rsa"}, claims={"sub": "alice"})
token.make_signed_token(rsa)
for keys, expected in [([rsa, ec], True), ([ec, rsa], False)]:
    order = [key["kid"] for key in keys]
    try:
        jwt.decode(token.serialize(), {"keys": [json.loads(key.export_public()) for key in keys]})
        told = "taken"
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    print("python-jose 3.5.0, keys", order, "->", told)
    if (told == "taken") != expected:
        sys.exit(1)
PROGRAM
python/bin/python program.py
