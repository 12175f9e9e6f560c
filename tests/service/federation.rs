//! Signing in with an account elsewhere: two Gateposts, one upstream of the other, over real HTTP;
//! and every kind of provider that the standards allow.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, issued, redeem, sign_in, text, userinfo, with_clients};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::http::{Answer, encode};
use crate::support::jwt::{published_keys, verified};
use crate::support::signer::{Signer, now};
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Fault, Place, Plan, Upstream};

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
        assert!(
            person.here().starts_with(&self.up.base_url),
            "{:?} {}\n{}",
            page.header("location"),
            page.text(),
            self.down.log()
        );
        let answer = sign_in(person.at(&self.up.base_url), &page, username, password);
        assert_eq!(answer.status, 303, "{}", answer.text());
        person.follow(&self.up.base_url, answer)
    }

    /// An authorization request that leads straight there.
    fn request(&self, changes: &[(&str, &str)]) -> String {
        let usual = [("scope", SCOPE), STRAIGHT];
        self.plain_request(&crate::support::flow::changed(&usual, changes))
    }

    /// One that leaves it to the person.
    fn plain_request(&self, changes: &[(&str, &str)]) -> String {
        format!(
            "{}{}",
            self.down.base_url,
            authorize_path("conf1", RP1, changes)
        )
    }

    /// Claims of the ID token, and what UserInfo says, for an answer with a code.
    fn told(&self, answer: &Answer) -> (Value, Value) {
        let tokens = issued(&redeem(&self.down, &answer.query()["code"]));
        let (_, claims) = verified(&self.down, text(&tokens, "id_token"));
        (
            claims,
            userinfo(&self.down, text(&tokens, "access_token")).json(),
        )
    }

    /// Whether this browser is signed in here.
    fn is_signed_in(&self, person: &mut Traveller) -> bool {
        let answer = person
            .get(&self.plain_request(&[("prompt", "none")]))
            .query();
        assert!(
            answer.contains_key("code") || answer["error"] == "login_required",
            "{answer:?}"
        );
        answer.contains_key("code")
    }

    /// The parameters with which the last one came to the authorization endpoint there.
    fn asked(&self, person: &Traveller) -> BTreeMap<String, String> {
        let endpoint = format!("{}/connect/authorize?", self.up.base_url);
        let query = person
            .went
            .iter()
            .rev()
            .find_map(|address| address.strip_prefix(&endpoint))
            .unwrap();
        form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
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
    gatepost
        .database
        .value(&format!("SELECT count(*) FROM {what}"), &[])
}

