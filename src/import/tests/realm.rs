//! What Keycloak has, and what it becomes.

use super::access::imported;
use super::losses::taken;
use super::*;

#[test]
fn credentials_of_keycloak_are_taken_or_refused() {
    let argon2 = r#"{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"memory":["7168"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}"#;
    let pbkdf2 = |name: &str| {
        format!(r#"{{"hashIterations":27500,"algorithm":"{name}","additionalParameters":{{}}}}"#)
    };
    let secret = |length: usize| {
        let part = |bytes: usize| {
            base64::Engine::encode(&base64::prelude::BASE64_STANDARD, vec![7; bytes])
        };
        format!(r#"{{"value":"{}","salt":"{}"}}"#, part(length), part(16))
    };
    for (data, secret, beginning) in [
        (
            argon2.to_owned(),
            secret(32),
            "$argon2id$v=19$m=7168,t=5,p=1$BwcHBwcHBwcHBwcHBwcHBw$",
        ),
        (pbkdf2("pbkdf2"), secret(20), "$pbkdf2$i=27500,l=20$"),
        (
            pbkdf2("pbkdf2-sha256"),
            secret(64),
            "$pbkdf2-sha256$i=27500,l=64$BwcHBwcHBwcHBwcHBwcHBw$",
        ),
        (
            pbkdf2("pbkdf2-sha512"),
            secret(63),
            "$pbkdf2-sha512$i=27500,l=63$",
        ),
        (pbkdf2("bcrypt"), secret(32), ""),
        (
            pbkdf2("bcrypt"),
            format!(r#"{{"value":"$2y$10${}","salt":""}}"#, ".".repeat(53)),
            "$2y$10$",
        ),
        (pbkdf2("pbkdf2-sha256"), secret(8), ""),
        (String::from("{}"), secret(32), ""),
        (pbkdf2("pbkdf2"), String::from("no JSON"), ""),
        (argon2.replace("1.3", "1.3\\u0000"), String::from("{}"), ""),
    ] {
        let credential = json!({"secretData": secret, "credentialData": data});
        let phc = keycloak::people::phc(&Row::of(String::new(), &credential).unwrap())
            .unwrap_or_default();
        assert!(
            phc.starts_with(beginning) && phc.is_empty() == beginning.is_empty(),
            "{data}: {phc}"
        );
    }
}

#[test]
fn a_second_factor_of_keycloak_moves_where_its_codes_are_ours() {
    let how = json!({"subType": "totp", "digits": 6, "period": 30, "algorithm": "HmacSHA1"});
    let read = |change: Value, value: &str| {
        let mut how = how.clone();
        how.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let credential = json!({"credentialData": how.to_string(), "secretData": json!({"value": value}).to_string()});
        keycloak::people::totp(&Row::of(String::new(), &credential).unwrap())
    };
    let text = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
    assert_eq!(
        read(json!({}), "12345678901234567890").as_deref(),
        Some(text)
    );
    assert_eq!(
        read(json!({"secretEncoding": "BASE32"}), text).as_deref(),
        Some(text)
    );
    for change in [
        json!({"digits": 8}),
        json!({"period": 60}),
        json!({"algorithm": "HmacSHA256"}),
        json!({"subType": "hotp"}),
    ] {
        assert_eq!(
            read(change.clone(), "12345678901234567890"),
            None,
            "{change}"
        );
    }
    for value in ["", "short"] {
        assert_eq!(read(json!({}), value), None, "{value}");
    }
}

fn realm() -> Value {
    let scope = |name: &str, kind: &str, config: Value| json!({"name": name, "protocol": "openid-connect", "protocolMappers": [{"protocolMapper": kind, "config": config}]});
    let attribute = "oidc-usermodel-attribute-mapper";
    let audience = "oidc-audience-mapper";
    json!({
        "realm": "shop", "accessTokenLifespan": 300,
        "clientScopes": [
            scope("department", attribute, json!({"user.attribute": "unit", "claim.name": "department", "id.token.claim": "true"})),
            scope("orders", audience, json!({"included.custom.audience": "urn:orders", "access.token.claim": "true"})),
            scope("stock", audience, json!({"included.client.audience": "web", "included.custom.audience": "urn:no", "access.token.claim": "true"})),
            {"name": "role_list", "protocol": "saml"}, {"name": "basic"}, {"name": "profile"},
        ],
        "clients": [
            {"clientId": "account"}, {"clientId": "old", "protocol": "saml"}, {"clientId": "api", "bearerOnly": true},
            {"clientId": "web", "secret": "a-secret-of-thirty-two-characters", "rootUrl": "https://rp.example/", "redirectUris": ["/cb", "/x/*"],
             "webOrigins": ["+", "https://rp.example"], "defaultClientScopes": ["basic", "profile", "orders"], "optionalClientScopes": ["offline_access"],
             "attributes": {"post.logout.redirect.uris": "/out##-", "pkce.code.challenge.method": "S256", "access.token.lifespan": "60",
                            "access.token.header.type.rfc9068": "true", "dpop.bound.access.tokens": "true", "require.pushed.authorization.requests": "true"}},
            {"clientId": "spa", "publicClient": true, "implicitFlowEnabled": "true", "redirectUris": ["https://a.example/cb"], "attributes": {"post.logout.redirect.uris": "+"}},
            {"clientId": "job", "secret": "**********", "standardFlowEnabled": false, "serviceAccountsEnabled": true, "defaultClientScopes": ["orders"]},
        ],
        "identityProviders": [{"alias": "hub", "providerId": "github", "config": {"clientId": "x"}},
                              {"alias": "g", "providerId": "google", "linkOnly": true, "config": {"clientId": "x", "clientSecret": "${vault.x}"}}],
        "users": [
            {"id": "u", "username": "ada", "firstName": "Ada", "emailVerified": true, "attributes": {"unit": ["sales"], "iss": ["forged"], "role": ["root"], "groups": ["/admins"], "email": ["ceo@shop.example"]}, "groups": ["/staff"],
             "realmRoles": ["default-roles-shop", "admin"], "clientRoles": {"web": ["buyer"], "account": ["manage-account"]},
             "federatedIdentities": [{"identityProvider": "hub", "userId": "9"}, {"identityProvider": "g", "userId": "7"}]},
            {"id": "v", "username": "dan", "enabled": false, "credentials": [
                {"type": "password", "secretData": "{}", "credentialData": "{\"algorithm\":\"bcrypt\"}"}, {"type": "webauthn"}]},
            {"id": "t", "username": "eve", "requiredActions": ["VERIFY_EMAIL"], "credentials": [{"type": "password", "temporary": true,
             "secretData": "{\"value\":\"BwcHBwcHBwcHBwcHBwcHBwcHBwc=\",\"salt\":\"BwcHBwcHBwcHBwcHBwcHBw==\"}",
             "credentialData": "{\"hashIterations\":1000,\"algorithm\":\"pbkdf2\"}"}]},
            {"id": "w", "username": "service-account-job", "serviceAccountClientId": "job"},
        ],
    })
}

#[test]
fn what_a_realm_says_of_clients_scopes_and_people_a_document_says() {
    let (document, notes) = keycloak::read(&realm()).unwrap().finish(true);
    let implicit = [
        "code",
        "id_token",
        "token",
        "id_token token",
        "code id_token",
        "code token",
        "code id_token token",
    ];
    assert_eq!(
        document["clients"],
        json!([
            {"client_id": "web", "secrets": [{"value": "a-secret-of-thirty-two-characters"}], "redirect_uris": ["https://rp.example/cb"],
             "post_logout_redirect_uris": ["https://rp.example/out"], "allowed_cors_origins": ["https://rp.example"], "require_pkce": true,
             "scope": "orders basic profile offline_access openid", "default_scope": "orders profile", "refresh_token_without_offline_access": true, "always_include_user_claims_in_id_token": true, "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
             "access_token_lifetime": 60, "id_token_lifetime": 60, "refresh_token_lifetime": 315_360_000, "refresh_token_idle_lifetime": 2_592_000,
             "dpop_bound_access_tokens": true, "require_pushed_authorization_requests": true},
            {"client_id": "spa", "token_endpoint_auth_method": "none", "redirect_uris": ["https://a.example/cb"],
             "post_logout_redirect_uris": ["https://a.example/cb"], "scope": "openid", "always_include_user_claims_in_id_token": true, "grant_types": ["authorization_code", "implicit", "refresh_token"],
             "refresh_token_without_offline_access": true, "refresh_token_lifetime": 36_000, "refresh_token_idle_lifetime": 1_800,
             "response_types": implicit, "allow_access_tokens_via_browser": true, "access_token_lifetime": 300, "id_token_lifetime": 300, "access_token_typ": "JWT"},
            {"client_id": "job", "confidential": true, "scope": "orders openid", "grant_types": ["client_credentials"], "response_types": [],
             "access_token_lifetime": 300, "access_token_typ": "JWT"},
        ])
    );
    assert_eq!(
        document["identity_scopes"],
        json!([{"name": "department", "claims": {"unit": "department"}}, {"name": "basic", "show_in_discovery": false}])
    );
    assert_eq!(
        document["resource_scopes"],
        json!([{"name": "orders", "resources": ["urn:orders"]}, {"name": "stock"}])
    );
    assert_eq!(document["resources"], json!([{"name": "urn:orders"}]));
    assert_eq!(
        document["identity_providers"],
        json!([{"name": "g", "enabled": false, "issuer": "https://accounts.google.com", "client_id": "x"}])
    );
    let claims = json!({"name": "Ada", "given_name": "Ada", "email_verified": true, "unit": "sales", "groups": ["/staff"],
                        "role": ["admin", "web/buyer"]});
    assert_eq!(
        document["users"],
        json!([
            {"sub": "u", "username": "ada", "claims": claims, "identities": [{"issuer": "https://accounts.google.com", "subject": "7"}]},
            {"sub": "v", "username": "dan", "enabled": false},
            {"sub": "t", "username": "eve"},
        ])
    );
    let known = Stored::default();
    let judged = Document::from_json(
        &strict_json::parse(&document.to_string()).unwrap(),
        &ClientDefaults::default(),
        &known,
    );
    assert!(judged.is_ok(), "{judged:?}");
    for note in [
        "client old: left out: it speaks SAML",
        "client api: left out: it is an API",
        "scope stock: the audience of mapper  is left out: it is a client",
        "client job: has no secret that can move",
        "client web: number 2 of redirect_uris is left out: ",
        "identity provider hub: left out: it has no issuer",
        "user ada: sign-ins by hub are left out",
        "user ada: left out of claims: iss",
        "user ada: attribute role is left out",
        "user ada: attribute groups is left out",
        "user ada: attribute email is left out",
        "identity provider g: set: enabled false",
        "user eve: the password is left out: it was to be changed first",
        "user eve: was to do this at the next sign-in, and is not asked to here: VERIFY_EMAIL",
        "user dan: the password is left out",
        "scope profile: has no mappers there and gives nothing",
        "user dan: a second factor is left out: a security key (WebAuthn)",
        "client spa: was not required to use PKCE. Gatepost requires it of public clients",
    ] {
        assert!(
            notes.iter().any(|line| line.starts_with(note)),
            "{note}: {notes:#?}"
        );
    }
}

/// What becomes of a client with these members in that realm, and what is said of it.
fn client_in(mut realm: Value, members: Value) -> (Value, String) {
    let mut web = json!({"clientId": "web", "secret": "a-secret-of-thirty-two-characters", "redirectUris": ["https://a.example/cb"]});
    web.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    realm["realm"] = json!("shop");
    realm["clients"] = json!([web]);
    let (document, lines) = imported(&realm);
    taken(&document);
    (document["clients"][0].clone(), lines)
}

#[test]
fn a_client_that_names_no_post_logout_uri_has_its_redirect_uris_there() {
    let cb = json!(["https://a.example/cb"]);
    for (attributes, here) in [
        (json!({}), cb.clone()),
        (json!({"post.logout.redirect.uris": ""}), cb.clone()),
        (json!({"post.logout.redirect.uris": "+"}), cb.clone()),
        (json!({"post.logout.redirect.uris": "-"}), Value::Null),
        (
            json!({"post.logout.redirect.uris": "https://a.example/out"}),
            json!(["https://a.example/out"]),
        ),
    ] {
        let (web, _) = client_in(json!({}), json!({"attributes": attributes}));
        assert_eq!(web["redirect_uris"], cb);
        assert_eq!(web["post_logout_redirect_uris"], here, "{attributes}");
    }
}

#[test]
fn id_tokens_live_as_long_as_access_tokens() {
    let realm = json!({"accessTokenLifespan": 900});
    for (attributes, here) in [
        (json!({}), json!(900)),
        (json!({"access.token.lifespan": "60"}), json!(60)),
        (json!({"access.token.lifespan": "-1"}), json!(900)),
    ] {
        let (web, _) = client_in(realm.clone(), json!({"attributes": attributes}));
        assert_eq!(web["access_token_lifetime"], here, "{attributes}");
        assert_eq!(web["id_token_lifetime"], here, "{attributes}");
    }
    let service = json!({"standardFlowEnabled": false, "serviceAccountsEnabled": true});
    let (web, _) = client_in(realm, service);
    assert_eq!(web["access_token_lifetime"], 900);
    assert_eq!(web.get("id_token_lifetime"), None);
}

#[test]
fn refresh_tokens_live_as_long_as_offline_sessions() {
    let ends = |more: Value| {
        let mut realm =
            json!({"offlineSessionMaxLifespanEnabled": true, "offlineSessionMaxLifespan": 700_000});
        realm
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        realm
    };
    let longest = 315_360_000;
    let month = 2_592_000;
    for (realm, attributes, whole, idle) in [
        (json!({}), json!({}), longest, month),
        // It counts only where it is enabled.
        (
            json!({"offlineSessionMaxLifespan": 700_000, "clientOfflineSessionMaxLifespan": 600_000}),
            json!({}),
            longest,
            month,
        ),
        (
            json!({"offlineSessionIdleTimeout": 500}),
            json!({}),
            longest,
            500,
        ),
        (
            json!({"offlineSessionIdleTimeout": 500, "clientOfflineSessionIdleTimeout": 400}),
            json!({}),
            longest,
            400,
        ),
        (
            json!({"offlineSessionIdleTimeout": 500, "clientOfflineSessionIdleTimeout": 400}),
            json!({"client.offline.session.idle.timeout": "600"}),
            longest,
            600,
        ),
        (
            json!({}),
            json!({"client.offline.session.max.lifespan": "800000"}),
            800_000,
            800_000,
        ),
        (ends(json!({})), json!({}), 700_000, 700_000),
        (
            ends(json!({"clientOfflineSessionMaxLifespan": 600_000})),
            json!({}),
            600_000,
            600_000,
        ),
        (
            ends(json!({"offlineSessionIdleTimeout": 500})),
            json!({"client.offline.session.max.lifespan": "800000"}),
            700_000,
            500,
        ),
    ] {
        let members = json!({"optionalClientScopes": ["offline_access"], "attributes": attributes});
        let (web, lines) = client_in(realm.clone(), members);
        assert_eq!(web["refresh_token_lifetime"], whole, "{realm} {attributes}");
        assert_eq!(
            web["refresh_token_idle_lifetime"], idle,
            "{realm} {attributes}"
        );
        let line = "client web: set: refresh_token_lifetime is ten years";
        assert_eq!(lines.contains(line), whole == longest, "{lines}");
        assert!(!lines.to_lowercase().contains("offlinesession"), "{lines}");
    }
}

#[test]
fn refresh_tokens_without_offline_access_live_as_long_as_sessions() {
    let key = "refresh_token_without_offline_access";
    for (realm, attributes, whole, idle) in [
        (json!({}), json!({}), 36_000, 1_800),
        (
            json!({"ssoSessionMaxLifespan": 9_000, "ssoSessionIdleTimeout": 600, "clientSessionIdleTimeout": 0}),
            json!({}),
            9_000,
            600,
        ),
        (
            json!({"clientSessionMaxLifespan": 8_000, "clientSessionIdleTimeout": 500}),
            json!({}),
            8_000,
            500,
        ),
        (
            json!({"clientSessionMaxLifespan": 8_000, "clientSessionIdleTimeout": 500}),
            json!({"client.session.max.lifespan": "99999", "client.session.idle.timeout": "99999"}),
            36_000,
            36_000,
        ),
    ] {
        let (web, lines) = client_in(realm.clone(), json!({"attributes": attributes}));
        let grants = json!(["authorization_code", "refresh_token"]);
        assert_eq!((&web[key], &web["grant_types"]), (&json!(true), &grants));
        assert_eq!(web["refresh_token_lifetime"], whole, "{realm} {attributes}");
        assert_eq!(
            web["refresh_token_idle_lifetime"], idle,
            "{realm} {attributes}"
        );
        assert!(
            lines.contains(&format!("client web: set, as there: {key}")),
            "{lines}"
        );
        assert!(!lines.to_lowercase().contains("clientsession"), "{lines}");
    }
    let left_out = "client web: refresh tokens without offline_access are left out: keycloak-js";
    for (members, is_set, is_told) in [
        (json!({"publicClient": true}), true, false),
        (
            json!({"publicClient": true, "webOrigins": ["+"]}),
            false,
            true,
        ),
        (json!({"webOrigins": ["+"]}), true, false),
        (
            json!({"attributes": {"use.refresh.tokens": "false"}}),
            false,
            false,
        ),
        (
            json!({"redirectUris": [], "directAccessGrantsEnabled": true}),
            false,
            false,
        ),
    ] {
        let (web, lines) = client_in(json!({}), members.clone());
        assert_eq!(web[key] == true, is_set, "{members}");
        assert_eq!(lines.contains(left_out), is_told, "{lines}");
    }
}

#[test]
fn a_client_has_its_own_scopes_first_and_then_those_of_the_realm_in_its_order() {
    let unit = json!({"name": "unit", "protocolMapper": "oidc-usermodel-attribute-mapper", "config": {
        "user.attribute": "unit", "claim.name": "preferred_username", "id.token.claim": "true"}});
    let realm = json!({"clientScopes": [{"name": "zoo"}, {"name": "profile"}, {"name": "ape"}, {"name": "mid"}]});
    let members = json!({"defaultClientScopes": ["ape", "mid", "profile"], "optionalClientScopes": ["zoo"], "protocolMappers": [unit]});
    let (web, _) = client_in(realm, members);
    assert_eq!(web["scope"], "web-claims zoo profile ape mid openid");
}

#[test]
fn a_redirect_uri_on_localhost_without_a_port_has_a_line_where_the_client_has_a_secret() {
    for (uri, is_told) in [
        ("http://localhost", true),
        ("http://localhost/cb", true),
        ("http://localhost/*", true),
        ("http://localhost:3000/cb", false),
        ("http://localhost.example/cb", false),
        ("https://localhost/cb", false),
        ("http://127.0.0.1/cb", false),
    ] {
        for public in [false, true] {
            let uris = ["https://a.example/cb", uri];
            let members = json!({"publicClient": public, "redirectUris": uris});
            let (_, lines) = client_in(json!({}), members);
            let line = "client web: number 2 of redirect_uris is on localhost without a port";
            assert_eq!(lines.contains(line), is_told && !public, "{uri}: {lines}");
        }
    }
}

#[test]
fn pkce_is_required_by_the_method_that_a_client_names() {
    let without = "client web: was not required to use PKCE";
    let plain = "client web: set, as there: allow_plain_pkce";
    for (attributes, required, allows_plain) in [
        (json!({}), false, false),
        (json!({"pkce.code.challenge.method": ""}), false, false),
        (json!({"pkce.code.challenge.method": "S256"}), true, false),
        (json!({"pkce.code.challenge.method": "plain"}), true, true),
    ] {
        let (web, lines) = client_in(json!({}), json!({"attributes": attributes}));
        assert_eq!(web["require_pkce"] == true, required, "{attributes}");
        assert_eq!(
            web["allow_plain_pkce"] == true,
            allows_plain,
            "{attributes}"
        );
        assert_eq!(lines.contains(without), !required, "{lines}");
        assert_eq!(lines.contains(plain), allows_plain, "{lines}");
    }
}
