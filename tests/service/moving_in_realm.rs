//! A realm that stands for what the fixture lacks, written by a script in the form of Keycloak's
//! exports: it moves in one round, and what it says is what tokens say afterwards.

use serde_json::{Value, json};

use crate::moving_in::{fixture, gatepost, import, moves_in_for_good};
use crate::moving_in_people::links_by;
use crate::support::claims::Says;
use crate::support::flow::{VERIFIER, authorize_path, basic, decode_jwt, issued, sign_in};
use crate::support::gatepost::Gatepost;
use crate::support::signer::{Signer, now};

const SECRET: &str = "a-secret-of-thirty-two-characters";
const PASSWORD: &str = "a password of the fixture";

fn with(mut object: Value, members: Value) -> Value {
    let members = members.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(members);
    object
}

/// A person with the password of the fixture's people, and an earlier one.
fn person(name: &str, members: Value) -> Value {
    let exported: Value = serde_json::from_str(&fixture("keycloak-realm.json")).unwrap();
    let people = exported["users"].as_array().unwrap();
    let carol = people.iter().find(|user| user["username"] == "carol");
    let password = carol.unwrap()["credentials"][0].clone();
    let earlier = with(password.clone(), json!({"type": "password-history"}));
    let person = json!({
        "id": format!("id-of-{name}"), "username": name, "enabled": true, "email": format!("{name}@shop.example"), "emailVerified": true,
        "realmRoles": ["default-roles-shop", "clerk"], "groups": [], "requiredActions": [], "credentials": [password, earlier],
    });
    with(person, members)
}

fn client(id: &str, members: Value) -> Value {
    let client = json!({
        "clientId": id, "enabled": true, "protocol": "openid-connect", "clientAuthenticatorType": "client-secret", "secret": SECRET,
        "standardFlowEnabled": true, "fullScopeAllowed": true, "redirectUris": [format!("https://{id}.example/cb")],
        "defaultClientScopes": ["profile"], "optionalClientScopes": [], "attributes": {},
    });
    with(client, members)
}

fn mapper(name: &str, kind: &str, config: Value) -> Value {
    let tokens = json!({"id.token.claim": "true", "access.token.claim": "false", "userinfo.token.claim": "true"});
    json!({"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": with(tokens, config)})
}

fn realm(keys: &Value) -> Value {
    let roles = mapper(
        "flat roles",
        "oidc-usermodel-realm-role-mapper",
        json!({"claim.name": "roles", "multivalued": "true", "jsonType.label": "String"}),
    );
    let unit = mapper(
        "unit",
        "oidc-usermodel-attribute-mapper",
        json!({"user.attribute": "unit", "claim.name": r"https://shop\.example/unit", "jsonType.label": "String"}),
    );
    let service = json!({"standardFlowEnabled": false, "serviceAccountsEnabled": true, "redirectUris": [], "defaultClientScopes": ["stock"]});
    json!({
        "realm": "shop", "enabled": true, "accessTokenLifespan": 300, "revokeRefreshToken": false, "failureFactor": 5, "maxDeltaTimeSeconds": 60,
        "loginWithEmailAllowed": true, "defaultRole": {"name": "default-roles-shop"},
        "roles": {"realm": [{"name": "default-roles-shop", "composite": true, "composites": {"realm": ["offline_access"]}}, {"name": "clerk"}, {"name": "boss"}]},
        "clientScopes": [{"name": "profile", "protocol": "openid-connect"}, {"name": "stock", "protocol": "openid-connect", "protocolMappers": []}],
        "clients": [
            client("portal", json!({"protocolMappers": [roles, unit], "webOrigins": ["https://portal.example/"],
                "attributes": {"minimum.acr.value": "1", "logoUri": "http://portal.example/logo.png", "backchannel.logout.url": "http://portal.example/out", "post.logout.redirect.uris": "http://portal.example/##https://portal.example/"}})),
            client("signed", with(service.clone(), json!({"clientAuthenticatorType": "client-jwt",
                "attributes": {"use.jwks.string": "true", "jwks.string": json!({ "keys": [keys] }).to_string(), "token.endpoint.auth.signing.alg": "ES256"}}))),
            client("exchanger", with(service, json!({"attributes": {"standard.token.exchange.enabled": "true"}}))),
            client("desk", json!({"publicClient": true, "redirectUris": ["com.example.desk:/cb"]})),
            client("tv", json!({"publicClient": true, "standardFlowEnabled": false, "redirectUris": [],
                "attributes": {"oauth2.device.authorization.grant.enabled": "true", "oauth2.device.code.lifespan": "120", "oauth2.device.polling.interval": "7"}})),
        ],
        "identityProviders": [
            {"alias": "our hub", "providerId": "oidc", "enabled": true, "config": {"issuer": "https://hub.example", "clientId": "x", "clientSecret": "y"}},
            {"alias": "partner", "providerId": "oidc", "enabled": true, "config": {"issuer": "https://partner.example", "clientId": "x", "clientSecret": "y"}},
        ],
        "users": [
            person("ada", json!({"realmRoles": ["default-roles-shop", "clerk", "boss"], "attributes": {"unit": ["sales"]}})),
            person("bob", json!({"requiredActions": ["UPDATE_PASSWORD"], "federatedIdentities": [{"identityProvider": "partner", "userId": "7", "userName": "bob"}]})),
            person("cid", json!({"credentials": [], "federatedIdentities": [{"identityProvider": "our hub", "userId": "8", "userName": "cid"}]})),
            person("o'neil", json!({"credentials": [{"type": "webauthn-passwordless", "secretData": "{}", "credentialData": "{}"}]})),
            person("dan", json!({"credentials": [], "enabled": false})),
        ],
    })
}