#[test]
fn a_sign_in_upstream_ends_in_tokens_here_that_say_who_vouched_how_and_when() {
    let pair = Pair::start(&json!({}));
    let users = count(&pair.down, "users");
    let mut person = Traveller::new();
    let answer = pair.sign_in(&mut person, &[], "alice", ALICE_PASSWORD);
    assert_eq!(answer.query()["state"].as_str(), "the-state");
    assert_eq!(answer.query()["iss"].as_str(), &*pair.down.base_url);
    let (id_token, told) = pair.told(&answer);
    // How it was done there is told where `acr_map` says what that is worth.
    assert_eq!(id_token["idp"], "up");
    assert_eq!(id_token["amr"], json!([]));
    let there: i64 = pair.up.database.value(
        "SELECT extract(epoch FROM auth_time)::int8 FROM sessions",
        &[],
    );
    assert!(
        (id_token["auth_time"].as_i64().unwrap() - there).abs() <= 1,
        "{id_token} against {there}"
    );

    // The account here is one of its own: no name, no password, and another subject than there.
    let condition = "users WHERE username IS NULL AND password_hash IS NULL";
    assert_eq!(count(&pair.down, "users") - users, 1);
    assert_eq!(count(&pair.down, condition), 1);
    let there: String = pair
        .up
        .database
        .value("SELECT sub FROM users WHERE username = 'alice'", &[]);
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
    pair.up.run_well(
        &[
            "user", "role", "alice", "--remove", "admin", "--add", "user",
        ],
        "",
    );
    let mut elsewhere = Traveller::new();
    let answer = pair.sign_in(&mut elsewhere, &[], "alice", ALICE_PASSWORD);
    let (again, told) = pair.told(&answer);
    assert_eq!(again["sub"], id_token["sub"]);
    assert_eq!(told["role"], json!(["staff"]));
    assert_ne!(again["sid"], id_token["sid"]);
    assert_eq!(count(&pair.down, "users") - users, 1);

    // Another person there is another one here.
    let answer = pair.sign_in(&mut Traveller::new(), &[], "bob", BOB_PASSWORD);
    let (bob, _) = pair.told(&answer);
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
    assert_eq!(asked.get("prompt"), None);
    assert_eq!(asked.get("max_age"), None);
    assert_eq!(asked.get("login_hint"), None);
    assert_eq!(asked["code_challenge_method"].as_str(), "S256");
    assert_eq!(asked["scope"].as_str(), SCOPE);
    for (name, parameter) in [("state", "the-state"), ("nonce", "the-nonce")] {
        assert_ne!(asked[name], parameter, "{name} is of this round trip alone");
    }

    // Signed in there still, but the password is asked for again, and the new moment counts.
    let first = pair.is_signed_in(&mut person);
    assert!(first);
    let further = [
        ("prompt", "login"),
        ("login_hint", "alice"),
        ("ui_locales", "de"),
    ];
    let page = person.visit(&pair.request(&further));
    let asked = pair.asked(&person);
    assert_eq!(asked["prompt"].as_str(), "login");
    assert_eq!(asked["login_hint"].as_str(), "alice");
    assert_eq!(asked["ui_locales"].as_str(), "de");
    assert!(
        person.here().starts_with(&pair.up.base_url),
        "{}",
        person.here()
    );
    assert_eq!(
        page.attribute("<html", "lang")
            .or(page.attribute("html ", "lang"))
            .as_deref(),
        Some("de")
    );
    assert_eq!(
        page.attribute("name=\"username\"", "value").as_deref(),
        Some("alice")
    );
    let answer = sign_in(person.at(&pair.up.base_url), &page, "alice", ALICE_PASSWORD);
    let answer = person.follow(&pair.up.base_url, answer);
    assert!(answer.query().contains_key("code"), "{}", answer.location());

    let answer = pair.sign_in(&mut person, &[("max_age", "0")], "alice", ALICE_PASSWORD);
    assert!(answer.query().contains_key("code"), "{}", answer.location());
    assert_eq!(pair.asked(&person)["max_age"], "0");

    // An old session upstream does not pass for a fresh sign-in, and nobody goes round twice.
    pair.up
        .database
        .run("UPDATE sessions SET auth_time = auth_time - interval '1 hour'");
    pair.down
        .database
        .run("UPDATE sessions SET auth_time = auth_time - interval '1 hour'");
    let answer = person.visit(&pair.request(&[]));
    answer.assert_carries_for("a session is enough where nothing is asked", "code");
    let page = person.visit(&pair.request(&[("max_age", "60")]));
    assert!(
        person.here().starts_with(&pair.up.base_url),
        "{}",
        person.here()
    );
    let answer = sign_in(person.at(&pair.up.base_url), &page, "alice", ALICE_PASSWORD);
    let (id_token, _) = pair.told(&person.follow(&pair.up.base_url, answer));
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
    assert_eq!(page.header("location"), None, "{}", page.text());
    assert!((400..500).contains(&page.status), "{}", page.status);
    let stored = [
        count(&pair.down, "users") - users,
        count(&pair.down, "sessions"),
        count(&pair.down, "linked_identities"),
    ];
    assert_eq!(stored, [0, 0, 0]);

    // The operator links the account to somebody who is here already: that is who comes in.
    let there: String = pair
        .up
        .database
        .value("SELECT sub FROM users WHERE username = 'alice'", &[]);
    pair.down.run_well(
        &[
            "user",
            "link",
            "bob",
            "--issuer",
            &pair.up.base_url,
            "--subject",
            &there,
        ],
        "",
    );
    let answer = pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    let (_, told) = pair.told(&answer);
    let bob: String = pair
        .down
        .database
        .value("SELECT sub FROM users WHERE username = 'bob'", &[]);
    assert_eq!(told["sub"], bob);

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
        published_keys(&pair.up)
            .iter()
            .map(|key| key["kid"].clone())
            .collect::<Vec<_>>()
    };
    pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    let before = kids();
    pair.up.run_well(&["key", "rotate", "--now"], "");
    pair.up.settle();
    assert_ne!(kids(), before, "no new key");
    let answer = pair.sign_in(&mut Traveller::new(), &[], "alice", ALICE_PASSWORD);
    assert!(answer.query().contains_key("code"), "{}", answer.location());
}

