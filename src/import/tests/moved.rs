//! What was told before and moves now, and what was told wrongly.

use super::access::imported;
use super::*;

/// Each line is there, and each text after it is in no line.
fn told(lines: &str, wanted: &[&str], silent: &[&str]) {
    for line in wanted {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    for line in silent {
        assert!(!lines.contains(line), "{line}: {lines}");
    }
}

fn with(mut object: Value, members: &Value) -> Value {
    let members = members.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(members);
    object
}

/// What becomes of a client with these members, and what is said of it.
fn client_with(members: &Value) -> (Value, String) {
    let client = json!({"clientId": "web", "secret": "a-secret-of-thirty-two-characters", "redirectUris": ["https://a.example/cb"]});
    let (document, lines) = imported(&json!({"realm": "shop", "clients": [with(client, members)]}));
    (document["clients"][0].clone(), lines)
}

fn attributes(members: Value) -> Value {
    json!({ "attributes": members })
}

fn mapper(kind: &str, config: Value) -> Value {
    let all = json!({"id.token.claim": "true", "userinfo.token.claim": "true"});
    json!({"name": kind, "protocolMapper": kind, "config": with(all, &config)})
}

#[test]
fn keys_of_a_client_move_as_they_are_used_there() {
    let public = gatepost_protocol::words::samples::p256(1).to_jwk();
    let mut private = public.clone();
    private["d"] = json!("canary");
    let set = |key: &Value| json!({ "keys": [key] }).to_string();
    let by_key = |attributes: Value| json!({"clientAuthenticatorType": "client-jwt", "attributes": attributes});
    let used = json!({"use.jwks.string": "true", "jwks.string": set(&private), "token.endpoint.auth.signing.alg": "ES256"});
    let (web, lines) = client_with(&by_key(used));
    assert_eq!(web["jwks"], json!({ "keys": [public] }));
    assert_eq!(web["token_endpoint_auth_method"], "private_key_jwt");
    assert_eq!(web["token_endpoint_auth_signing_alg"], "ES256");
    assert_eq!(web.get("secrets"), None);
    told(
        &lines,
        &["client web: a key was private there"],
        &[
            "canary",
            "jwks.string",
            "signing.alg",
            "secret that can move",
        ],
    );
    let address = json!({"use.jwks.url": "true", "jwks.url": "https://a.example/keys", "jwks.string": set(&public)});
    let (web, _) = client_with(&by_key(address));
    assert_eq!(web["jwks_uri"], "https://a.example/keys");
    assert_eq!(web["token_endpoint_auth_method"], "private_key_jwt");
    assert_eq!(web.get("jwks"), None);
    // The client stays, and gets a secret by hand.
    let plain = json!({"use.jwks.url": "true", "jwks.url": "http://canary.example/keys"});
    let (web, lines) = client_with(&by_key(plain));
    assert_eq!(web["confidential"], true);
    told(
        &lines,
        &[
            "client web: jwks.url is left out: it must be https",
            "client web: has no secret that can move",
        ],
        &["canary"],
    );
    let unread = json!({"use.jwks.string": "true", "jwks.string": "no JSON"});
    let (web, _) = client_with(&by_key(unread));
    assert_eq!(
        (web.get("jwks"), &web["confidential"]),
        (None, &json!(true))
    );
    // Whoever proves itself by a secret has the keys for something else.
    let (web, _) = client_with(&attributes(
        json!({"use.jwks.string": "true", "jwks.string": set(&public)}),
    ));
    assert!(web.get("jwks").is_none() && web.get("secrets").is_some());
    let unsupported = attributes(json!({"token.endpoint.auth.signing.alg": "HS256"}));
    let (web, lines) = client_with(&unsupported);
    assert_eq!(web.get("token_endpoint_auth_signing_alg"), None);
    told(
        &lines,
        &["token_endpoint_auth_signing_alg is left out"],
        &[],
    );
}

#[test]
fn lifetimes_of_devices_and_levels_of_sign_ins_are_set() {
    let device = "oauth2.device.authorization.grant.enabled";
    let (web, _) = client_with(&attributes(
        json!({device: "true", "oauth2.device.code.lifespan": "120", "oauth2.device.polling.interval": "7"}),
    ));
    assert_eq!(
        (&web["device_code_lifetime"], &web["device_interval"]),
        (&json!(120), &json!(7))
    );
    let of_realm = |flag: &str| {
        let client = json!({"clientId": "tv", "publicClient": true, "attributes": {device: flag}});
        let (document, lines) = imported(
            &json!({"realm": "shop", "oauth2DeviceCodeLifespan": 300, "oauth2DevicePollingInterval": 9, "clients": [client]}),
        );
        told(&lines, &[], &["oauth2Device"]);
        document["clients"][0].clone()
    };
    assert_eq!(of_realm("true")["device_code_lifetime"], 300);
    assert_eq!(of_realm("true")["device_interval"], 9);
    assert_eq!(of_realm("false").get("device_code_lifetime"), None);

    for (level, here) in [("1", json!("1")), ("2", json!("2")), ("gold", Value::Null)] {
        let (web, lines) = client_with(&attributes(json!({"minimum.acr.value": level})));
        assert_eq!(web.get("minimum_acr").unwrap_or(&Value::Null), &here);
        let line = "client web: minimum_acr is left out: it must be";
        assert_eq!(lines.contains(line), here.is_null(), "{lines}");
    }
    // A realm that says nothing has five minutes there.
    assert_eq!(client_with(&json!({})).0["access_token_lifetime"], 300);
    let (_, lines) = client_with(&json!({"implicitFlowEnabled": true}));
    told(
        &lines,
        &["client web: access_token_lifetime holds for all its flows"],
        &[],
    );
    let (_, lines) = client_with(&attributes(
        json!({"standard.token.exchange.enabled": "true"}),
    ));
    told(
        &lines,
        &["register token_exchange with the client: in from_clients or as_resources"],
        &[],
    );
}

#[test]
fn passwords_of_before_are_no_factors() {
    let data = |form: &str| {
        json!({"type": form, "secretData": "{\"value\":\"BwcHBwcHBwcHBwcHBwcHBwcHBwc=\",\"salt\":\"BwcHBwcHBwcHBwcHBwcHBw==\"}",
                                   "credentialData": "{\"hashIterations\":1000,\"algorithm\":\"pbkdf2\"}"})
    };
    let person = |id: &str, actions: Value| json!({"id": id, "username": id, "requiredActions": actions, "credentials": [data("password"), data("password-history"), data("password-history")]});
    let (document, lines) = imported(&json!({"realm": "shop", "users": [
        person("ada", json!([])), person("bob", json!(["UPDATE_PASSWORD"])),
    ]}));
    assert!(document["users"][1]["password_hash"].is_string());
    told(
        &lines,
        &[
            "realm: passwords that people had before stay behind",
            "user bob: the password was to be changed first, and stays good here: `gatepost user reset`",
        ],
        &[
            "second factor",
            "--enrol",
            "cannot sign in: ",
            "an action of your own",
        ],
    );
}

#[test]
fn roles_of_the_realm_are_a_claim_of_another_name() {
    let roles = |config: Value| {
        let config = with(
            json!({"claim.name": "groups_of_app", "multivalued": "true"}),
            &config,
        );
        mapper("oidc-usermodel-realm-role-mapper", config)
    };
    let client = |id: &str, full: bool, mappers: Value| {
        json!({"clientId": id, "publicClient": true, "redirectUris": ["https://a.example/cb"], "fullScopeAllowed": full,
        "defaultClientScopes": ["app-roles"], "protocolMappers": mappers})
    };
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "roles": {"realm": [{"name": "clerk"}, {"name": "boss", "composites": {"client": {"web": ["buyer"]}}}], "client": {"web": [{"name": "buyer"}]}},
        "clientScopes": [{"name": "app-roles", "protocolMappers": [roles(json!({"claim.name": "roles"}))]}],
        "clients": [
            client("all", true, json!([roles(json!({}))])), client("some", false, json!([roles(json!({}))])),
            client("odd", true, json!([roles(json!({"usermodel.realmRoleMapping.rolePrefix": "app_"})), roles(json!({"multivalued": "false", "claim.name": "one"}))])),
        ],
        "users": [{"id": "u", "username": "ada", "realmRoles": ["clerk", "boss"], "attributes": {"realm_roles": ["forged"]}}],
    }));
    let claims = &document["users"][0]["claims"];
    assert_eq!(claims["realm_roles"], json!(["clerk", "boss"]));
    assert_eq!(claims["role"], json!(["clerk", "boss", "web/buyer"]));
    let scopes = document["identity_scopes"].as_array().unwrap();
    let claims_of = |name: &str| {
        let scope = scopes.iter().find(|scope| scope["name"] == name);
        scope.map(|scope| scope["claims"].clone())
    };
    assert_eq!(
        claims_of("app-roles"),
        Some(json!({"realm_roles": "roles"}))
    );
    assert_eq!(
        claims_of("all-claims"),
        Some(json!({"realm_roles": "groups_of_app"}))
    );
    assert_eq!(claims_of("roles"), None);
    // Its tokens named some roles alone.
    assert_eq!(claims_of("some-claims"), None);
    assert_eq!(claims_of("odd-claims"), None);
    assert_eq!(document["clients"][1].get("default_scope"), None);
    told(
        &lines,
        &[
            "client some, client odd: mapper oidc-usermodel-realm-role-mapper is left out: oidc-usermodel-realm-role-mapper, which gave groups_of_app",
            "client odd: mapper oidc-usermodel-realm-role-mapper is left out: oidc-usermodel-realm-role-mapper, which gave one",
            "client some: left out of scope: app-roles: there it was for these roles alone",
            "user ada: attribute realm_roles is left out",
        ],
        &[],
    );
}

