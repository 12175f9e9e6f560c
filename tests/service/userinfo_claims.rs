//! What userinfo tells: claims by scope, in their shapes, as they are now.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use crate::support::flow::{
    access_token, authorize_path, code, decode_jwt, issued, redeem_with, sign_in, signed_in,
    tokens, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, RPS, document};

#[test]
fn changed_claims_show_at_once() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid roles");
    let role = || userinfo(&gatepost, &token).json().get("role").cloned();
    assert_eq!(role(), Some(json!(["admin"])));
    gatepost.run_sql(
        "UPDATE users SET claims = jsonb_set(claims, '{role}', '[\"clerk\", \"auditor\"]')",
    );
    assert_eq!(role(), Some(json!(["clerk", "auditor"])));
    for none in ["'[]'", "'\"\"'", "'null'", "'[\"\"]'", "'7'"] {
        gatepost.database.run(&format!(
            "UPDATE users SET claims = jsonb_set(claims, '{{role}}', {none})"
        ));
        assert_eq!(role(), None, "{none}");
    }
    gatepost.run_sql("UPDATE users SET claims = claims - 'role'");
    assert_eq!(role(), None);
}

#[test]
fn the_order_of_a_request_does_not_decide_what_a_claim_says() {
    let mut document = document();
    let scopes = document["identity_scopes"].as_array_mut().unwrap();
    scopes.push(json!({"name": "names", "claims": {"account_name": "preferred_username"}}));
    document["clients"][0]["scope"] = json!("openid profile names");
    document["users"][0]["claims"] =
        json!({"preferred_username": "Alice", "account_name": "CORP-alice"});
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let mut told = |scope: &str| {
        let token = access_token(&gatepost, &mut browser, scope);
        userinfo(&gatepost, &token).json()["preferred_username"].clone()
    };
    for scope in [
        "openid names profile",
        "openid profile names",
        "openid names",
    ] {
        assert_eq!(told(scope), "CORP-alice", "{scope}");
    }
    assert_eq!(told("openid profile"), "Alice");
}

#[test]
fn scopes_release_their_claims_in_their_standard_shapes() {
    let mut document = document();
    document["clients"][0]["scope"] = json!("openid profile email address phone roles orders.read");
    document["users"][0]["claims"] = json!({
            "name": "Alice Smith", "given_name": "Alice", "family_name": "Smith", "middle_name": "B.", "nickname": "al",
            "preferred_username": "alice", "profile": "https://alice.example", "picture": "https://alice.example/p.png",
            "website": "https://alice.example", "gender": "female", "birthdate": "1980-02-29", "zoneinfo": "Europe/Berlin",
            "locale": "de-DE", "updated_at": 1_700_000_000,
            "email": "alice@example.com", "email_verified": true,
            "phone_number": "+49 30 1234567", "phone_number_verified": false,
            "address": {"street_address": "Main St 1", "locality": "Berlin", "postal_code": "10115", "country": "DE"},
            "role": "admin", "department": "sales"
    });
    let gatepost = Gatepost::start_with(&document, &[]);
    // As an identity provider might send them.
    gatepost.database.run(
        "UPDATE users SET claims = claims || '{\"email_verified\": \"true\", \"updated_at\": \"1700000000\"}' \
         WHERE username = 'alice'",
    );
    let mut browser = signed_in(&gatepost);
    let mut told = |scope: &str| {
        let mut told = userinfo(&gatepost, &access_token(&gatepost, &mut browser, scope)).json();
        assert!(told["sub"].as_str().is_some_and(|sub| sub.len() >= 22));
        told.as_object_mut().unwrap().remove("sub");
        told
    };
    assert_eq!(told("openid"), json!({}));
    // Claims of a resource are for the resource.
    assert_eq!(told("openid orders.read"), json!({}));
    assert_eq!(
        told("openid email"),
        json!({"email": "alice@example.com", "email_verified": true})
    );
    assert_eq!(
        told("openid phone"),
        json!({"phone_number": "+49 30 1234567", "phone_number_verified": false})
    );
    let address = json!({"street_address": "Main St 1", "locality": "Berlin", "postal_code": "10115", "country": "DE"});
    assert_eq!(told("openid address"), json!({"address": address}));
    assert_eq!(told("openid roles"), json!({"role": ["admin"]}));
    let profile = json!({
        "name": "Alice Smith", "given_name": "Alice", "family_name": "Smith", "middle_name": "B.", "nickname": "al",
        "preferred_username": "alice", "profile": "https://alice.example", "picture": "https://alice.example/p.png",
        "website": "https://alice.example", "gender": "female", "birthdate": "1980-02-29", "zoneinfo": "Europe/Berlin",
        "locale": "de-DE", "updated_at": 1_700_000_000
    });
    assert_eq!(told("openid profile"), profile);
    // What does not fit its shape is left out rather than sent wrong.
    gatepost.database.run(
        "UPDATE users SET claims = '{\"name\": 7, \"given_name\": \"\", \"family_name\": null, \"email\": [], \
         \"email_verified\": \"maybe\", \"updated_at\": \"soon\", \"address\": 5, \"role\": {}, \
         \"locale\": \"de_DE.UTF-8\"}'",
    );
    let username = json!({"preferred_username": "alice"});
    assert_eq!(told("openid profile email address roles"), username);
}