#[test]
fn signing_out_upstream_signs_out_here_and_only_who_came_from_there() {
    let pair = Pair::start(&json!({}));
    let (mut alice, mut at_home, mut bob) = (Traveller::new(), Traveller::new(), Traveller::new());
    pair.sign_in(&mut alice, &[], "alice", ALICE_PASSWORD);
    pair.sign_in(&mut bob, &[], "bob", BOB_PASSWORD);
    // The same person with the password of an account here.
    let page = at_home.visit(&pair.plain_request(&[]));
    let answer = sign_in(
        at_home.at(&pair.down.base_url),
        &page,
        "alice",
        ALICE_PASSWORD,
    );
    assert_eq!(answer.status, 303);
    for person in [&mut alice, &mut bob, &mut at_home] {
        assert!(pair.is_signed_in(person));
    }

    let page = alice.get(&format!("{}/logout", pair.up.base_url));
    let (action, mut fields) = (page.action(), page.fields());
    let token = fields.remove("form_token").unwrap();
    let browser = alice.at(&pair.up.base_url);
    let answer = browser.post(&action, &[("form_token", &token), ("decision", "sign_out")]);
    assert!(answer.status < 400, "{}", answer.text());
    let deadline = Instant::now() + Duration::from_secs(10);
    while pair.is_signed_in(&mut alice) {
        assert!(
            Instant::now() < deadline,
            "the session lives on:\n{}",
            pair.up.log()
        );
        sleep(Duration::from_millis(50));
    }
    assert!(pair.is_signed_in(&mut bob));
    assert!(pair.is_signed_in(&mut at_home));
}

#[test]
fn signing_out_here_signs_out_there_where_the_registration_says_so_and_ends_at_the_client() {
    let pair = Pair::start(&json!({"sign_out": true}));
    let is_signed_in_there = |person: &mut Traveller| {
        let answer = person.get(&pair.request(&[("prompt", "login")]));
        let page = person.follow(&pair.down.base_url, answer);
        assert!(page.text().contains("name=\"password\""), "{}", page.text());
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
    let answer = person.visit(&format!(
        "{}/connect/endsession?{}",
        pair.down.base_url,
        encode(&parameters)
    ));
    assert!(
        person.went.iter().any(
            |address| address.starts_with(&format!("{}/connect/endsession?", pair.up.base_url))
        )
    );
    assert_eq!(answer.location(), format!("{DONE}?state=a%20b%26c"));
    assert!(!pair.is_signed_in(&mut person));
    assert!(!is_signed_in_there(&mut person));

    // Whoever signed in here with a password is none of its business.
    let mut at_home = Traveller::new();
    let page = at_home.visit(&pair.plain_request(&[]));
    let answer = sign_in(
        at_home.at(&pair.down.base_url),
        &page,
        "alice",
        ALICE_PASSWORD,
    );
    let tokens = issued(&redeem(&pair.down, &answer.query()["code"]));
    let parameters = [
        ("id_token_hint", text(&tokens, "id_token")),
        ("post_logout_redirect_uri", DONE),
    ];
    let answer = at_home.visit(&format!(
        "{}/connect/endsession?{}",
        pair.down.base_url,
        encode(&parameters)
    ));
    assert_eq!(answer.location(), DONE);
    assert!(
        at_home
            .went
            .iter()
            .all(|address| !address.starts_with(&pair.up.base_url))
    );
}

/// A provider's entry and what its people are told to be: one sign-in each.
struct Variation {
    name: &'static str,
    upstream: Upstream,
    changes: Value,
}

fn variation(
    name: &'static str,
    signer: Signer,
    changes: Value,
    prepare: impl FnOnce(&mut Plan),
) -> Variation {
    let upstream = Upstream::start_with(signer);
    upstream.plan(prepare);
    Variation {
        name,
        upstream,
        changes,
    }
}

/// What the standards leave to a provider.
fn variations() -> Vec<Variation> {
    let nothing = || json!({});
    let es256 = || Signer::es256("first");
    let id_token =
        |name, claims: Value| variation(name, es256(), json!({}), |plan| plan.id_token = claims);
    let ways = |name, ways: &'static [&'static str]| {
        variation(name, es256(), json!({}), move |plan| {
            plan.authentication = ways
        })
    };
    vec![
        variation("RS256", Signer::rs256("first"), nothing(), |_| ()),
        variation("ES256", es256(), nothing(), |_| ()),
        variation("EdDSA", Signer::ed25519("first"), nothing(), |_| ()),
        variation(
            "Ed25519",
            Signer::ed25519_by_its_newer_name("first"),
            nothing(),
            |plan| {
                plan.discovery = json!({"id_token_signing_alg_values_supported": ["Ed25519"]});
            },
        ),
        id_token("a list of one audience", json!({"aud": [CLIENT_ID]})),
        id_token("our azp", json!({"azp": CLIENT_ID})),
        id_token(
            "our azp among more audiences",
            json!({"aud": ["somebody-else", CLIENT_ID], "azp": CLIENT_ID}),
        ),
        id_token("no at_hash", json!({"at_hash": null})),
        id_token("no auth_time", json!({"auth_time": null})),
        id_token("a clock slightly ahead", json!({"iat": now() + 10})),
        variation("a subject of 255 characters", es256(), nothing(), |plan| {
            plan.subject = "\u{e9}".repeat(255)
        }),
        variation("no kid and one key", es256(), nothing(), |plan| {
            plan.header = json!({"kid": null})
        }),
        variation("no typ", es256(), nothing(), |plan| {
            plan.header = json!({"typ": null})
        }),
        ways("client_secret_basic alone", &["client_secret_basic"]),
        ways("client_secret_post alone", &["client_secret_post"]),
        ways(
            "client_secret_post among strange ones",
            &["private_key_jwt", "client_secret_post"],
        ),
        variation(
            "no word of client authentication",
            es256(),
            nothing(),
            |plan| {
                plan.authentication = &["client_secret_basic"];
                plan.discovery = json!({"token_endpoint_auth_methods_supported": null});
            },
        ),
        variation(
            "no secret",
            es256(),
            json!({"client_secret": null}),
            |plan| plan.authentication = &["none"],
        ),
        variation("no announcement of iss", es256(), nothing(), |plan| {
            plan.discovery = json!({"authorization_response_iss_parameter_supported": null});
        }),
        variation("no UserInfo", es256(), nothing(), |plan| {
            plan.discovery = json!({"userinfo_endpoint": null})
        }),
        variation("UserInfo as a JWT", es256(), nothing(), |plan| {
            plan.signed_userinfo = Some(json!({"aud": [CLIENT_ID]}));
        }),
        variation("a lower-case bearer", es256(), nothing(), |plan| {
            plan.token = json!({"token_type": "bearer"})
        }),
    ]
}

