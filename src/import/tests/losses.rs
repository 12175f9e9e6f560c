//! What goes over in another form, and what each loss is told by.

use super::access::imported;
use super::*;

fn mapper(name: &str, kind: &str, config: Value) -> Value {
    let mut all = json!({"id.token.claim": "true", "access.token.claim": "true", "userinfo.token.claim": "true"});
    all.as_object_mut()
        .unwrap()
        .extend(config.as_object().unwrap().clone());
    json!({"name": name, "protocolMapper": kind, "config": all})
}

/// An attribute as a claim of a type.
fn attribute(attribute: &str, claim: &str, json_type: &str) -> Value {
    let config =
        json!({"user.attribute": attribute, "claim.name": claim, "jsonType.label": json_type});
    mapper(claim, "oidc-usermodel-attribute-mapper", config)
}

fn many(attribute_name: &str, claim: &str, json_type: &str) -> Value {
    let mut many = attribute(attribute_name, claim, json_type);
    many["config"]["multivalued"] = json!("true");
    many
}

fn all_told(lines: &str, wanted: &[&str]) {
    for line in wanted {
        assert!(lines.contains(line), "{line}: {lines}");
    }
}

#[test]
fn attributes_of_a_stock_realm_are_the_claims_of_its_tokens() {
    let stock: Value =
        serde_json::from_str(include_str!("../../../tests/fixtures/keycloak-realm.json")).unwrap();
    let address = json!({"street": ["1 Road"], "postal_code": ["12"], "region": ["north"]});
    let mut attributes = json!({
        "phoneNumber": ["+49 30 1", "+49 30 2"], "phoneNumberVerified": ["True"], "middleName": ["M"], "updatedAt": ["7"], "nickname": ["Addy"],
        "phone_number": ["forged"], "address": ["forged"],
    });
    attributes
        .as_object_mut()
        .unwrap()
        .extend(address.as_object().unwrap().clone());
    let (document, lines) = imported(&json!({
        "realm": "shop", "clientScopes": stock["clientScopes"], "users": [{"id": "u", "username": "ada", "attributes": attributes}],
    }));
    let claims = json!({
        "phone_number": "+49 30 1", "phone_number_verified": true, "middle_name": "M", "updated_at": 7, "nickname": "Addy",
        "address": {"street_address": "1 Road", "postal_code": "12", "region": "north"},
        "street": "1 Road", "postal_code": "12", "region": "north",
    });
    assert_eq!(document["users"][0]["claims"], claims);
    all_told(
        &lines,
        &[
            "user ada: attribute phoneNumber has several values: the claim is the first of them",
            "user ada: attribute phone_number is left out",
            "user ada: attribute address is left out",
        ],
    );
    assert!(!lines.contains(": mapper "), "{lines}");
}

#[test]
fn a_locale_that_is_no_language_tag_stays_behind_with_a_line() {
    let person = |name: &str, locale: &str| json!({"id": name, "username": name, "attributes": {"locale": [locale]}});
    let (document, lines) = imported(&json!({
        "realm": "shop", "users": [person("ada", "de_DE.UTF-8"), person("bob", "pt_BR"), person("cid", "")],
    }));
    let locales: Vec<&Value> = (0..3)
        .map(|place| &document["users"][place]["claims"]["locale"])
        .collect();
    assert_eq!(json!(locales), json!([null, "pt_BR", null]), "{document}");
    all_told(&lines, &["user ada, user cid: left out of claims: locale"]);
}