#[test]
fn the_user_name_is_the_preferred_one_wherever_it_goes_out_and_under_whatever_name() {
    let mut registered = document();
    registered["identity_scopes"] = json!([
        {"name": "login", "claims": {"preferred_username": "login"}},
        {"name": "shown", "claims": {"shown": "preferred_username"}},
    ]);
    registered["resource_scopes"][0]["claims"] = json!(["preferred_username"]);
    let client = &mut registered["clients"][0];
    client["scope"] = json!("openid profile login shown orders.read");
    client["always_include_user_claims_in_id_token"] = json!(true);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let mut told = |scope: &str| {
        let all = tokens(&gatepost, &mut browser, "conf1", scope);
        let [access, id] = ["access_token", "id_token"].map(|name| all[name].as_str().unwrap());
        [
            userinfo(&gatepost, access).json(),
            decode_jwt(id).1,
            decode_jwt(access).1,
        ]
    };
    let alice = json!("alice");
    for claims in told("openid profile orders.read") {
        assert_eq!(claims["preferred_username"], alice, "{claims}");
    }
    for claims in &told("openid login")[..2] {
        assert_eq!(claims["login"], alice, "{claims}");
        assert_eq!(claims.get("preferred_username"), None, "{claims}");
    }
    for claims in told("openid shown") {
        let from_another = claims.get("preferred_username");
        assert_eq!(from_another, None, "{claims}");
    }
    // It follows the name, unless a claim says another one.
    let token = access_token(&gatepost, &mut browser, "openid profile");
    let now = || userinfo(&gatepost, &token).json()["preferred_username"].clone();
    let export = gatepost.run_well(&["export"], "");
    let mut export: Value = serde_json::from_str(&export).unwrap();
    let users = export["users"].as_array_mut().unwrap();
    users.retain(|user| user["username"] == "alice");
    users[0]["username"] = json!("alice.smith");
    gatepost.apply(&json!({"users": users}));
    assert_eq!(now(), json!("alice.smith"));
    gatepost.run_well(&["user", "set", "alice.smith", "preferred_username=Al"], "");
    assert_eq!(now(), json!("Al"));
}

#[test]
fn a_users_attributes_never_speak_for_the_protocol() {
    let reserved = [
        "sub",
        "iss",
        "aud",
        "exp",
        "iat",
        "nbf",
        "jti",
        "nonce",
        "acr",
        "amr",
        "auth_time",
        "azp",
        "sid",
        "client_id",
        "scope",
        "at_hash",
        "c_hash",
        "tenant",
        "idp",
    ];
    let gatepost = Gatepost::start();
    // As an older import might have left them, and with a scope that would release them all: it is
    // not taken.
    let attributes: Value = reserved
        .iter()
        .map(|name| (name.to_string(), json!("forged")))
        .collect::<Map<_, _>>()
        .into();
    let update = "UPDATE users SET claims = claims || $1";
    gatepost
        .database
        .client()
        .execute(update, &[&postgres::types::Json(&attributes)])
        .unwrap();
    let release = "UPDATE catalogue_entries SET document = jsonb_set(document, '{claims}', $1)";
    let claims = json!(reserved.iter().chain(&["role"]).collect::<Vec<_>>());
    gatepost
        .database
        .client()
        .execute(release, &[&postgres::types::Json(&claims)])
        .unwrap();
    gatepost.run_sql("UPDATE installation SET registry_version = registry_version + 1");
    gatepost.await_log("the scope", |log| {
        log.contains("roles: identity_scope.claims[1]: is a reserved claim")
    });
    let mut browser = signed_in(&gatepost);
    let all = tokens(&gatepost, &mut browser, "conf1", "openid roles orders.read");
    for name in ["access_token", "id_token"] {
        let (_, claims) = decode_jwt(all[name].as_str().unwrap());
        assert!(!claims.to_string().contains("forged"), "{name}: {claims}");
    }
    let told = userinfo(&gatepost, all["access_token"].as_str().unwrap()).json();
    assert_eq!(
        told.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["role", "sub"],
        "{told}"
    );
    assert!(!told.to_string().contains("forged"));
}

