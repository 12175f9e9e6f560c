//! What our rules refuse is left out, each with a line that says the rule. `imported` holds that
//! `apply` takes the rest.

use super::access::imported;
use super::*;

const SECRET_TEXT: &str = "a-secret-of-thirty-two-characters";

/// A realm with these members over a sound client, user, provider and scope.
fn realm(list: &str, members: &Value) -> Value {
    let mut realm = json!({
        "realm": "shop",
        "clients": [{"clientId": "web", "secret": SECRET_TEXT, "redirectUris": ["https://a.example/cb"], "defaultClientScopes": ["orders"]}],
        "users": [{"id": "u", "username": "ada"}],
        "identityProviders": [{"alias": "hub", "providerId": "oidc", "config": {"issuer": "https://hub.example", "clientId": "us", "clientSecret": "s"}}],
        "clientScopes": [{"name": "orders"}],
    });
    let object = realm[list][0].as_object_mut().unwrap();
    for (key, value) in members.as_object().unwrap() {
        match (object.get_mut(key), value) {
            (Some(Value::Object(config)), Value::Object(more)) => config.extend(more.clone()),
            _ => drop(object.insert(key.clone(), value.clone())),
        }
    }
    realm
}

#[test]
fn one_realm_for_each_rule_says_the_rule_and_leaves_out_no_more() {
    let long = "x".repeat(201);
    let uris = |uri: &str| json!(["https://a.example/cb", uri]);
    let attribute = |key: &str, value: &str| json!({"attributes": {key: value}});
    let config = |key: &str, value: &str| json!({"config": {key: value}});
    let password = |value: &str| json!({"credentials": [{"type": "password", "value": value}]});
    for (list, members, line, pointer, here) in [
        (
            "clients",
            json!({"clientId": "web "}),
            "client \"web \": left out: client_id must be 1 to 200 printable ASCII",
            "/clients",
            Value::Null,
        ),
        (
            "clients",
            json!({"clientId": " web"}),
            "client \" web\": left out: client_id must be",
            "/clients",
            Value::Null,
        ),
        (
            "clients",
            json!({"clientId": "bücher"}),
            "client bücher: left out: client_id must be",
            "/clients",
            Value::Null,
        ),
        (
            "clients",
            json!({"clientId": "a\"b"}),
            ": left out: client_id must be",
            "/clients",
            Value::Null,
        ),
        (
            "clients",
            json!({"clientId": long}),
            "x: left out: client_id must be",
            "/clients",
            Value::Null,
        ),
        (
            "clients",
            json!({"name": long}),
            "client web: client_name is left out: it must be at most 200 characters",
            "/clients/0/client_name",
            Value::Null,
        ),
        (
            "clients",
            json!({"name": "a\u{202e}b"}),
            "client web: client_name is left out: it must be at most 200 characters, without control, bidi",
            "/clients/0/client_name",
            Value::Null,
        ),
        (
            "clients",
            json!({"redirectUris": uris("https://*.example/cb")}),
            "client web: number 2 of redirect_uris is left out: ",
            "/clients/0/redirect_uris",
            json!(["https://a.example/cb"]),
        ),
        (
            "clients",
            json!({"redirectUris": uris("https://a.example/cb")}),
            "client web: number 2 of redirect_uris is left out: it stands in the list twice",
            "/clients/0/redirect_uris",
            json!(["https://a.example/cb"]),
        ),
        (
            "clients",
            attribute(
                "post.logout.redirect.uris",
                "https://a.example/##http://b.example/",
            ),
            "client web: number 2 of post_logout_redirect_uris is left out: ",
            "/clients/0/post_logout_redirect_uris",
            json!(["https://a.example/"]),
        ),
        (
            "clients",
            json!({"webOrigins": ["https://a.example/", "https://b.example/app"]}),
            "client web: number 2 of allowed_cors_origins is left out: it must be a scheme, host and port",
            "/clients/0/allowed_cors_origins",
            json!(["https://a.example"]),
        ),
        (
            "clients",
            json!({"webOrigins": ["https://b.example/app", "nothing"]}),
            "client web: number 1 of allowed_cors_origins is left out: it ",
            "/clients/0/allowed_cors_origins",
            Value::Null,
        ),
        (
            "clients",
            attribute("logoUri", "http://a.example/logo.png"),
            "client web: logo_uri is left out: it must be https",
            "/clients/0/logo_uri",
            Value::Null,
        ),
        (
            "clients",
            attribute("policyUri", "javascript:alert(1)"),
            "client web: policy_uri is left out: it must begin with https://",
            "/clients/0/policy_uri",
            Value::Null,
        ),
        (
            "clients",
            attribute("tosUri", "terms"),
            "client web: tos_uri is left out: it must begin with",
            "/clients/0/tos_uri",
            Value::Null,
        ),
        (
            "clients",
            attribute("backchannel.logout.url", "http://a.example/out"),
            "client web: backchannel_logout_uri is left out: it must be https",
            "/clients/0/backchannel_logout_uri",
            Value::Null,
        ),
        (
            "clients",
            json!({"frontchannelLogout": true, "attributes": {"frontchannel.logout.url": "http://a.example/out"}}),
            "client web: frontchannel_logout_uri is left out: it must be https",
            "/clients/0/frontchannel_logout_uri",
            Value::Null,
        ),
        (
            "clients",
            json!({"implicitFlowEnabled": true, "attributes": {"dpop.bound.access.tokens": "true"}}),
            "client web: set, as it has the implicit flow there: response_types code, id_token, code id_token",
            "/clients/0/dpop_bound_access_tokens",
            json!(true),
        ),
        (
            "clientScopes",
            json!({"name": "or ders"}),
            "scope or ders: left out: a name of a scope must be",
            "/resource_scopes",
            Value::Null,
        ),
        (
            "clientScopes",
            json!({"description": "d".repeat(1_001)}),
            "scope orders: description is left out: it must be at most 1000 characters",
            "/resource_scopes/0",
            json!({"name": "orders"}),
        ),
        (
            "identityProviders",
            json!({"alias": "our hub"}),
            "identity provider our hub: left out: name must be 1 to 64 letters",
            "/identity_providers",
            Value::Null,
        ),
        (
            "identityProviders",
            json!({"displayName": long}),
            "identity provider hub: display_name is left out: it must be at most 200",
            "/identity_providers/0/display_name",
            Value::Null,
        ),
        (
            "identityProviders",
            config("issuer", "http://hub.example"),
            "identity provider hub: left out: issuer must be https",
            "/identity_providers",
            Value::Null,
        ),
        (
            "identityProviders",
            config("clientId", ""),
            "identity provider hub: left out: client_id is required",
            "/identity_providers",
            Value::Null,
        ),
        (
            "identityProviders",
            config("clientSecret", &"s".repeat(2_049)),
            "identity provider hub: client_secret is left out: it must be 1 to 2048",
            "/identity_providers/0/client_secret",
            Value::Null,
        ),
        (
            "identityProviders",
            config("defaultScope", "profile b\u{fc}cher"),
            "identity provider hub: left out of scope: bücher: it must be",
            "/identity_providers/0/scope",
            json!("openid profile"),
        ),
        (
            "users",
            json!({"id": "no subject"}),
            "user ada: sub is left out: it must be 1 to 255 printable ASCII",
            "/users/0/sub",
            Value::Null,
        ),
        (
            "users",
            json!({"username": "ada\u{200b}"}),
            ": left out: username must not hold control, bidi or zero-width",
            "/users",
            Value::Null,
        ),
        (
            "users",
            json!({"username": "ada "}),
            "user ada : left out: username must not begin or end with a space",
            "/users",
            Value::Null,
        ),
        (
            "users",
            json!({"attributes": {"iss": ["x"], "floor": ["3"]}}),
            "user ada: left out of claims: iss",
            "/users/0/claims/floor",
            json!("3"),
        ),
        (
            "users",
            json!({"firstName": "A\u{0}da", "lastName": "L"}),
            "user ada: left out of claims: given_name: ",
            "/users/0/claims/family_name",
            json!("L"),
        ),
        (
            "users",
            password("short"),
            "user ada: password is left out: it must be",
            "/users/0/password",
            Value::Null,
        ),
        (
            "users",
            json!({"federatedIdentities": [{"identityProvider": "hub", "userId": "7"}, {"identityProvider": "hub", "userId": "a\u{7}"}]}),
            "user ada: number 2 of identities is left out: it must be 1 to 256",
            "/users/0/identities",
            json!([{"issuer": "https://hub.example", "subject": "7"}]),
        ),
    ] {
        let (document, lines) = imported(&realm(list, &members));
        assert!(lines.contains(line), "{line}: {lines}");
        assert_eq!(
            document.pointer(pointer).unwrap_or(&Value::Null),
            &here,
            "{members}"
        );
        for (theirs, ours) in [
            ("clients", "clients"),
            ("users", "users"),
            ("identityProviders", "identity_providers"),
            ("clientScopes", "resource_scopes"),
        ] {
            let is_kept =
                theirs == list || document[ours].as_array().is_some_and(|all| all.len() == 1);
            assert!(is_kept, "{ours}: {document}");
        }
    }
}