#[test]
fn a_mapper_added_to_a_scope_of_keycloak_has_a_line_or_is_taken_over() {
    let role = "oidc-usermodel-realm-role-mapper";
    let scope = |name: &str, mappers: Value| json!({"name": name, "protocolMappers": mappers});
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "clientScopes": [
            scope("own", json!([attribute("avatar", "face", "String"), attribute("firstName", "first", "String")])),
            scope("profile", json!([attribute("avatar", "picture", "String"), attribute("title", "title", "String"), attribute("work", "given_name", "String")])),
            scope("roles", json!([mapper("flat", role, json!({"claim.name": "roles"})), mapper("stock", role, json!({"claim.name": "realm_access.roles"}))])),
            scope("basic", json!([mapper("api", "oidc-audience-mapper", json!({"included.custom.audience": "urn:api"}))])),
        ],
        "users": [{"id": "u", "username": "ada", "attributes": {"avatar": ["https://a.example/a.png"]}}],
    }));
    assert_eq!(
        document["users"][0]["claims"]["picture"],
        "https://a.example/a.png"
    );
    let claims = json!({"picture": "face", "given_name": "first"});
    let scopes = document["identity_scopes"].as_array().unwrap();
    let claims_of = |name: &str| {
        let scope = scopes.iter().find(|scope| scope["name"] == name);
        scope.unwrap()["claims"].clone()
    };
    assert_eq!(claims_of("own"), claims);
    let added = json!({"picture": "picture", "title": "title", "work": "given_name"});
    assert_eq!(claims_of("profile"), added);
    all_told(
        &lines,
        &[
            "scope profile: gives fewer claims than the scope of that name here",
            "scope roles: mapper flat is left out: oidc-usermodel-realm-role-mapper, which gave roles",
            "scope basic: mapper api is left out: oidc-audience-mapper",
        ],
    );
    assert!(!lines.contains("mapper stock"), "{lines}");
}

#[test]
fn claims_have_the_types_of_their_mappers() {
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "clientScopes": [
            {"name": "a", "protocolMappers": [
                attribute("floor", "floor", "int"), attribute("vip", "vip", "boolean"), attribute("car", "car", "JSON"), many("team", "teams", "String"),
                attribute("unit", "unit", "String"), attribute("unit", "dept", "String"), attribute("desk", "unit", "String"), attribute("odd", "odd", "int"),
            ]},
            {"name": "b", "protocolMappers": [attribute("floor", "floor", "String"), many("unit", "units", "String")]},
        ],
        "users": [{"id": "u", "username": "ada", "attributes": {
            "floor": ["3"], "vip": ["true"], "car": ["{\"wheels\": 4}"], "team": ["one"], "unit": ["x", "y"], "odd": ["no number"], "free": ["1", "2"],
        }}],
    }));
    let claims = json!({
        "floor": 3, "vip": true, "car": {"wheels": 4}, "team": ["one"], "unit": "x", "odd": "no number", "free": ["1", "2"],
    });
    assert_eq!(document["users"][0]["claims"], claims);
    let claims = json!({"floor": "floor", "vip": "vip", "car": "car", "team": "teams", "unit": "unit", "odd": "odd"});
    assert_eq!(document["identity_scopes"][0]["claims"], claims);
    all_told(
        &lines,
        &[
            "scope a: mapper dept is left out: another gives dept, or the same by another name",
            "scope a: mapper unit is left out: another gives unit",
            "scope b: mapper floor: its claim has the form here that another mapper",
            "scope b: mapper units: its claim has the form here that another mapper",
            "user ada: attribute unit has several values",
        ],
    );
}

#[test]
fn scopes_of_the_import_take_no_name_of_the_realm() {
    let audience = mapper(
        "api",
        "oidc-audience-mapper",
        json!({"included.custom.audience": "urn:api"}),
    );
    let (document, _) = imported(&json!({
        "realm": "shop", "clientScopes": [{"name": "web-api"}, {"name": "web-claims"}],
        "clients": [{"clientId": "web", "publicClient": true, "redirectUris": ["https://a.example/cb"],
                     "protocolMappers": [attribute("unit", "unit", "String"), audience]}],
    }));
    let web = &document["clients"][0];
    assert_eq!(web["scope"], "web-api-own web-claims-own openid");
    assert_eq!(web["default_scope"], "web-api-own web-claims-own");
}

