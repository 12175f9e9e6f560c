#!/usr/bin/env bash
# Guess: a library that meets a claim of another type than the standard's, as `"email_verified": "true"`
# (Amazon Cognito's UserInfo has it), either takes it or says that it is wrong.
# So it is: Nimbus' SDK answers null, as if the claim were not there. go-oidc and zitadel/oidc read true.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > pom.xml <<'PROGRAM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>com.nimbusds</groupId><artifactId>oauth2-oidc-sdk</artifactId><version>11.30</version>
  </dependency></dependencies>
</project>
PROGRAM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=jars

cat > Program.java <<'PROGRAM'
import com.nimbusds.openid.connect.sdk.claims.UserInfo;

public class Program {
    public static void main(String[] arguments) throws Exception {
        String base = "{\"sub\": \"alice\", \"email\": \"alice@example.com\", \"email_verified\": ";
        Boolean plain = UserInfo.parse(base + "true}").getEmailVerified();
        Boolean text = UserInfo.parse(base + "\"true\"}").getEmailVerified();
        System.out.println("oauth2-oidc-sdk 11.30: true -> " + plain + ", \"true\" -> " + text);
        System.exit(plain && text == null ? 0 : 1);
    }
}
PROGRAM
java -cp 'jars/*' Program.java

cat > go.mod <<'PROGRAM'
module finding

go 1.25

require (
	github.com/coreos/go-oidc/v3 v3.20.0
	github.com/zitadel/oidc/v3 v3.52.0
	golang.org/x/oauth2 v0.38.0
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
	zitadel "github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"
)

const userInfo = `{"sub": "alice", "email": "alice@example.com", "email_verified": "true"}`

func main() {
	var byZitadel zitadel.UserInfo
	failed := json.Unmarshal([]byte(userInfo), &byZitadel)
	fmt.Println("zitadel/oidc 3.52.0:", byZitadel.EmailVerified, failed)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, userInfo)
	}))
	provider := (&oidc.ProviderConfig{UserInfoURL: server.URL}).NewProvider(context.Background())
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})
	byGoOidc, err := provider.UserInfo(context.Background(), token)
	if err != nil || failed != nil {
		fmt.Println(err, failed)
		os.Exit(1)
	}
	fmt.Println("go-oidc 3.20.0:", byGoOidc.EmailVerified)
	if !bool(byZitadel.EmailVerified) || !byGoOidc.EmailVerified {
		os.Exit(1)
	}
}
PROGRAM
export GOPATH=$folder/go GOFLAGS=-mod=mod
go mod tidy 2>/dev/null
go run .
