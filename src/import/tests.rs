//! Tables of what they have and what it becomes here.

mod access;
mod closed;
mod losses;
mod moved;
mod realm;
mod refused;
mod sides;
mod unread;

use serde_json::json;

use super::row::MEMBERS;
use super::*;
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::words::instant::Instant;
use gatepost_registration::document::Document;
use gatepost_registration::references::Stored;
use gatepost_registration::strict_json;

/// Fails where `apply` would refuse the document.
fn assert_applicable(document: &Value, stored: &Stored) {
    let parsed = strict_json::parse(&document.to_string()).unwrap();
    let judged = Document::from_json(&parsed, &ClientDefaults::default(), stored);
    assert!(judged.is_ok(), "{judged:?}");
}

fn read(dump: Value) -> (Value, Vec<String>) {
    let issuers = [(String::from("Corp"), String::from("https://corp.example"))].into();
    identity_server::read(dump, issuers, Instant::from_seconds(1_800_000_000))
        .unwrap()
        .finish(true)
}

/// What a client becomes, which `apply` takes; and what is said of it.
fn client(members: Value) -> (Value, String) {
    let mut client = json!({"ClientId": "c", "AllowedScopes": ["openid"], "RequirePkce": true});
    client
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let (document, notes) = read(json!({"IdentityServer": {"Clients": [client]}}));
    let mut known = Stored::default();
    known.objects.extend([(
        (
            gatepost_protocol::registration::ObjectKind::IdentityProvider,
            String::from("Corp"),
        ),
        false,
    )]);
    assert_applicable(&document, &known);
    (document["clients"][0].clone(), notes.join("\n"))
}

const HASH: &str = "AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg==";
const SECRET: &str = "K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols=";

#[test]
fn what_a_client_of_theirs_says_a_client_of_ours_says() {
    let code = json!({"AllowedGrantTypes": ["authorization_code"], "RedirectUris": ["https://a.example/cb"]});
    let with = |members: Value| {
        let mut all = code.clone();
        all.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        all
    };
    for (there, pointer, here) in [
        (code.clone(), "/response_types", json!(["code"])),
        (code.clone(), "/require_pkce", json!(true)),
        (code.clone(), "/confidential", json!(true)),
        (
            with(json!({"RequirePkce": false})),
            "/require_pkce",
            Value::Null,
        ),
        (
            with(json!({"RequireClientSecret": "False"})),
            "/token_endpoint_auth_method",
            json!("none"),
        ),
        (
            with(json!({"ClientSecrets": [{"Value": SECRET}]})),
            "/secrets/0/sha256",
            json!(SECRET),
        ),
        (
            with(
                json!({"ClientSecrets": [{"Value": SECRET, "Expiration": "2030-01-31T00:00:00.123"}]}),
            ),
            "/secrets/0/expires_at",
            json!("2030-01-31T00:00:00Z"),
        ),
        (
            with(json!({"AllowOfflineAccess": 1})),
            "/scope",
            json!("openid offline_access"),
        ),
        (
            with(json!({"AllowOfflineAccess": "1"})),
            "/grant_types",
            json!(["authorization_code", "refresh_token"]),
        ),
        (
            with(json!({"AllowOfflineAccess": true})),
            "/refresh_token_idle_lifetime",
            json!(2_592_000),
        ),
        (
            with(json!({"AllowOfflineAccess": true, "RefreshTokenExpiration": "sliding"})),
            "/refresh_token_idle_lifetime",
            json!(1_296_000),
        ),
        (
            with(
                json!({"AllowOfflineAccess": true, "RefreshTokenExpiration": 0, "AbsoluteRefreshTokenLifetime": 0}),
            ),
            "/refresh_token_lifetime",
            json!(315_360_000),
        ),
        (
            with(json!({"AllowOfflineAccess": true, "RefreshTokenUsage": "ReUse"})),
            "/refresh_token_usage",
            json!("reuse"),
        ),
        (
            with(
                json!({"AllowOfflineAccess": true, "RefreshTokenUsage": 0, "RequireClientSecret": false}),
            ),
            "/refresh_token_usage",
            Value::Null,
        ),
        (
            with(json!({"RequireDPoP": true})),
            "/dpop_bound_access_tokens",
            json!(true),
        ),
        (
            with(json!({"RequirePushedAuthorization": 1})),
            "/require_pushed_authorization_requests",
            json!(true),
        ),
        (
            with(json!({"AccessTokenType": "1"})),
            "/access_token_type",
            json!("reference"),
        ),
        (
            with(json!({"AuthorizationCodeLifetime": 300})),
            "/authorization_code_lifetime",
            Value::Null,
        ),
        (
            with(json!({"AuthorizationCodeLifetime": 900})),
            "/authorization_code_lifetime",
            json!(600),
        ),
        (
            with(json!({"EnableLocalLogin": false})),
            "/identity_providers",
            json!(["Corp"]),
        ),
        (
            with(json!({"IdentityProviderRestrictions": ["Corp"]})),
            "/identity_providers",
            json!(["Corp", "local"]),
        ),
        (
            with(json!({"AlwaysSendClientClaims": true, "Claims": [{"Type": "a", "Value": "1"}]})),
            "/claims",
            json!({"client_a": "1"}),
        ),
        (
            with(
                json!({"AlwaysSendClientClaims": true, "Claims": [{"Type": "a", "Value": "1"}], "ClientClaimsPrefix": null}),
            ),
            "/claims",
            json!({"a": "1"}),
        ),
        (
            with(json!({"RedirectUris": ["https://*.example/cb"]})),
            "/response_types",
            json!([]),
        ),
        (
            with(json!({"RedirectUris": ["https://*.example/cb"]})),
            "/grant_types",
            json!([]),
        ),
        (
            with(json!({"AllowedScopes": ["openid", "gone"]})),
            "/scope",
            json!("openid"),
        ),
        (
            with(json!({"AllowedGrantTypes": ["implicit"]})),
            "/response_types",
            json!(["id_token"]),
        ),
        (
            with(json!({"AllowedGrantTypes": ["hybrid"], "AllowAccessTokensViaBrowser": true})),
            "/response_types",
            json!(["code id_token", "code token", "code id_token token"]),
        ),
        (
            json!({"AllowedGrantTypes": ["client_credentials"]}),
            "/client_credentials_sub",
            json!(false),
        ),
        (
            json!({"AllowedGrantTypes": ["client_credentials"], "RequireClientSecret": false}),
            "/grant_types",
            json!([]),
        ),
    ] {
        let (ours, notes) = client(there.clone());
        assert_eq!(
            ours.pointer(pointer).unwrap_or(&Value::Null),
            &here,
            "{there} {notes}"
        );
    }
}

