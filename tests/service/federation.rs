//! Signing in with an account elsewhere: two Gateposts, one upstream of the other, over real HTTP;
//! and every kind of provider that the standards allow.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, issued, redeem, sign_in, text, userinfo, with_clients};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::{Answer, encode};
use crate::support::jwt::{published_keys, verified};
use crate::support::signer::{Signer, now};
use crate::support::tables::cases;
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Fault, Place, Plan, Upstream};
use crate::support::waiting::{SOON, await_that};

const ALLOWED: (&str, &str) = ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8,::1/128");
const SCOPE: &str = "openid profile email roles";
const DONE: &str = "https://rp1.example/done";
const STRAIGHT: (&str, &str) = ("acr_values", "idp:up");

/// Where people sign in, and where they go from there.
struct Pair {
    up: Gatepost,
    down: Gatepost,
}

impl Pair {
    /// Both serving; the provider's entry downstream with changes.
    fn start(changes: &Value) -> Pair {
        let mut up = Gatepost::prepare(&[("GATEPOST_BASE_URL", "http://127.0.0.1:PORT"), ALLOWED]);
        let mut down = Gatepost::prepare(&[ALLOWED]);
        up.apply(&upstream_document(&down));
        down.apply(&downstream_document(&up, changes));
        up.launch();
        down.serve();
        up.await_ready();
        Pair { up, down }
    }

    /// From an authorization request here to the answer for its client, by way of the sign-in page
    /// there.
    fn sign_in(
        &self,
        person: &mut Traveller,
        changes: &[(&str, &str)],
        username: &str,
        password: &str,
    ) -> Answer {
        let page = person.visit(&self.request(changes));
        self.assert_there(person);
        let answer = sign_in(person.at(&self.up.base_url), &page, username, password);
        answer.assert_status(303);
        person.follow(&self.up.base_url, answer)
    }

    /// An authorization request that leads straight there.
    fn request(&self, changes: &[(&str, &str)]) -> String {
        let usual = [("scope", SCOPE), STRAIGHT];
        self.plain_request(&crate::support::flow::changed(&usual, changes))
    }

    /// One that leaves it to the person.
    fn plain_request(&self, changes: &[(&str, &str)]) -> String {
        let path = authorize_path("conf1", RP1, changes);
        format!("{}{path}", self.down.base_url)
    }

    /// It came as far as a page of that server.
    #[track_caller]
    fn assert_there(&self, person: &Traveller) {
        let here = person.here();
        assert!(
            here.starts_with(&self.up.base_url),
            "{here}\n{}",
            self.down.log()
        );
    }

    /// Whether this browser is signed in here.
    fn is_signed_in(&self, person: &mut Traveller) -> bool {
        let answer = person.get(&self.plain_request(&[("prompt", "none")]));
        let answer = answer.query();
        let carries_code = answer.contains_key("code");
        assert!(
            carries_code || answer["error"] == "login_required",
            "{answer:?}"
        );
        carries_code
    }

    /// The parameters with which the last one came to the authorization endpoint there.
    fn asked(&self, person: &Traveller) -> BTreeMap<String, String> {
        let endpoint = format!("{}/connect/authorize?", self.up.base_url);
        let mut last_first = person.went.iter().rev();
        let query = last_first.find_map(|address| address.strip_prefix(&endpoint));
        let parameters = form_urlencoded::parse(query.unwrap().as_bytes());
        parameters.into_owned().collect()
    }
}

fn upstream_document(down: &Gatepost) -> Value {
    let client = json!({
        "client_name": "Downstream", "redirect_uris": [format!("{}/external/up/callback", down.base_url)],
        "grant_types": ["authorization_code"], "scope": SCOPE,
        "post_logout_redirect_uris": [format!("{}/external/up/signed-out", down.base_url)],
        "backchannel_logout_uri": format!("{}/external/up/logout", down.base_url),
        "backchannel_logout_session_required": true
    });
    with_clients(document(), &[("downstream", client)])
}

