//! ID-JAGs (draft-ietf-oauth-identity-assertion-authz-grant-04): one sign-in here opens the
//! resources of another authorization server, and one there opens ours.

use std::thread;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, basic, decode_jwt, issued, redeem_with, sign_in, signed_in, text, userinfo,
    with_clients,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::{Answer, Browser};
use crate::support::jwt::{published_keys, verified};
use crate::support::offline::client;
use crate::support::phone::add_app;
use crate::support::proofs;
use crate::support::signer::{Signer, key_set, now};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// Refusals count as guesses, and there are many here.
const ON: [(&str, &str); 2] = [
    ("GATEPOST_ID_JAG", "on"),
    ("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "1000"),
];

/// Authorization servers elsewhere: one for everybody, one for staff, one after two factors.
const CHAT: &str = "https://auth.chat.example";
const STAFF: &str = "https://auth.staff.example";
const VAULT: &str = "https://auth.vault.example";
const MCP: &str = "https://mcp.chat.example";

/// The identity provider whose ID-JAGs are taken.
const IDP: &str = "https://idp.example";
const ORDERS: &str = "https://orders.example";

/// What the log says of the last token request.
fn last_line(gatepost: &Gatepost) -> String {
    let log = gatepost.log();
    let mut lines = log.lines().rev();
    lines
        .find(|line| line.contains("path=/connect/token"))
        .unwrap()
        .to_owned()
}

#[track_caller]
fn assert_says(gatepost: &Gatepost, answer: &Answer, error: &str, code: &str, case: &str) {
    answer.assert_refused(400, error, case);
    let line = last_line(gatepost);
    assert!(line.contains(code), "{case}: {line}");
}

mod issuing {
    use super::*;

    /// What it is, how the request differs, and what is answered and logged.
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

    fn entry(audience: &str, resources: &[&str], further: Value) -> Value {
        let mut entry = json!({
            "audience": audience, "client_id": "f53f", "resources": resources,
            "scope": "chat.read chat.write",
        });
        for (name, value) in further.as_object().unwrap() {
            entry[name] = value.clone();
        }
        entry
    }

    /// `wiki` gets ID-JAGs, `other` too; `plain` does not.
    pub(super) fn registration() -> Value {
        let entries = json!([
            entry(CHAT, &[MCP, "https://files.chat.example/a"], json!({})),
            entry(
                STAFF,
                &[MCP],
                json!({"allowed_roles": ["staff"], "email": true})
            ),
            entry(VAULT, &[MCP], json!({"minimum_acr": "2"})),
        ]);
        let wiki = json!({
            "grant_types": ["authorization_code", "refresh_token", "implicit", EXCHANGE],
            "response_types": ["code", "id_token"],
            "scope": "openid profile offline_access orders.read", "id_jag": entries,
        });
        let mut offered = with_clients(document(), &[("wiki", wiki.clone()), ("other", wiki)]);
        let exchange = json!({
            "grant_types": ["authorization_code", EXCHANGE],
            "token_exchange": {"from_clients": ["conf1"], "to_resources": [ORDERS]},
        });
        offered = with_clients(offered, &[("plain", exchange)]);
        offered["tenants"] = json!([{"name": "acme"}]);
        offered
    }

    pub(super) fn tokens(gatepost: &Gatepost, browser: &mut Browser, scope: &str) -> Value {
        crate::support::flow::tokens(gatepost, browser, "wiki", scope)
    }

    fn id_token(gatepost: &Gatepost, browser: &mut Browser) -> String {
        text(&tokens(gatepost, browser, "openid profile"), "id_token").to_owned()
    }

    /// A right request with changes; one that is empty is left out.
    pub(super) fn ask_as(
        gatepost: &Gatepost,
        client_id: &str,
        id_token: &str,
        changes: &[(&str, &str)],
    ) -> Answer {
        ask_with(gatepost, client_id, id_token, changes, &[])
    }

    /// The same with further headers.
    pub(super) fn ask_with(
        gatepost: &Gatepost,
        client_id: &str,
        id_token: &str,
        changes: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let usual = [
            ("grant_type", EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", id_token),
            ("subject_token_type", ID_TOKEN),
            ("audience", CHAT),
            ("resource", MCP),
        ];
        let mut form = crate::support::flow::changed(&usual, changes);
        form.retain(|(_, value)| !value.is_empty());
        let header = basic(client_id, CONF1_SECRET);
        let headers = [&[("Authorization", &*header)], headers].concat();
        gatepost.post("/connect/token", &headers, &form)
    }

    pub(super) fn ask(gatepost: &Gatepost, id_token: &str, changes: &[(&str, &str)]) -> Answer {
        ask_as(gatepost, "wiki", id_token, changes)
    }

    fn start() -> Gatepost {
        Gatepost::start_with(&registration(), &ON)
    }

    #[test]
    fn an_id_token_becomes_an_id_jag_for_the_server_that_the_registration_names() {
        let gatepost = start();
        let mut browser = signed_in(&gatepost);
        let id_token = id_token(&gatepost, &mut browser);
        let (_, signed_in_as) = verified(&gatepost, &id_token);
        assert!(signed_in_as["jti"].is_string(), "{signed_in_as}");
        let answer = issued(&ask(
            &gatepost,
            &id_token,
            &[("scope", "chat.read mail.read")],
        ));
        let told = ["issued_token_type", "token_type", "expires_in", "scope"];
        assert_eq!(
            told.map(|name| answer[name].clone()),
            [json!(ID_JAG), json!("N_A"), json!(300), json!("chat.read")]
        );
        assert_eq!(answer.get("refresh_token"), None);
        let (header, claims) = verified(&gatepost, text(&answer, "access_token"));
        assert_eq!(header["typ"], "oauth-id-jag+jwt");
        let iat = claims["iat"].as_u64().unwrap();
        assert!(iat.abs_diff(now()) < 60, "{claims}");
        let expected = json!({
            "iss": gatepost.base_url, "sub": signed_in_as["sub"], "aud": CHAT,
            "jti": claims["jti"], "iat": iat, "exp": iat + 300, "client_id": "f53f",
            "resource": MCP, "scope": "chat.read", "auth_time": signed_in_as["auth_time"],
            "acr": "1", "amr": ["pwd"],
        });
        assert_eq!(claims, expected);
        // As often as it is asked for: each has a name of its own.
        let again = issued(&ask(
            &gatepost,
            &id_token,
            &[("resource", "https://mcp.chat.example/")],
        ));
        let (_, second) = decode_jwt(text(&again, "access_token"));
        assert_ne!(claims["jti"], second["jti"]);
        assert_eq!(second["resource"], json!(MCP));
        assert_eq!(second["scope"], "chat.read chat.write");
        let listed = ["audit", "list", "--event", "id_jag_issued", "--json"];
        let printed = gatepost.run_well(&listed, "");
        let audited: Value = serde_json::from_str(&printed).unwrap();
        let event = &audited[0];
        assert_eq!(event["client_id"], "wiki", "{printed}");
        assert_eq!(event["sub"], signed_in_as["sub"], "{printed}");
        assert_eq!(event["detail"]["audience"], CHAT, "{printed}");
        assert_eq!(audited.as_array().unwrap().len(), 2, "{printed}");
        // It opens nothing here.
        userinfo(&gatepost, text(&answer, "access_token")).assert_status(401);
        let metadata = gatepost.get("/.well-known/openid-configuration").json();
        assert_eq!(
            metadata["identity_chaining_requested_token_types_supported"],
            json!([ID_JAG])
        );
        assert_eq!(
            metadata["authorization_grant_profiles_supported"],
            json!(["urn:ietf:params:oauth:grant-profile:id-jag"])
        );
    }

    #[test]
    fn each_part_of_the_request_is_looked_at() {
        let gatepost = start();
        let mut browser = signed_in(&gatepost);
        let right = id_token(&gatepost, &mut browser);
        assert_eq!(ask(&gatepost, &right, &[]).status, 200);
        let rows: [Row<'_>; 14] = [
            (
                "no audience",
                &[("audience", "")],
                "invalid_target",
                "GP1218",
            ),
            (
                "a slash more",
                &[("audience", "https://auth.chat.example/")],
                "invalid_target",
                "GP1218",
            ),
            (
                "another server",
                &[("audience", "https://auth.mail.example")],
                "invalid_target",
                "GP1218",
            ),
            (
                "no resource of two",
                &[("resource", "")],
                "invalid_target",
                "GP1218",
            ),
            (
                "another resource",
                &[("resource", "https://mcp.mail.example")],
                "invalid_target",
                "GP1218",
            ),
            (
                "a path with a slash more",
                &[("resource", "https://files.chat.example/a/")],
                "invalid_target",
                "GP1218",
            ),
            (
                "the resource of another entry",
                &[
                    ("audience", STAFF),
                    ("resource", "https://files.chat.example/a"),
                ],
                "invalid_target",
                "GP1218",
            ),
            (
                "no scope left",
                &[("scope", "mail.read openid")],
                "invalid_scope",
                "GP1217",
            ),
            (
                "an actor",
                &[("actor_token", &right), ("actor_token_type", ID_TOKEN)],
                "invalid_request",
                "GP1267",
            ),
            (
                "no token",
                &[("subject_token", "")],
                "invalid_request",
                "GP1264",
            ),
            (
                "no type",
                &[("subject_token_type", "")],
                "invalid_request",
                "GP1264",
            ),
            (
                "another type",
                &[("subject_token_type", ACCESS_TOKEN)],
                "invalid_request",
                "GP1265",
            ),
            (
                "nonsense",
                &[("subject_token", "no.jwt.at-all")],
                "invalid_request",
                "GP1266",
            ),
            ("roles", &[("audience", STAFF)], "invalid_grant", "GP"),
        ];
        for (case, changes, error, code) in rows {
            assert_says(
                &gatepost,
                &ask(&gatepost, &right, changes),
                error,
                code,
                case,
            );
        }
        let two = [
            ("resource", "https://files.chat.example/a"),
            ("resource", MCP),
        ];
        assert_says(
            &gatepost,
            &ask(&gatepost, &right, &two),
            "invalid_target",
            "GP1218",
            "two resources",
        );
        // Others' tokens, and tokens that are no ID tokens.
        let theirs = crate::support::flow::tokens(
            &gatepost,
            &mut browser,
            "other",
            "openid profile orders.read",
        );
        let wrong = [
            ("another client's", text(&theirs, "id_token").to_owned()),
            ("an access token", text(&theirs, "access_token").to_owned()),
            (
                "without a jti",
                text(
                    &crate::support::flow::tokens(&gatepost, &mut browser, "conf1", "openid"),
                    "id_token",
                )
                .to_owned(),
            ),
            (
                "of nobody we know",
                Signer::rs256("k").sign(&decode_jwt(&right).1),
            ),
            (
                "an ID-JAG",
                text(&issued(&ask(&gatepost, &right, &[])), "access_token").to_owned(),
            ),
        ];
        for (case, token) in wrong {
            assert_says(
                &gatepost,
                &ask(&gatepost, &token, &[]),
                "invalid_request",
                "GP1266",
                case,
            );
        }
        assert_says(
            &gatepost,
            &ask_as(&gatepost, "plain", &right, &[]),
            "unauthorized_client",
            "GP1270",
            "not registered",
        );
        // Through the browser it may have been seen.
        let path = authorize_path("wiki", RP1, &[("response_type", "id_token")]);
        let seen = browser.get(&path).fragment()["id_token"].clone();
        assert_eq!(decode_jwt(&seen).1.get("jti"), None);
        assert_says(
            &gatepost,
            &ask(&gatepost, &seen, &[]),
            "invalid_request",
            "GP1266",
            "through the browser",
        );
        let form = [
            ("grant_type", EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", &right),
            ("subject_token_type", ID_TOKEN),
            ("audience", CHAT),
            ("resource", MCP),
        ];
        let header = basic("wiki", CONF1_SECRET);
        let from_script = [
            ("Authorization", header.as_str()),
            ("Origin", "https://rp1.example"),
        ];
        let answer = gatepost.post("/connect/token", &from_script, &form);
        assert_says(
            &gatepost,
            &answer,
            "invalid_request",
            "GP1178",
            "from a script",
        );
    }

    #[test]
    fn what_ends_a_refresh_token_ends_it() {
        let gatepost = start();
        let lives = |id_token: &str, changes: &[(&str, &str)]| ask(&gatepost, id_token, changes);
        // The grant.
        let mut browser = signed_in(&gatepost);
        let granted = tokens(&gatepost, &mut browser, "openid offline_access");
        let form = [("token", text(&granted, "refresh_token"))];
        let id_token = text(&granted, "id_token").to_owned();
        assert_eq!(lives(&id_token, &[]).status, 200);
        gatepost.post_as("wiki", "/connect/revocation", &form);
        assert_says(
            &gatepost,
            &lives(&id_token, &[]),
            "invalid_request",
            "GP1266",
            "revoked",
        );
        // The session, but not what was granted for longer than it.
        let online = super::issuing::id_token(&gatepost, &mut browser);
        let offline = tokens(&gatepost, &mut browser, "openid offline_access");
        let page = browser.get("/logout");
        browser.submit_to("/logout", &page, &[("decision", "sign_out")]);
        assert_says(
            &gatepost,
            &lives(&online, &[]),
            "invalid_request",
            "GP1266",
            "signed out",
        );
        assert_eq!(lives(text(&offline, "id_token"), &[]).status, 200);
        // A refreshed one names the same grant.
        let refresh = [
            ("grant_type", "refresh_token"),
            ("refresh_token", text(&offline, "refresh_token")),
        ];
        let refreshed = issued(&gatepost.token("wiki", &refresh));
        assert_eq!(lives(text(&refreshed, "id_token"), &[]).status, 200);
        // A role is taken away or given.
        let kept = text(&refreshed, "id_token");
        let staff = [("audience", STAFF)];
        gatepost.run_well(&["user", "set", "alice", "role=staff"], "");
        let (_, claims) = decode_jwt(text(&issued(&lives(kept, &staff)), "access_token"));
        assert_eq!(claims["email"], "alice@example.com");
        gatepost.run_well(&["user", "set", "alice", "email_verified=false"], "");
        let (_, claims) = decode_jwt(text(&issued(&lives(kept, &staff)), "access_token"));
        assert_eq!(
            claims.get("email"),
            None,
            "an address that may be somebody else's"
        );
        gatepost.run_well(&["user", "set", "alice", "role=guest"], "");
        assert_says(
            &gatepost,
            &lives(kept, &staff),
            "invalid_grant",
            "GP",
            "the entry's role",
        );
        assert_eq!(lives(kept, &[]).status, 200);
        let mut closed = registration();
        client(&mut closed, "wiki")["allowed_roles"] = json!(["staff"]);
        gatepost.apply(&closed);
        assert_says(
            &gatepost,
            &lives(kept, &[]),
            "invalid_grant",
            "GP",
            "the client's role",
        );
        gatepost.apply(&registration());
        let lives_again = lives(kept, &[]);
        assert_eq!(lives_again.status, 200, "{}", lives_again.text());
        // Another tenant; disabled; revoked.
        let mut of_acme = registration();
        client(&mut of_acme, "wiki")["tenants"] = json!(["acme"]);
        gatepost.apply(&of_acme);
        assert_says(
            &gatepost,
            &lives(kept, &[]),
            "invalid_request",
            "GP1266",
            "of no tenant",
        );
        gatepost.apply(&registration());
        gatepost.run_well(&["user", "disable", "alice"], "");
        assert_says(
            &gatepost,
            &lives(kept, &[]),
            "invalid_request",
            "GP1266",
            "disabled",
        );
    }

    #[test]
    fn a_stronger_sign_in_is_asked_for_in_the_words_of_rfc_9470() {
        let gatepost = start();
        let mut browser = signed_in(&gatepost);
        let weak = id_token(&gatepost, &mut browser);
        let vault = [("audience", VAULT)];
        let answer = ask(&gatepost, &weak, &vault);
        answer.assert_refused(400, "insufficient_user_authentication", "one factor");
        let (phone, _) = add_app(&mut browser, 0);
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("wiki", RP1, &[("scope", "openid")]));
        let asked = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        let answer = browser.submit(&asked, &[("code", &phone.code(0))]);
        let code = answer.query()["code"].clone();
        let tokens = issued(&redeem_with(&gatepost, "wiki", &code, &[]));
        let id_jag = issued(&ask(&gatepost, text(&tokens, "id_token"), &vault));
        assert_eq!(decode_jwt(text(&id_jag, "access_token")).1["acr"], "2");
    }

    #[test]
    fn of_people_in_a_tenant_it_tells_the_tenant() {
        let gatepost = Gatepost::prepare(&ON);
        let mut with_carol = registration();
        let users = with_carol["users"].as_array_mut().unwrap();
        users.push(json!({"username": "carol", "tenant": "acme", "password": BOB_PASSWORD}));
        gatepost.apply(&with_carol);
        let mut gatepost = gatepost;
        gatepost.serve();
        let mut browser = gatepost.browser();
        let path = authorize_path("wiki", RP1, &[("acr_values", "tenant:acme")]);
        let page = browser.visit(&path);
        let answer = sign_in(&mut browser, &page, "carol", BOB_PASSWORD);
        let code = browser.get(&path).query().remove("code");
        let code = code.unwrap_or_else(|| panic!("no code after {}", answer.location()));
        let tokens = issued(&redeem_with(&gatepost, "wiki", &code, &[]));
        let id_jag = issued(&ask(&gatepost, text(&tokens, "id_token"), &[]));
        assert_eq!(
            decode_jwt(text(&id_jag, "access_token")).1["tenant"],
            "acme"
        );
    }

    #[test]
    fn off_by_default_nothing_is_different() {
        let gatepost = Gatepost::start_with(&registration(), &[]);
        let mut browser = signed_in(&gatepost);
        let id_token = id_token(&gatepost, &mut browser);
        assert_eq!(decode_jwt(&id_token).1.get("jti"), None);
        assert_says(
            &gatepost,
            &ask(&gatepost, &id_token, &[("resource", "")]),
            "unauthorized_client",
            "GP1270",
            "off",
        );
        let metadata = gatepost.get("/.well-known/openid-configuration").text();
        assert!(!metadata.contains("id-jag"), "{metadata}");
    }

    #[test]
    fn apply_refuses_entries_that_lead_nowhere() {
        let gatepost = Gatepost::prepare(&ON);
        let here = gatepost.base_url.clone();
        let good = json!([entry(CHAT, &[MCP], json!({}))]);
        let rows = [
            (
                "our own issuer",
                json!({"id_jag": [entry(&here, &[MCP], json!({}))]}),
                "must not name this issuer",
            ),
            (
                "the same twice",
                json!({"id_jag": [entry(CHAT, &[MCP], json!({})), entry(CHAT, &[MCP], json!({}))]}),
                "the same audience twice",
            ),
            (
                "no scope",
                json!({"id_jag": [{"audience": CHAT, "client_id": "f53f", "resources": [MCP]}]}),
                "id_jag[0].scope",
            ),
            (
                "no resource",
                json!({"id_jag": [entry(CHAT, &[], json!({}))]}),
                "id_jag[0].resources: must name a resource there",
            ),
            (
                "resources left out",
                json!({"id_jag": [{"audience": CHAT, "client_id": "f53f", "scope": "chat.read"}]}),
                "id_jag[0].resources: must name a resource there",
            ),
            (
                "a wrong key",
                json!({"id_jag": [entry(CHAT, &[MCP], json!({"scopes": "a"}))]}),
                "scopes",
            ),
            (
                "no grant type",
                json!({"grant_types": ["authorization_code"], "id_jag": good}),
                "must contain token exchange",
            ),
            (
                "public",
                json!({"id_jag": good, "secrets": [], "token_endpoint_auth_method": "none"}),
                "confidential",
            ),
        ];
        for (case, changes, rule) in rows {
            let mut document = registration();
            let wiki = client(&mut document, "wiki");
            for (name, value) in changes.as_object().unwrap() {
                wiki[name] = value.clone();
            }
            let output = gatepost.run(&["apply", "-"], &document.to_string());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{case}: {said}");
            assert!(said.contains(rule), "{case}: {said}");
        }
        gatepost.apply(&registration());
        let exported: Value = serde_json::from_str(&gatepost.run_well(&["export"], "")).unwrap();
        let again = gatepost.run_well(&["apply", "-"], &exported.to_string());
        assert!(again.starts_with("0 added, 0 changed, "), "{again}");
    }
}

/// What `gatepost explain -` says of that, and whether it is good.
fn explained(gatepost: &Gatepost, what: &str) -> (bool, String) {
    let output = gatepost.explain(what);
    let told = String::from_utf8(output.stdout).unwrap();
    // Its lines are wrapped.
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.success(), told)
}

fn sent(client_id: &str, form: &[(&str, &str)]) -> String {
    let authorization = basic(client_id, CONF1_SECRET);
    let form = crate::support::http::encode(form);
    format!("Authorization: {authorization}\n\n{form}\n")
}

#[test]
fn explain_tells_what_an_exchange_with_an_audience_would_give() {
    let mut gatepost = Gatepost::start_with(&issuing::registration(), &ON);
    let mut browser = signed_in(&gatepost);
    let tokens = issuing::tokens(&gatepost, &mut browser, "openid profile");
    let usual = [
        ("grant_type", EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token", text(&tokens, "id_token")),
        ("subject_token_type", ID_TOKEN),
        ("audience", CHAT),
        ("resource", MCP),
    ];
    let judged = |gatepost: &Gatepost, changes: &[(&str, &str)]| {
        let mut form = crate::support::flow::changed(&usual, changes);
        form.retain(|(_, value)| !value.is_empty());
        explained(gatepost, &sent("wiki", &form))
    };
    let issued_before = gatepost.database.count("audit_events");
    let (is_good, told) = judged(&gatepost, &[]);
    let gets =
        format!("it gets an ID-JAG for {MCP} at {CHAT}, with the scope chat.read chat.write");
    assert!(is_good && told.contains(&gets), "{told}");
    for (changes, parts) in [
        (
            [("audience", "https://elsewhere.example")],
            [
                "GP1218",
                "registered in id_jag: https://auth.chat.example for",
            ],
        ),
        (
            [("resource", "https://elsewhere.example")],
            ["GP1218", "registered in id_jag"],
        ),
        (
            [("scope", "mail.read")],
            ["GP1217", "for an ID-JAG it must be in the scope"],
        ),
        ([("audience", STAFF)], ["GP1139", "allowed_roles"]),
        ([("audience", VAULT)], ["GP1802", "minimum_acr"]),
        (
            [("subject_token", "x.y.z")],
            ["GP1266", "no ID token that this client got here"],
        ),
    ] {
        let (is_good, told) = judged(&gatepost, &changes);
        assert!(!is_good, "{changes:?}: {told}");
        for part in parts {
            assert!(told.contains(part), "{changes:?}: {told}");
        }
    }
    let (_, told) = explained(&gatepost, text(&tokens, "id_token"));
    assert!(told.contains("its client gets ID-JAGs by it"), "{told}");
    let ordinary = text(&tokens, "access_token");
    let exchange = [
        ("grant_type", EXCHANGE),
        ("subject_token", ordinary),
        ("subject_token_type", ACCESS_TOKEN),
        ("audience", ORDERS),
    ];
    let (is_good, told) = explained(&gatepost, &sent("plain", &exchange));
    assert!(!is_good && told.contains("GP1266"), "{told}");
    let path = authorize_path("conf1", RP1, &[("scope", "openid orders.read")]);
    let code = crate::support::flow::code(&mut browser, &path);
    let tokens = issued(&crate::support::flow::redeem(&gatepost, &code));
    let mut exchange = exchange;
    exchange[1].1 = text(&tokens, "access_token");
    let (_, told) = explained(&gatepost, &sent("plain", &exchange));
    told.assert_says(&format!("for the audience {ORDERS}"));
    exchange[3].1 = "https://elsewhere.example";
    let (is_good, told) = explained(&gatepost, &sent("plain", &exchange));
    assert!(!is_good && told.contains("GP1218"), "{told}");
    assert!(gatepost.database.count("audit_events") >= issued_before);

    let tested = |gatepost: &Gatepost| {
        let output = gatepost.run(&["client", "test", "wiki"], "");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!tested(&gatepost).contains("GATEPOST_ID_JAG is off"));
    gatepost.set("GATEPOST_ID_JAG", "off");
    let (is_good, told) = judged(&gatepost, &[]);
    assert!(!is_good, "{told}");
    told.assert_says("set GATEPOST_ID_JAG=on");
    let told = tested(&gatepost);
    told.assert_says("fails it is registered to get ID-JAGs (id_jag), and GATEPOST_ID_JAG is off");
}

#[test]
fn explain_tells_what_is_wrong_with_an_id_jag() {
    let scene = taking::Scene::start(json!({}));
    let shown = |changes: Value| {
        let claims = taking::claims(&scene.gatepost, &changes);
        explained(&scene.gatepost, &taking::id_jag(&scene.signer, &claims))
    };
    let (is_good, told) = shown(json!({}));
    assert!(is_good, "{told}");
    told.assert_says("it fits the issuer https://idp.example");
    assert!(told.contains("its signature"), "{told}");
    for (changes, parts) in [
        (
            json!({"aud": "https://elsewhere.example"}),
            ["GP1244", "aud is not this issuer alone"],
        ),
        (json!({"exp": now() - 90}), ["GP1244", "expired"]),
        (json!({"iat": null}), ["GP1244", "An ID-JAG needs iat"]),
        (
            json!({"iss": "https://other.example"}),
            ["GP1241", "its iss is https://other.example"],
        ),
        (
            json!({"client_id": "nobody"}),
            ["GP1176", "no such client: nobody"],
        ),
        (
            json!({"resource": "https://elsewhere.example"}),
            ["GP1176", "resource must be registered"],
        ),
    ] {
        let (is_good, told) = shown(changes.clone());
        assert!(!is_good, "{changes}: {told}");
        for part in parts {
            assert!(told.contains(part), "{changes}: {told}");
        }
    }
    let (is_good, told) = shown(json!({"scope": "stock.read"}));
    assert!(!is_good && told.contains("GP1217"), "{told}");
    // With its request, the server says the same.
    for (changes, further, reason) in [
        (json!({"scope": "stock.read"}), vec![], "GP1217"),
        (json!({}), vec![("scope", "stock.read")], "GP1217"),
        (json!({}), vec![("scope", "api.read")], "GP1115"),
        (
            json!({}),
            vec![("resource", "https://elsewhere.example")],
            "GP1218",
        ),
    ] {
        let id_jag = taking::id_jag(&scene.signer, &taking::claims(&scene.gatepost, &changes));
        let form = [("grant_type", JWT_BEARER), ("assertion", &*id_jag)];
        let request = sent("agent", &[&form, &*further].concat());
        let (is_good, told) = explained(&scene.gatepost, &request);
        assert!(!is_good && told.contains(reason), "{reason}: {told}");
        let answer = taking::redeem(&scene.gatepost, "agent", &id_jag, &further);
        assert_eq!(answer.status, 400, "{reason}: {}", answer.text());
        let named = format!("reason=\"{reason}\"");
        let log = scene.gatepost.log();
        let last = log
            .lines()
            .rfind(|line| line.contains("path=/connect/token"));
        assert!(last.unwrap().contains(&named), "{reason}: {last:?}");
    }
    let other = Signer::es256("x");
    let foreign = other.sign(&json!({"iss": "https://other.example", "exp": now() + 60}));
    let (is_good, told) = explained(&scene.gatepost, &foreign);
    assert!(!is_good, "{told}");
    told.assert_says("its iss is https://other.example");
}

mod taking {
    use super::*;

    /// `agent` may redeem what [`IDP`] asserts; `public` too, and is no confidential client.
    fn registration(signer: &Signer, changes: Value) -> Value {
        let agent = json!({
            "grant_types": [JWT_BEARER, "authorization_code", "refresh_token"],
            "scope": "openid offline_access orders.read orders.write stock.read",
        });
        let mut public = agent.clone();
        public["token_endpoint_auth_method"] = json!("none");
        public["secrets"] = json!([]);
        let mut document = with_clients(
            document(),
            &[
                ("agent", agent.clone()),
                ("other", agent),
                ("public", public),
            ],
        );
        let mut issuer = json!({
            "issuer": IDP, "jwks": key_set(&[signer]), "algs": [signer.alg], "id_jag": true,
            "clients": ["agent", "other", "public"], "scope": "openid offline_access orders.read orders.write",
            "subject": "username", "acr_map": {"mfa": "2"},
        });
        for (name, value) in changes.as_object().unwrap() {
            issuer[name] = value.clone();
        }
        document["assertion_issuers"] = json!([issuer]);
        document["tenants"] = json!([{"name": "acme"}]);
        document["users"]
            .as_array_mut()
            .unwrap()
            .push(json!({"username": "carol", "tenant": "acme"}));
        document
    }

    pub(super) fn claims(gatepost: &Gatepost, changes: &Value) -> Value {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let jti = aws_lc_rs::rand::generate::<[u8; 16]>(&random)
            .unwrap()
            .expose();
        let mut claims = json!({
            "iss": IDP, "sub": "alice", "aud": gatepost.base_url, "client_id": "agent", "iat": now(),
            "exp": now() + 300, "jti": URL_SAFE_NO_PAD.encode(jti), "resource": ORDERS,
            "scope": "orders.read orders.write", "auth_time": now() - 500, "acr": "mfa",
            "amr": ["pwd", "otp"],
        });
        let members = claims.as_object_mut().unwrap();
        members.extend(changes.as_object().unwrap().clone());
        members.retain(|_, value| !value.is_null());
        claims
    }

    pub(super) fn id_jag(signer: &Signer, claims: &Value) -> String {
        let header = json!({"alg": signer.alg, "kid": signer.kid, "typ": "oauth-id-jag+jwt"});
        signer.sign_under(&header, claims)
    }

    pub(super) fn redeem(
        gatepost: &Gatepost,
        client_id: &str,
        assertion: &str,
        further: &[(&str, &str)],
    ) -> Answer {
        redeem_proving(gatepost, client_id, assertion, further, &[])
    }

    /// The same with further headers.
    pub(super) fn redeem_proving(
        gatepost: &Gatepost,
        client_id: &str,
        assertion: &str,
        further: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let form = [
            &[("grant_type", JWT_BEARER), ("assertion", assertion)],
            further,
        ]
        .concat();
        let header = basic(client_id, CONF1_SECRET);
        let headers = [&[("Authorization", &*header)], headers].concat();
        gatepost.post("/connect/token", &headers, &form)
    }

    pub(super) struct Scene {
        pub(super) gatepost: Gatepost,
        pub(super) signer: Signer,
    }

    impl Scene {
        pub(super) fn start(changes: Value) -> Scene {
            let signer = Signer::rs256("k");
            let gatepost = Gatepost::start_with(&registration(&signer, changes), &ON);
            Scene { gatepost, signer }
        }

        fn ask(&self, changes: &Value, further: &[(&str, &str)]) -> Answer {
            let id_jag = id_jag(&self.signer, &claims(&self.gatepost, changes));
            redeem(&self.gatepost, "agent", &id_jag, further)
        }

        fn claims_of(&self, changes: &Value, further: &[(&str, &str)]) -> Value {
            let answer = issued(&self.ask(changes, further));
            assert_eq!(answer.get("refresh_token"), None);
            verified(&self.gatepost, text(&answer, "access_token")).1
        }
    }

    #[test]
    fn an_id_jag_becomes_an_access_token_for_its_resource() {
        let scene = Scene::start(json!({}));
        let token = scene.claims_of(&json!({}), &[]);
        assert_eq!(token["aud"], json!(ORDERS));
        assert_eq!(token["scope"], "orders.read orders.write");
        assert_eq!(token["client_id"], "agent");
        assert_eq!((&token["acr"], &token["amr"]), (&json!("2"), &json!([])));
        let age = now() - token["auth_time"].as_u64().unwrap();
        assert!((490..600).contains(&age), "{token}");
        // Only a token exchange gives out ID-JAGs, whatever else a request asks for.
        let wanted = [(
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:id-jag",
        )];
        let token = scene.claims_of(&json!({}), &wanted);
        assert_eq!(token["aud"], json!(ORDERS));
        let scope = |changes: Value, asked: &str| {
            let further = [("scope", asked)];
            let token = scene.claims_of(&changes, if asked.is_empty() { &[] } else { &further });
            text(&token, "scope").to_owned()
        };
        // What is asked for, what the ID-JAG says, what its issuer and what the client may.
        assert_eq!(scope(json!({}), "orders.read stock.read"), "orders.read");
        assert_eq!(
            scope(json!({"scope": "orders.write mail.read"}), ""),
            "orders.write"
        );
        assert_eq!(
            scope(
                json!({"scope": "orders.read offline_access stock.read"}),
                ""
            ),
            "orders.read"
        );
        assert_eq!(
            scope(json!({"scope": null}), "orders.read offline_access"),
            "orders.read"
        );
        let none_left = scene.ask(&json!({"scope": "stock.read"}), &[]);
        none_left.assert_refused(400, "invalid_scope", "nothing left");
        let further = [("scope", "mail.read")];
        scene
            .ask(&json!({}), &further)
            .assert_refused(400, "invalid_scope", "not the client's");
        // What the registration does not know counts for one factor.
        let weak = scene.claims_of(&json!({"acr": "gold"}), &[]);
        assert_eq!(weak["acr"], "1");
        let future = scene.claims_of(&json!({"auth_time": now() + 500}), &[]);
        assert!(future["auth_time"].as_u64().unwrap() <= now());
        let spelled = [json!([ORDERS]), json!("https://orders.example/")];
        for resource in spelled {
            assert_eq!(
                scene.claims_of(&json!({"resource": resource}), &[])["aud"],
                ORDERS
            );
        }
        let narrower = [("resource", ORDERS)];
        assert_eq!(scene.claims_of(&json!({}), &narrower)["aud"], ORDERS);
        let elsewhere = [("resource", "https://stock.example")];
        scene
            .ask(&json!({}), &elsewhere)
            .assert_refused(400, "invalid_target", "beyond it");
        let no_such_scope = scene.ask(&json!({"resource": "https://stock.example"}), &[]);
        no_such_scope.assert_refused(400, "invalid_target", "a resource without its scopes");
        // What was given ends with the user.
        let given = issued(&scene.ask(&json!({"scope": "openid orders.read"}), &[]));
        let given = text(&given, "access_token");
        assert_eq!(userinfo(&scene.gatepost, given).status, 200);
        scene.gatepost.run_well(&["user", "revoke", "alice"], "");
        assert_eq!(userinfo(&scene.gatepost, given).status, 401);
    }

    #[test]
    fn each_rule_wrong_once() {
        let scene = Scene::start(json!({}));
        let gatepost = &scene.gatepost;
        let token_url = format!("{}/connect/token", gatepost.base_url);
        let rows = [
            ("no client_id", json!({"client_id": null}), "GP1176"),
            ("another client's", json!({"client_id": "other"}), "GP1176"),
            (
                "a list of clients",
                json!({"client_id": ["agent"]}),
                "GP1176",
            ),
            ("no resource", json!({"resource": null}), "GP1176"),
            ("an empty list", json!({"resource": []}), "GP1176"),
            (
                "a resource of others",
                json!({"resource": "https://mcp.other.example"}),
                "GP1176",
            ),
            (
                "one of two",
                json!({"resource": [ORDERS, "https://mcp.other.example"]}),
                "GP1176",
            ),
            ("a number", json!({"resource": 7}), "GP1176"),
            (
                "a key to be proved",
                json!({"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}),
                "GP1177",
            ),
            ("no iat", json!({"iat": null}), "GP1244"),
            (
                "limited by what we do not read",
                json!({"scope": null, "authorization_details": [{"type": "stock"}]}),
                "GP1244",
            ),
            ("a sign-in at no time", json!({"auth_time": -5}), "GP1244"),
            ("iat ahead", json!({"iat": now() + 200}), "GP1244"),
            (
                "a scope that is none",
                json!({"scope": ["orders.read"]}),
                "GP1244",
            ),
            (
                "for our token endpoint",
                json!({"aud": token_url}),
                "GP1244",
            ),
            (
                "for somebody else too",
                json!({"aud": [gatepost.base_url, "https://other.example"]}),
                "GP1244",
            ),
            ("no jti", json!({"jti": null}), "GP1244"),
            ("expired", json!({"exp": now() - 100}), "GP1244"),
            (
                "without an end in sight",
                json!({"exp": now() + 4_000}),
                "GP1244",
            ),
            ("of nobody", json!({"sub": "nobody"}), "GP1247"),
            ("of a tenant", json!({"sub": "carol"}), "GP1247"),
            (
                "of an unknown issuer",
                json!({"iss": "https://other.example"}),
                "GP1241",
            ),
        ];
        for (case, changes, code) in rows {
            assert_says(
                gatepost,
                &scene.ask(&changes, &[]),
                "invalid_grant",
                code,
                case,
            );
        }
        let right = claims(gatepost, &json!({}));
        for typ in ["JWT", "at+jwt", "oauth-id-jag", "client-authentication+jwt"] {
            let header = json!({"alg": "RS256", "kid": "k", "typ": typ});
            let assertion = scene.signer.sign_under(&header, &right);
            assert_says(
                gatepost,
                &redeem(gatepost, "agent", &assertion, &[]),
                "invalid_grant",
                "GP1241",
                typ,
            );
        }
        let forged = id_jag(&Signer::rs256("k"), &right);
        assert_says(
            gatepost,
            &redeem(gatepost, "agent", &forged, &[]),
            "invalid_grant",
            "GP1243",
            "another key",
        );
        // None of these has used it up, nor has another client.
        let right = id_jag(&scene.signer, &right);
        assert_says(
            gatepost,
            &redeem(gatepost, "other", &right, &[]),
            "invalid_grant",
            "GP1176",
            "another client",
        );
        let of_public = id_jag(
            &scene.signer,
            &claims(gatepost, &json!({"client_id": "public"})),
        );
        let form = [
            ("grant_type", JWT_BEARER),
            ("assertion", of_public.as_str()),
            ("client_id", "public"),
        ];
        assert_says(
            gatepost,
            &gatepost.post("/connect/token", &[], &form),
            "invalid_grant",
            "GP1176",
            "a public client",
        );
        let upper = json!({"alg": "RS256", "kid": "k", "typ": "application/OAuth-ID-JAG+jwt"});
        let upper = scene
            .signer
            .sign_under(&upper, &claims(gatepost, &json!({})));
        assert_eq!(redeem(gatepost, "agent", &upper, &[]).status, 200);
        assert_eq!(redeem(gatepost, "agent", &right, &[]).status, 200);
        assert_says(
            gatepost,
            &redeem(gatepost, "agent", &right, &[]),
            "invalid_grant",
            "GP1245",
            "twice",
        );
        gatepost.run_well(&["user", "disable", "alice"], "");
        scene
            .ask(&json!({}), &[])
            .assert_refused(400, "invalid_grant", "disabled");
    }

    #[test]
    fn roles_and_strength_hold_as_for_any_token() {
        let scene = Scene::start(json!({}));
        let closed = |name: &str, value: Value| {
            let mut document = registration(&scene.signer, json!({}));
            client(&mut document, "agent")[name] = value;
            scene.gatepost.apply(&document);
        };
        closed("minimum_acr", json!("2"));
        assert_eq!(scene.ask(&json!({}), &[]).status, 200);
        scene
            .ask(&json!({"acr": null}), &[])
            .assert_refused(400, "invalid_grant", "one factor");
        closed("allowed_roles", json!(["staff"]));
        scene
            .ask(&json!({}), &[])
            .assert_refused(400, "invalid_grant", "no role");
        closed("allowed_roles", json!(["admin"]));
        assert_eq!(scene.ask(&json!({}), &[]).status, 200);
    }

    #[test]
    fn an_issuer_for_a_tenant_speaks_of_its_people_alone() {
        let scene = Scene::start(json!({"tenant": "acme"}));
        let acme = [("acr_values", "tenant:acme")];
        let carol = json!({"sub": "carol"});
        assert_eq!(scene.claims_of(&carol, &acme)["tenant"], "acme");
        scene
            .ask(&json!({}), &acme)
            .assert_refused(400, "invalid_grant", "alice is of none");
        scene
            .ask(&carol, &[])
            .assert_refused(400, "invalid_grant", "no tenant asked for");
    }

    #[test]
    fn sixteen_at_once_are_one_token() {
        let scene = Scene::start(json!({}));
        let id_jag = id_jag(&scene.signer, &claims(&scene.gatepost, &json!({})));
        let statuses: Vec<u16> = thread::scope(|scope| {
            let redeem = || redeem(&scene.gatepost, "agent", &id_jag, &[]).status;
            let all: Vec<_> = (0..16).map(|_| scope.spawn(redeem)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let given = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 400).count();
        assert_eq!((given, refused), (1, 15), "{statuses:?}");
    }

    #[test]
    fn off_or_from_an_ordinary_issuer_it_is_refused() {
        let signer = Signer::rs256("k");
        let off = Gatepost::start_with(&registration(&signer, json!({})), &[]);
        let right = id_jag(&signer, &claims(&off, &json!({})));
        assert_says(
            &off,
            &redeem(&off, "agent", &right, &[]),
            "invalid_grant",
            "GP1176",
            "off",
        );
        let plain = signer.sign(&claims(&off, &json!({})));
        assert_says(
            &off,
            &redeem(&off, "agent", &plain, &[]),
            "invalid_grant",
            "GP1241",
            "nothing else",
        );
        let ordinary = Scene::start(json!({"id_jag": false, "acr_map": {}}));
        assert_says(
            &ordinary.gatepost,
            &ordinary.ask(&json!({}), &[]),
            "invalid_grant",
            "GP1241",
            "ordinary",
        );
        let mut refused = registration(&signer, json!({"id_jag": false}));
        refused["assertion_issuers"][0]["acr_map"] = json!({"mfa": "2"});
        let output = off.run(&["apply", "-"], &refused.to_string());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("acr_map"), "{said}");
    }
}

/// One Gatepost that people sign in to, and another one that has the resource.
/// Two authorization servers: the first gives the client `wiki` ID-JAGs for the second.
struct Pair {
    first: Gatepost,
    second: Gatepost,
    /// Alice's at the first. She is bob at the second.
    id_token: String,
}

impl Pair {
    fn start() -> Pair {
        let mut second = Gatepost::prepare(&ON);
        let mut first = Gatepost::prepare(&ON);
        let mut offered = issuing::registration();
        client(&mut offered, "wiki")["id_jag"] = json!([{
            "audience": second.base_url, "client_id": "agent", "resources": [ORDERS], "scope": "orders.read",
        }]);
        first.apply(&offered);
        first.serve();
        let agent = json!({"grant_types": [JWT_BEARER], "response_types": [], "redirect_uris": [], "scope": "orders.read"});
        let mut known = with_clients(document(), &[("agent", agent)]);
        known["assertion_issuers"] = json!([{
            "issuer": first.base_url, "jwks": {"keys": published_keys(&first)}, "clients": ["agent"], "id_jag": true,
        }]);
        second.apply(&known);
        second.serve();
        let mut browser = signed_in(&first);
        let tokens = issuing::tokens(&first, &mut browser, "openid");
        let id_token = text(&tokens, "id_token").to_owned();
        let pair = Pair {
            first,
            second,
            id_token,
        };
        let link = [
            "user",
            "link",
            "bob",
            "--issuer",
            &pair.first.base_url,
            "--subject",
            &pair.alice(),
        ];
        pair.second.run_well(&link, "");
        pair
    }

    /// Her subject at the first.
    fn alice(&self) -> String {
        let (_, alice) = decode_jwt(&self.id_token);
        text(&alice, "sub").to_owned()
    }

    /// An ID-JAG of the first for the second, asked for with these headers.
    fn id_jag(&self, headers: &[(&str, &str)]) -> String {
        let form = [
            ("audience", self.second.base_url.as_str()),
            ("resource", ORDERS),
        ];
        let answer = issuing::ask_with(&self.first, "wiki", &self.id_token, &form, headers);
        text(&issued(&answer), "access_token").to_owned()
    }
}

#[test]
fn one_sign_in_at_the_first_opens_the_second() {
    let pair = Pair::start();
    let second = &pair.second;
    let id_jag = pair.id_jag(&[]);
    let opened = issued(&taking::redeem(second, "agent", &id_jag, &[]));
    let (_, token) = verified(second, text(&opened, "access_token"));
    assert_eq!(token["aud"], json!(ORDERS));
    assert_eq!(token["scope"], "orders.read");
    assert_ne!(
        text(&token, "sub"),
        pair.alice(),
        "the subject is the second one's"
    );
    taking::redeem(second, "agent", &id_jag, &[]).assert_status_for("it is good once", 400);
}

#[test]
fn an_id_jag_that_was_asked_for_with_a_proof_is_good_with_that_key_alone() {
    let pair = Pair::start();
    let second = &pair.second;
    let [own, other] = ["own", "other"].map(Signer::es256);
    let proof = |gatepost: &Gatepost, signer| proofs::for_form(gatepost, signer, "/connect/token");
    let id_jag = pair.id_jag(&[("DPoP", &proof(&pair.first, &own))]);
    let (_, claims) = decode_jwt(&id_jag);
    assert_eq!(claims["cnf"], json!({"jkt": proofs::thumbprint(&own)}));
    let unproved = taking::redeem(second, "agent", &id_jag, &[]);
    assert_says(second, &unproved, "invalid_grant", "GP1177", "no proof");
    let stolen = [("DPoP", &*proof(second, &other))];
    let stolen = taking::redeem_proving(second, "agent", &id_jag, &[], &stolen);
    assert_says(second, &stolen, "invalid_grant", "GP1177", "another key");
    // Neither has used it up.
    let held = [("DPoP", &*proof(second, &own))];
    let opened = issued(&taking::redeem_proving(
        second,
        "agent",
        &id_jag,
        &[],
        &held,
    ));
    assert_eq!(opened["token_type"], "DPoP");
    let (_, token) = verified(second, text(&opened, "access_token"));
    assert_eq!(token["cnf"], claims["cnf"]);
}

/// `GATEPOST_CLIENT_ASSERTION_AUDIENCE`
#[test]
fn client_assertions_name_the_issuer_alone_where_the_setting_says_so() {
    let signer = Signer::es256("k");
    let keyed = json!({
        "grant_types": ["client_credentials"], "response_types": [], "redirect_uris": [], "scope": "orders.read",
        "token_endpoint_auth_method": "private_key_jwt", "jwks": key_set(&[&signer]), "secrets": null,
    });
    let mut registered = with_clients(document(), &[("keyed", keyed)]);
    client(&mut registered, "keyed")
        .as_object_mut()
        .unwrap()
        .remove("secrets");
    for (setting, of_token_endpoint) in [(None, 200), (Some("any"), 200), (Some("issuer"), 400)] {
        let settings = setting.map(|value| ("GATEPOST_CLIENT_ASSERTION_AUDIENCE", value));
        let gatepost = Gatepost::start_with(&registered, settings.as_slice());
        let ask = |aud: Value, jti: &str| {
            let claims =
                json!({"iss": "keyed", "sub": "keyed", "aud": aud, "exp": now() + 60, "jti": jti});
            let form = [
                ("grant_type", "client_credentials"),
                (
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                ),
                ("client_assertion", &signer.sign(&claims)),
            ];
            gatepost.post("/connect/token", &[], &form).status
        };
        let issuer = &gatepost.base_url;
        let token_endpoint = format!("{issuer}/connect/token");
        let answers = [
            ask(json!(issuer), "a"),
            ask(json!([issuer]), "b"),
            ask(json!(token_endpoint), "c"),
            ask(json!(format!("{issuer}/connect/par")), "d"),
            ask(json!([issuer, token_endpoint]), "e"),
        ];
        assert_eq!(
            answers,
            [200, 200, of_token_endpoint, 400, 400],
            "{setting:?}"
        );
        gatepost.await_log("the weak settings", |log| {
            log.contains("weak settings in use")
        });
        let line = "client assertions for the token endpoint's URL (keyed)";
        assert_eq!(
            gatepost.log().contains(line),
            of_token_endpoint == 200,
            "{setting:?}"
        );
    }
}