#[test]
fn a_mapper_added_to_a_built_in_scope_is_one_of_it() {
    let roles = mapper(
        "oidc-usermodel-realm-role-mapper",
        json!({"claim.name": "roles", "multivalued": "true", "access.token.claim": "true"}),
    );
    let (document, lines) = imported(&json!({
        "realm": "shop", "roles": {"realm": [{"name": "clerk"}]},
        "clientScopes": [{"name": "roles", "protocolMappers": [roles]}],
        "users": [{"id": "u", "username": "ada", "realmRoles": ["clerk"]}],
    }));
    let claims = json!({"role": "role", "groups": "groups", "realm_roles": "roles"});
    assert_eq!(
        document["identity_scopes"],
        json!([{"name": "roles", "claims": claims}])
    );
    assert_eq!(
        document["users"][0]["claims"]["realm_roles"],
        json!(["clerk"])
    );
    let line = "scope roles: its claims are in UserInfo and ID tokens, and not in access tokens";
    told(&lines, &[line], &["is left out: oidc-"]);
}

#[test]
fn an_escaped_dot_is_one_of_the_name() {
    for (path, here) in [
        (
            r"https://shop\.example/unit",
            json!("https://shop.example/unit"),
        ),
        (r"shop\.unit", json!("shop.unit")),
        ("shop.unit", Value::Null),
        (r"shop\\.unit", Value::Null),
        ("unit", json!("unit")),
    ] {
        let mapper = mapper(
            "oidc-usermodel-attribute-mapper",
            json!({"user.attribute": "unit", "claim.name": path}),
        );
        let scope = json!({"name": "desk", "protocolMappers": [mapper]});
        let (document, lines) = imported(&json!({"realm": "shop", "clientScopes": [scope]}));
        let scope = &document["identity_scopes"][0];
        assert_eq!(scope["claims"]["unit"], here, "{path}: {lines}");
        assert_eq!(
            lines.contains("is left out: oidc-"),
            here.is_null(),
            "{path}: {lines}"
        );
    }
}