fn downstream_document(up: &Gatepost, changes: &Value) -> Value {
    let mut provider = json!({
        "name": "up", "display_name": "Upstairs", "issuer": up.base_url, "client_id": "downstream",
        "client_secret": CONF1_SECRET, "scope": SCOPE, "claims": {"role": "role", "given_name": "nickname"},
        "role_map": {"admin": ["boss", "staff"], "user": "staff"}
    });
    crate::support::upstream::change(&mut provider, changes);
    let mut document = document();
    document["identity_providers"] = json!([provider]);
    document["clients"][0]["post_logout_redirect_uris"] = json!([DONE]);
    document
}

fn count(gatepost: &Gatepost, what: &str) -> i64 {
    gatepost.database.count(what)
}

fn sub(gatepost: &Gatepost, username: &str) -> String {
    let sql = "SELECT sub FROM users WHERE username = $1";
    gatepost.database.value(sql, &[&username])
}

/// Claims of the ID token, and what UserInfo says, for an answer with a code.
fn told_of(gatepost: &Gatepost, answer: &Answer) -> (Value, Value) {
    answer.assert_carries("code");
    let tokens = issued(&redeem(gatepost, &answer.query()["code"]));
    let (_, claims) = verified(gatepost, text(&tokens, "id_token"));
    let told = userinfo(gatepost, text(&tokens, "access_token"));
    (claims, told.json())
}

/// Somebody new who goes straight to the provider of that name.
fn straight(gatepost: &Gatepost, provider: &str, scope: &str) -> Answer {
    let idp = format!("idp:{provider}");
    let path = authorize_path("conf1", RP1, &[("acr_values", &idp), ("scope", scope)]);
    Traveller::new().visit(&format!("{}{path}", gatepost.base_url))
}

#[test]
fn a_sign_in_upstream_ends_in_tokens_here_that_say_who_vouched_how_and_when() {
    let pair = Pair::start(&json!({}));
    let users = count(&pair.down, "users");
    let mut person = Traveller::new();
    let answer = pair.sign_in(&mut person, &[], "alice", ALICE_PASSWORD);
    assert_eq!(answer.query()["state"].as_str(), "the-state");
    assert_eq!(answer.query()["iss"].as_str(), &*pair.down.base_url);
    let (id_token, told) = told_of(&pair.down, &answer);
    // How it was done there is told where `acr_map` says what that is worth.
    assert_eq!(id_token["idp"], "up");
    assert_eq!(id_token["amr"], json!([]));
    let asked = "SELECT extract(epoch FROM auth_time)::int8 FROM sessions";
    let there: i64 = pair.up.database.value(asked, &[]);
    let here = id_token["auth_time"].as_i64().unwrap();
    assert!((here - there).abs() <= 1, "{id_token} against {there}");

    // The account here is one of its own: no name, no password, and another subject than there.
    let condition = "users WHERE username IS NULL AND password_hash IS NULL";
    assert_eq!(count(&pair.down, "users") - users, 1);
    assert_eq!(count(&pair.down, condition), 1);
    let there = sub(&pair.up, "alice");
    assert_ne!(id_token["sub"], there);
    let linked = format!(
        "linked_identities WHERE issuer = '{}' AND upstream_subject = '{there}'",
        pair.up.base_url
    );
    assert_eq!(count(&pair.down, &linked), 1);

    // Claims come from UserInfo there, renamed and mapped by this provider's table.
    assert_eq!(told["sub"], id_token["sub"]);
    assert_eq!(told["name"], "Alice Smith");
    assert_eq!(told["nickname"], "Alice");
    assert_eq!(told["email"], "alice@example.com");
    assert_eq!(told["email_verified"], true);
    assert_eq!(told["role"], json!(["boss", "staff"]));

    // The second time it is the same account, with what is said of it now.
    pair.up
        .run_line("user role alice --remove admin --add user");
    let mut elsewhere = Traveller::new();
    let answer = pair.sign_in(&mut elsewhere, &[], "alice", ALICE_PASSWORD);
    let (again, told) = told_of(&pair.down, &answer);
    assert_eq!(again["sub"], id_token["sub"]);
    assert_eq!(told["role"], json!(["staff"]));
    assert_ne!(again["sid"], id_token["sid"]);
    assert_eq!(count(&pair.down, "users") - users, 1);

    // Another person there is another one here.
    let answer = pair.sign_in(&mut Traveller::new(), &[], "bob", BOB_PASSWORD);
    let (bob, _) = told_of(&pair.down, &answer);
    assert_ne!(bob["sub"], id_token["sub"]);
    assert_eq!(count(&pair.down, "users") - users, 2);
    let condition = "audit_events WHERE event = 'external_sign_in_failed'";
    assert_eq!(count(&pair.down, condition), 0);
}

