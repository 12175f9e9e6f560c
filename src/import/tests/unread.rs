//! What has no place here is told, with the key and the place, and never with the value.

use super::*;

/// Stands for every value that may be a secret.
const CANARY: &str = "canary-4711";

fn lines_of_keycloak(realm: Value) -> Vec<String> {
    let (document, lines) = keycloak::read(&realm).unwrap().finish(true);
    assert!(!document.to_string().contains(CANARY), "{document}");
    lines
}

fn has(lines: &[String], wanted: &str) {
    assert!(
        lines.iter().any(|line| line.contains(wanted)),
        "{wanted}: {lines:#?}"
    );
    assert!(!lines.concat().contains(CANARY), "{lines:#?}");
}

#[test]
fn each_key_of_a_realm_that_is_set_and_not_read_has_a_line() {
    let client = |id: &str| {
        json!({"clientId": id, "protocol": "openid-connect", "secret": "**********", "fullScopeAllowed": false, "notBefore": 0,
               "redirectUris": ["https://a.example/cb"], "newKey": CANARY,
               "attributes": {"default.acr.values": CANARY, "new.attribute": CANARY, "saml.signing.private.key": CANARY, "client.session.idle.timeout": ""}})
    };
    let clients = ["a", "b", "c", "d"].map(client);
    let realm = json!({
        "realm": "shop", "passwordPolicy": CANARY, "failureFactor": 30, "accessCodeLifespan": "60", "newSetting": CANARY, "smtpServer": {"password": CANARY},
        "components": {"org.keycloak.keys.KeyProvider": [{"config": {"privateKey": [CANARY]}}], "org.keycloak.storage.UserStorageProvider": [{"config": {"bindCredential": [CANARY]}}]},
        "authenticationFlows": [{"alias": "browser", "builtIn": true}, {"alias": "ours", "builtIn": false}],
        "identityProviders": [{"alias": "p", "providerId": "oidc", "storeToken": true, "config": {"issuer": "https://p.example", "clientId": "x", "privateKeyPassword": CANARY}}],
        "clients": clients,
        "users": [{"id": "u", "username": "ada", "federationLink": CANARY, "attributes": {"x": ["y"]}}],
    });
    let lines = lines_of_keycloak(realm);
    for line in [
        "realm shop: passwordPolicy: a new password here has at least 8 characters",
        "realm shop: newSetting: is not known here, and is left out",
        "realm shop: smtpServer: set GATEPOST_SMTP_URL",
        "org.keycloak.storage.UserStorageProvider: users of another directory",
        "flow ours: builtIn: a sign-in flow of your own stays behind",
        "identity provider p: storeToken: tokens of providers are not kept",
        "identity provider p: privateKeyPassword: is not known here",
        "client a, client b, client c, client d: default.acr.values: set minimum_acr",
        "client a, client b, client c, client d: new.attribute: is not known here",
        "user ada: federationLink: came from another directory",
    ] {
        has(&lines, line);
    }
    let text = lines.concat();
    for silent in [
        "failureFactor",
        "accessCodeLifespan",
        "flow browser",
        "session.idle",
        "KeyProvider",
    ] {
        assert!(!text.contains(silent), "{silent}: {lines:#?}");
    }
}

#[test]
fn each_column_that_is_set_and_not_read_has_a_line() {
    let (document, lines) = read(json!({
        "Clients": [{"ClientId": "w", "ProtocolType": "wsfed", "UserSsoLifetime": 60}, {"Id": 1, "ClientId": "c", "UserSsoLifetime": 60, "PairWiseSubjectSalt": CANARY, "IncludeJwtId": 1, "OurColumn": CANARY, "AllowedGrantTypes": [],
                     "RequireClientSecret": false, "ClientSecrets": [{"Value": SECRET}], "AllowedIdentityTokenSigningAlgorithms": "PS256"}],
        "ClientProperties": [{"Id": 1, "ClientId": 1, "Key": "k", "Value": CANARY}],
        "AspNetUsers": [{"Id": "u", "UserName": "ada", "Email": "ada@x.example", "EmailConfirmed": 0, "Department": CANARY}],
        "PersistedGrants": [{"Key": CANARY}], "OurTable": [{"x": CANARY}],
    }));
    assert!(!document.to_string().contains(CANARY));
    for line in [
        "client w: left out: it speaks WS-Federation",
        "client c: UserSsoLifetime: set default_max_age",
        "client c: PairWiseSubjectSalt: people have another sub at each client there",
        "client c: OurColumn: is not known here, and is left out",
        "client c: AllowedIdentityTokenSigningAlgorithms: set id_token_signed_response_alg",
        "client c: ClientProperties: properties of your own stay behind",
        "client c: is a public client, so its secrets are left out: let it send none",
        "user ada: Department: is not known here, and is left out",
        "user ada: has an e-mail address that is not confirmed",
        "dump: PersistedGrants: refresh tokens and consents stay behind",
        "dump: OurTable: is not known here, and is left out",
    ] {
        has(&lines, line);
    }
    assert!(!lines.concat().contains("IncludeJwtId"));
}