#[test]
fn what_stays_behind_of_a_dump_is_told() {
    let jwk = gatepost_protocol::words::samples::p256(1).to_jwk();
    let key = json!({"Type": "JWK", "Value": jwk.to_string(), "ApiResourceId": 1});
    let (document, lines) = read(json!({
        "ApiResources": [{"Id": 1, "Name": "api", "UserClaims": ["sub", "name", "amr"]}, {"Id": 2, "Name": "web"}],
        "ApiScopes": [{"Name": "read"}, {"Name": "off", "Enabled": false}, {"Name": "profile"}],
        "ApiResourceScopes": [{"ApiResourceId": 1, "Scope": "gone"}, {"ApiResourceId": 1, "Scope": "off"}, {"ApiResourceId": 1, "Scope": "read"},
                              {"ApiResourceId": 2, "Scope": "read"}],
        "ApiResourceSecrets": [key, {"Value": SECRET, "ApiResourceId": 1}],
        "Clients": [{"Id": 1, "ClientId": "web", "Claims": [{"Type": "id", "Value": "x"}]}],
        "AspNetUsers": [{"Id": "u", "UserName": "ada"}],
        "AspNetUserRoles": [{"UserId": "u", "RoleId": "gone"}],
    }));
    let resources = json!([{"name": "api", "claims": ["name"], "secrets": [{"sha256": SECRET}]}]);
    assert_eq!(document["resources"], resources);
    assert_eq!(
        document["resource_scopes"],
        json!([{"name": "read", "resources": ["api"]}])
    );
    assert_eq!(document["clients"][0].get("claims"), None);
    assert_eq!(document["users"][0]["claims"].get("role"), None);
    taken(&document);
    all_told(
        &lines.join("\n"),
        &[
            "api: a key is left out: a resource proves itself by a secret",
            "api: left out of claims: amr: reserved",
            "api: left out of its scopes: gone: no enabled scope",
            "api: left out of its scopes: off: no enabled scope",
            "web: left out: a client has the name of this resource",
            "client web: left out of claims: client_id: reserved",
            "user ada: a role is left out: it is not among AspNetRoles",
        ],
    );
}

/// `plan` takes the document.
pub fn taken(document: &Value) {
    let judged = Document::from_json(
        &strict_json::parse(&document.to_string()).unwrap(),
        &ClientDefaults::default(),
        &Stored::default(),
    );
    assert!(judged.is_ok(), "{judged:?}");
}