#[test]
fn what_the_client_asks_of_the_sign_in_is_asked_upstream() {
    let pair = Pair::start(&json!({}));
    let mut person = Traveller::new();
    pair.sign_in(&mut person, &[], "alice", ALICE_PASSWORD);
    let asked = pair.asked(&person);
    for unasked in ["prompt", "max_age", "login_hint"] {
        assert_eq!(asked.get(unasked), None, "{unasked}");
    }
    assert_eq!(asked["code_challenge_method"].as_str(), "S256");
    assert_eq!(asked["scope"].as_str(), SCOPE);
    for (name, parameter) in [("state", "the-state"), ("nonce", "the-nonce")] {
        assert_ne!(asked[name], parameter, "{name} is of this round trip alone");
    }

    // Signed in there still, but the password is asked for again, and the new moment counts.
    assert!(pair.is_signed_in(&mut person));
    let further = [
        ("prompt", "login"),
        ("login_hint", "alice"),
        ("ui_locales", "de"),
    ];
    let page = person.visit(&pair.request(&further));
    let asked = pair.asked(&person);
    for (name, value) in further {
        assert_eq!(asked[name], value, "{name}");
    }
    pair.assert_there(&person);
    let language = page.attribute("<html", "lang");
    let language = language.or(page.attribute("html ", "lang"));
    assert_eq!(language.as_deref(), Some("de"));
    let username = page.attribute("name=\"username\"", "value");
    assert_eq!(username.as_deref(), Some("alice"));
    let answer = sign_in(person.at(&pair.up.base_url), &page, "alice", ALICE_PASSWORD);
    let answer = person.follow(&pair.up.base_url, answer);
    answer.assert_carries("code");

    let answer = pair.sign_in(&mut person, &[("max_age", "0")], "alice", ALICE_PASSWORD);
    answer.assert_carries("code");
    assert_eq!(pair.asked(&person)["max_age"], "0");

    // An old session upstream does not pass for a fresh sign-in, and nobody goes round twice.
    let older = "UPDATE sessions SET auth_time = auth_time - interval '1 hour'";
    pair.up.run_sql(older);
    pair.down.run_sql(older);
    let answer = person.visit(&pair.request(&[]));
    answer.assert_carries_for("a session is enough where nothing is asked", "code");
    let page = person.visit(&pair.request(&[("max_age", "60")]));
    pair.assert_there(&person);
    let answer = sign_in(person.at(&pair.up.base_url), &page, "alice", ALICE_PASSWORD);
    let (id_token, _) = told_of(&pair.down, &person.follow(&pair.up.base_url, answer));
    assert!(now() as i64 - id_token["auth_time"].as_i64().unwrap() < 60);

    // Without a session here nobody is sent anywhere that must not see a page.
    let mut stranger = Traveller::new();
    let answer = stranger.visit(&pair.request(&[("prompt", "none")]));
    assert_eq!(answer.query()["error"].as_str(), "login_required");
    assert_eq!(stranger.went.len(), 1);
}

#[test]
fn the_account_upstream_that_nobody_knows_here_gets_none_where_provisioning_is_off() {
    let pair = Pair::start(&json!({"provision": false}));
    let users = count(&pair.down, "users");
    let page = pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    assert!((400..500).contains(&page.status), "{}", page.status);
    page.assert_stays(page.status);
    assert_eq!(count(&pair.down, "users"), users);
    assert_eq!(count(&pair.down, "sessions"), 0);
    assert_eq!(count(&pair.down, "linked_identities"), 0);

    // The operator links the account to somebody who is here already: that is who comes in.
    let (issuer, there) = (&pair.up.base_url, sub(&pair.up, "alice"));
    let link = format!("user link bob --issuer {issuer} --subject {there}");
    pair.down.run_line(&link);
    let answer = pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    let (_, told) = told_of(&pair.down, &answer);
    assert_eq!(told["sub"], sub(&pair.down, "bob"));

    // Whoever is disabled here comes in by no door.
    let before = count(&pair.down, "sessions");
    pair.down.run_well(&["user", "disable", "bob"], "");
    let page = pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    assert_eq!(page.header("location"), None, "{}", page.text());
    assert_eq!(count(&pair.down, "sessions"), before);
}