#[test]
fn a_built_in_scope_without_mappers_stays_and_is_told() {
    let (document, lines) = imported(&json!({"realm": "shop", "clientScopes": [
        {"name": "profile"}, {"name": "email", "protocolMappers": []}, {"name": "own"},
    ]}));
    assert_eq!(document.get("identity_scopes"), None);
    told(
        &lines,
        &["scope profile, scope email: has no mappers there and gives nothing"],
        &["scope own: has"],
    );
}

#[test]
fn whoever_comes_by_a_provider_without_a_link_is_counted() {
    let provider = |alias: &str, more: Value| {
        let config = json!({"issuer": format!("https://{alias}.example"), "clientId": "x", "clientSecret": "y"});
        with(
            json!({"alias": alias, "providerId": "oidc", "config": config}),
            &more,
        )
    };
    let links = json!([{"identityProvider": "hub", "userId": "7"}]);
    let (_, lines) = imported(&json!({
        "realm": "shop",
        "identityProviders": [provider("hub", json!({})), provider("linked", json!({"linkOnly": true})), provider("off", json!({"enabled": false}))],
        "users": [{"id": "u", "username": "ada", "federatedIdentities": links}, {"id": "v", "username": "bob"}, {"id": "w", "username": "cid"}],
    }));
    told(
        &lines,
        &["identity provider hub: 2: so many people have no link to it"],
        &["provider linked: 3", "provider off: 3"],
    );
    let (_, lines) = imported(&json!({
        "realm": "shop", "identityProviders": [provider("hub", json!({}))],
        "users": [{"id": "u", "username": "ada", "federatedIdentities": links}],
    }));
    told(&lines, &[], &["so many people have no link"]);
}