#[test]
fn secrets_and_keys_that_cannot_move_are_left_out_and_never_told() {
    let public = gatepost_protocol::words::samples::p256(1).to_jwk();
    let other = gatepost_protocol::words::samples::p256(2).to_jwk();
    let private = |key: &Value| {
        let mut private = key.clone();
        private["d"] = json!("canary-4711");
        private
    };
    let key = |value: &Value, end: Value| json!({"Type": "JWK", "Value": value.to_string(), "Expiration": end});
    let oct = json!({"kty": "oct", "k": "canary-4711"});
    let secret = |end: &str| json!({"Value": SECRET, "Expiration": end});
    for (secrets, kept, line) in [
        (
            json!([key(&private(&public), Value::Null)]),
            json!({"keys": [public]}),
            "a key was private there: its public part alone is registered",
        ),
        (
            json!([key(&public, Value::Null), key(&public, Value::Null)]),
            json!({"keys": [public]}),
            "a key is left out: it is a key that stands in the set before",
        ),
        (
            json!([key(&public, Value::Null), key(&other, json!("2030-01-01"))]),
            json!({"keys": [public]}),
            "a secret is left out: its Expiration is no time",
        ),
        (
            json!([
                key(&public, Value::Null),
                key(&other, json!("2020-01-01T00:00:00"))
            ]),
            json!({"keys": [public]}),
            "a key is left out: it had an Expiration",
        ),
        (
            json!([key(&oct, Value::Null)]),
            Value::Null,
            "a key is left out: it holds a private or symmetric key",
        ),
        (
            json!([key(
                &json!({"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}),
                Value::Null
            )]),
            Value::Null,
            "a key is left out: it is for nothing that signs here",
        ),
        (
            json!([secret("soon")]),
            Value::Null,
            "a secret is left out: its Expiration is no time",
        ),
    ] {
        let code = json!({"AllowedGrantTypes": ["authorization_code"], "RedirectUris": ["https://a.example/cb"], "ClientSecrets": secrets});
        let (ours, lines) = client(code);
        assert_eq!(ours.get("jwks").unwrap_or(&Value::Null), &kept, "{lines}");
        assert_eq!(ours.get("secrets"), None, "{lines}");
        assert!(lines.contains(line), "{line}: {lines}");
        assert!(!format!("{ours} {lines}").contains("canary"), "{lines}");
    }
}

#[test]
fn what_plan_would_refuse_of_a_realm_stays_behind() {
    let argon2 = |memory: &str| {
        let how = json!({"hashIterations": 5, "algorithm": "argon2", "additionalParameters": {"memory": [memory], "type": ["id"], "version": ["1.3"], "parallelism": ["1"]}});
        let secret =
            json!({"value": "BwcHBwcHBwcHBwcHBwcHBwcHBwc=", "salt": "BwcHBwcHBwcHBwcHBwcHBw=="});
        json!([{"type": "password", "secretData": secret.to_string(), "credentialData": how.to_string()}])
    };
    let fixed = |claim: &str| {
        mapper(
            claim,
            "oidc-hardcoded-claim-mapper",
            json!({"claim.name": claim, "claim.value": "x"}),
        )
    };
    let audience = |name: &str| {
        mapper(
            name,
            "oidc-audience-mapper",
            json!({"included.custom.audience": name}),
        )
    };
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "clientScopes": [{"name": "a", "protocolMappers": [attribute("my unit", "unit", "String"), attribute("unit", "iss", "String"), audience("web"), audience("urn:api")]}],
        "clients": [{"clientId": "web", "publicClient": true, "redirectUris": ["https://a.example/cb"], "protocolMappers": [fixed("sub"), fixed("scope"), fixed("tier")]}],
        "users": [{"id": "u", "username": "ada", "credentials": argon2("2000000")}, {"id": "v", "username": "bob", "credentials": argon2("7168")}],
    }));
    taken(&document);
    assert_eq!(document["clients"][0]["claims"], json!({"tier": "x"}));
    assert_eq!(document["resources"], json!([{"name": "urn:api"}]));
    assert_eq!(document["users"][0].get("password_hash"), None);
    assert!(document["users"][1].get("password_hash").is_some());
    all_told(
        &lines,
        &[
            "client web: mapper sub is left out: oidc-hardcoded-claim-mapper, which gave sub",
            "client web: mapper scope is left out",
            "scope a: mapper unit is left out",
            "scope a: mapper iss is left out",
            "scope a: the audience of mapper web is left out: it is a client",
            "user ada: the password is left out: its hash has a form or a cost that is not taken here. Run `gatepost user invite`",
        ],
    );
}