#[test]
fn what_stays_behind_is_said() {
    for (there, note) in [
        (
            json!({"AllowedGrantTypes": ["custom"]}),
            "client c: a grant type of your own is left out",
        ),
        (
            json!({"AllowedGrantTypes": ["implicit"]}),
            "client c: implicit is left out: it has no redirect URI",
        ),
        (
            json!({"ClientSecrets": [{"Value": "clear"}]}),
            "a secret is left out: SharedSecret",
        ),
        (
            json!({"ClientSecrets": [{"Value": SECRET, "Type": "X509Name"}]}),
            "a secret is left out: X509Name",
        ),
        (
            json!({"RequireRequestObject": true}),
            "client c: RequireRequestObject is not taken over",
        ),
        (
            json!({"EnableLocalLogin": false}),
            "client c: EnableLocalLogin is false",
        ),
    ] {
        let (_, notes) = client(there);
        assert!(notes.contains(note), "{note}: {notes}");
    }
    let users: Vec<Value> = (0..12)
        .map(|id| json!({"Id": id, "UserName": format!("u{id}"), "TwoFactorEnabled": 1, "PasswordHash": HASH}))
        .collect();
    let (_, notes) = read(json!({"AspNetUsers": users}));
    assert_eq!(notes.len(), 6, "{notes:?}");
    assert!(notes[0].starts_with("people sign in by user name"));
    assert_eq!(notes[1], "");
    let heading = "WHAT TOKENS SAY OTHERWISE, OR WHO GETS THEM (lines: 1)";
    assert_eq!(notes[2], heading);
    assert!(
        notes[3].starts_with("user u0, user u1")
            && notes[3].contains("user u9 and 2 more: the second"),
        "{notes:?}"
    );
    assert!(
        notes[5].starts_with("people whose second factor did not move: 12. "),
        "{notes:?}"
    );
}

#[test]
fn a_key_becomes_jwks_where_there_is_no_secret() {
    let jwk = gatepost_protocol::words::samples::p256(1).to_jwk();
    let key = json!({"Type": "JWK", "Value": jwk.to_string()});
    let code = |secrets: Value| json!({"AllowedGrantTypes": ["authorization_code"], "RedirectUris": ["https://a.example/cb"], "ClientSecrets": secrets});
    let (ours, _) = client(code(json!([key])));
    assert_eq!(
        (&ours["token_endpoint_auth_method"], &ours["jwks"]),
        (&json!("private_key_jwt"), &json!({"keys": [jwk]}))
    );
    let (ours, lines) = client(code(json!([key, {"Value": SECRET}])));
    assert!(ours.get("jwks").is_none() && ours.get("secrets").is_some());
    assert!(
        lines.contains("client c: has a key beside its secret, which is left out"),
        "{lines}"
    );
}

