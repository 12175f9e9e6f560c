#!/usr/bin/env bash
# Guess: the JWK that a library makes of a P-256 key has coordinates of 32 bytes, whatever the key: RFC 7518, section
# 6.2.1.2, wants the full size of the curve, and the thumbprint (RFC 7638) is made of that text.
# So it is: authlib.jose leaves out a zero byte in front. That meets about one key of 128 (x or y), and `d` of others. Its
# thumbprint is another than everybody else's, and go-jose refuses the published key. joserfc, which comes after it, is right.
# Versions: Authlib 1.9.10, joserfc 1.8.0, go-jose 4.1.9, Go 1.26, Python 3.11. Seen:
# joserfc: x of 32 bytes, thumbprint AWmN_3vhO-X11OHXw6wHVDeljB1oosmZiWsWf00zAzE
# authlib.jose: x of 31 bytes, thumbprint 7V9esMmiuh4YyQyzJQBK1v6K-0tmKX0yTpn3_zZfFk8
# go-jose, joserfc's: <nil>
# go-jose, authlib's: go-jose/go-jose: invalid EC public key, wrong length for x
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check Authlib==1.9.10 joserfc==1.8.0 cryptography==50.0.2

cat > program.py <<'PROGRAM'
import base64
import json

from authlib.jose import JsonWebKey
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import ECKey

number = 12345678901234567890  # the first private key from here on whose x begins with a zero byte
while ec.derive_private_key(number, ec.SECP256R1()).public_key().public_numbers().x >= 1 << 248:
    number += 1
public = ec.derive_private_key(number, ec.SECP256R1()).public_key()
pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
made = {"joserfc": ECKey.import_key(pem), "authlib.jose": JsonWebKey.import_key(pem, {"kty": "EC"})}
for name, key in made.items():
    jwk = {member: key.as_dict()[member] for member in ("kty", "crv", "x", "y")}
    length = len(base64.urlsafe_b64decode(jwk["x"] + "=="))
    print(f"{name}: x of {length} bytes, thumbprint {key.thumbprint()}")
    with open(name + ".json", "w") as file:
        json.dump(jwk, file)
PROGRAM
python/bin/python -W ignore program.py 2>/dev/null | tee seen

cat > go.mod <<'PROGRAM'
module finding

go 1.25

require github.com/go-jose/go-jose/v4 v4.1.9
PROGRAM
cat > main.go <<'PROGRAM'
package main

import (
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"
)

func main() {
	for who, file := range map[string]string{"joserfc's": "joserfc.json", "authlib's": "authlib.jose.json"} {
		text, _ := os.ReadFile(file)
		var key jose.JSONWebKey
		fmt.Printf("go-jose, %s: %v\n", who, key.UnmarshalJSON(text))
	}
}
PROGRAM
export GOPATH=$folder/go GOFLAGS=-mod=mod
go mod tidy 2>/dev/null
go run . | sort -r | tee -a seen

diff seen - <<'EXPECTED'
joserfc: x of 32 bytes, thumbprint AWmN_3vhO-X11OHXw6wHVDeljB1oosmZiWsWf00zAzE
authlib.jose: x of 31 bytes, thumbprint 7V9esMmiuh4YyQyzJQBK1v6K-0tmKX0yTpn3_zZfFk8
go-jose, joserfc's: <nil>
go-jose, authlib's: go-jose/go-jose: invalid EC public key, wrong length for x
EXPECTED
