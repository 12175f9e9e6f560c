//! The provider's metadata (OpenID Connect Discovery §3, RFC 8414 §2). One document serves both. It
//! is made from the tables that validate requests, and has only names that are registered with
//! IANA.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::authorize::pkce::CodeChallengeMethod;
use crate::login::passkey;
use crate::token::claims::present;
use crate::token::dpop_proof;
use crate::token::id_jag::{GRANT_PROFILE, ID_JAG_TYPE};
use crate::words::acr_values;
use crate::words::catalogue::Catalogue;
use crate::words::client::{GrantType, SigningAlgorithm};
use crate::words::response_type::{ResponseMode, ResponseType};
use crate::words::scope::ScopeKind;
use crate::words::strength::Strength;

/// Below the base URL's own path.
pub const AUTHORIZE_PATH: &str = "/connect/authorize";
pub const TOKEN_PATH: &str = "/connect/token";
pub const PUSHED_REQUEST_PATH: &str = "/connect/par";
pub const REVOCATION_PATH: &str = "/connect/revocation";
pub const INTROSPECTION_PATH: &str = "/connect/introspect";
pub const DEVICE_AUTHORIZATION_PATH: &str = "/connect/deviceauthorization";
pub const END_SESSION_PATH: &str = "/connect/endsession";
pub const USERINFO_PATH: &str = "/connect/userinfo";
pub const CHECK_SESSION_PATH: &str = "/connect/checksession";
pub const JWKS_PATH: &str = "/.well-known/openid-configuration/jwks";
/// The same document, where some libraries look without reading the metadata.
pub const JWKS_JSON_PATH: &str = "/.well-known/jwks.json";
/// What is registered, for programs.
pub const REGISTRATION_EXPORT_PATH: &str = "/admin/export";
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// It comes before the path of the base URL, not after it (RFC 8414 §3.1).
pub const AUTHORIZATION_SERVER_PATH: &str = "/.well-known/oauth-authorization-server";

/// The claims of an ID token besides those of its user.
const PROTOCOL_CLAIMS: [&str; 12] = [
    "sub",
    "iss",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "amr",
    "acr",
    "sid",
    "nonce",
    "at_hash",
    "c_hash",
];

const PROMPT_VALUES: [&str; 4] = ["none", "login", "consent", "select_account"];

const CONFIDENTIAL_METHODS: [&str; 3] = [
    "client_secret_basic",
    "client_secret_post",
    "private_key_jwt",
];
const AUTHENTICATION_METHODS: [&str; 4] = [
    "client_secret_basic",
    "client_secret_post",
    "private_key_jwt",
    "none",
];

pub struct Provider<'a> {
    /// Every address begins with it, byte for byte.
    pub issuer: &'a str,
    pub catalogue: &'a Catalogue,
    pub takes_pushed_requests: bool,
    pub id_jag: bool,
    /// The grant types of this binary and of the operator.
    pub extension_grants: &'a [String],
    /// There is a key for each.
    pub signing_algorithms: &'a [SigningAlgorithm],
    /// BCP 47
    pub ui_locales: &'a [&'a str],
}

/// The address of a path below the issuer. A slash at the end of the issuer counts once.
pub fn endpoint_url(issuer: &str, path: &str) -> String {
    format!("{}{path}", issuer.trim_end_matches('/'))
}

