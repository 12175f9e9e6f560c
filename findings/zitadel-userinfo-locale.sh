#!/usr/bin/env bash
# Guess: zitadel/oidc, which reads `de_DE` as a locale, reads `de_DE.UTF-8` too, or leaves it out.
# So it is: for the locale of a Unix account the whole UserInfo answer is refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'PROGRAM'
module finding

go 1.25

require github.com/zitadel/oidc/v3 v3.52.0
PROGRAM
cat > main.go <<'PROGRAM'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/zitadel/oidc/v3/pkg/oidc"
)

func main() {
	for locale, taken := range map[string]bool{"de-DE": true, "de_DE": true, "de_DE.UTF-8": false} {
		var info oidc.UserInfo
		err := json.Unmarshal(fmt.Appendf(nil, `{"sub":"alice","locale":%q}`, locale), &info)
		fmt.Println("zitadel/oidc 3.52.0:", locale, "->", err)
		if (err == nil) != taken {
			os.Exit(1)
		}
	}
}
PROGRAM
export GOPATH=$folder/go GOFLAGS=-mod=mod
go mod tidy 2>/dev/null
go run .
