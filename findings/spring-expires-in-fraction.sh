#!/usr/bin/env bash
# Guess: a client that reads `expires_in` either takes the number 3600.0, which is 3600 to JSON and how some languages
# print it, or refuses the answer.
# So it is: Spring Security takes the answer and, without a word, has the access token expire after one second, so that it
# asks for another one on each use; the text "3600" is an hour to it. A provider writes a whole number.
# Versions: spring-security-oauth2-client 7.1.2, jackson-databind 3.1.7, Java 17. Seen:
# 3600: 3600 s
# "3600": 3600 s
# 3600.0: 1 s
# 3.6e3: 1 s
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > pom.xml <<'PROGRAM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.springframework.security</groupId><artifactId>spring-security-oauth2-client</artifactId>
      <version>7.1.2</version>
    </dependency>
    <dependency>
      <groupId>tools.jackson.core</groupId><artifactId>jackson-databind</artifactId><version>3.1.7</version>
    </dependency>
  </dependencies>
</project>
PROGRAM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=jars

cat > Program.java <<'PROGRAM'
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.springframework.security.oauth2.client.endpoint.OAuth2ClientCredentialsGrantRequest;
import org.springframework.security.oauth2.client.endpoint.RestClientClientCredentialsTokenResponseClient;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.core.AuthorizationGrantType;

public class Program {
    static String lifetime;

    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            String text = "{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"expires_in\":" + lifetime + "}";
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, text.length());
            exchange.getResponseBody().write(text.getBytes());
            exchange.close();
        });
        server.start();
        var registration = ClientRegistration.withRegistrationId("login").clientId("web").clientSecret("secret")
            .tokenUri("http://127.0.0.1:" + server.getAddress().getPort() + "/token")
            .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS).build();
        for (String each : new String[] {"3600", "\"3600\"", "3600.0", "3.6e3"}) {
            lifetime = each;
            var token = new RestClientClientCredentialsTokenResponseClient()
                .getTokenResponse(new OAuth2ClientCredentialsGrantRequest(registration)).getAccessToken();
            long seconds = Duration.between(token.getIssuedAt(), token.getExpiresAt()).toSeconds();
            System.out.println(each + ": " + seconds + " s");
        }
        server.stop(0);
    }
}
PROGRAM
java -cp 'jars/*' Program.java 2>/dev/null | tee seen

diff seen - <<'EXPECTED'
3600: 3600 s
"3600": 3600 s
3600.0: 1 s
3.6e3: 1 s
EXPECTED