#[test]
fn tables_from_before_4_are_read_under_their_old_names() {
    let dump = json!({
        "ApiResources": [{"Id": 7, "Name": "api", "Enabled": true}],
        "ApiClaims": [{"Id": 1, "Type": "name", "ApiResourceId": 7}],
        "ApiSecrets": [{"Id": 1, "Type": "SharedSecret", "Value": SECRET, "ApiResourceId": 7}],
        "ApiScopes": [{"Id": 3, "Name": "api.read", "ApiResourceId": 7}],
        "ApiScopeClaims": [{"Id": 1, "Type": "role", "ApiScopeId": 3}],
        "IdentityResources": [{"Id": 1, "Name": "me", "Enabled": true}],
        "IdentityClaims": [{"Id": 1, "Type": "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress", "IdentityResourceId": 1}],
        "Clients": [{"Id": 1, "ClientId": "c"}],
        "ClientScopes": [{"Id": 1, "Scope": "api.read", "ClientId": 1}, {"Id": 2, "Scope": "me", "ClientId": "1"}],
    });
    let (document, _) = read(dump);
    assert_eq!(
        document["resources"],
        json!([{"name": "api", "claims": ["name"], "secrets": [{"sha256": SECRET}]}])
    );
    let scope = json!([{"name": "api.read", "claims": ["role"], "resources": ["api"]}]);
    assert_eq!(document["resource_scopes"], scope);
    assert_eq!(
        document["identity_scopes"],
        json!([{"name": "me", "claims": ["email"]}])
    );
    assert_eq!(document["clients"][0]["scope"], "api.read me");
    assert_eq!(document["clients"][0]["access_token_typ"], "JWT");
}

#[test]
fn hashes_of_aspnetcores_own_tests_are_taken_or_refused() {
    // Theirs of "my password", then those that they call malformed.
    for (hash, beginning) in [
        (
            "AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg==",
            "$pbkdf2$i=1000,l=32$",
        ),
        (
            "AQAAAAAAAAD6AAAAEAhftMyfTJylOlZT+eEotFXd1elee8ih5WsjXaR3PA9M",
            "$pbkdf2$i=250,l=16$",
        ),
        (
            "AQAAAAEAA9CQAAAAIESkQuj2Du8Y+kbc5lcN/W/3NiAZFEm11P27nrSN5/tId+bR1SwV8CO1Jd72r4C08OLvplNlCDc3oQZ8efcW+jQ=",
            "$pbkdf2-sha256$i=250000,l=32$",
        ),
        (
            "AQAAAAIAAAAyAAAAEOMwvh3+FZxqkdMBz2ekgGhwQ4B6pZWND6zgESBuWiHw",
            "$pbkdf2-sha512$i=50,l=16$",
        ),
        (
            "AQAAAAIAAAD6AAAAIJbVi5wbMR+htSfFp8fTw8N8GOS/Sje+S/4YZcgBfU7EQuqv4OkVYmc4VJl9AGZzmRTxSkP7LtVi9IWyUxX8IAAfZ8v+ZfhjCcudtC1YERSqE1OEdXLW9VukPuJWBBjLuw==",
            "$pbkdf2-sha512$i=250,l=64$",
        ),
        ("", ""),
        ("not base64", ""),
        ("AA==", ""),
        ("AQAAAAAAAAD6AAAAEAhftMyfTJylOlZT", ""),
        (
            "AQAAAAMAAAD6AAAAEAhftMyfTJylOlZT+eEotFXd1elee8ih5WsjXaR3PA9M",
            "",
        ),
        (
            "AQAAAAAAAAAAAAAAEAhftMyfTJylOlZT+eEotFXd1elee8ih5WsjXaR3PA9M",
            "",
        ),
        (
            "AQAAAAAAAAD6/////whftMyfTJylOlZT+eEotFXd1elee8ih5WsjXaR3PA9M",
            "",
        ),
        (
            "AgAAAAAAAAD6AAAAEAhftMyfTJylOlZT+eEotFXd1elee8ih5WsjXaR3PA9M",
            "",
        ),
    ] {
        let phc = identity_server::people::phc(hash).unwrap_or_default();
        assert!(
            phc.starts_with(beginning) && phc.is_empty() == beginning.is_empty(),
            "{hash}: {phc}"
        );
    }
}