#[test]
fn people_have_the_roles_of_their_tokens_as_their_own() {
    let role = |name: &str, composites: Value| json!({"name": name, "composites": composites});
    let realm = json!({
        "realm": "shop", "defaultRole": {"name": "default-roles-shop"},
        "roles": {
            "realm": [
                role("default-roles-shop", json!({"realm": ["offline_access", "customer"], "client": {"account": ["manage-account"]}})),
                // Each has the other.
                role("boss", json!({"realm": ["clerk"]})), role("clerk", json!({"realm": ["boss"], "client": {"web": ["buyer"]}})),
            ],
            "client": {"web": [role("buyer", json!({"realm": ["payer"]}))]},
        },
        "groups": [{"path": "/staff", "realmRoles": ["staff"], "subGroups": [{"path": "/staff/it", "clientRoles": {"web": ["admin"]}}]}],
        "clients": [
            {"clientId": "job", "serviceAccountsEnabled": true, "standardFlowEnabled": false, "secret": "a-secret-of-thirty-two-characters"},
            {"clientId": "both", "serviceAccountsEnabled": true, "redirectUris": ["https://a.example/cb"], "secret": "a-secret-of-thirty-two-characters"},
        ],
        "users": [
            {"id": "u", "username": "ada", "realmRoles": ["default-roles-shop", "clerk"], "groups": ["/staff/it"]},
            {"id": "v", "username": "bob", "realmRoles": ["default-roles-shop", "customer"]},
            {"id": "w", "username": "service-account-job", "serviceAccountClientId": "job", "realmRoles": ["boss"]},
            {"id": "x", "username": "service-account-both", "serviceAccountClientId": "both", "realmRoles": ["boss"]},
        ],
    });
    let (document, lines) = keycloak::read(&realm).unwrap().finish(true);
    let ada = json!([
        "clerk",
        "boss",
        "payer",
        "web/buyer",
        "staff",
        "web/admin",
        "customer"
    ]);
    assert_eq!(document["users"][0]["claims"]["role"], ada);
    assert_eq!(
        document["users"][0]["claims"]["groups"],
        json!(["/staff/it"])
    );
    assert_eq!(document["users"][1]["claims"]["role"], json!(["customer"]));
    let of_boss = json!(["boss", "clerk", "payer", "web/buyer"]);
    assert_eq!(document["clients"][0]["claims"], json!({"role": of_boss}));
    // The tokens of its users would have the roles, too.
    assert_eq!(document["clients"][1].get("claims"), None);
    for line in [
        "role customer (by default): 1, ",
        "role staff (by a group): 1",
        "role boss (by another role): 1",
        "client both: its service account had these roles, which are left out",
        "client job: set: the roles of its service account",
    ] {
        has(&lines, line);
    }
}

