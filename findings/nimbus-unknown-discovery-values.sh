#!/usr/bin/env bash
# Guess: a reader of discovery that passes over a response mode, a grant type and a method of
# authentication that it does not know passes over any value that it does not know.
# So it is: Nimbus' SDK, which Spring uses, refuses the whole document for one unknown `prompt`, subject
# type or display value, or for a locale that is written `de_DE`.
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
import com.nimbusds.oauth2.sdk.ParseException;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import java.util.LinkedHashMap;
import java.util.Map;

public class Program {
    static final String BASE = """
        {"issuer": "https://login.example", "jwks_uri": "https://login.example/keys",
         "authorization_endpoint": "https://login.example/authorize",
         "token_endpoint": "https://login.example/token",
         "subject_types_supported": ["public"%s], "response_types_supported": ["code"],
         "id_token_signing_alg_values_supported": ["RS256"]%s}""";

    public static void main(String[] arguments) {
        Map<String, Boolean> expected = new LinkedHashMap<>();
        expected.put(", \"response_modes_supported\": [\"query\", \"new\"]", true);
        expected.put(", \"grant_types_supported\": [\"new\"]", true);
        expected.put(", \"token_endpoint_auth_methods_supported\": [\"new\"]", true);
        expected.put(", \"prompt_values_supported\": [\"login\", \"new\"]", false);
        expected.put(", \"display_values_supported\": [\"page\", \"new\"]", false);
        expected.put(", \"ui_locales_supported\": [\"de_DE\"]", false);
        expected.forEach((members, taken) -> judge(members, BASE.formatted("", members), taken));
        judge("subject type new", BASE.formatted(", \"new\"", ""), false);
    }

    static void judge(String what, String document, boolean taken) {
        String told = "taken";
        try {
            OIDCProviderMetadata.parse(document);
        } catch (ParseException refused) {
            told = "refused: " + refused.getMessage();
        }
        System.out.println("oauth2-oidc-sdk 11.30: " + what + " -> " + told);
        if (told.equals("taken") != taken) {
            System.exit(1);
        }
    }
}
PROGRAM
java -cp 'jars/*' Program.java
