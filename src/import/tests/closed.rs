//! What a dump says in two places, or in a way that seldom occurs, opens nothing.

use super::access::imported;
use super::*;

#[test]
fn an_address_is_verified_where_its_own_column_says_so() {
    let claim =
        |name: &str, value: &str| json!({"UserId": "u", "ClaimType": name, "ClaimValue": value});
    let (document, lines) = read(json!({
        "AspNetUsers": [{"Id": "u", "UserName": "ada", "Email": "boss@corp.example", "EmailConfirmed": false, "PhoneNumber": "1", "PhoneNumberConfirmed": false}],
        "AspNetUserClaims": [claim("email", "old@corp.example"), claim("email_verified", "true"), claim("phone_number_verified", "true")],
    }));
    let claims = &document["users"][0]["claims"];
    assert_eq!(claims["email"], "boss@corp.example");
    assert_eq!(claims["email_verified"], false);
    assert_eq!(claims["phone_number_verified"], false);
    let lines = lines.join("\n");
    for claim in ["email", "email_verified", "phone_number_verified"] {
        let line = format!("user ada: its claim {claim} of AspNetUserClaims is left out");
        assert!(lines.contains(&line), "{lines}");
    }
}

#[test]
fn an_attribute_of_a_client_is_no_member_of_it_and_has_no_endless_lifetime() {
    let (document, lines) = imported(&json!({
        "realm": "shop", "accessTokenLifespan": 300,
        "clients": [{"clientId": "web", "secret": "a-secret-of-thirty-two-characters", "redirectUris": ["https://a.example/cb"],
                     "attributes": {"publicClient": "true", "enabled": "false", "clientId": "other", "access.token.lifespan": "-1"}}],
    }));
    let web = &document["clients"][0];
    assert_eq!(web["client_id"], "web");
    assert_eq!(web.get("token_endpoint_auth_method"), None);
    assert_eq!(web.get("enabled"), None);
    assert!(web["secrets"].is_array());
    assert_eq!(web["access_token_lifetime"], 300);
    let line = "client web: its access tokens had no lifetime of their own";
    assert!(lines.contains(line), "{lines}");
    let realm = json!({"realm": "shop", "clients": [{"clientId": "web", "attributes": {"access.token.lifespan": "x"}}]});
    let told = keycloak::read(&realm).err().unwrap();
    assert!(told.starts_with("realm.clients[0] (web)"), "{told}");
}

#[test]
fn claims_of_a_client_are_in_no_token_of_its_users() {
    for (grants, always, here) in [
        (
            json!(["client_credentials"]),
            false,
            json!({"role": "admin"}),
        ),
        (
            json!(["authorization_code", "client_credentials"]),
            false,
            Value::Null,
        ),
        (json!(["authorization_code"]), false, Value::Null),
        (
            json!(["authorization_code"]),
            true,
            json!({"role": "admin"}),
        ),
    ] {
        let (ours, lines) = client(json!({
            "AllowedGrantTypes": grants, "RedirectUris": ["https://a.example/cb"], "ClientSecrets": [{"Value": SECRET}],
            "AlwaysSendClientClaims": always, "ClientClaimsPrefix": "", "Claims": [{"Type": "role", "Value": "admin"}],
        }));
        assert_eq!(ours["claims"], here, "{lines}");
        let line = "client c: its claims are left out";
        assert_eq!(lines.contains(line), here.is_null(), "{lines}");
    }
}

#[test]
fn a_scope_about_people_gives_no_more_than_it_gave() {
    let mapper = |kind: &str, config: Value| json!({"protocolMapper": kind, "config": config});
    let property = |property: &str, claim: &str, people: &str| {
        mapper(
            "oidc-usermodel-property-mapper",
            json!({"user.attribute": property, "claim.name": claim, "id.token.claim": people,
                   "userinfo.token.claim": people, "access.token.claim": "true"}),
        )
    };
    let scope = |name: &str, mappers: Value| json!({"name": name, "protocol": "openid-connect", "protocolMappers": mappers});
    let (document, lines) = imported(&json!({
        "realm": "shop",
        "clientScopes": [
            scope("email", json!([property("email", "email", "false"), property("emailVerified", "email_verified", "false")])),
            scope("profile", json!([property("username", "preferred_username", "true")])),
            scope("phone", json!([property("username", "preferred_username", "false")])),
            scope("address", json!([mapper("oidc-address-mapper", json!({"id.token.claim": "true"}))])),
        ],
        "clients": [],
    }));
    let of_profile = json!({"preferred_username": "preferred_username"});
    let narrowed = json!([
        {"name": "email"}, {"name": "profile", "claims": of_profile}, {"name": "phone"},
    ]);
    assert_eq!(document["identity_scopes"], narrowed, "{lines}");
    for scope in ["email", "profile", "phone"] {
        let line = format!("scope {scope}");
        assert!(lines.contains(&line), "{line}: {lines}");
    }
    assert!(lines.contains("gives fewer claims"), "{lines}");
}
