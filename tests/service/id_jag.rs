//! ID-JAGs (draft-ietf-oauth-identity-assertion-authz-grant-04): one sign-in here opens the
//! resources of another authorization server, and one there opens ours.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    self, authorize_path, basic, changed, changed_members, code, decode_jwt, issued, redeem,
    redeem_with, sign_in, signed_in, text, userinfo, with_clients, with_further_clients,
    with_members,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::{Answer, Browser, encode};
use crate::support::jwt::{published_keys, verified};
use crate::support::offline::client;
use crate::support::phone::add_app;
use crate::support::proofs;
use crate::support::signer::{Signer, assertion, key_set, now};
use crate::support::tables::{cases, pairs};
use crate::support::waiting::all_at_once;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
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

#[track_caller]
fn assert_says(gatepost: &Gatepost, answer: &Answer, error: &str, code: &str, case: &str) {
    answer.assert_refused(400, error, case);
    let line = gatepost.last_line("path=/connect/token");
    line.assert_says_for(case, code);
}

mod issuing {
    use super::*;

    fn entry(audience: &str, resources: &[&str], further: Value) -> Value {
        let entry = json!({
            "audience": audience, "client_id": "f53f", "resources": resources,
            "scope": "chat.read chat.write",
        });
        with_members(entry, &further)
    }

