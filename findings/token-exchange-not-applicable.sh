#!/usr/bin/env bash
# Guess: a client that offers token exchange takes the answer for an ID token or a SAML assertion, whose `token_type` is
# "N_A": RFC 8693, section 2.2.1, has it so for whatever is no access token.
# So it is: requests_oauth2client and Spring Security, which both offer this grant, refuse the answer for "N_A", and the
# token in it is lost. openid-client takes it. A provider that gives more than access tokens by exchange meets clients that
# cannot have them.
# Versions: requests_oauth2client 1.8.0, Python 3.11; openid-client 6.9.0, Node 20; spring-security-oauth2-core 7.1.2,
# Java 17. Seen:
# requests_oauth2client: Bearer taken, N_A InvalidTokenResponse
# openid-client: Bearer taken, N_A taken
# Spring Security: Bearer taken, N_A IllegalArgumentException
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund openid-client@6.9.0
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check requests_oauth2client==1.8.0 responses==0.26.3
cat > pom.xml <<'PROGRAM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.springframework.security</groupId><artifactId>spring-security-oauth2-core</artifactId>
    <version>7.1.2</version>
  </dependency></dependencies>
</project>
PROGRAM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=jars

cat > program.py <<'PROGRAM'
import responses
from requests_oauth2client import OAuth2Client

told = []
for kind in "Bearer", "N_A":
    answer = {
        "access_token": "e30.e30.c2ln", "token_type": kind,
        "issued_token_type": "urn:ietf:params:oauth:token-type:id_token"}
    with responses.RequestsMock() as server:
        server.post("https://login.example/token", json=answer)
        client = OAuth2Client("https://login.example/token", client_id="web", client_secret="secret")
        try:
            client.token_exchange(
                subject_token="a", subject_token_type="access_token", requested_token_type="id_token")
            told.append(f"{kind} taken")
        except Exception as error:
            told.append(f"{kind} {type(error).__name__}")
print("requests_oauth2client:", ", ".join(told))
PROGRAM
cat > program.mjs <<'PROGRAM'
import * as client from 'openid-client';

const metadata = { issuer: 'https://login.example', token_endpoint: 'https://login.example/token' };
const configuration = new client.Configuration(metadata, 'web', 'secret');
const told = [];
for (const kind of ['Bearer', 'N_A']) {
  configuration[client.customFetch] = async () => Response.json({
    access_token: 'e30.e30.c2ln', token_type: kind, issued_token_type: 'urn:ietf:params:oauth:token-type:id_token' });
  const grant = 'urn:ietf:params:oauth:grant-type:token-exchange';
  const taken = client.genericGrantRequest(configuration, grant, { subject_token: 'a' });
  told.push(`${kind} ${await taken.then(() => 'taken', (error) => error.name)}`);
}
console.log('openid-client:', told.join(', '));
PROGRAM
cat > Program.java <<'PROGRAM'
import java.util.Map;
import org.springframework.security.oauth2.core.endpoint.DefaultMapOAuth2AccessTokenResponseConverter;

public class Program {
    public static void main(String[] arguments) {
        System.out.println("Spring Security: Bearer " + told("Bearer") + ", N_A " + told("N_A"));
    }

    static String told(String kind) {
        try {
            new DefaultMapOAuth2AccessTokenResponseConverter().convert(Map.of("access_token", "e30.e30.c2ln",
                "token_type", kind, "issued_token_type", "urn:ietf:params:oauth:token-type:id_token"));
            return "taken";
        } catch (RuntimeException refused) {
            return refused.getClass().getSimpleName();
        }
    }
}
PROGRAM
(python/bin/python program.py; node program.mjs; java -cp 'jars/*' Program.java) | tee seen

diff seen - <<'EXPECTED'
requests_oauth2client: Bearer taken, N_A InvalidTokenResponse
openid-client: Bearer taken, N_A taken
Spring Security: Bearer taken, N_A IllegalArgumentException
EXPECTED