/// What `plan` exits with, and says.
fn plan(gatepost: &Gatepost, document: &Value) -> (Option<i32>, String) {
    let output = gatepost.run(&["plan", "-"], &document.to_string());
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(told).unwrap())
}

#[test]
fn a_realm_moves_in_one_round_and_says_what_it_said() {
    let mut gatepost = gatepost(&[]);
    let signer = Signer::es256("first");
    let (document, notes) = import(
        &gatepost,
        &["keycloak", "-"],
        &realm(&signer.jwk()).to_string(),
    );
    for said in [
        "identity provider our hub: left out: name must be",
        "user cid: sign-ins by our hub are left out",
        "client portal: logo_uri is left out: it must be https",
        "client portal: backchannel_logout_uri is left out: it must be https",
        "client portal: number 1 of post_logout_redirect_uris is left out",
        "client exchanger: standard.token.exchange.enabled: register token_exchange",
        "client desk: people are asked for consent each time",
        "identity provider partner: 4: so many people have no link",
        "realm shop: ssoSessionIdleTimeout: there a session ended",
        "bruteForceProtected, failureFactor, maxDeltaTimeSeconds: the settings",
        "scope profile: has no mappers there",
        "realm: passwords that people had before stay behind",
        "user bob: the password was to be changed first, and stays good here",
    ] {
        notes.assert_says(said);
    }
    notes.assert_says_not("second factor did not move");
    // Without the option what else there is is counted.
    let output = gatepost.run(
        &["import", "keycloak", "-"],
        &realm(&signer.jwk()).to_string(),
    );
    let few = String::from_utf8(output.stderr).unwrap();
    few.assert_says("\nEVERYTHING ELSE, WHICH --all SHOWS (lines: ");
    few.assert_says_not("failureFactor");
    assert_eq!(few.lines().last(), notes.lines().last());

    let (code, text) = plan(&gatepost, &document);
    assert_eq!(code, Some(3), "{text}");
    moves_in_for_good(&gatepost, &document);
    gatepost.serve();
    invites(&gatepost, notes.lines().last().unwrap());
    of_a_person(&gatepost);

    let claims = json!({"iss": "signed", "sub": "signed", "aud": gatepost.base_url, "exp": now() + 60, "jti": "one"});
    let assertion = signer.sign(&claims);
    let form = [
        ("grant_type", "client_credentials"),
        (
            "client_assertion_type",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ),
        ("client_assertion", &assertion),
    ];
    issued(&gatepost.post("/connect/token", &[], &form));

    let asked = [("client_id", "tv"), ("scope", "openid")];
    let device = gatepost
        .post("/connect/deviceauthorization", &[], &asked)
        .json();
    assert_eq!(
        (&device["expires_in"], &device["interval"]),
        (&json!(120), &json!(7))
    );
}

/// The last line is a command that makes a link for each who cannot sign in.
fn invites(gatepost: &Gatepost, line: &str) {
    assert!(line.starts_with("people who cannot sign in: 2. "), "{line}");
    let links = links_by(gatepost, line);
    let names: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cid", "o'neil"]);
    let link = links[0].1.strip_prefix(gatepost.origin()).unwrap();
    gatepost.browser().visit(link).assert_status(200);
    // Whoever has a password gets no such link, and then nobody does.
    let invite = [
        "user",
        "invite",
        "--from",
        "-",
        "--links",
        "links-of-nobody",
    ];
    let refused = gatepost.run(&invite, "ada\ncid\n");
    let told = String::from_utf8(refused.stderr).unwrap();
    told.assert_says("ada: that user has a way to sign in: use `gatepost user reset`");
    told.assert_says("no link was made");
    assert!(!std::path::Path::new("links-of-nobody").exists());
}

/// Roles and an attribute are in the claims that they had.
fn of_a_person(gatepost: &Gatepost) {
    let mut browser = gatepost.browser();
    let uri = "https://portal.example/cb";
    let path = authorize_path("portal", uri, &[("scope", "openid")]);
    let page = browser.visit(&path);
    let answer = sign_in(&mut browser, &page, "ada", PASSWORD);
    answer.assert_status(303);
    let answer = browser.get(&path);
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &*answer.query()["code"]),
        ("redirect_uri", uri),
        ("code_verifier", VERIFIER),
    ];
    let header = ("Authorization", &*basic("portal", SECRET));
    let tokens = issued(&gatepost.post("/connect/token", &[header], &form));
    // As there, without offline_access.
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
    ];
    issued(&gatepost.post("/connect/token", &[header], &form));
    let claims = decode_jwt(tokens["id_token"].as_str().unwrap()).1;
    assert_eq!(claims["roles"], json!(["clerk", "boss"]));
    assert_eq!(claims["https://shop.example/unit"], "sales");
}