#[test]
fn a_client_id_may_have_spaces_within_it_and_lines_quote_it() {
    let members = json!({"clientId": "My shop", "frontchannelLogout": false, "attributes": {"frontchannel.logout.url": "https://a.example/out"},
                         "protocolMappers": [{"protocolMapper": "oidc-usermodel-attribute-mapper", "config": {"user.attribute": "unit", "claim.name": "unit", "id.token.claim": "true"}}]});
    let (document, lines) = imported(&realm("clients", &members));
    assert_eq!(document["clients"][0]["client_id"], "My shop");
    assert_eq!(document["identity_scopes"][0]["name"], "My-shop-claims");
    assert!(
        lines.contains("client \"My shop\": frontchannel.logout.url is left out"),
        "{lines}"
    );
    assert!(!lines.contains("client My shop"), "{lines}");
}

#[test]
fn names_that_stand_twice_are_the_first_ones() {
    let client = |name: &str| json!({"clientId": "web", "name": name, "secret": SECRET_TEXT, "redirectUris": ["https://a.example/cb"]});
    let link = |id: &str, name: &str| json!({"id": id, "username": name, "federatedIdentities": [{"identityProvider": "hub", "userId": "7"}]});
    let mut whole = realm(
        "users",
        &json!({"federatedIdentities": [{"identityProvider": "hub", "userId": "7"}]}),
    );
    whole["clients"] = json!([client("first"), client("second")]);
    whole["clientScopes"] = json!([{"name": "orders"}, {"name": "orders"}]);
    let mut users = whole["users"].as_array().unwrap().clone();
    users.extend([
        json!({"id": "v", "username": "Ada"}),
        json!({"id": "u", "username": "bob"}),
        link("w", "eve"),
    ]);
    whole["users"] = json!(users);
    let (document, lines) = imported(&whole);
    assert_eq!(document["clients"].as_array().unwrap().len(), 1);
    assert_eq!(document["clients"][0]["client_name"], "first");
    let names: Vec<&Value> = document["users"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| &user["username"])
        .collect();
    assert_eq!(names, ["ada", "eve"]);
    assert_eq!(document["users"][1].get("identities"), None);
    for line in [
        "client web: left out: client_id is the same as that of clients[0]",
        "scope orders: left out: name is the same as that of resource_scopes[0]",
        "user Ada: left out: username is the same as that of users[0]",
        "user bob: left out: sub is the same as that of users[0]",
        "user eve: an account elsewhere is left out",
    ] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
}

