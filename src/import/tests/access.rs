//! Nobody gets more here than there.

use super::*;

pub fn imported(realm: &Value) -> (Value, String) {
    let (document, lines) = keycloak::read(realm).unwrap().finish(true);
    assert_applicable(&document, &Stored::default());
    (document, lines.join("\n"))
}

/// A realm with a scope `admin-api`, which is for some, and three clients that have it.
fn realm(user: Value) -> Value {
    let client = |id: &str, is_service: bool, scopes: Value| {
        json!({"clientId": id, "secret": "a-secret-of-thirty-two-characters", "redirectUris": ["https://a.example/cb"], "fullScopeAllowed": true,
               "standardFlowEnabled": !is_service, "serviceAccountsEnabled": is_service, "defaultClientScopes": scopes, "optionalClientScopes": ["offline_access"]})
    };
    json!({
        "realm": "shop", "defaultRole": {"name": "default-roles-shop"},
        "roles": {
            "realm": [
                {"name": "default-roles-shop", "composites": {"realm": ["offline_access", "customer"]}}, {"name": "offline_access"}, {"name": "customer"},
                {"name": "boss", "composites": {"client": {"web": ["clerk"]}}},
            ],
            "client": {"web": [{"name": "clerk"}]},
        },
        "clientScopes": [
            {"name": "admin-api", "protocolMappers": [{"protocolMapper": "oidc-audience-mapper", "config": {"included.custom.audience": "urn:admin", "access.token.claim": "true"}}]},
            {"name": "shop-api"},
        ],
        "scopeMappings": [{"clientScope": "offline_access", "roles": ["offline_access"]}, {"clientScope": "shop-api", "roles": ["customer"]}],
        "clientScopeMappings": {"web": [{"clientScope": "admin-api", "roles": ["clerk"]}]},
        "clients": [
            client("web", false, json!(["admin-api", "shop-api", "profile"])), client("job", true, json!(["admin-api"])), client("idle", true, json!(["admin-api"])),
        ],
        "users": [
            {"id": "u", "username": "ada", "realmRoles": ["default-roles-shop", "boss"]}, user,
            {"id": "j", "username": "service-account-job", "serviceAccountClientId": "job", "realmRoles": ["boss"]},
            {"id": "i", "username": "service-account-idle", "serviceAccountClientId": "idle", "realmRoles": ["default-roles-shop"]},
        ],
    })
}

#[test]
fn a_scope_for_people_with_a_role_is_given_to_no_client_that_everybody_may_use() {
    let bob = json!({"id": "v", "username": "bob", "realmRoles": ["default-roles-shop"]});
    let (document, lines) = imported(&realm(bob));
    let clients = &document["clients"];
    assert_eq!(
        clients[0]["scope"],
        "shop-api offline_access openid profile"
    );
    assert_eq!(clients[0]["default_scope"], "profile shop-api");
    // Its own account has the role, and the other's has not.
    assert_eq!(clients[1]["scope"], "admin-api openid");
    assert_eq!(clients[2]["scope"], "openid");
    let line = "client web, client idle: left out of scope: admin-api: there it was for these roles alone: web/clerk. ";
    assert!(lines.contains(line), "{lines}");
}

#[test]
fn a_default_role_that_somebody_lacks_keeps_its_scope_from_all() {
    let bob = json!({"id": "v", "username": "bob", "realmRoles": ["boss"]});
    let (document, lines) = imported(&realm(bob));
    assert_eq!(document["clients"][0]["scope"], "openid profile");
    for scope in ["offline_access", "shop-api"] {
        assert!(
            lines.contains(&format!("left out of scope: {scope}: there it was for")),
            "{lines}"
        );
    }
    // A role that nobody has by default, as in an export without users.
    let mut alone = realm(json!({"id": "v", "username": "bob"}));
    alone["users"] = json!([]);
    let (document, _) = imported(&alone);
    let scope = &document["clients"][0]["scope"];
    assert_eq!(scope, "shop-api offline_access openid profile");
}