#[test]
fn new_keys_upstream_are_fetched_when_first_seen() {
    let pair = Pair::start(&json!({}));
    let kids = || {
        let keys = published_keys(&pair.up).into_iter();
        keys.map(|key| key["kid"].clone()).collect::<Vec<_>>()
    };
    pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    let before = kids();
    pair.up.run_well(&["key", "rotate", "--now"], "");
    pair.up.settle();
    assert_ne!(kids(), before, "no new key");
    let answer = pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    answer.assert_carries("code");
}

#[test]
fn signing_out_upstream_signs_out_here_and_only_who_came_from_there() {
    let pair = Pair::start(&json!({}));
    let (mut alice, mut at_home, mut bob) = (Traveller::new(), Traveller::new(), Traveller::new());
    pair.sign_in(&mut alice, &[], "alice", ALICE_PASSWORD);
    pair.sign_in(&mut bob, &[], "bob", BOB_PASSWORD);
    // The same person with the password of an account here.
    let page = at_home.visit(&pair.plain_request(&[]));
    let browser = at_home.at(&pair.down.base_url);
    sign_in(browser, &page, "alice", ALICE_PASSWORD).assert_status(303);
    for person in [&mut alice, &mut bob, &mut at_home] {
        assert!(pair.is_signed_in(person));
    }

    let page = alice.get(&format!("{}/logout", pair.up.base_url));
    let browser = alice.at(&pair.up.base_url);
    let answer = browser.submit(&page, &[("decision", "sign_out")]);
    assert!(answer.status < 400, "{}", answer.text());
    await_that("the session ends", SOON, || !pair.is_signed_in(&mut alice));
    assert!(pair.is_signed_in(&mut bob));
    assert!(pair.is_signed_in(&mut at_home));
}

#[test]
fn signing_out_here_signs_out_there_where_the_registration_says_so_and_ends_at_the_client() {
    let pair = Pair::start(&json!({"sign_out": true}));
    let is_signed_in_there = |person: &mut Traveller| {
        let answer = person.get(&pair.request(&[("prompt", "login")]));
        let page = person.follow(&pair.down.base_url, answer);
        page.assert_says("name=\"password\"");
        let sessions = "sessions WHERE ended_at IS NULL";
        count(&pair.up, sessions) == 1
    };
    let mut person = Traveller::new();
    let answer = pair.sign_in(&mut person, &[], "alice", ALICE_PASSWORD);
    let tokens = issued(&redeem(&pair.down, &answer.query()["code"]));
    assert!(is_signed_in_there(&mut person));
    let parameters = [
        ("id_token_hint", text(&tokens, "id_token")),
        ("post_logout_redirect_uri", DONE),
        ("state", "a b&c"),
    ];
    let end = format!("{}/connect/endsession?", pair.down.base_url);
    let answer = person.visit(&format!("{end}{}", encode(&parameters)));
    let there = format!("{}/connect/endsession?", pair.up.base_url);
    assert!(
        person
            .went
            .iter()
            .any(|address| address.starts_with(&there))
    );
    assert_eq!(answer.location(), format!("{DONE}?state=a%20b%26c"));
    assert!(!pair.is_signed_in(&mut person));
    assert!(!is_signed_in_there(&mut person));

    // Whoever signed in here with a password is none of its business.
    let mut at_home = Traveller::new();
    let page = at_home.visit(&pair.plain_request(&[]));
    let browser = at_home.at(&pair.down.base_url);
    let answer = sign_in(browser, &page, "alice", ALICE_PASSWORD);
    let tokens = issued(&redeem(&pair.down, &answer.query()["code"]));
    let parameters = [
        ("id_token_hint", text(&tokens, "id_token")),
        ("post_logout_redirect_uri", DONE),
    ];
    let answer = at_home.visit(&format!("{end}{}", encode(&parameters)));
    assert_eq!(answer.location(), DONE);
    let mut went = at_home.went.iter();
    assert!(went.all(|address| !address.starts_with(&pair.up.base_url)));
}