#[test]
fn whoever_names_a_scope_that_was_left_out_goes_without_it() {
    let mut whole = realm(
        "clients",
        &json!({"defaultClientScopes": ["or ders", "profile"]}),
    );
    whole["clientScopes"] = json!([{"name": "or ders"}]);
    let (document, lines) = imported(&whole);
    assert_eq!(document["clients"][0]["default_scope"], "profile");
    assert!(
        lines.contains("client web: left out of scope: or ders"),
        "{lines}"
    );
}

#[test]
fn links_of_a_provider_that_was_left_out_stay_behind() {
    let mut whole = realm(
        "identityProviders",
        &json!({"config": {"issuer": "http://hub.example"}}),
    );
    whole["users"][0]["federatedIdentities"] = json!([{"identityProvider": "hub", "userId": "7"}]);
    let (document, lines) = imported(&whole);
    assert_eq!(document["users"][0].get("identities"), None);
    assert!(
        lines.contains("user ada: sign-ins by hub are left out: that provider does not move"),
        "{lines}"
    );
}

#[test]
fn a_client_that_keeps_people_to_its_providers_is_not_opened() {
    let client = |providers: Value, grants: Value| {
        let client = json!({"ClientId": "c", "AllowedGrantTypes": grants, "RedirectUris": ["https://a.example/cb"], "ClientSecrets": [{"Value": SECRET}],
                            "EnableLocalLogin": false, "IdentityProviderRestrictions": providers});
        let (document, lines) = read(json!({"Clients": [client]}));
        (document, lines.join("\n"))
    };
    let code = json!(["authorization_code"]);
    let (document, lines) = client(json!(["Corp login"]), code.clone());
    assert_eq!(document.get("clients"), None);
    assert!(
        lines.contains("client c: left out: identity_providers must be 1 to 64"),
        "{lines}"
    );
    let (document, lines) = client(json!(["Corp", "Corp login"]), code);
    assert_eq!(
        document["clients"][0]["identity_providers"],
        json!(["Corp"])
    );
    assert!(
        lines.contains("client c: number 2 of identity_providers is left out"),
        "{lines}"
    );
    let (document, lines) = client(json!(["Corp"]), json!(["authorization_code", "password"]));
    assert_eq!(
        document["clients"][0]["grant_types"],
        json!(["authorization_code"])
    );
    assert!(
        lines.contains("client c: password is left out: its people sign in by providers alone"),
        "{lines}"
    );
}