#[test]
fn default_scopes_roles_and_mappers_of_a_client_become_scopes() {
    let mapper = |kind: &str, config: Value| {
        let mut all = json!({"id.token.claim": "true", "userinfo.token.claim": "true", "access.token.claim": "true"});
        all.as_object_mut()
            .unwrap()
            .extend(config.as_object().unwrap().clone());
        json!({"name": kind, "protocolMapper": kind, "config": all})
    };
    let attribute = "oidc-usermodel-attribute-mapper";
    let realm = json!({
        "realm": "shop",
        "clients": [{
            "clientId": "web", "publicClient": true, "redirectUris": ["https://a.example/cb"], "webOrigins": ["*"],
            "defaultClientScopes": ["basic", "acr", "roles", "profile", "gone"], "optionalClientScopes": ["microprofile-jwt", "email", "offline_access"],
            "attributes": {"id.token.signed.response.alg": "ES256", "access.token.signed.response.alg": "PS256"},
            "protocolMappers": [
                mapper(attribute, json!({"user.attribute": "unit", "claim.name": "dept", "access.token.claim": "false"})),
                mapper(attribute, json!({"user.attribute": "region", "claim.name": "region", "id.token.claim": "false", "userinfo.token.claim": "false"})),
                mapper("oidc-group-membership-mapper", json!({"full.path": "false", "claim.name": "teams", "access.token.claim": "false"})),
                mapper("oidc-hardcoded-claim-mapper", json!({"claim.name": "tier", "claim.value": "7", "jsonType.label": "int", "id.token.claim": "false", "userinfo.token.claim": "false"})),
                mapper("oidc-audience-mapper", json!({"included.custom.audience": "urn:api"})),
                mapper("oidc-role-name-mapper", json!({"role": "a", "new.role.name": "b"})),
            ],
        }],
        "users": [{"id": "u", "username": "ada", "groups": ["/staff/it"]}],
    });
    let (document, lines) = keycloak::read(&realm).unwrap().finish(true);
    let web = &document["clients"][0];
    assert_eq!(
        web["scope"],
        "web-api web-claims acr basic email microprofile-jwt offline_access openid profile roles"
    );
    assert_eq!(web["default_scope"], "profile roles web-api web-claims");
    assert_eq!(web["claims"], json!({"tier": 7}));
    assert_eq!(web["id_token_signed_response_alg"], "ES256");
    assert_eq!(web.get("access_token_signed_response_alg"), None);
    assert_eq!(web.get("allowed_cors_origins"), None);
    let scopes = document["identity_scopes"].as_array().unwrap();
    let own = scopes
        .iter()
        .find(|one| one["name"] == "web-claims")
        .unwrap();
    assert_eq!(
        own["claims"],
        json!({"unit": "dept", "group_names": "teams"})
    );
    assert_eq!(own["show_in_discovery"], false);
    assert_eq!(
        document["resource_scopes"][0]["claims"],
        json!({"region": "region"})
    );
    assert_eq!(document["resources"], json!([{"name": "urn:api"}]));
    assert_eq!(document["users"][0]["claims"]["group_names"], json!(["it"]));
    for line in [
        "client web: mapper oidc-role-name-mapper is left out",
        "client web: access_token_signed_response_alg is left out: it must be one of RS256",
        "client web: webOrigins * is left out",
        "scope microprofile-jwt: has no claims here",
    ] {
        has(&lines, line);
    }
}

#[test]
fn what_stands_under_an_empty_name_names_no_row() {
    let (_, lines) = read(json!({
        "AspNetUsers": [{"Id": "u", "UserName": "ada"}],
        "AspNetUserTokens": [{"UserId": "u", "LoginProvider": "x", "Name": "y", "": CANARY, "New": "z"}],
    }));
    assert!(
        !lines.iter().any(|line| line.contains(CANARY)),
        "{lines:#?}"
    );
}

#[test]
fn an_app_of_identity_moves_where_it_is_in_use_and_a_short_lockout_does_not() {
    let token = |user: &str, name: &str, value: &str| json!({"UserId": user, "LoginProvider": "[AspNetUserStore]", "Name": name, "Value": value});
    let key = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
    let (document, lines) = read(json!({
        "AspNetUsers": [
            {"Id": "u", "UserName": "ada", "TwoFactorEnabled": true, "LockoutEnd": "2027-01-15T08:10:00Z"}, {"Id": "v", "UserName": "bob", "TwoFactorEnabled": false},
            {"Id": "w", "UserName": "cid", "TwoFactorEnabled": true, "LockoutEnd": "2027-01-20T08:00:00Z"},
        ],
        "AspNetUserTokens": [token("u", "AuthenticatorKey", key), token("u", "RecoveryCodes", CANARY), token("v", "AuthenticatorKey", key)],
        "AspNetRoles": [{"Id": "r", "Name": "admin"}], "AspNetUserRoles": [{"UserId": "u", "RoleId": "r"}],
        "AspNetRoleClaims": [{"Id": 1, "RoleId": "r", "ClaimType": "floor", "ClaimValue": "3"}],
    }));
    let users = &document["users"];
    assert_eq!(
        (&users[0]["totp"], &users[0]["enabled"]),
        (&json!(key), &json!(true))
    );
    assert_eq!(users[0]["claims"]["floor"], "3");
    assert_eq!(users[1].get("totp"), None);
    assert_eq!(users[2]["enabled"], false);
    for line in [
        "user ada: recovery codes are left out",
        "user ada: is locked out there for a while, and not here",
        "user cid: disabled, as locked out there",
        "user cid: the second factor is left out",
    ] {
        has(&lines, line);
    }
    assert!(
        !lines.iter().skip(1).any(|line| line.contains("user bob")),
        "{lines:#?}"
    );
}
