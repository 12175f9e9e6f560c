#!/usr/bin/env bash
# Guess: a key of a type that a library does not know is skipped in a key set, as RFC 7517, section 5,
# asks. A set with an ML-DSA key (`AKP`) beside the RSA key is such a one.
# So it is: Authlib and go-jose refuse the whole set. go-oidc, which is built on go-jose, takes it, and
# so does jose for Node.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund jose@6.2.18

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check Authlib==1.9.10

node --input-type=module -e '
import { writeFileSync } from "node:fs";
import { generateKeyPair, exportJWK, SignJWT, createLocalJWKSet, jwtVerify } from "jose";
const { publicKey, privateKey } = await generateKeyPair("RS256");
const rsa = { ...(await exportJWK(publicKey)), kid: "rsa", alg: "RS256", use: "sig" };
const akp = { kty: "AKP", alg: "ML-DSA-44", kid: "akp", use: "sig", pub: "A".repeat(1750) };
const token = await new SignJWT({ sub: "alice", iss: "https://issuer.example", aud: "web" })
  .setProtectedHeader({ alg: "RS256", kid: "rsa" }).setExpirationTime("5m").sign(privateKey);
await jwtVerify(token, createLocalJWKSet({ keys: [akp, rsa] }));
console.log("jose 6.2.18: taken");
writeFileSync("keys.json", JSON.stringify({ keys: [rsa, akp] }));
writeFileSync("token", token);
'

cat > program.py <<'PROGRAM'
import json, sys
from authlib.jose import JsonWebKey, jwt

try:
    jwt.decode(open("token").read(), JsonWebKey.import_key_set(json.load(open("keys.json"))))
    sys.exit("Authlib: taken")
except KeyError as error:
    print("Authlib 1.9.10: KeyError:", error)
PROGRAM
python/bin/python program.py 2>/dev/null

cat > go.mod <<'PROGRAM'
module finding

go 1.25

require (
	github.com/coreos/go-oidc/v3 v3.20.0
	github.com/go-jose/go-jose/v4 v4.1.9
)
PROGRAM
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

func main() {
	text, _ := os.ReadFile("keys.json")
	token, _ := os.ReadFile("token")
	var set jose.JSONWebKeySet
	refused := json.Unmarshal(text, &set)
	fmt.Println("go-jose 4.1.9:", refused)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(text)
	}))
	keys := oidc.NewRemoteKeySet(context.Background(), server.URL)
	verifier := oidc.NewVerifier("https://issuer.example", keys, &oidc.Config{ClientID: "web"})
	_, failed := verifier.Verify(context.Background(), string(token))
	fmt.Println("go-oidc 3.20.0:", failed)
	if refused == nil || failed != nil {
		os.Exit(1)
	}
}
PROGRAM
export GOPATH=$folder/go GOFLAGS=-mod=mod
go mod tidy 2>/dev/null
go run .
