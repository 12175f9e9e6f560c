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
    let stock: Value = serde_json::from_str(include_str!(
        "../../../../../tests/fixtures/keycloak-realm.json"
    ))
    .unwrap();
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
        "preferred_username": "ada", "phone_number": "+49 30 1", "phone_number_verified": true, "middle_name": "M", "updated_at": 7, "nickname": "Addy",
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
    assert_eq!(document["identity_scopes"][0]["claims"], claims);
    all_told(
        &lines,
        &[
            "scope profile: mapper title is left out: oidc-usermodel-attribute-mapper, which gave title",
            "scope profile: mapper given_name is left out",
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
        "preferred_username": "ada", "floor": 3, "vip": true, "car": {"wheels": 4}, "team": ["one"], "unit": "x", "odd": "no number", "free": ["1", "2"],
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
    assert_eq!(web["scope"], "openid web-api-own web-claims-own");
    assert_eq!(web["default_scope"], "web-api-own web-claims-own");
}