/// A provider's entry and what its people are told to be: one sign-in each.
struct Variation {
    name: String,
    upstream: Upstream,
    changes: Value,
}

fn variation(name: &str, signer: Signer, prepare: impl FnOnce(&mut Plan)) -> Variation {
    let upstream = Upstream::start_with(signer);
    upstream.plan(prepare);
    Variation {
        name: name.to_owned(),
        upstream,
        changes: json!({}),
    }
}

/// Those of a table, where the name of each leads to what `change` is made of.
fn variations_of(table: &Value, change: fn(&mut Plan, Value)) -> Vec<Variation> {
    let one = |(name, changes): (&str, &Value)| {
        variation(name, Signer::es256("first"), |plan| {
            change(plan, changes.clone())
        })
    };
    cases(table).map(one).collect()
}

/// What the standards leave to a provider.
fn variations() -> Vec<Variation> {
    let id_tokens = json!({
        "a list of one audience": {"aud": [CLIENT_ID]},
        "our azp": {"azp": CLIENT_ID},
        "our azp among more audiences": {"aud": ["somebody-else", CLIENT_ID], "azp": CLIENT_ID},
        "no at_hash": {"at_hash": null},
        "no auth_time": {"auth_time": null},
        "a clock slightly ahead": {"iat": now() + 10},
    });
    let headers = json!({"no kid and one key": {"kid": null}, "no typ": {"typ": null}});
    let metadata = json!({
        "no announcement of iss": {"authorization_response_iss_parameter_supported": null},
        "no UserInfo": {"userinfo_endpoint": null},
    });
    let bearer = json!({"a lower-case bearer": {"token_type": "bearer"}});
    let signed = json!({"UserInfo as a JWT": {"aud": [CLIENT_ID]}});
    let ed25519 = Signer::ed25519_by_its_newer_name("first");
    let es256 = || Signer::es256("first");
    let ways = |name, ways: &'static [&'static str]| {
        variation(name, es256(), |plan| plan.authentication = ways)
    };
    let mut all = vec![
        variation("RS256", Signer::rs256("first"), |_| ()),
        variation("ES256", es256(), |_| ()),
        variation("EdDSA", Signer::ed25519("first"), |_| ()),
        variation("Ed25519", ed25519, |plan| {
            plan.discovery = json!({"id_token_signing_alg_values_supported": ["Ed25519"]});
        }),
        variation("a subject of 255 characters", es256(), |plan| {
            plan.subject = "\u{e9}".repeat(255)
        }),
        ways("client_secret_basic alone", &["client_secret_basic"]),
        ways("client_secret_post alone", &["client_secret_post"]),
        ways(
            "post among more",
            &["private_key_jwt", "client_secret_post"],
        ),
        variation("no word of client authentication", es256(), |plan| {
            plan.authentication = &["client_secret_basic"];
            plan.discovery = json!({"token_endpoint_auth_methods_supported": null});
        }),
        Variation {
            changes: json!({"client_secret": null}),
            ..ways("no secret", &["none"])
        },
    ];
    all.extend(variations_of(&id_tokens, |plan, claims| {
        plan.id_token = claims
    }));
    all.extend(variations_of(&headers, |plan, header| plan.header = header));
    all.extend(variations_of(&metadata, |plan, said| plan.discovery = said));
    all.extend(variations_of(&bearer, |plan, token| plan.token = token));
    all.extend(variations_of(&signed, |plan, said| {
        plan.signed_userinfo = Some(said)
    }));
    all
}

#[test]
fn whatever_the_standards_leave_to_a_provider_is_understood() {
    let variations = variations();
    let mut document = document();
    let entry = |(number, one): (usize, &Variation)| {
        let name = format!("up{number}");
        one.upstream.registration(&name, one.changes.clone())
    };
    let entries = variations.iter().enumerate().map(entry);
    document["identity_providers"] = entries.collect();
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let mut subjects = BTreeSet::new();
    for (number, one) in variations.iter().enumerate() {
        // Nothing is fetched twice that is known.
        for _ in 0..2 {
            let answer = straight(&gatepost, &format!("up{number}"), "openid profile");
            answer.assert_carries_for(&one.name, "code");
            let (id_token, _) = told_of(&gatepost, &answer);
            subjects.insert(text(&id_token, "sub").to_owned());
        }
        let complaints = one.upstream.complaints();
        assert!(complaints.is_empty(), "{}: {complaints:?}", one.name);
        for place in [Place::Discovery, Place::Jwks] {
            let asked = one.upstream.received(place).len();
            assert_eq!(asked, 1, "{}: {place:?}", one.name);
        }
    }
    // The same subject of twenty issuers: twenty people.
    assert_eq!(subjects.len(), variations.len());
}

