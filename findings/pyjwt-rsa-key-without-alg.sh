#!/usr/bin/env bash
# Guess: an RSA key of a key set that has no `alg`, which RFC 7517, section 4.4, leaves to the provider, is good for any
# algorithm of RSA that the caller allows: PS256, say, which FAPI asks for.
# So it is: PyJWT reads such a key as one for RS256 alone, and refuses a token by PS256 or RS512 with "does not match the
# key's algorithm 'RS256'", though nothing in the key says so. joserfc and jwcrypto take all three. A provider that signs
# otherwise than by RS256 has to write `alg` into its keys.
# Versions: PyJWT 2.15.1, joserfc 1.8.0, jwcrypto 1.6.1, Python 3.11. Seen: PyJWT takes RS256 alone without `alg`, and all
# three with it; joserfc and jwcrypto take all.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check PyJWT==2.15.1 joserfc==1.8.0 jwcrypto==1.6.1

cat > program.py <<'PROGRAM'
import json

import joserfc.jwk
import joserfc.jwt
import jwt
from jwcrypto.jwk import JWK, JWKSet
from jwcrypto.jwt import JWT

rsa = JWK.generate(kty="RSA", size=2048, kid="rsa", use="sig")


def with_pyjwt(token, algorithm, keys):
    key = jwt.PyJWKSet.from_dict(keys)[jwt.get_unverified_header(token)["kid"]]
    jwt.decode(token, key, algorithms=[algorithm])


def with_joserfc(token, algorithm, keys):
    joserfc.jwt.decode(token, joserfc.jwk.KeySet.import_key_set(keys), algorithms=[algorithm])


def with_jwcrypto(token, algorithm, keys):
    JWT(jwt=token, key=JWKSet.from_json(json.dumps(keys)), algs=[algorithm])


for verify in with_pyjwt, with_joserfc, with_jwcrypto:
    for algorithm in "RS256", "RS512", "PS256":
        token = JWT(header={"alg": algorithm, "kid": "rsa"}, claims={"sub": "ada"})
        token.make_signed_token(rsa)
        told = []
        for more in {}, {"alg": algorithm}:
            try:
                verify(token.serialize(), algorithm, {"keys": [rsa.export_public(as_dict=True) | more]})
                told.append("taken")
            except Exception as error:
                told.append(f"{type(error).__name__}: {error}")
        print(f"{verify.__name__[5:]}, {algorithm}: without alg {told[0]}; with alg {told[1]}")
PROGRAM
python/bin/python program.py | tee seen

diff seen - <<'EXPECTED'
pyjwt, RS256: without alg taken; with alg taken
pyjwt, RS512: without alg InvalidAlgorithmError: Token algorithm 'RS512' does not match the key's algorithm 'RS256'; with alg taken
pyjwt, PS256: without alg InvalidAlgorithmError: Token algorithm 'PS256' does not match the key's algorithm 'RS256'; with alg taken
joserfc, RS256: without alg taken; with alg taken
joserfc, RS512: without alg taken; with alg taken
joserfc, PS256: without alg taken; with alg taken
jwcrypto, RS256: without alg taken; with alg taken
jwcrypto, RS512: without alg taken; with alg taken
jwcrypto, PS256: without alg taken; with alg taken
EXPECTED