#[test]
fn whatever_the_standards_leave_to_a_provider_is_understood() {
    let variations = variations();
    let mut document = document();
    let entries = variations.iter().enumerate().map(|(number, one)| {
        one.upstream
            .registration(&format!("up{number}"), one.changes.clone())
    });
    document["identity_providers"] = entries.collect();
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let mut subjects = BTreeSet::new();
    for (number, one) in variations.iter().enumerate() {
        // Nothing is fetched twice that is known.
        for _ in 0..2 {
            let idp = format!("idp:up{number}");
            let path = authorize_path("conf1", RP1, &[("acr_values", &idp)]);
            let answer = Traveller::new().visit(&format!("{}{path}", gatepost.base_url));
            assert!(
                answer.header("location").is_some(),
                "{}: {}",
                one.name,
                answer.text()
            );
            let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
            subjects
                .insert(text(&verified(&gatepost, text(&tokens, "id_token")).1, "sub").to_owned());
        }
        assert_eq!(
            one.upstream.complaints(),
            Vec::<String>::new(),
            "{}",
            one.name
        );
        for place in [Place::Discovery, Place::Jwks] {
            assert_eq!(
                one.upstream.received(place).len(),
                1,
                "{}: {place:?}",
                one.name
            );
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
    document["identity_scopes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "all", "claims": [
            "role", "groups", "department", "username"
        ]}));
    document["clients"][0]["scope"] = json!("openid profile email roles all");
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let told = |name: &str| {
        let idp = format!("idp:{name}");
        let path = authorize_path(
            "conf1",
            RP1,
            &[
                ("acr_values", &idp),
                ("scope", "openid profile email roles all"),
            ],
        );
        let answer = Traveller::new().visit(&format!("{}{path}", gatepost.base_url));
        let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
        let (_, id_token) = verified(&gatepost, text(&tokens, "id_token"));
        assert_eq!(id_token["iss"], gatepost.base_url);
        assert_ne!(id_token["amr"], json!(["evil"]));
        userinfo(&gatepost, text(&tokens, "access_token")).json()
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
    let alice: String = gatepost
        .database
        .value("SELECT sub FROM users WHERE username = 'alice'", &[]);
    assert_ne!(mapped["sub"], alice);

    // What upstream says no more is so no more.
    upstream.plan(|plan| {
        plan.userinfo =
            json!({"name": "Caroline", "email_verified": true, "email": "carol@example.com"})
    });
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
    let visit = |name: &str| {
        let straight = format!("idp:{name}");
        let path = authorize_path(
            "conf1",
            RP1,
            &[("acr_values", &straight), ("scope", "openid profile email")],
        );
        Traveller::new().visit(&format!("{}{path}", gatepost.base_url))
    };
    let told = |name: &str| {
        let answer = visit(name);
        answer.assert_carries_for(name, "code");
        let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
        let claims = userinfo(&gatepost, text(&tokens, "access_token")).json();
        (claims["email"].clone(), claims["email_verified"].clone())
    };
    let asked = || upstream.received(Place::Emails).len();
    assert_eq!(told("both"), (json!("octocat@example.com"), json!(true)));
    assert_eq!(asked(), 1);
    assert_eq!(told("address").0, json!("octocat@example.com"));
    assert_eq!(asked(), 2);

    // What is shown to everybody is enough, unless it is to be known whether it is verified.
    upstream.plan(|plan| {
        plan.userinfo = json!({"id": 583_231, "login": "octocat", "email": "shown@example.com"})
    });
    assert_eq!(told("address").0, json!("shown@example.com"));
    assert_eq!(asked(), 2);
    assert_eq!(told("both"), (json!("octocat@example.com"), json!(true)));
    assert_eq!(asked(), 3);
    upstream.plan(|plan| {
        plan.emails = json!([{"email": "new@example.com", "primary": true, "verified": false}])
    });
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
    upstream.plan(|plan| {
        plan.oauth_only = true;
        plan.authentication = &["client_secret_post", "client_secret_basic"];
        plan.userinfo =
            json!({"id": 583_231, "login": "octocat", "name": "The Octocat", "email": null});
    });
    let mut document = document();
    let mapping = json!({"claims": {"name": "name", "login": "nickname"}});
    document["identity_providers"] = json!([upstream.oauth_registration("hub", mapping)]);
    let gatepost = Gatepost::start_with(&document, &[ALLOWED]);
    let path = authorize_path("conf1", RP1, &[("acr_values", "idp:hub")]);
    let address = format!("{}{path}", gatepost.base_url);
    let told = |answer: &Answer| {
        assert!(answer.header("location").is_some(), "{}", answer.text());
        let tokens = issued(&redeem(&gatepost, &answer.query()["code"]));
        (
            verified(&gatepost, text(&tokens, "id_token")).1,
            userinfo(&gatepost, text(&tokens, "access_token")).json(),
        )
    };
    let (id_token, claims) = told(&Traveller::new().visit(&address));
    assert_eq!(id_token["idp"], "hub");
    assert_eq!(claims["nickname"], "octocat");
    assert_eq!(claims["name"], "The Octocat");
    assert_eq!(claims.get("email"), None);
    assert_eq!(upstream.asked()["scope"], "read:user");
    assert_eq!(upstream.received(Place::Discovery).len(), 0);
    assert_eq!(upstream.received(Place::Jwks).len(), 0);
    let key = format!(
        "linked_identities WHERE issuer = '{}' AND upstream_subject = '583231'",
        upstream.url(Place::UserInfo)
    );
    assert_eq!(count(&gatepost, &key), 1);

    // Another name, the same number: the same person. Another number under the name: somebody else.
    upstream.plan(|plan| plan.userinfo = json!({"id": 583_231, "login": "renamed"}));
    let (renamed, _) = told(&Traveller::new().visit(&address));
    assert_eq!(renamed["sub"], id_token["sub"]);
    upstream.plan(|plan| plan.userinfo = json!({"id": 99, "login": "octocat"}));
    let (other, _) = told(&Traveller::new().visit(&address));
    assert_ne!(other["sub"], id_token["sub"]);
    assert_eq!(upstream.complaints(), Vec::<String>::new());

    let before = (count(&gatepost, "users"), count(&gatepost, "sessions"));
    for id in [
        json!(null),
        json!(""),
        json!(true),
        json!({}),
        json!(["583231"]),
        json!(1.5),
        json!("x".repeat(256)),
    ] {
        upstream.plan(|plan| plan.userinfo = json!({"id": id, "login": "octocat"}));
        let answer = Traveller::new().visit(&address);
        assert!(
            (400..500).contains(&answer.status),
            "{id}: {} {}",
            answer.status,
            answer.text()
        );
        assert!(answer.text().contains("GP17"), "{id}");
    }
    assert_eq!(
        (count(&gatepost, "users"), count(&gatepost, "sessions")),
        before
    );
}