#[test]
fn names_of_identityserver_are_judged_as_well() {
    let (document, lines) = read(json!({
        "Clients": [{"ClientId": "web ", "AllowedScopes": ["openid"]}, {"ClientId": "my web", "ClientUri": "ftp://a.example"}],
        "IdentityResources": [{"Name": "both"}, {"Name": "openid"}], "ApiScopes": [{"Name": "both"}],
        "AspNetUsers": [{"Id": "no subject", "UserName": "ada"}, {"Id": "no subject either", "UserName": null}],
    }));
    assert_applicable(&document, &Stored::default());
    let lines = lines.join("\n");
    for line in [
        "client \"web \": left out: client_id must be",
        "client \"my web\": client_uri is left out: it must begin with",
        "both: left out: name is the name of a scope of the other kind",
        "user ada: sub is left out: it must be",
        "user no subject either: left out: username is required",
    ] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    assert_eq!(
        document["users"],
        json!([{"username": "ada", "enabled": true, "claims": {"name": "ada"}}])
    );
}

#[test]
fn a_realm_file_that_somebody_wrote_is_read() {
    let (document, lines) = imported(&json!({"realm": "shop", "users": [
        {"username": "ada", "attributes": {"team": "a"}, "credentials": [{"type": "password", "value": "correct horse battery"}]},
        {"username": "bob", "credentials": [{"value": "correct horse battery"}]},
        {"username": "cyd", "credentials": [{"type": "password", "value": "correct horse battery", "temporary": true}]},
        {"username": "dan", "credentials": [{"type": "password", "value": "${vault.dan}"}]},
    ]}));
    let users = document["users"].as_array().unwrap();
    let passwords: Vec<&Value> = users
        .iter()
        .map(|user| user.get("password").unwrap_or(&Value::Null))
        .collect();
    let clear = json!("correct horse battery");
    assert_eq!(passwords, [&clear, &clear, &Value::Null, &Value::Null]);
    assert!(users.iter().all(|user| user.get("sub").is_none()));
    assert_eq!(users[0]["claims"]["team"], "a");
    assert!(!lines.contains("correct"), "{lines}");
    for line in [
        "user cyd: the password is left out: it was to be changed first",
        "user dan: the password is left out: its hash",
    ] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
}

#[test]
fn a_file_of_several_realms_says_what_to_do() {
    let told = keycloak::read(&json!([{"realm": "a"}, {"realm": "b"}]))
        .err()
        .unwrap();
    assert!(
        told.contains("give one of them, as by jq '.[0]' FILE | gatepost import keycloak -"),
        "{told}"
    );
}