    /// `wiki` gets ID-JAGs, `other` too; `plain` does not.
    pub(super) fn registration() -> Value {
        let of_staff = json!({"allowed_roles": ["staff"], "email": true});
        let entries = json!([
            entry(CHAT, &[MCP, "https://files.chat.example/a"], json!({})),
            entry(STAFF, &[MCP], of_staff),
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
    fn ask_as(
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
        let header = basic(client_id, CONF1_SECRET);
        let headers = [&[("Authorization", &*header)], headers].concat();
        gatepost.post("/connect/token", &headers, &form(id_token, changes))
    }

    /// What a right request sends, with changes; one that is empty is left out.
    pub(super) fn form<'a>(
        id_token: &'a str,
        changes: &[(&'a str, &'a str)],
    ) -> Vec<(&'a str, &'a str)> {
        let usual = [
            ("grant_type", EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("subject_token", id_token),
            ("subject_token_type", ID_TOKEN),
            ("audience", CHAT),
            ("resource", MCP),
        ];
        let mut form = changed(&usual, changes);
        form.retain(|(_, value)| !value.is_empty());
        form
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
        let narrower = [("scope", "chat.read mail.read")];
        let answer = issued(&ask(&gatepost, &id_token, &narrower));
        let told = ["issued_token_type", "token_type", "expires_in", "scope"];
        let told = told.map(|name| answer[name].clone());
        let expected = [json!(ID_JAG), json!("N_A"), json!(300), json!("chat.read")];
        assert_eq!(told, expected);
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
        let slashed = [("resource", "https://mcp.chat.example/")];
        let again = issued(&ask(&gatepost, &id_token, &slashed));
        let (_, second) = decode_jwt(text(&again, "access_token"));
        assert_ne!(claims["jti"], second["jti"]);
        assert_eq!(second["resource"], json!(MCP));
        assert_eq!(second["scope"], "chat.read chat.write");
        let audited = gatepost.events("id_jag_issued");
        let event = &audited[0];
        assert_eq!(event["client_id"], "wiki", "{event}");
        assert_eq!(event["sub"], signed_in_as["sub"], "{event}");
        assert_eq!(event["detail"]["audience"], CHAT, "{event}");
        assert_eq!(audited.len(), 2, "{audited:?}");
        // It opens nothing here.
        userinfo(&gatepost, text(&answer, "access_token")).assert_status(401);
        let metadata = gatepost.get("/.well-known/openid-configuration");
        let name = "identity_chaining_requested_token_types_supported";
        metadata.assert_member(name, json!([ID_JAG]));
        let profiles = json!(["urn:ietf:params:oauth:grant-profile:id-jag"]);
        metadata.assert_member("authorization_grant_profiles_supported", profiles);
    }

    #[test]
    fn each_part_of_the_request_is_looked_at() {
        let gatepost = start();
        let mut browser = signed_in(&gatepost);
        let right = id_token(&gatepost, &mut browser);
        ask(&gatepost, &right, &[]).assert_status(200);
        let files = "https://files.chat.example/a";
        let wrong = json!({"invalid_target GP1218": {
            "no audience": {"audience": ""},
            "a slash more": {"audience": "https://auth.chat.example/"},
            "another server": {"audience": "https://auth.mail.example"},
            "no resource of two": {"resource": ""},
            "another resource": {"resource": "https://mcp.mail.example"},
            "a path with a slash more": {"resource": "https://files.chat.example/a/"},
            "the resource of another entry": {"audience": STAFF, "resource": files},
        }, "invalid_scope GP1217": {
            "no scope left": {"scope": "mail.read openid"},
        }, "invalid_request GP1267": {
            "an actor": {"actor_token": right, "actor_token_type": ID_TOKEN},
        }, "invalid_request GP1264": {
            "no token": {"subject_token": ""},
            "no type": {"subject_token_type": ""},
        }, "invalid_request GP1265": {
            "another type": {"subject_token_type": ACCESS_TOKEN},
        }, "invalid_request GP1266": {
            "nonsense": {"subject_token": "no.jwt.at-all"},
        }, "invalid_grant GP": {
            "roles": {"audience": STAFF},
        }});
        for (refusal, rows) in cases(&wrong) {
            let (error, code) = refusal.split_once(' ').unwrap();
            for (case, changes) in cases(rows) {
                let answer = ask(&gatepost, &right, &pairs(changes));
                assert_says(&gatepost, &answer, error, code, case);
            }
        }
        let two = ask(&gatepost, &right, &[("resource", files), ("resource", MCP)]);
        assert_says(&gatepost, &two, "invalid_target", "GP1218", "two resources");
        // Others' tokens, and tokens that are no ID tokens; through the browser it may have been
        // seen.
        let scope = "openid profile orders.read";
        let theirs = flow::tokens(&gatepost, &mut browser, "other", scope);
        let of_conf1 = flow::tokens(&gatepost, &mut browser, "conf1", "openid");
        let id_jag = issued(&ask(&gatepost, &right, &[]));
        let path = authorize_path("wiki", RP1, &[("response_type", "id_token")]);
        let seen = browser.get(&path).fragment()["id_token"].clone();
        assert_eq!(decode_jwt(&seen).1.get("jti"), None);
        let of_nobody = Signer::rs256("k").sign(&decode_jwt(&right).1);
        for (case, token) in [
            ("another client's", text(&theirs, "id_token")),
            ("an access token", text(&theirs, "access_token")),
            ("without a jti", text(&of_conf1, "id_token")),
            ("of nobody we know", &of_nobody),
            ("an ID-JAG", text(&id_jag, "access_token")),
            ("through the browser", &seen),
        ] {
            let answer = ask(&gatepost, token, &[]);
            assert_says(&gatepost, &answer, "invalid_request", "GP1266", case);
        }
        let says = |answer: &Answer, error: &str, code: &str, case: &str| {
            assert_says(&gatepost, answer, error, code, case);
        };
        let of_plain = ask_as(&gatepost, "plain", &right, &[]);
        says(&of_plain, "unauthorized_client", "GP1270", "not registered");
        let origin = [("Origin", "https://rp1.example")];
        let from_script = ask_with(&gatepost, "wiki", &right, &[], &origin);
        says(&from_script, "invalid_request", "GP1178", "from a script");
    }

    #[test]
    fn what_ends_a_refresh_token_ends_it() {
        let gatepost = start();
        let lives = |id_token: &str, changes: &[(&str, &str)]| ask(&gatepost, id_token, changes);
        let is_over = |id_token: &str, case: &str| {
            let answer = lives(id_token, &[]);
            assert_says(&gatepost, &answer, "invalid_request", "GP1266", case);
        };
        // The grant.
        let mut browser = signed_in(&gatepost);
        let granted = tokens(&gatepost, &mut browser, "openid offline_access");
        let form = [("token", text(&granted, "refresh_token"))];
        lives(text(&granted, "id_token"), &[]).assert_status(200);
        gatepost.post_as("wiki", "/connect/revocation", &form);
        is_over(text(&granted, "id_token"), "revoked");
        // The session, but not what was granted for longer than it.
        let online = id_token(&gatepost, &mut browser);
        let offline = tokens(&gatepost, &mut browser, "openid offline_access");
        let page = browser.get("/logout");
        browser.submit_to("/logout", &page, &[("decision", "sign_out")]);
        is_over(&online, "signed out");
        lives(text(&offline, "id_token"), &[]).assert_status(200);
        // A refreshed one names the same grant.
        let refresh_token = ("refresh_token", text(&offline, "refresh_token"));
        let refresh = [("grant_type", "refresh_token"), refresh_token];
        let refreshed = issued(&gatepost.token("wiki", &refresh));
        let kept = text(&refreshed, "id_token");
        lives(kept, &[]).assert_status(200);
        // A role is taken away or given.
        let staff = [("audience", STAFF)];
        let email = || {
            let id_jag = issued(&lives(kept, &staff));
            decode_jwt(text(&id_jag, "access_token")).1["email"].clone()
        };
        gatepost.run_line("user set alice role=staff");
        assert_eq!(email(), "alice@example.com");
        gatepost.run_line("user set alice email_verified=false");
        // An address that may be somebody else's.
        assert_eq!(email(), Value::Null);
        gatepost.run_line("user set alice role=guest");
        let is_refused = |changes: &[(&str, &str)], case: &str| {
            assert_says(
                &gatepost,
                &lives(kept, changes),
                "invalid_grant",
                "GP",
                case,
            );
        };
        is_refused(&staff, "the entry's role");
        lives(kept, &[]).assert_status(200);
        let with_wiki = |name: &str, value: Value| {
            let mut changed = registration();
            client(&mut changed, "wiki")[name] = value;
            gatepost.apply(&changed);
        };
        with_wiki("allowed_roles", json!(["staff"]));
        is_refused(&[], "the client's role");
        gatepost.apply(&registration());
        lives(kept, &[]).assert_status(200);
        // Another tenant; disabled; revoked.
        with_wiki("tenants", json!(["acme"]));
        is_over(kept, "of no tenant");
        gatepost.apply(&registration());
        gatepost.run_line("user disable alice");
        is_over(kept, "disabled");
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
        let mut with_carol = registration();
        let users = with_carol["users"].as_array_mut().unwrap();
        users.push(json!({"username": "carol", "tenant": "acme", "password": BOB_PASSWORD}));
        let gatepost = Gatepost::start_with(&with_carol, &ON);
        let mut browser = gatepost.browser();
        let path = authorize_path("wiki", RP1, &[("acr_values", "tenant:acme")]);
        let page = browser.visit(&path);
        sign_in(&mut browser, &page, "carol", BOB_PASSWORD).assert_status(303);
        let code = code(&mut browser, &path);
        let tokens = issued(&redeem_with(&gatepost, "wiki", &code, &[]));
        let id_jag = issued(&ask(&gatepost, text(&tokens, "id_token"), &[]));
        let (_, claims) = decode_jwt(text(&id_jag, "access_token"));
        assert_eq!(claims["tenant"], "acme");
    }

    #[test]
    fn off_by_default_nothing_is_different() {
        let gatepost = Gatepost::start_with(&registration(), &[]);
        let mut browser = signed_in(&gatepost);
        let id_token = id_token(&gatepost, &mut browser);
        assert_eq!(decode_jwt(&id_token).1.get("jti"), None);
        let answer = ask(&gatepost, &id_token, &[("resource", "")]);
        assert_says(&gatepost, &answer, "unauthorized_client", "GP1270", "off");
        let metadata = gatepost.get("/.well-known/openid-configuration");
        metadata.assert_says_not("id-jag");
    }

    #[test]
    fn apply_refuses_entries_that_lead_nowhere() {
        let gatepost = Gatepost::prepare(&ON);
        let good = entry(CHAT, &[MCP], json!({}));
        let with = |entries: &[Value]| json!({"id_jag": entries});
        let without = |member: &str| with(&[changed_members(good.clone(), &json!({member: null}))]);
        let resource = "id_jag[0].resources: must name a resource there";
        let ours = entry(&gatepost.base_url, &[MCP], json!({}));
        let scopes = entry(CHAT, &[MCP], json!({"scopes": "a"}));
        let twice = [good.clone(), good.clone()];
        let untyped = json!({"grant_types": ["authorization_code"], "id_jag": [good]});
        let public = json!({"id_jag": [good], "secrets": [], "token_endpoint_auth_method": "none"});
        for (rule, changes) in [
            ("must not name this issuer", with(&[ours])),
            ("the same audience twice", with(&twice)),
            ("id_jag[0].scope", without("scope")),
            (resource, with(&[entry(CHAT, &[], json!({}))])),
            (resource, without("resources")),
            ("scopes", with(&[scopes])),
            ("must contain token exchange", untyped),
            ("confidential", public),
        ] {
            let mut document = registration();
            let wiki = client(&mut document, "wiki");
            *wiki = with_members(wiki.take(), &changes);
            let said = gatepost.apply_refused(&document);
            said.assert_says_for(&changes, rule);
        }
        gatepost.apply(&registration());
        let exported = gatepost.run_line("export");
        let again = gatepost.run_well(&["apply", "-"], &exported);
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
    format!("Authorization: {authorization}\n\n{}\n", encode(form))
}

#[test]
fn explain_tells_what_an_exchange_with_an_audience_would_give() {
    let mut gatepost = Gatepost::start_with(&issuing::registration(), &ON);
    let mut browser = signed_in(&gatepost);
    let tokens = issuing::tokens(&gatepost, &mut browser, "openid profile");
    let judged = |gatepost: &Gatepost, changes: &[(&str, &str)]| {
        let form = issuing::form(text(&tokens, "id_token"), changes);
        explained(gatepost, &sent("wiki", &form))
    };
    let issued_before = gatepost.database.count("audit_events");
    let (is_good, told) = judged(&gatepost, &[]);
    let gets =
        format!("it gets an ID-JAG for {MCP} at {CHAT}, with the scope chat.read chat.write");
    assert!(is_good && told.contains(&gets), "{told}");
    let elsewhere = "https://elsewhere.example";
    let there = "registered in id_jag: https://auth.chat.example for";
    let no_id_token = "no ID token that this client got here";
    for (name, value, code, words) in [
        ("audience", elsewhere, "GP1218", there),
        ("resource", elsewhere, "GP1218", "registered in id_jag"),
        (
            "scope",
            "mail.read",
            "GP1217",
            "for an ID-JAG it must be in the scope",
        ),
        ("audience", STAFF, "GP1139", "allowed_roles"),
        ("audience", VAULT, "GP1802", "minimum_acr"),
        ("subject_token", "x.y.z", "GP1266", no_id_token),
    ] {
        let (is_good, told) = judged(&gatepost, &[(name, value)]);
        assert!(!is_good, "{name} {value}: {told}");
        told.assert_says_for(value, code);
        told.assert_says_for(value, words);
    }
    let (_, told) = explained(&gatepost, text(&tokens, "id_token"));
    told.assert_says("its client gets ID-JAGs by it");
    let exchanged = |token: &str, audience: &str| {
        let exchange = [
            ("grant_type", EXCHANGE),
            ("subject_token", token),
            ("subject_token_type", ACCESS_TOKEN),
            ("audience", audience),
        ];
        explained(&gatepost, &sent("plain", &exchange))
    };
    let (is_good, told) = exchanged(text(&tokens, "access_token"), ORDERS);
    assert!(!is_good && told.contains("GP1266"), "{told}");
    let path = authorize_path("conf1", RP1, &[("scope", "openid orders.read")]);
    let of_conf1 = issued(&redeem(&gatepost, &code(&mut browser, &path)));
    let of_conf1 = text(&of_conf1, "access_token");
    let (_, told) = exchanged(of_conf1, ORDERS);
    told.assert_says(&format!("for the audience {ORDERS}"));
    let (is_good, told) = exchanged(of_conf1, elsewhere);
    assert!(!is_good && told.contains("GP1218"), "{told}");
    assert!(gatepost.database.count("audit_events") >= issued_before);

    let tested = |gatepost: &Gatepost| {
        let output = gatepost.run(&["client", "test", "wiki"], "");
        String::from_utf8(output.stdout).unwrap()
    };
    tested(&gatepost).assert_says_not("GATEPOST_ID_JAG is off");
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
    told.assert_says("its signature");
    let elsewhere = "https://elsewhere.example";
    let elsewhere_only = json!({"iss": elsewhere});
    for (changes, code, words) in [
        (
            json!({"aud": elsewhere}),
            "GP1244",
            "aud is not this issuer alone",
        ),
        (json!({"exp": now() - 90}), "GP1244", "expired"),
        (json!({"iat": null}), "GP1244", "An ID-JAG needs iat"),
        (
            elsewhere_only,
            "GP1241",
            "its iss is https://elsewhere.example",
        ),
        (
            json!({"client_id": "nobody"}),
            "GP1176",
            "no such client: nobody",
        ),
        (
            json!({"resource": elsewhere}),
            "GP1176",
            "resource must be registered",
        ),
    ] {
        let (is_good, told) = shown(changes.clone());
        assert!(!is_good, "{changes}: {told}");
        told.assert_says_for(&changes, code);
        told.assert_says_for(&changes, words);
    }
    let (is_good, told) = shown(json!({"scope": "stock.read"}));
    assert!(!is_good && told.contains("GP1217"), "{told}");
    // With its request, the server says the same.
    for (changes, further, reason) in [
        (json!({"scope": "stock.read"}), vec![], "GP1217"),
        (json!({}), vec![("scope", "stock.read")], "GP1217"),
        (json!({}), vec![("scope", "api.read")], "GP1115"),
        (json!({}), vec![("resource", elsewhere)], "GP1218"),
    ] {
        let id_jag = taking::id_jag(&scene.signer, &taking::claims(&scene.gatepost, &changes));
        let form = [("grant_type", JWT_BEARER), ("assertion", &*id_jag)];
        let request = sent("agent", &[&form, &*further].concat());
        let (is_good, told) = explained(&scene.gatepost, &request);
        assert!(!is_good && told.contains(reason), "{reason}: {told}");
        let answer = taking::redeem(&scene.gatepost, "agent", &id_jag, &further);
        answer.assert_status_for(reason, 400);
        let last = scene.gatepost.last_line("path=/connect/token");
        last.assert_says(&format!("reason=\"{reason}\""));
    }
    let other = Signer::es256("x");
    let foreign = other.sign(&json!({"iss": "https://other.example", "exp": now() + 60}));
    let (is_good, told) = explained(&scene.gatepost, &foreign);
    assert!(!is_good, "{told}");
    told.assert_says("its iss is https://other.example");
}

mod taking {
    use super::*;

    fn registration(signer: &Signer, changes: Value) -> Value {
        let agent = json!({
            "grant_types": [JWT_BEARER, "authorization_code", "refresh_token"],
            "scope": "openid offline_access orders.read orders.write stock.read",
        });
        let public = json!({"token_endpoint_auth_method": "none", "secrets": []});
        let public = with_members(agent.clone(), &public);
        let clients = [
            ("agent", agent.clone()),
            ("other", agent),
            ("public", public),
        ];
        let mut document = with_clients(document(), &clients);
        let issuer = json!({
            "issuer": IDP, "jwks": key_set(&[signer]), "algs": [signer.alg], "id_jag": true,
            "clients": ["agent", "other", "public"], "scope": "openid offline_access orders.read orders.write",
            "subject": "username", "acr_map": {"mfa": "2"},
        });
        document["assertion_issuers"] = json!([with_members(issuer, &changes)]);
        document["tenants"] = json!([{"name": "acme"}]);
        let users = document["users"].as_array_mut().unwrap();
        users.push(json!({"username": "carol", "tenant": "acme"}));
        document
    }

    pub(super) fn claims(gatepost: &Gatepost, changes: &Value) -> Value {
        let own = json!({
            "client_id": "agent", "iat": now(), "exp": now() + 300, "resource": ORDERS,
            "scope": "orders.read orders.write", "auth_time": now() - 500, "acr": "mfa",
            "amr": ["pwd", "otp"],
        });
        let claims = with_members(assertion(IDP, "alice", &gatepost.base_url), &own);
        changed_members(claims, changes)
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
        let form = [("grant_type", JWT_BEARER), ("assertion", assertion)];
        let header = basic(client_id, CONF1_SECRET);
        let headers = [&[("Authorization", &*header)], headers].concat();
        gatepost.post("/connect/token", &headers, &[&form, further].concat())
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
        let token = scene.claims_of(&json!({}), &[("requested_token_type", ID_JAG)]);
        assert_eq!(token["aud"], json!(ORDERS));
        // What is asked for, what the ID-JAG says, what its issuer and what the client may.
        let unsaid = json!({"scope": null});
        for (claims, asked, scope) in [
            (json!({}), "orders.read stock.read", "orders.read"),
            (
                json!({"scope": "orders.write mail.read"}),
                "",
                "orders.write",
            ),
            (
                json!({"scope": "orders.read offline_access stock.read"}),
                "",
                "orders.read",
            ),
            (unsaid, "orders.read offline_access", "orders.read"),
        ] {
            let further = [("scope", asked)];
            let further = if asked.is_empty() { &[] } else { &further[..] };
            assert_eq!(
                scene.claims_of(&claims, further)["scope"],
                scope,
                "{claims} {asked}"
            );
        }
        let stock = "https://stock.example";
        for (case, error, claims, further) in [
            (
                "nothing left",
                "scope",
                json!({"scope": "stock.read"}),
                vec![],
            ),
            (
                "not the client's",
                "scope",
                json!({}),
                vec![("scope", "mail.read")],
            ),
            ("beyond it", "target", json!({}), vec![("resource", stock)]),
            (
                "without its scopes",
                "target",
                json!({"resource": stock}),
                vec![],
            ),
        ] {
            let error = format!("invalid_{error}");
            scene
                .ask(&claims, &further)
                .assert_refused(400, &error, case);
        }
        // What the registration does not know counts for one factor.
        assert_eq!(scene.claims_of(&json!({"acr": "gold"}), &[])["acr"], "1");
        let future = scene.claims_of(&json!({"auth_time": now() + 500}), &[]);
        assert!(future["auth_time"].as_u64().unwrap() <= now());
        for resource in [json!([ORDERS]), json!("https://orders.example/")] {
            let token = scene.claims_of(&json!({"resource": resource}), &[]);
            assert_eq!(token["aud"], ORDERS);
        }
        let narrower = scene.claims_of(&json!({}), &[("resource", ORDERS)]);
        assert_eq!(narrower["aud"], ORDERS);
        // What was given ends with the user.
        let given = issued(&scene.ask(&json!({"scope": "openid orders.read"}), &[]));
        let given = text(&given, "access_token");
        userinfo(&scene.gatepost, given).assert_status(200);
        scene.gatepost.run_line("user revoke alice");
        userinfo(&scene.gatepost, given).assert_status(401);
    }

    #[test]
    fn each_rule_wrong_once() {
        let scene = Scene::start(json!({}));
        let gatepost = &scene.gatepost;
        let is_refused = |answer: &Answer, code: &str, case: &str| {
            assert_says(gatepost, answer, "invalid_grant", code, case);
        };
        let token_url = format!("{}/connect/token", gatepost.base_url);
        let elsewhere = "https://other.example";
        let wrong = json!({"GP1176": {
            "no client_id": {"client_id": null},
            "another client's": {"client_id": "other"},
            "a list of clients": {"client_id": ["agent"]},
            "no resource": {"resource": null},
            "an empty list": {"resource": []},
            "a resource of others": {"resource": elsewhere},
            "one of two": {"resource": [ORDERS, elsewhere]},
            "a number": {"resource": 7},
        }, "GP1177": {
            "a key to be proved": {"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}},
        }, "GP1244": {
            "no iat": {"iat": null},
            "limited by what we do not read": {"scope": null, "authorization_details": [{"type": "stock"}]},
            "a sign-in at no time": {"auth_time": -5},
            "iat ahead": {"iat": now() + 200},
            "a scope that is none": {"scope": ["orders.read"]},
            "for our token endpoint": {"aud": token_url},
            "for somebody else too": {"aud": [gatepost.base_url, elsewhere]},
            "no jti": {"jti": null},
            "expired": {"exp": now() - 100},
            "without an end in sight": {"exp": now() + 4_000},
        }, "GP1247": {
            "of nobody": {"sub": "nobody"},
            "of a tenant": {"sub": "carol"},
        }, "GP1241": {
            "of an unknown issuer": {"iss": elsewhere},
        }});
        for (code, rows) in cases(&wrong) {
            for (case, changes) in cases(rows) {
                is_refused(&scene.ask(changes, &[]), code, case);
            }
        }
        let right = claims(gatepost, &json!({}));
        let redeemed =
            |client_id: &str, assertion: &str| redeem(gatepost, client_id, assertion, &[]);
        for typ in ["JWT", "at+jwt", "oauth-id-jag", "client-authentication+jwt"] {
            let header = json!({"alg": "RS256", "kid": "k", "typ": typ});
            let assertion = scene.signer.sign_under(&header, &right);
            is_refused(&redeemed("agent", &assertion), "GP1241", typ);
        }
        let forged = id_jag(&Signer::rs256("k"), &right);
        is_refused(&redeemed("agent", &forged), "GP1243", "another key");
        // None of these has used it up, nor has another client.
        let right = id_jag(&scene.signer, &right);
        is_refused(&redeemed("other", &right), "GP1176", "another client");
        let of_public = claims(gatepost, &json!({"client_id": "public"}));
        let of_public = id_jag(&scene.signer, &of_public);
        let form = [
            ("grant_type", JWT_BEARER),
            ("assertion", &*of_public),
            ("client_id", "public"),
        ];
        let of_public = gatepost.post("/connect/token", &[], &form);
        is_refused(&of_public, "GP1176", "a public client");
        let upper = json!({"alg": "RS256", "kid": "k", "typ": "application/OAuth-ID-JAG+jwt"});
        let further = claims(gatepost, &json!({}));
        let upper = scene.signer.sign_under(&upper, &further);
        redeemed("agent", &upper).assert_status(200);
        redeemed("agent", &right).assert_status(200);
        is_refused(&redeemed("agent", &right), "GP1245", "twice");
        gatepost.run_line("user disable alice");
        let disabled = scene.ask(&json!({}), &[]);
        disabled.assert_refused(400, "invalid_grant", "disabled");
    }

    #[test]
    fn roles_and_strength_hold_as_for_any_token() {
        let scene = Scene::start(json!({}));
        let closed = |name: &str, value: Value| {
            let mut document = registration(&scene.signer, json!({}));
            client(&mut document, "agent")[name] = value;
            scene.gatepost.apply(&document);
        };
        let ask = |claims: Value| scene.ask(&claims, &[]);
        closed("minimum_acr", json!("2"));
        ask(json!({})).assert_status(200);
        ask(json!({"acr": null})).assert_refused(400, "invalid_grant", "one factor");
        closed("allowed_roles", json!(["staff"]));
        ask(json!({})).assert_refused(400, "invalid_grant", "no role");
        closed("allowed_roles", json!(["admin"]));
        ask(json!({})).assert_status(200);
    }

    #[test]
    fn an_issuer_for_a_tenant_speaks_of_its_people_alone() {
        let scene = Scene::start(json!({"tenant": "acme"}));
        let acme = [("acr_values", "tenant:acme")];
        let carol = json!({"sub": "carol"});
        assert_eq!(scene.claims_of(&carol, &acme)["tenant"], "acme");
        let alice = scene.ask(&json!({}), &acme);
        alice.assert_refused(400, "invalid_grant", "alice is of none");
        let unasked = scene.ask(&carol, &[]);
        unasked.assert_refused(400, "invalid_grant", "no tenant asked for");
    }

    #[test]
    fn sixteen_at_once_are_one_token() {
        let scene = Scene::start(json!({}));
        let id_jag = id_jag(&scene.signer, &claims(&scene.gatepost, &json!({})));
        let statuses = all_at_once(16, |_| {
            redeem(&scene.gatepost, "agent", &id_jag, &[]).status
        });
        let given = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 400).count();
        assert_eq!((given, refused), (1, 15), "{statuses:?}");
    }

    #[test]
    fn off_or_from_an_ordinary_issuer_it_is_refused() {
        let signer = Signer::rs256("k");
        let off = Gatepost::start_with(&registration(&signer, json!({})), &[]);
        let right = claims(&off, &json!({}));
        let of_id_jag = redeem(&off, "agent", &id_jag(&signer, &right), &[]);
        assert_says(&off, &of_id_jag, "invalid_grant", "GP1176", "off");
        let plain = redeem(&off, "agent", &signer.sign(&claims(&off, &json!({}))), &[]);
        assert_says(&off, &plain, "invalid_grant", "GP1241", "nothing else");
        let ordinary = Scene::start(json!({"id_jag": false, "acr_map": {}}));
        let answer = ordinary.ask(&json!({}), &[]);
        let gatepost = &ordinary.gatepost;
        assert_says(gatepost, &answer, "invalid_grant", "GP1241", "ordinary");
        let mut refused = registration(&signer, json!({"id_jag": false}));
        refused["assertion_issuers"][0]["acr_map"] = json!({"mfa": "2"});
        let said = off.apply_refused(&refused);
        said.assert_says("acr_map");
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
        let (issuer, alice) = (&pair.first.base_url, pair.alice());
        let link = format!("user link bob --issuer {issuer} --subject {alice}");
        pair.second.run_line(&link);
        pair
    }

    /// Her subject at the first.
    fn alice(&self) -> String {
        let (_, alice) = decode_jwt(&self.id_token);
        text(&alice, "sub").to_owned()
    }

    /// An ID-JAG of the first for the second, asked for with these headers.
    fn id_jag(&self, headers: &[(&str, &str)]) -> String {
        let form = [("audience", &*self.second.base_url), ("resource", ORDERS)];
        let answer = issuing::ask_with(&self.first, "wiki", &self.id_token, &form, headers);
        text(&issued(&answer), "access_token").to_owned()
    }
}

#[test]
fn one_sign_in_at_the_first_opens_the_second_and_a_proof_binds_it_to_its_key_alone() {
    let pair = Pair::start();
    let second = &pair.second;
    let id_jag = pair.id_jag(&[]);
    let opened = issued(&taking::redeem(second, "agent", &id_jag, &[]));
    let (_, token) = verified(second, text(&opened, "access_token"));
    assert_eq!(token["aud"], json!(ORDERS));
    assert_eq!(token["scope"], "orders.read");
    // The subject is the second one's.
    assert_ne!(text(&token, "sub"), pair.alice());
    taking::redeem(second, "agent", &id_jag, &[]).assert_status_for("it is good once", 400);
    assert_proof_binds(&pair);
}

/// An ID-JAG that was asked for with a proof is good with that key alone.
fn assert_proof_binds(pair: &Pair) {
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
    let opened = taking::redeem_proving(second, "agent", &id_jag, &[], &held);
    let opened = issued(&opened);
    assert_eq!(opened["token_type"], "DPoP");
    let (_, token) = verified(second, text(&opened, "access_token"));
    assert_eq!(token["cnf"], claims["cnf"]);
}

/// `GATEPOST_CLIENT_ASSERTION_AUDIENCE`
#[test]
fn client_assertions_name_the_issuer_alone_where_the_setting_says_so() {
    let signer = Signer::es256("k");
    let keyed = json!({
        "client_id": "keyed", "grant_types": ["client_credentials"], "response_types": [], "redirect_uris": [],
        "scope": "orders.read", "token_endpoint_auth_method": "private_key_jwt", "jwks": key_set(&[&signer]),
    });
    let registered = with_further_clients(document(), &[keyed]);
    for (setting, of_token_endpoint) in [(None, 200), (Some("any"), 200), (Some("issuer"), 400)] {
        let settings = setting.map(|value| ("GATEPOST_CLIENT_ASSERTION_AUDIENCE", value));
        let gatepost = Gatepost::start_with(&registered, settings.as_slice());
        let ask = |aud: Value, jti: &str| {
            let claims =
                json!({"iss": "keyed", "sub": "keyed", "aud": aud, "exp": now() + 60, "jti": jti});
            let form = [
                ("grant_type", "client_credentials"),
                ("client_assertion_type", ASSERTION_TYPE),
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
        let expected = [200, 200, of_token_endpoint, 400, 400];
        assert_eq!(answers, expected, "{setting:?}");
        gatepost.await_log("the weak settings", |log| {
            log.contains("weak settings in use")
        });
        let line = "client assertions for the token endpoint's URL (keyed)";
        let tells = gatepost.log().contains(line);
        assert_eq!(tells, of_token_endpoint == 200, "{setting:?}");
    }
}