#[test]
fn a_program_on_peoples_machines_asks_for_consent_each_time() {
    let line = "client web: people are asked for consent each time here";
    for (uri, public, is_told) in [
        ("com.example.app:/cb", true, true),
        ("http://127.0.0.1/cb", true, true),
        ("http://localhost:3000/cb", true, true),
        ("https://app.example/cb", true, false),
        ("http://127.0.0.1/cb", false, false),
    ] {
        let (_, lines) = client_with(&json!({"publicClient": public, "redirectUris": [uri]}));
        assert_eq!(lines.contains(line), is_told, "{uri} {public}: {lines}");
    }
}

#[test]
fn a_default_that_is_another_is_told_where_nobody_said_it() {
    let (_, lines) = imported(&json!({"realm": "shop", "users": [{"id": "u", "username": "ada"}]}));
    told(
        &lines,
        &[
            "people sign in by e-mail address there, too",
            "realm shop: ssoSessionIdleTimeout: there a session ended when it was not used",
            "realm shop: revokeRefreshToken: there a refresh token works again",
            "realm shop: bruteForceProtected: the settings GATEPOST_LIMIT_",
            "realm shop: passwordPolicy: a new password here",
            "realm shop: adminEventsEnabled, eventsEnabled: the audit log is always on",
        ],
        &["rememberMe", "otpPolicy"],
    );
    let same = json!({"realm": "shop", "revokeRefreshToken": true, "duplicateEmailsAllowed": true, "sslRequired": "ALL"});
    let (_, lines) = imported(&same);
    told(
        &lines,
        &[],
        &["revokeRefreshToken", "duplicateEmails", "sslRequired"],
    );
    let limits = json!({"realm": "shop", "bruteForceProtected": true, "failureFactor": 5, "maxDeltaTimeSeconds": 60});
    let (_, lines) = imported(&limits);
    told(
        &lines,
        &["realm shop: bruteForceProtected, failureFactor, maxDeltaTimeSeconds: the settings"],
        &[],
    );
}