#[test]
fn each_kind_of_factor_is_named_and_the_last_line_has_the_command() {
    let user = |name: &str, more: Value| {
        let mut user =
            json!({"Id": name, "UserName": name, "TwoFactorEnabled": true, "PasswordHash": HASH});
        user.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        user
    };
    let (_, lines) = read(json!({
        "AspNetUsers": [
            user("o'neil", json!({"Email": "o@x.example", "EmailConfirmed": true})),
            user("bob", json!({"PhoneNumber": "1", "PhoneNumberConfirmed": 1, "Email": "b@x.example", "EmailConfirmed": 0})),
            user("cid", json!({"Email": "c@x.example", "EmailConfirmed": 1, "PhoneNumber": "1", "PhoneNumberConfirmed": 1, "PasswordHash": null})),
            user("dan", json!({"LockoutEnd": "2099-01-01T00:00:00Z"})), user("eve", json!({})),
        ],
        "AspNetUserTokens": [{"UserId": "eve", "LoginProvider": "[AspNetUserStore]", "Name": "AuthenticatorKey", "Value": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}],
    }));
    all_told(
        &lines.join("\n"),
        &[
            "user o'neil: the second factor is left out: codes by e-mail",
            "user bob: the second factor is left out: codes by SMS",
            "user cid: the second factor is left out: codes by e-mail or SMS",
            "user dan: the second factor is left out: no app, and no confirmed",
        ],
    );
    let (last, before) = lines.split_last().unwrap();
    let command =
        "printf '%s\\n' 'o'\\''neil' 'bob' | gatepost user reset --enrol --from - --links FILE";
    assert!(before.last().unwrap().ends_with(command), "{before:?}");
    let command = "printf '%s\\n' 'cid' | gatepost user invite --from - --links FILE";
    assert!(
        last.starts_with("people who cannot sign in: 1. ") && last.ends_with(command),
        "{last}"
    );

    let otp = json!({"type": "otp", "secretData": "{}", "credentialData": "{}"});
    let password = json!({"type": "password", "secretData": "{\"value\":\"BwcHBwcHBwcHBwcHBwcHBwcHBwc=\",\"salt\":\"BwcHBwcHBwcHBwcHBwcHBw==\"}",
                          "credentialData": "{\"hashIterations\":1000,\"algorithm\":\"pbkdf2\"}"});
    let (_, lines) = imported(&json!({"realm": "shop", "users": [
        {"id": "u", "username": "ada", "credentials": [otp, password, {"type": "webauthn-passwordless"}, {"type": "recovery-authn-codes"}, {"type": "ours"}]},
    ]}));
    all_told(
        &lines,
        &[
            "user ada: a second factor is left out: an app whose codes",
            "user ada: a second factor is left out: a passkey (WebAuthn)",
            "user ada: a second factor is left out: recovery codes",
            "user ada: a second factor is left out: of another kind",
            "people whose second factor did not move: 1. ",
        ],
    );
    assert!(
        lines.ends_with("printf '%s\\n' 'ada' | gatepost user reset --enrol --from - --links FILE")
    );
}

#[test]
fn lines_hold_no_values_of_the_dump() {
    let canary = "canary-4711";
    let uri = format!("https://*.example/cb?key={canary}");
    let (_, lines) = read(json!({"Clients": [{
        "ClientId": "web", "AllowedGrantTypes": ["authorization_code"], "RedirectUris": ["https://a.example/cb", uri], "PostLogoutRedirectUris": [uri],
        "ClientSecrets": [{"Type": canary, "Value": canary}, {"Type": "X509Name", "Value": canary}],
        "Claims": [{"Type": "a", "Value": canary}], "ClientClaimsPrefix": canary,
    }]}));
    let lines = lines.join("\n");
    let (_, of_keycloak) = imported(&json!({
        "realm": "shop", "defaultSignatureAlgorithm": canary,
        "clients": [{"clientId": "web", "publicClient": true, "redirectUris": [uri], "attributes": {"post.logout.redirect.uris": uri, "id.token.signed.response.alg": canary}}],
        "users": [{"id": "u", "username": "ada", "credentials": [{"type": canary}]}],
    }));
    for lines in [&lines, &of_keycloak] {
        assert!(!lines.contains("canary"), "{lines}");
        let of_uri = "client web: number 1 of post_logout_redirect_uris is left out: ";
        assert!(lines.contains(of_uri), "{lines}");
    }
    all_told(
        &lines,
        &[
            "client web: number 2 of redirect_uris is left out: ",
            "client web: a secret is left out: of another type",
            "client web: a secret is left out: X509Name",
        ],
    );
}

/// Two notes that people have in turn, which took hours when each looked at all before.
#[test]
fn a_line_of_very_many_people_is_made_at_once() {
    let mut import = Import::default();
    for user in 0..300_000 {
        for text in ["a", "b", "a"] {
            import.note(&format!("user {user}"), text);
        }
    }
    let (_, lines) = import.finish(true);
    let notes = lines.iter().filter(|line| line.contains(" more: "));
    assert_eq!(notes.clone().count(), 2, "{lines:?}");
    for line in notes {
        assert!(line.starts_with("user 0, user 1, "), "{line}");
        assert!(
            line[..line.len() - 1].ends_with("user 9 and 299990 more: "),
            "{line}"
        );
    }
}