#[test]
fn people_keep_what_their_tables_and_claims_say() {
    let claim =
        |name: &str, value: &str| json!({"UserId": "u", "ClaimType": name, "ClaimValue": value});
    let dump = json!({
        "AspNetUsers": [{"Id": "u", "UserName": "ada", "Email": "a@x.example", "EmailConfirmed": 1, "LockoutEnd": "2099-01-01T00:00:00+00:00"},
                        {"Id": "v", "UserName": null, "LockoutEnd": "2099-01-01", "LockoutEnabled": false}],
        "AspNetRoles": [{"Id": "1", "Name": "admin"}],
        "AspNetUserRoles": [{"UserId": "u", "RoleId": 1}],
        "AspNetUserClaims": [
            claim("email", "b@x.example"), claim("phone_number_verified", "True"), claim("team", "a"), claim("team", "b"), claim("team", "b"),
            claim("http://schemas.microsoft.com/ws/2008/06/identity/claims/role", "editor"), claim("address", "{\"locality\": \"Here\"}"),
            claim("updated_at", "7"), claim("iss", "x"), claim("name", "Ada"), claim("birthdate", "")
        ],
        "AspNetUserLogins": [{"UserId": "u", "LoginProvider": "Corp", "ProviderKey": 7}, {"UserId": "v", "LoginProvider": "Google", "ProviderKey": "8"}],
    });
    let (document, notes) = read(dump);
    let claims = json!({
        "email": "a@x.example", "email_verified": true, "phone_number_verified": true, "team": ["a", "b"], "role": ["editor", "admin"],
        "address": {"locality": "Here"}, "updated_at": 7, "name": "Ada", "birthdate": "",
    });
    let ada = json!({
        "sub": "u", "username": "ada", "enabled": false, "claims": claims,
        "identities": [{"issuer": "https://corp.example", "subject": "7"}],
    });
    let nameless = json!({
        "sub": "v", "username": null, "enabled": true,
        "identities": [{"issuer": "https://accounts.google.com", "subject": "8"}],
    });
    assert_eq!(document["users"], json!([ada, nameless]));
    for note in [
        "user ada: disabled, as locked out",
        "user ada: left out of claims: iss",
    ] {
        assert!(
            notes.iter().any(|line| line.starts_with(note)),
            "{note}: {notes:?}"
        );
    }
}

#[test]
fn each_line_of_the_tables_says_what_becomes_of_a_member() {
    let mut seen = 0;
    for text in MEMBERS.split("\n\n") {
        let (title, lines) = text.split_once('\n').unwrap();
        assert_eq!(
            table(title).count(),
            lines.lines().count(),
            "{title}: three words in each line"
        );
        for [ours, _, how] in table(title) {
            let known = ["text", "secret", "lifetime", "flag=true", "flag=false"].contains(&how)
                || how.starts_with("texts=")
                || how.starts_with("text=");
            assert!(known, "{title}: {ours} {how}");
        }
        let reader = [
            include_str!("identity_server.rs"),
            include_str!("identity_server/people.rs"),
            include_str!("keycloak.rs"),
            include_str!("keycloak/attributes.rs"),
            include_str!("keycloak/mappers.rs"),
            include_str!("keycloak/people.rs"),
            include_str!("keycloak/providers.rs"),
        ]
        .concat();
        assert!(
            reader.contains(&format!("\"{title}\"")),
            "nobody reads {title}"
        );
        seen += 1;
    }
    assert_eq!(seen, 15);
}

#[test]
fn an_identity_provider_of_duende_or_keycloak_moves_with_its_secret_where_that_is_clear() {
    let duende = |secret: &str| {
        let properties = json!({"Authority": "https://x.example", "ClientId": "us", "ClientSecret": secret, "Scope": "openid"});
        let row = json!({"Id": 1, "Scheme": "x", "DisplayName": "X", "Enabled": true, "Type": "oidc", "Properties": properties.to_string()});
        let login = json!({"UserId": "u", "LoginProvider": "x", "ProviderKey": "7"});
        let saml = json!({"Id": 2, "Scheme": "y", "Type": "saml", "Properties": "{}"});
        read(
            json!({"IdentityProviders": [row, saml], "AspNetUsers": [{"Id": "u", "UserName": "u"}], "AspNetUserLogins": [login]}),
        )
    };
    let (document, notes) = duende("upstream secret");
    let ours = json!({"name": "x", "display_name": "X", "issuer": "https://x.example", "client_id": "us", "client_secret": "upstream secret", "scope": "openid"});
    assert_eq!(document["identity_providers"], json!([ours]));
    assert_eq!(
        document["users"][0]["identities"],
        json!([{"issuer": "https://x.example", "subject": "7"}])
    );
    assert!(
        notes.contains(&String::from(
            "identity provider y: left out: it has no issuer, so register it by hand"
        )),
        "{notes:?}"
    );
    let (document, notes) = duende("**********");
    assert!(
        document["identity_providers"][0]
            .get("client_secret")
            .is_none()
    );
    assert!(
        notes.contains(&String::from(
            "identity provider x, identity provider y: give its client_secret"
        )),
        "{notes:?}"
    );
}