#[test]
fn what_keeps_people_and_applications_out_comes_first() {
    let realm = json!({
        "realm": "shop", "failureFactor": 5,
        "clients": [{"clientId": "job", "secret": "**********", "standardFlowEnabled": false, "serviceAccountsEnabled": true}],
        "identityProviders": [{"alias": "hub", "providerId": "oidc", "linkOnly": true, "config": {"issuer": "https://hub.example", "clientId": "x", "clientSecret": "y"}}],
        "users": [
            {"id": "u", "username": "ada", "credentials": [{"type": "password", "secretData": "{}", "credentialData": "{}"}]},
            {"id": "v", "username": "bob", "enabled": false}, {"id": "w", "username": "o'neil"},
            {"id": "x", "username": "cid", "credentials": [{"type": "password", "value": "a password in clear"}]},
            {"id": "y", "username": "dan", "federatedIdentities": [{"identityProvider": "hub", "userId": "7"}]},
        ],
    });
    let lines = |all: bool| keycloak::read(&realm).unwrap().finish(all).1;
    let place = |lines: &[String], text: &str| {
        let place = lines.iter().position(|line| line.contains(text));
        place.unwrap_or_else(|| panic!("{text}: {lines:#?}"))
    };
    let whole = lines(true);
    let order = [
        "people sign in by e-mail address",
        "PEOPLE WHO CANNOT SIGN IN (lines: ",
        "user ada: the password is left out",
        "APPLICATIONS THAT DO NOT WORK UNTIL YOU ACT (lines: ",
        "client job: has no secret that can move",
        "WHAT TOKENS SAY OTHERWISE, OR WHO GETS THEM (lines: ",
        "client job: tokens have no azp",
        "EVERYTHING ELSE, WHICH --all SHOWS (lines: ",
        "failureFactor: the settings GATEPOST_LIMIT_",
        "people who cannot sign in: 2. ",
    ];
    let places: Vec<usize> = order.iter().map(|text| place(&whole, text)).collect();
    assert!(places.is_sorted(), "{places:?} {whole:#?}");
    let last = "printf '%s\\n' 'ada' 'o'\\''neil' | gatepost user invite --from - --links FILE";
    assert!(whole.last().unwrap().ends_with(last), "{whole:#?}");
    // The last heading is counted, and the lines below it are not there.
    let few = lines(false);
    let heading = place(&few, "EVERYTHING ELSE, WHICH --all SHOWS (lines: ");
    assert_eq!(few[heading], whole[places[7]]);
    assert_eq!(few[heading + 1], "");
    assert!(!few.concat().contains("failureFactor"), "{few:#?}");
    assert_eq!(few.first(), whole.first());
    assert_eq!(few.last(), whole.last());
}

/// Each phrase under a heading is one that something says.
#[test]
fn each_phrase_of_the_headings_stands_in_a_note() {
    let sources = [
        include_str!("../lib.rs"),
        include_str!("../identity_server.rs"),
        include_str!("../identity_server/people.rs"),
        include_str!("../keycloak.rs"),
        include_str!("../keycloak/flows.rs"),
        include_str!("../keycloak/mappers.rs"),
        include_str!("../keycloak/people.rs"),
        include_str!("../keycloak/providers.rs"),
        include_str!("../keycloak/roles.rs"),
        include_str!("../keycloak/scopes.rs"),
        include_str!("../notes.rs"),
        include_str!("../sound.rs"),
        include_str!("../known.txt"),
    ]
    .concat();
    let mut said = String::new();
    for line in sources.lines() {
        let line = line.trim_start();
        said.push_str(line.strip_suffix('\\').unwrap_or(line));
    }
    // What `sound` says is made of a member, a number and a rule.
    let made = [
        "password is left out: it",
        "password_hash is left out",
        "left out: username",
        "left out: sub",
        "sub is left out",
        "identities is left out",
        "left out: name must",
        "left out: issuer",
        "left out: client_id is required",
        "client_secret is left out",
        "redirect_uris is left out",
        "logout_uri is left out",
        "allowed_cors_origins is left out",
        "token_endpoint_auth_signing_alg is left out",
        "left out: jwks",
        // The kind of a mapper stands between.
        "is left out: oidc-",
        "is left out: of a kind of your own",
        "_signed_response_alg is left out",
        ": ",
    ];
    let mut seen = BTreeSet::new();
    for block in include_str!("../headings.txt").split("\n\n") {
        for phrase in block.lines().skip(1) {
            assert!(seen.insert(phrase), "{phrase} stands twice");
            let is_said = said.contains(phrase) || made.contains(&phrase);
            assert!(is_said, "nothing says {phrase}");
        }
    }
}

