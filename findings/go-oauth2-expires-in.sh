#!/usr/bin/env bash
# Guess: a client that takes `expires_in` as the text "3600" takes the number 3600.0 all the more: to JSON
# it is 3600, and some languages print every number so.
# So it is: golang.org/x/oauth2 takes the text, and refuses the whole answer for 3600.0 or 3.6e3.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'PROGRAM'
module finding

go 1.25

require golang.org/x/oauth2 v0.38.0
PROGRAM
cat > main.go <<'PROGRAM'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"golang.org/x/oauth2"
)

func main() {
	lifetimes := map[string]bool{`3600`: true, `"3600"`: true, `3600.0`: false, `3.6e3`: false}
	for lifetime, taken := range lifetimes {
		answer := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":"a","token_type":"Bearer","expires_in":%s}`, lifetime)
		}
		server := httptest.NewServer(http.HandlerFunc(answer))
		config := oauth2.Config{ClientID: "web", Endpoint: oauth2.Endpoint{TokenURL: server.URL}}
		_, err := config.Exchange(context.Background(), "code")
		fmt.Println("x/oauth2 0.38.0: expires_in", lifetime, "->", err)
		if (err == nil) != taken {
			os.Exit(1)
		}
	}
}
PROGRAM
export GOPATH=$folder/go GOFLAGS=-mod=mod
go mod tidy 2>/dev/null
go run .