#[test]
fn every_answer_about_one_person_names_the_same_subject() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let all = tokens(&gatepost, &mut browser, "conf1", "openid");
    let token = all["access_token"].as_str().unwrap();
    let subjects = [
        decode_jwt(token).1,
        decode_jwt(all["id_token"].as_str().unwrap()).1,
        userinfo(&gatepost, token).json(),
    ];
    assert!(
        subjects
            .iter()
            .all(|claims| claims["sub"] == subjects[0]["sub"]),
        "{subjects:?}"
    );
    let sub = subjects[0]["sub"].as_str().unwrap();
    assert_eq!(
        URL_SAFE_NO_PAD.decode(sub).unwrap().len(),
        16,
        "128 random bits: {sub}"
    );
}

#[test]
fn a_claim_asked_for_by_name_is_told_only_as_long_as_the_client_may_have_it() {
    let mut registered = document();
    registered["identity_scopes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "hr", "claims": {"role": "salary"}}));
    registered["users"][0]["claims"]["salary"] = json!(["high"]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let claims = r#"{"userinfo":{"email":null,"role":null}}"#;
    let path = authorize_path("conf1", RP1, &[("scope", "openid"), ("claims", claims)]);
    let token = issued(&redeem_with(
        &gatepost,
        "conf1",
        &code(&mut browser, &path),
        &[],
    ));
    let told = || userinfo(&gatepost, token["access_token"].as_str().unwrap()).json();
    // As the scope fills it that the client may have, not as another one would.
    assert_eq!(told()["email"], "alice@example.com");
    assert_eq!(told()["role"], json!(["admin"]));
    registered["clients"][0]["scope"] = json!("openid profile roles");
    gatepost.apply(&registered);
    gatepost.settle();
    assert_eq!(told().get("email"), None);
    assert_eq!(told()["role"], json!(["admin"]));
}

#[test]
fn roles_and_groups_are_scopes_until_others_are_registered_under_these_names() {
    let mut document = document();
    document
        .as_object_mut()
        .unwrap()
        .remove("identity_scopes")
        .unwrap();
    document["clients"][0]["scope"] = json!("openid roles groups orders.read");
    document["users"][0]["claims"] = json!({"role": "admin", "groups": "staff", "name": "Alice"});
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[("scope", "openid")]));
    sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let mut told = |scope: &str| {
        let mut told = userinfo(&gatepost, &access_token(&gatepost, &mut browser, scope)).json();
        told.as_object_mut().unwrap().remove("sub");
        told
    };
    assert_eq!(told("openid"), json!({}));
    assert_eq!(told("openid groups"), json!({"groups": ["staff"]}));
    let both = json!({"role": ["admin"], "groups": ["staff"]});
    assert_eq!(told("openid roles"), both);
    // Only to a client that has it in its scope.
    let path = authorize_path("pub1", RPS, &[("scope", "openid roles")]);
    let answer = gatepost.browser().get(&path);
    assert_eq!(answer.query()["error"], "invalid_scope");
    // Either may become a scope of an API.
    gatepost.apply(&json!({"resource_scopes": [{"name": "roles", "claims": ["name"]}]}));
    let issued = tokens(&gatepost, &mut browser, "conf1", "openid roles");
    let token = issued["access_token"].as_str().unwrap();
    assert_eq!(decode_jwt(token).1["name"], "Alice");
    assert_eq!(userinfo(&gatepost, token).json().get("role"), None);
}
