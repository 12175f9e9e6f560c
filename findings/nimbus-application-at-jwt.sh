#!/usr/bin/env bash
# Guess: a verifier that is set to take access tokens of the type `at+jwt` takes `application/at+jwt`, the long form of the
# same: RFC 7515, section 4.1.9, has a recipient add `application/` to a type without a slash, and RFC 9068, section 4, names
# both.
# So it is: Nimbus compares the texts, without case, and refuses the long form; so does Spring's JwtTypeValidator. Both must
# be told of both. Spring's createAtJwtValidator takes either. A provider writes the short form.
# Versions: nimbus-jose-jwt 10.9, spring-security-oauth2-jose 7.1.2, Java 17. Seen:
# at+jwt: Nimbus taken, JwtTypeValidator taken, createAtJwtValidator taken
# AT+JWT: Nimbus taken, JwtTypeValidator taken, createAtJwtValidator taken
# application/at+jwt: Nimbus refused, JwtTypeValidator refused, createAtJwtValidator taken
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > pom.xml <<'PROGRAM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.nimbusds</groupId><artifactId>nimbus-jose-jwt</artifactId><version>10.9</version></dependency>
    <dependency>
      <groupId>org.springframework.security</groupId><artifactId>spring-security-oauth2-jose</artifactId>
      <version>7.1.2</version>
    </dependency>
  </dependencies>
</project>
PROGRAM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=jars

cat > Program.java <<'PROGRAM'
import com.nimbusds.jose.JOSEObjectType;
import com.nimbusds.jose.proc.BadJOSEException;
import com.nimbusds.jose.proc.DefaultJOSEObjectTypeVerifier;
import com.nimbusds.jose.proc.SecurityContext;
import java.time.Instant;
import java.util.List;
import org.springframework.security.oauth2.core.OAuth2TokenValidator;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.oauth2.jwt.JwtTypeValidator;
import org.springframework.security.oauth2.jwt.JwtValidators;

public class Program {
    public static void main(String[] arguments) {
        var access = JwtValidators.createAtJwtValidator()
            .issuer("https://login.example").audience("api").clientId("web").build();
        for (String type : new String[] {"at+jwt", "AT+JWT", "application/at+jwt"}) {
            String nimbus = "taken";
            try {
                new DefaultJOSEObjectTypeVerifier<SecurityContext>(new JOSEObjectType("at+jwt"))
                    .verify(new JOSEObjectType(type), null);
            } catch (BadJOSEException refused) {
                nimbus = "refused";
            }
            Jwt token = Jwt.withTokenValue("token").header("alg", "RS256").header("typ", type)
                .issuer("https://login.example").subject("ada").audience(List.of("api")).claim("client_id", "web")
                .jti("1").issuedAt(Instant.now()).expiresAt(Instant.now().plusSeconds(60)).build();
            System.out.println(type + ": Nimbus " + nimbus + ", JwtTypeValidator "
                + told(new JwtTypeValidator("at+jwt"), token) + ", createAtJwtValidator " + told(access, token));
        }
    }

    static String told(OAuth2TokenValidator<Jwt> validator, Jwt token) {
        return validator.validate(token).hasErrors() ? "refused" : "taken";
    }
}
PROGRAM
java -cp 'jars/*' Program.java 2>/dev/null | tee seen

diff seen - <<'EXPECTED'
at+jwt: Nimbus taken, JwtTypeValidator taken, createAtJwtValidator taken
AT+JWT: Nimbus taken, JwtTypeValidator taken, createAtJwtValidator taken
application/at+jwt: Nimbus refused, JwtTypeValidator refused, createAtJwtValidator taken
EXPECTED
