package shop;

import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.oauth2.core.DelegatingOAuth2TokenValidator;
import org.springframework.security.oauth2.jwt.JwtClaimValidator;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtIssuerValidator;
import org.springframework.security.oauth2.jwt.JwtTimestampValidator;
import org.springframework.security.oauth2.jwt.JwtTypeValidator;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@Configuration
@RestController
class Api {
    @GetMapping("/api/orders")
    List<String> orders() {
        return List.of("a teapot");
    }

    @Bean
    @Order(1)
    SecurityFilterChain forTokens(HttpSecurity http) throws Exception {
        return http
            .securityMatcher("/api/**")
            .authorizeHttpRequests(request -> request.anyRequest().hasAuthority("SCOPE_orders.read"))
            .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()).dPoP(Customizer.withDefaults()))
            .build();
    }

    @Bean
    JwtDecoder accessTokens(@Value("${spring.security.oauth2.client.provider.gatepost.issuer-uri}") String issuer) {
        // Spring expects the `typ` JWT. Access tokens of Gatepost have at+jwt (RFC 9068), and ID tokens do not.
        var decoder = NimbusJwtDecoder.withIssuerLocation(issuer).validateType(false).build();
        var audience = new JwtClaimValidator<List<String>>("aud",
            names -> names != null && names.contains("https://api.example.com"));
        decoder.setJwtValidator(new DelegatingOAuth2TokenValidator<>(
            new JwtTypeValidator("at+jwt"), new JwtIssuerValidator(issuer), new JwtTimestampValidator(), audience));
        return decoder;
    }
}