#[test]
fn who_differs_from_the_most_is_named() {
    let person = |id: usize, active: Value, unit: &str| json!({"Id": id, "UserName": format!("u{id}"), "PasswordHash": HASH, "IsActive": active, "IsDeleted": 0, "Unit": unit});
    let mut people: Vec<Value> = (0..20).map(|id| person(id, json!(1), "a")).collect();
    people[7]["IsActive"] = json!(0);
    people[3]["Unit"] = json!("b");
    let (_, lines) = read(json!({ "AspNetUsers": people }));
    let lines = lines.join("\n");
    let line = "user u7: IsActive (1 of 20 differs): is not known here, and is left out";
    let all = "user u0, user u1, user u2";
    told(
        &lines,
        &[
            line,
            all,
            "more: IsDeleted: is not known",
            "more: Unit: is not known",
        ],
        &["user u7: IsDeleted", "more: IsActive"],
    );
    // Where nobody differs all are named, as their column is lost.
    let same: Vec<Value> = (0..3).map(|id| person(id, json!(true), "a")).collect();
    let (_, lines) = read(json!({ "AspNetUsers": same }));
    told(
        &lines.join("\n"),
        &["user u0, user u1, user u2: IsActive: is not"],
        &["differs"],
    );
}

#[test]
fn passkeys_of_identity_are_told_by_name() {
    let (document, lines) = read(json!({
        "AspNetUsers": [{"Id": "u", "UserName": "ada"}, {"Id": "v", "UserName": "bob", "PasswordHash": HASH}],
        "AspNetUserPasskeys": [{"UserId": "u", "CredentialId": "canary", "Data": {"Name": "canary"}}, {"UserId": "gone", "CredentialId": "x", "Data": "{}"}],
    }));
    assert!(!document.to_string().contains("canary"));
    let lines = lines.join("\n");
    told(
        &lines,
        &[
            "user ada: AspNetUserPasskeys: passkeys stay behind",
            "dump: AspNetUserPasskeys: rows that belong to no row of the dump are left out: 1",
            "people who cannot sign in: 1. ",
        ],
        &["canary", "user bob"],
    );
}

#[test]
fn providers_token_exchange_and_equal_scopes_are_told_rightly() {
    let note = "EnableLocalLogin is false";
    let (ours, lines) =
        client(json!({"EnableLocalLogin": false, "IdentityProviderRestrictions": ["Corp"]}));
    assert_eq!(ours["identity_providers"], json!(["Corp"]));
    told(&lines, &[], &[note]);
    let (_, lines) = client(json!({"EnableLocalLogin": false}));
    told(
        &lines,
        &["EnableLocalLogin is false, so identity_providers has all"],
        &[],
    );
    let exchange =
        json!({"AllowedGrantTypes": ["urn:ietf:params:oauth:grant-type:token-exchange"]});
    let (_, lines) = client(exchange);
    told(
        &lines,
        &["client c: token exchange is left out: register token_exchange"],
        &["SQL function"],
    );
    let scope = |name: &str, claims: Value| json!({"Name": name, "UserClaims": claims});
    let (_, lines) = read(json!({"AspNetRoles": [], "IdentityResources": [
        scope("openid", json!(["sub"])), scope("email", json!(["email", "email_verified"])), scope("phone", json!(["phone_number"])),
    ]}));
    told(
        &lines.join("\n"),
        &["phone: is built in"],
        &["openid: is built in", "email: is built in"],
    );
}
