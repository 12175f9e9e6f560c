#!/usr/bin/env bash
# Guess: an API with Spring Security, whose library for JWTs verifies EdDSA, takes proofs of possession by it; and a patch
# release takes the proofs that the one before took.
# So it is: it takes no proof by EdDSA. And 7.1.2 takes none that is 30 seconds old, where 7.1.0 takes a minute: behind a
# clock that is 35 seconds off nobody gets in any more.
# Versions: spring-security-oauth2-jose 7.1.0 and 7.1.2, nimbus-jose-jwt 10.9, Java 17. Seen:
# 7.1.0: ES256 now taken, ES256 35 s old taken, Ed25519 now refused
# 7.1.2: ES256 now taken, ES256 35 s old refused, Ed25519 now refused
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

for version in 7.1.0 7.1.2; do
    mkdir "$version"
    cat > "$version/pom.xml" <<PROGRAM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.springframework.security</groupId><artifactId>spring-security-oauth2-jose</artifactId><version>$version</version></dependency>
    <dependency><groupId>com.google.crypto.tink</groupId><artifactId>tink</artifactId><version>1.19.0</version></dependency>
  </dependencies>
</project>
PROGRAM
    mvn --quiet --batch-mode --color never --file "$version/pom.xml" dependency:copy-dependencies -DoutputDirectory=jars
done

cat > Program.java <<'PROGRAM'
import com.nimbusds.jose.*;
import com.nimbusds.jose.crypto.*;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.*;
import com.nimbusds.jwt.*;
import java.time.Instant;
import java.util.*;
import org.springframework.security.oauth2.jwt.*;

public class Program {
    static void judge(String name, JWSAlgorithm algorithm, JWK key, JWSSigner signer, int age) throws Exception {
        var header = new JWSHeader.Builder(algorithm).type(new JOSEObjectType("dpop+jwt")).jwk(key.toPublicJWK()).build();
        var proof = new SignedJWT(header, new JWTClaimsSet.Builder()
            .claim("htm", "POST").claim("htu", "https://api.example.com/orders").jwtID(UUID.randomUUID().toString())
            .issueTime(Date.from(Instant.now().minusSeconds(age))).build());
        proof.sign(signer);
        var context = DPoPProofContext.withDPoPProof(proof.serialize()).method("POST").targetUri("https://api.example.com/orders").build();
        try {
            new DPoPProofJwtDecoderFactory().createDecoder(context).decode(proof.serialize());
            System.out.println(name + ": taken");
        } catch (JwtException refusal) {
            System.out.println(name + ": refused");
            System.err.println(refusal.getMessage());
        }
    }

    public static void main(String[] arguments) throws Exception {
        var p256 = new ECKeyGenerator(Curve.P_256).generate();
        for (int age : new int[] {0, 35}) {
            judge(age == 0 ? "ES256 now" : "ES256 " + age + " s old", JWSAlgorithm.ES256, p256, new ECDSASigner(p256), age);
        }
        var ed25519 = new OctetKeyPairGenerator(Curve.Ed25519).generate();
        judge("Ed25519 now", JWSAlgorithm.EdDSA, ed25519, new Ed25519Signer(ed25519), 0);
    }
}
PROGRAM
for version in 7.1.0 7.1.2; do
    echo "$version"
    java -cp "$version/jars/*" Program.java
done | tee seen

diff seen - <<'EXPECTED'
7.1.0
ES256 now: taken
ES256 35 s old: taken
Ed25519 now: refused
7.1.2
ES256 now: taken
ES256 35 s old: refused
Ed25519 now: refused
EXPECTED
