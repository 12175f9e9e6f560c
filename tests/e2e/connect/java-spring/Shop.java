package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.oidc.web.logout.OidcClientInitiatedLogoutSuccessHandler;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.servlet.util.matcher.PathPatternRequestMatcher;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Shop {
    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    @GetMapping(path = "/", produces = "text/plain;charset=UTF-8") // as HTML, a name could be a script
    String home(@AuthenticationPrincipal OidcUser user) {
        return "Signed in as " + user.getFullName();
    }

    @GetMapping("/signed-out")
    String signedOut() {
        return "Not signed in";
    }

    @Bean
    SecurityFilterChain forPeople(HttpSecurity http, ClientRegistrationRepository clients) throws Exception {
        var atGatepost = new OidcClientInitiatedLogoutSuccessHandler(clients);
        atGatepost.setPostLogoutRedirectUri("{baseUrl}/signed-out");
        return http
            .authorizeHttpRequests(request -> request.requestMatchers("/signed-out").permitAll().anyRequest().authenticated())
            .oauth2Login(login -> login.redirectionEndpoint(callback -> callback.baseUri("/callback")))
            .logout(logout -> logout
                .logoutRequestMatcher(PathPatternRequestMatcher.withDefaults().matcher("/logout"))
                .logoutSuccessHandler(atGatepost))
            .build();
    }
}
