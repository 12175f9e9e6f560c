//! The request that sends a browser upstream (OpenID Connect Core §3.1.2.1, RFC 7636 §4.3), and the addresses of ours
//! that a provider must know.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::super::authorize_response::with_query;
use super::super::discovery::endpoint_url;
use super::super::scope::ScopeSet;
use super::super::secret::SecretText;
use super::Ask;

#[derive(Clone, Copy, Debug)]
pub struct AuthorizationRequest<'a> {
    /// `authorization_endpoint`; a query of its own stays.
    pub endpoint: &'a str,
    pub client_id: &'a str,
    pub redirect_uri: &'a str,
    pub scope: &'a ScopeSet,
    pub state: &'a str,
    /// `nonce`; `None` where there will be no ID token to carry it.
    pub nonce: Option<&'a str>,
    /// What `code_challenge` is the hash of.
    pub code_verifier: &'a SecretText,
    pub acr_map: &'a BTreeMap<String, String>,
    pub ask: &'a Ask,
}

/// Where providers send browsers back to: the `redirect_uri` to register there.
pub fn callback_url(base_url: &str, provider: &str) -> String {
    endpoint_url(base_url, &format!("/external/{provider}/callback"))
}

/// Where a provider tells that a session there is over: the `backchannel_logout_uri` to register there.
pub fn logout_url(base_url: &str, provider: &str) -> String {
    endpoint_url(base_url, &format!("/external/{provider}/logout"))
}

/// Where signing out there ends: the `post_logout_redirect_uri` to register there.
pub fn signed_out_url(base_url: &str, provider: &str) -> String {
    endpoint_url(base_url, &format!("/external/{provider}/signed-out"))
}

impl AuthorizationRequest<'_> {
    pub fn address(&self) -> String {
        with_query(self.endpoint, &self.parameters())
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let scope = self.scope.to_string();
        let prompt = prompt(self.ask);
        let members = [
            ("response_type", Some(String::from("code"))),
            ("client_id", Some(self.client_id.to_owned())),
            ("redirect_uri", Some(self.redirect_uri.to_owned())),
            ("scope", Some(scope).filter(|scope| !scope.is_empty())),
            ("state", Some(self.state.to_owned())),
            ("nonce", self.nonce.map(str::to_owned)),
            ("code_challenge", Some(code_challenge(self.code_verifier))),
            ("code_challenge_method", Some(String::from("S256"))),
            ("prompt", Some(prompt).filter(|prompt| !prompt.is_empty())),
            ("max_age", self.ask.max_age.map(|seconds| seconds.to_string())),
            ("login_hint", self.ask.login_hint.clone()),
            ("ui_locales", self.ask.ui_locales.clone()),
            ("acr_values", Some(self.acr_values()).filter(|values| !values.is_empty())),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Under their names, what would do here.
    fn acr_values(&self) -> String {
        let would_do = self.acr_map.iter().filter(|(_, ours)| self.ask.acr.contains(*ours));
        would_do.map(|(theirs, _)| theirs.as_str()).collect::<Vec<_>>().join(" ")
    }
}

fn prompt(ask: &Ask) -> String {
    let words = [(ask.login, "login"), (ask.select_account, "select_account")];
    let words: Vec<&str> = words.into_iter().filter(|(wanted, _)| *wanted).map(|(_, word)| word).collect();
    words.join(" ")
}

fn code_challenge(code_verifier: &SecretText) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(code_verifier.expose()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::super::parameters::Parameters;
    use super::*;

    fn address(endpoint: &str, scope: &str, nonce: Option<&str>, ask: &Ask) -> String {
        // RFC 7636 appendix B.
        let code_verifier = SecretText::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let scope = ScopeSet::parse(scope).unwrap_or_default();
        let acr_map =
            [("mfa", "2"), ("phr", "2"), ("pwd", "1")].map(|(there, here)| (there.to_owned(), here.to_owned()));
        let acr_map = BTreeMap::from(acr_map);
        let request = AuthorizationRequest {
            endpoint,
            client_id: "gatepost",
            redirect_uri: "https://op.example/external/corp/callback",
            scope: &scope,
            state: "a state",
            nonce,
            code_verifier: &code_verifier,
            acr_map: &acr_map,
            ask,
        };
        request.address()
    }

    #[test]
    fn a_plain_request_says_this_and_no_more() {
        let expected = "https://up.example/auth?response_type=code&client_id=gatepost\
                        &redirect_uri=https%3A%2F%2Fop.example%2Fexternal%2Fcorp%2Fcallback&scope=openid%20email\
                        &state=a%20state&nonce=n&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
                        &code_challenge_method=S256";
        assert_eq!(address("https://up.example/auth", "openid email", Some("n"), &Ask::default()), expected);
    }

    #[test]
    fn what_was_asked_here_is_asked_there() {
        let ask = Ask {
            login: true,
            presence: false,
            select_account: true,
            max_age: Some(0),
            login_hint: Some(String::from("a&b=c@example.com")),
            ui_locales: Some(String::from("de fr")),
            acr: BTreeSet::from([String::from("2"), String::from("3")]),
        };
        let expected = "&prompt=login%20select_account&max_age=0&login_hint=a%26b%3Dc%40example.com&ui_locales=de%20fr\
                        &acr_values=mfa%20phr";
        assert!(address("https://up.example/auth", "openid", Some("n"), &ask).ends_with(expected));
        let out_of_its_reach = BTreeSet::from([String::from("3"), String::from("mfa")]);
        let login = Ask { login: true, acr: out_of_its_reach, ..Ask::default() };
        assert!(address("https://up.example/auth", "openid", None, &login).ends_with("&prompt=login"));
    }

    #[test]
    fn an_endpoint_keeps_its_own_query_and_an_empty_scope_is_left_out() {
        let told = address("https://up.example/auth?p=b2c_1&x=%20", "", None, &Ask::default());
        assert!(told.starts_with("https://up.example/auth?p=b2c_1&x=%20&response_type=code&client_id="), "{told}");
        assert!(!told.contains("scope=") && !told.contains("nonce="), "{told}");
    }

    proptest! {
        #[test]
        fn whatever_is_asked_adds_no_parameter(hint in "[^\0]{1,40}", locales in "[^\0]{1,40}") {
            let ask = Ask { login_hint: Some(hint.clone()), ui_locales: Some(locales.clone()), ..Ask::default() };
            let told = address("https://up.example/auth", "openid", Some("n"), &ask);
            let (_, query) = told.split_once('?').unwrap();
            let read = Parameters::parse(query.as_bytes()).unwrap();
            prop_assert_eq!(read.iter().count(), 10);
            prop_assert_eq!(read.single("login_hint").unwrap(), Some(hint.as_str()));
            prop_assert_eq!(read.single("ui_locales").unwrap(), Some(locales.as_str()));
        }
    }
}
