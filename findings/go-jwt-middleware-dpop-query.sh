#!/usr/bin/env bash
# Guess: an API that checks proofs of possession takes one whose `htu` is the address of the request without its query, as
# RFC 9449, section 4.2, defines it.
# So it is: Auth0's go-jwt-middleware compares it with the address and its query. A proof as in the RFC is good for
# addresses without one, and refused with 400 for all others.
# Versions: go-jwt-middleware 3.2.0, jwx 3.0.13, Go 1.26. Seen: /orders 200, /orders?page=2 400
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'PROGRAM'
module finding

go 1.25

require (
	github.com/auth0/go-jwt-middleware/v3 v3.2.0
	github.com/lestrrat-go/jwx/v3 v3.0.13
)
PROGRAM
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	middleware "github.com/auth0/go-jwt-middleware/v3"
	"github.com/auth0/go-jwt-middleware/v3/validator"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func signed(claims map[string]any, key jwk.Key, headers jws.Headers) string {
	token := jwt.New()
	for name, value := range claims {
		token.Set(name, value)
	}
	return string(must(jwt.Sign(token, jwt.WithKey(jwa.ES256(), key, jws.WithProtectedHeaders(headers)))))
}

func main() {
	key := must(jwk.Import(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))))
	public := must(key.PublicKey())
	thumbprint := base64.RawURLEncoding.EncodeToString(must(public.Thumbprint(crypto.SHA256)))
	now := time.Now()
	issuer, audience := "https://login.example.com/", "https://api.example.com"
	token := signed(map[string]any{
		"iss": issuer, "aud": audience, "sub": "ada", "iat": now, "exp": now.Add(time.Hour),
		"cnf": map[string]any{"jkt": thumbprint},
	}, key, jws.NewHeaders())
	hash := sha256.Sum256([]byte(token))

	judge := must(validator.New(
		validator.WithKeyFunc(func(context.Context) (any, error) { return public, nil }),
		validator.WithAlgorithm(validator.ES256), validator.WithIssuer(issuer), validator.WithAudience(audience)))
	api := must(middleware.New(middleware.WithValidator(judge))).CheckJWT(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") }))

	for number, path := range []string{"/orders", "/orders?page=2"} {
		headers := jws.NewHeaders()
		headers.Set("typ", "dpop+jwt")
		headers.Set("jwk", public)
		request := httptest.NewRequest("GET", "http://api.example.com"+path, nil)
		request.Header.Set("Authorization", "DPoP "+token)
		request.Header.Set("DPoP", signed(map[string]any{
			"htm": "GET", "htu": "http://api.example.com/orders", "iat": now, "jti": fmt.Sprint(number),
			"ath": base64.RawURLEncoding.EncodeToString(hash[:]),
		}, key, headers))
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		fmt.Println(path, answer.Code)
		if answer.Code != 200 && path == "/orders" {
			fmt.Println(answer.Header(), answer.Body)
		}
	}
}
PROGRAM
go mod tidy >/dev/null 2>&1
go run . | tee seen

diff seen - <<'EXPECTED'
/orders 200
/orders?page=2 400
EXPECTED
