#!/usr/bin/env bash
# Guess: an application that trusts its provider's origin in its guard against forged posts takes the
# provider's form_post answer.
# So it is: where the provider's page has `Referrer-Policy: no-referrer`, the browser sends
# `Origin: null`, and both Go's CrossOriginProtection and Hono's csrf answer 403.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund hono@4.13.19

cat > main.go <<'PROGRAM'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
)

func main() {
	guard := http.NewCrossOriginProtection()
	guard.AddTrustedOrigin("https://login.example.com")
	guarded := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	for origin, expected := range map[string]int{"https://login.example.com": 200, "null": 403} {
		request := httptest.NewRequest("POST", "https://app.example/callback", nil)
		request.Header.Set("Origin", origin)
		request.Header.Set("Sec-Fetch-Site", "cross-site")
		answer := httptest.NewRecorder()
		guarded.ServeHTTP(answer, request)
		fmt.Println(runtime.Version(), "Origin:", origin, "->", answer.Code)
		if answer.Code != expected {
			os.Exit(1)
		}
	}
}
PROGRAM
go run main.go

cat > program.mjs <<'PROGRAM'
import { Hono } from 'hono';
import { csrf } from 'hono/csrf';

const app = new Hono().use(csrf({ origin: 'https://login.example.com' }));
app.post('/callback', (context) => context.text('in'));
for (const [origin, expected] of [['https://login.example.com', 200], ['null', 403]]) {
  const headers = { origin, 'content-type': 'application/x-www-form-urlencoded' };
  const options = { method: 'POST', headers, body: 'code=1' };
  const answer = await app.request('https://app.example/callback', options);
  console.log('hono 4.13.19 Origin:', origin, '->', answer.status);
  if (answer.status !== expected) process.exit(1);
}
PROGRAM
node program.mjs