#[test]
fn claims_are_believed_only_where_the_registration_says_so() {
    let upstream = Upstream::start_with(Signer::es256("first"));
    let everything = json!({
        "name": "Carol", "email": "alice@example.com", "role": ["admin"], "groups": ["staff", "nobody-knows", 7],
        "department": {"id": 7}, "tenant": "acme", "username": "alice", "iss": "https://evil.example", "preferred_username": "alice",
        "amr": ["evil"], "auth_time": 1, "client_id": "conf2", "scope": "orders.read"
    });
    upstream.plan(|plan| plan.userinfo = everything);
    let mut document = document();
    let mapping = json!({"claims": {"groups": "role", "department": "department"}, "role_map": {"staff": ["buyer"]}});
    document["identity_providers"] = json!([
        upstream.registration("plain", json!({})),
        upstream.registration("mapped", mapping)
    ]);
    let all = json!({"name": "all", "claims": ["role", "groups", "department", "username"]});
    document["identity_scopes"]
        .as_array_mut()
        .unwrap()
        .push(all);
    let scope = "openid profile email roles all";
    document["clients"][0]["scope"] = json!(scope);
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let told = |name: &str| {
        let answer = straight(&gatepost, name, scope);
        let (id_token, claims) = told_of(&gatepost, &answer);
        assert_eq!(id_token["iss"], gatepost.base_url);
        assert_ne!(id_token["amr"], json!(["evil"]));
        claims
    };
    let plain = told("plain");
    assert_eq!(plain["name"], "Carol");
    assert_eq!(plain["email"], "alice@example.com");
    for name in "role groups department tenant username client_id scope".split(' ') {
        assert_eq!(plain.get(name), None, "{name}: {plain}");
    }
    assert_ne!(plain["email_verified"], true, "upstream did not say so");
    let mapped = told("mapped");
    assert_eq!(mapped["role"], json!(["buyer"]));
    assert_eq!(mapped["department"], json!({"id": 7}));
    // An address is no key: alice, whose it is, is somebody else, and two providers of one issuer
    // mean one account.
    assert_eq!(mapped["sub"], plain["sub"]);
    assert_ne!(mapped["sub"], sub(&gatepost, "alice"));

    // What upstream says no more is so no more.
    let said = json!({"name": "Caroline", "email_verified": true, "email": "carol@example.com"});
    upstream.plan(|plan| plan.userinfo = said);
    let later = told("mapped");
    assert_eq!(later["sub"], mapped["sub"]);
    assert_eq!(later["name"], "Caroline");
    assert_eq!(later["email_verified"], true);
    assert_eq!(later.get("role"), None, "{later}");
    assert_eq!(later.get("department"), None, "{later}");
}