pub fn document(provider: &Provider<'_>) -> Value {
    let Provider {
        issuer,
        catalogue,
        takes_pushed_requests,
        id_jag,
        extension_grants,
        signing_algorithms,
        ui_locales,
    } = provider;
    let address = |path| endpoint_url(issuer, path);
    // Each algorithm that signs here also verifies here. The client's registration says which of
    // them it may use.
    let assertions = SigningAlgorithm::ALL
        .map(SigningAlgorithm::as_str)
        .into_iter()
        .chain([SigningAlgorithm::ED25519]);
    let assertions: Vec<&str> = assertions.collect();
    let grant_types = grant_types(extension_grants);
    let shown = || {
        catalogue
            .scopes
            .values()
            .filter(|scope| scope.show_in_discovery)
    };
    let identity = shown().filter(|scope| scope.kind == ScopeKind::Identity);
    let released: BTreeSet<&str> = identity
        .flat_map(|scope| &scope.claims)
        .map(String::as_str)
        .collect();
    let released = released
        .into_iter()
        .filter(|name| !PROTOCOL_CLAIMS.contains(name));
    let reached = |acr: &&str| {
        *acr != Strength::PhishingResistant.as_str() || passkey::host(issuer).is_some()
    };
    let s256 = CodeChallengeMethod::S256.as_str();
    let members = json!({
        "issuer": issuer,
        "authorization_endpoint": address(AUTHORIZE_PATH),
        "token_endpoint": address(TOKEN_PATH),
        "userinfo_endpoint": address(USERINFO_PATH),
        "jwks_uri": address(JWKS_PATH),
        "revocation_endpoint": address(REVOCATION_PATH),
        "introspection_endpoint": address(INTROSPECTION_PATH),
        "device_authorization_endpoint": address(DEVICE_AUTHORIZATION_PATH),
        "end_session_endpoint": address(END_SESSION_PATH),
        "check_session_iframe": address(CHECK_SESSION_PATH),
        "scopes_supported": shown().map(|scope| scope.name.as_str()).collect::<Vec<&str>>(),
        "claims_supported": PROTOCOL_CLAIMS.into_iter().chain(released).collect::<Vec<&str>>(),
        "claim_types_supported": ["normal"],
        "subject_types_supported": ["public"],
        "response_types_supported":
            ResponseType::ALL.map(|response_type| response_type.to_string()),
        "response_modes_supported": ResponseMode::ALL.map(ResponseMode::as_str),
        "grant_types_supported": grant_types,
        "prompt_values_supported": PROMPT_VALUES,
        "code_challenge_methods_supported":
            if catalogue.plain_pkce {
                vec![CodeChallengeMethod::Plain.as_str(), s256]
            } else {
                vec![s256]
            },
        "id_token_signing_alg_values_supported":
            signing_algorithms.iter().copied().map(SigningAlgorithm::as_str).collect::<Vec<&str>>(),
        "token_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
        "token_endpoint_auth_signing_alg_values_supported": assertions,
        "revocation_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
        "revocation_endpoint_auth_signing_alg_values_supported": assertions,
        "introspection_endpoint_auth_methods_supported": CONFIDENTIAL_METHODS,
        "introspection_endpoint_auth_signing_alg_values_supported": assertions,
        "dpop_signing_alg_values_supported": dpop_proof::ALGORITHMS,
        "acr_values_supported":
            acr_values::supported(catalogue).into_iter().filter(reached).collect::<Vec<&str>>(),
        "ui_locales_supported": ui_locales,
        "authorization_response_iss_parameter_supported": true,
        "claims_parameter_supported": true,
        "request_parameter_supported": false,
        "request_uri_parameter_supported": false,
        "frontchannel_logout_supported": true,
        "frontchannel_logout_session_supported": true,
        "backchannel_logout_supported": true,
        "backchannel_logout_session_supported": true,
        "pushed_authorization_request_endpoint":
            takes_pushed_requests.then(|| address(PUSHED_REQUEST_PATH)),
        "client_id_metadata_document_supported": catalogue.metadata_documents.then_some(true),
        "identity_chaining_requested_token_types_supported": id_jag.then_some([ID_JAG_TYPE]),
        "authorization_grant_profiles_supported": id_jag.then_some([GRANT_PROFILE]),
    });
    Value::Object(present(members))
}

/// The grant types of the token endpoint, and `implicit`, which stands for tokens straight from
/// the authorization endpoint (RFC 7591 §2).
fn grant_types(extension_grants: &[String]) -> Vec<&str> {
    let built_in = GrantType::BUILT_IN.iter();
    let at_token_endpoint = built_in.filter(|one| **one != GrantType::Implicit);
    at_token_endpoint
        .map(GrantType::as_str)
        .chain(extension_grants.iter().map(String::as_str))
        .chain([GrantType::Implicit.as_str()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples::{catalogue, registered_scope};

    fn provider(catalogue: &Catalogue) -> Provider<'_> {
        Provider {
            issuer: "https://op.example/idp/",
            catalogue,
            takes_pushed_requests: true,
            id_jag: false,
            extension_grants: &[],
            signing_algorithms: &[SigningAlgorithm::Es256],
            ui_locales: &["en", "de"],
        }
    }

    fn metadata(catalogue: &Catalogue) -> Value {
        document(&provider(catalogue))
    }

    #[test]
    fn addresses_begin_with_the_issuer_and_only_keys_that_are_there_are_named() {
        let document = metadata(&catalogue());
        assert_eq!(document["issuer"], json!("https://op.example/idp/"));
        assert_eq!(
            document["token_endpoint"],
            json!("https://op.example/idp/connect/token")
        );
        assert_eq!(
            document["id_token_signing_alg_values_supported"],
            json!(["ES256"])
        );
    }

    #[test]
    fn claims_are_those_of_the_protocol_and_of_identity_scopes_that_are_shown() {
        let mut catalogue = catalogue();
        let shown = |catalogue: &Catalogue| {
            let claims = metadata(catalogue)["claims_supported"].clone();
            let claims = claims.as_array().unwrap().clone();
            let count = |name: &str| claims.iter().filter(|claim| **claim == name).count();
            ["sub", "role", "name", "price"].map(count)
        };
        let price = registered_scope("prices", ScopeKind::Resource, &["price"], &[]);
        catalogue.scopes.insert(price.name.clone(), price);
        assert_eq!(shown(&catalogue), [1, 1, 1, 0], "no claim of a resource");
        catalogue.scopes.get_mut("roles").unwrap().show_in_discovery = false;
        assert_eq!(shown(&catalogue), [1, 0, 1, 0]);
    }

    #[test]
    fn passkeys_are_offered_where_browsers_have_them() {
        let catalogue = catalogue();
        for (issuer, acr_values) in [
            ("https://op.example", json!(["1", "2", "phr"])),
            ("http://127.0.0.1:8080", json!(["1", "2"])),
        ] {
            let document = document(&Provider {
                issuer,
                ..provider(&catalogue)
            });
            assert_eq!(document["acr_values_supported"], acr_values, "{issuer}");
        }
    }
}