#[test]
fn a_client_whose_tokens_named_some_roles_does_not_get_all() {
    let client = |id: &str, full: Value| {
        json!({"clientId": id, "secret": "a-secret-of-thirty-two-characters", "standardFlowEnabled": false, "serviceAccountsEnabled": true,
               "fullScopeAllowed": full, "defaultClientScopes": ["roles", "stock"]})
    };
    let account = |of: &str| json!({"id": of, "username": format!("service-account-{of}"), "serviceAccountClientId": of, "realmRoles": ["a", "b", "c"], "clientRoles": {"some": ["own"]}});
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "roles": {"realm": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "client": {"some": [{"name": "own"}], "both": [{"name": "x", "composites": {"client": {"some": ["own"]}}}]}},
        "clientScopes": [{"name": "stock"}],
        "scopeMappings": [{"client": "some", "roles": ["a"]}, {"client": "both", "roles": ["a"]}, {"clientScope": "stock", "roles": ["b"]}],
        "clients": [client("some", json!(false)), client("all", json!(true)), {"clientId": "asks", "consentRequired": true, "defaultClientScopes": ["roles"]},
                    {"clientId": "both", "fullScopeAllowed": false, "publicClient": true, "redirectUris": ["https://a.example/cb"], "defaultClientScopes": ["roles", "stock"]}],
        "users": [account("some"), account("all")],
    }));
    let clients = &document["clients"];
    // No user gets a token by it.
    assert_eq!(clients[0]["scope"], "stock openid roles");
    assert_eq!(
        clients[0]["claims"],
        json!({"role": ["a", "b", "some/own"]})
    );
    assert_eq!(clients[1]["scope"], "stock openid roles");
    let all = json!({"role": ["a", "b", "c", "some/own"]});
    assert_eq!(clients[1]["claims"], all);
    assert_eq!(clients[2]["scope"], "openid");
    for line in [
        "client both: left out of scope: roles: there it was for these roles alone: a, b, both/x, some/own. ",
        "client asks: left out of scope: roles: there it was for these roles alone: none. ",
    ] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
}

#[test]
fn an_audience_of_id_tokens_is_no_audience_of_access_tokens() {
    let mapper = |audience: &str, said: Value| {
        let mut config = json!({"included.custom.audience": audience, "id.token.claim": "true"});
        config
            .as_object_mut()
            .unwrap()
            .extend(said.as_object().unwrap().clone());
        let name = audience.trim_start_matches("urn:");
        json!({"name": name, "protocolMapper": "oidc-audience-mapper", "config": config})
    };
    let (document, lines) = imported(
        &json!({"realm": "shop", "clientScopes": [{"name": "api", "protocolMappers": [
            mapper("urn:yes", json!({"access.token.claim": "true"})),
            mapper("urn:no", json!({"access.token.claim": "false"})),
            mapper("urn:unsaid", json!({})),
            mapper("urn:second", json!({"access.token.claim": "true", "included.client.audience": "web"})),
        ]}]}),
    );
    assert_eq!(document["resources"], json!([{"name": "urn:yes"}]));
    for line in [
        "scope api: the audience of mapper no is left out: it was none of access tokens",
        "scope api: the audience of mapper unsaid is left out: it was none",
        "scope api: the audience of mapper second is left out: it is a client",
    ] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    assert!(!lines.contains("urn:"), "{lines}");
}

#[test]
fn roles_of_one_name_are_nobodys() {
    let role = |name: &str, composites: Value| json!({"name": name, "composites": composites});
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "roles": {
            "realm": [role("shop/admin", json!({"realm": ["root"]})), role("root", json!({})), role("clerk", json!({"client": {"shop": ["admin"]}}))],
            "client": {"shop": [{"name": "admin"}], "a/b": [{"name": "c"}], "a": [{"name": "b/c"}]},
        },
        "users": [
            {"id": "u", "username": "ada", "clientRoles": {"shop": ["admin"], "a": ["b/c"]}},
            {"id": "v", "username": "bob", "realmRoles": ["shop/admin", "clerk"]},
            // Not among the roles of the realm, and one all the same.
            {"id": "w", "username": "cid", "realmRoles": ["web/x"]}, {"id": "x", "username": "dan", "clientRoles": {"web": ["x"]}},
        ],
    }));
    let roles = |user: usize| document["users"][user]["claims"].get("role").cloned();
    assert_eq!(
        [roles(0), roles(1), roles(2), roles(3)],
        [None, Some(json!(["clerk"])), None, None]
    );
    let line = "role a/b/c, role shop/admin, role web/x: two roles have this name here";
    assert!(lines.contains(line), "{lines}");
}