#[test]
fn a_private_address_is_asked_for_where_it_is_wanted_and_comes_with_its_own_flag() {
    let upstream = Upstream::start_with(Signer::es256("unused"));
    let addresses = json!([
        {"email": "shown@example.com", "primary": false, "verified": true, "visibility": "public"},
        {"email": "octocat@example.com", "primary": true, "verified": true, "visibility": "private"}
    ]);
    upstream.plan(|plan| {
        (plan.oauth_only, plan.emails) = (true, addresses);
        plan.userinfo = json!({"id": 583_231, "login": "octocat", "email": null});
    });
    let emails =
        |claims: Value| json!({"emails_endpoint": upstream.url(Place::Emails), "claims": claims});
    let mut document = document();
    let both = json!({"login": "nickname", "email": "email", "email_verified": "email_verified"});
    document["identity_providers"] = json!([
        upstream.oauth_registration("both", emails(both)),
        upstream.oauth_registration("address", emails(json!({"email": "email"}))),
    ]);
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let visit = |name: &str| straight(&gatepost, name, "openid profile email");
    let told = |name: &str| {
        let (_, claims) = told_of(&gatepost, &visit(name));
        (claims["email"].clone(), claims["email_verified"].clone())
    };
    let asked = || upstream.received(Place::Emails).len();
    assert_eq!(told("both"), (json!("octocat@example.com"), json!(true)));
    assert_eq!(asked(), 1);
    assert_eq!(told("address").0, json!("octocat@example.com"));
    assert_eq!(asked(), 2);

    // What is shown to everybody is enough, unless it is to be known whether it is verified.
    let said = json!({"id": 583_231, "login": "octocat", "email": "shown@example.com"});
    upstream.plan(|plan| plan.userinfo = said);
    assert_eq!(told("address").0, json!("shown@example.com"));
    assert_eq!(asked(), 2);
    assert_eq!(told("both"), (json!("octocat@example.com"), json!(true)));
    assert_eq!(asked(), 3);
    let new = json!([{"email": "new@example.com", "primary": true, "verified": false}]);
    upstream.plan(|plan| plan.emails = new);
    assert_eq!(told("both"), (json!("new@example.com"), json!(false)));
    assert_eq!(upstream.complaints(), Vec::<String>::new());

    // An endpoint that does not answer is no word that there is no address: nobody loses theirs by
    // it.
    for fault in [
        Fault::Status(404),
        Fault::Body("application/json", String::from("{}")),
        Fault::Drip,
    ] {
        upstream.fault(Place::Emails, fault.clone());
        let answer = visit("both");
        assert!(!answer.query().contains_key("code"), "{fault:?}");
    }
    upstream.let_go();
    assert_eq!(told("both"), (json!("new@example.com"), json!(false)));
}

#[test]
fn a_provider_without_openid_is_known_by_its_endpoints_and_a_subject_that_never_changes() {
    let upstream = Upstream::start_with(Signer::es256("unused"));
    let octocat = json!({"id": 583_231, "login": "octocat", "name": "The Octocat", "email": null});
    upstream.plan(|plan| {
        plan.oauth_only = true;
        plan.authentication = &["client_secret_post", "client_secret_basic"];
        plan.userinfo = octocat;
    });
    let mut document = document();
    let mapping = json!({"claims": {"name": "name", "login": "nickname"}});
    document["identity_providers"] = json!([upstream.oauth_registration("hub", mapping)]);
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let visit = || straight(&gatepost, "hub", "openid profile");
    let told = || told_of(&gatepost, &visit());
    let (id_token, claims) = told();
    assert_eq!(id_token["idp"], "hub");
    assert_eq!(claims["nickname"], "octocat");
    assert_eq!(claims["name"], "The Octocat");
    assert_eq!(claims.get("email"), None);
    assert_eq!(upstream.asked()["scope"], "read:user");
    assert_eq!(upstream.received(Place::Discovery).len(), 0);
    assert_eq!(upstream.received(Place::Jwks).len(), 0);
    let issuer = upstream.url(Place::UserInfo);
    let key = format!("issuer = '{issuer}' AND upstream_subject = '583231'");
    let key = format!("linked_identities WHERE {key}");
    assert_eq!(count(&gatepost, &key), 1);

    // Another name, the same number: the same person. Another number under the name: somebody else.
    upstream.plan(|plan| plan.userinfo = json!({"id": 583_231, "login": "renamed"}));
    let (renamed, _) = told();
    assert_eq!(renamed["sub"], id_token["sub"]);
    upstream.plan(|plan| plan.userinfo = json!({"id": 99, "login": "octocat"}));
    let (other, _) = told();
    assert_ne!(other["sub"], id_token["sub"]);
    assert_eq!(upstream.complaints(), Vec::<String>::new());

    let rows = || (count(&gatepost, "users"), count(&gatepost, "sessions"));
    let before = rows();
    let ids = json!([null, "", true, {}, ["583231"], 1.5, "x".repeat(256)]);
    for id in ids.as_array().unwrap() {
        upstream.plan(|plan| plan.userinfo = json!({"id": id, "login": "octocat"}));
        let answer = visit();
        assert!(
            (400..500).contains(&answer.status),
            "{id}: {}",
            answer.status
        );
        answer.assert_says_for(id, "GP17");
    }
    assert_eq!(rows(), before);
}
