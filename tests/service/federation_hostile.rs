//! Upstream providers that lie, break or hang, and round trips that somebody meddles with: each
//! ends on a clear page or with a standard error, is written to the audit log, and leaves nothing
//! behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, choose, issued, redeem, sign_in, with_clients};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::house::start_with_one_server_under;
use crate::support::http::{Answer, Browser, ask_alone, free_address, free_port};
use crate::support::signer::{Signer, now};
use crate::support::tables;
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Fault, Place, Plan, SUBJECT, Signature, Upstream};
use crate::support::waiting::{OverAtLast, all_at_once, await_that};

const ALLOWED: (&str, &str) = ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8,::1/128");
/// What every upstream of these tests says in its errors, and nobody else.
const UPSTREAMS_WORDS: &str = "as upstream puts it";

/// How it ends for the person.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// A page that says that what came back is not believed.
    Disbelief,
    /// The login page with a sentence about it; for a client with no other way this error.
    Sentence(&'static str),
}
use End::{Disbelief, Sentence};

impl End {
    fn reason_code(self) -> &'static str {
        match self {
            Disbelief => "GP1725",
            Sentence("access_denied") => "GP1722",
            Sentence("login_required") => "GP1723",
            Sentence("server_error") => "GP1734",
            Sentence(_) => "GP1724",
        }
    }
}

const AWAY: End = Sentence("temporarily_unavailable");
/// Somebody answered, and the answer stays of no use until somebody mends it.
const UNUSABLE: End = Sentence("server_error");

struct Case {
    name: String,
    end: End,
    upstream: Upstream,
    /// What the log says is wrong, in part.
    cause: String,
}

impl Case {
    fn because(self, cause: &str) -> Case {
        let cause = cause.to_owned();
        Case { cause, ..self }
    }
}

fn case(name: &str, end: End, prepare: impl FnOnce(&Upstream)) -> Case {
    let upstream = Upstream::start_with(Signer::es256("first"));
    case_at(upstream, name, end, prepare)
}

fn case_at(upstream: Upstream, name: &str, end: End, prepare: impl FnOnce(&Upstream)) -> Case {
    prepare(&upstream);
    Case {
        name: name.to_owned(),
        end,
        upstream,
        cause: String::new(),
    }
}

/// The cases of a table. What the log says is wrong, in part, leads to those for which it does, and
/// the name of each to what `change` is made of.
fn cases_of(end: End, table: &Value, change: fn(&mut Plan, Value)) -> Vec<Case> {
    let mut all = Vec::new();
    for (cause, rows) in tables::cases(table) {
        for (name, changes) in tables::cases(rows) {
            let changed = case(name, end, |upstream| {
                upstream.plan(|plan| change(plan, changes.clone()))
            });
            all.push(changed.because(cause));
        }
    }
    all
}

fn fault_case(name: &str, end: End, place: Place, fault: Fault) -> Case {
    case(name, end, |upstream| upstream.fault(place, fault))
}

fn signature_case(name: &str, signature: Signature) -> Case {
    case(name, Disbelief, |upstream| {
        upstream.plan(|plan| plan.signature = signature)
    })
}

fn error_case(name: &str, end: End, error: &str) -> Case {
    let words = format!("<script>alert(1)</script> {UPSTREAMS_WORDS} \" ' & \u{202e}\r\nX: y");
    let said = json!({"code": null, "error": error, "error_description": words, "error_uri": "https://evil.example/"});
    case(name, end, |upstream| {
        upstream.plan(|plan| plan.callback = said)
    })
}

/// ID tokens that are not believed.
fn id_token_cases() -> Vec<Case> {
    let claims = json!({
        "aud": {
            "another audience": {"aud": "somebody-else"},
            "no audience": {"aud": null},
            "an empty audience": {"aud": []},
            "an audience without us": {"aud": ["somebody-else"]},
        },
        "azp": {
            "an audience of more without azp": {"aud": ["gatepost:here", "somebody-else"]},
            "another azp": {"azp": "somebody-else"},
            "another azp among more": {"aud": ["gatepost:here", "x"], "azp": "x"},
        },
        "nonce": {
            "another nonce": {"nonce": "another"},
            "no nonce": {"nonce": null},
            "a nonce that is no text": {"nonce": 1},
        },
        "iss is": {
            "another issuer": {"iss": "https://evil.example"},
            "no issuer": {"iss": null},
        },
        "sub is": {
            "no subject": {"sub": null},
            "an empty subject": {"sub": ""},
            "a subject that is no text": {"sub": 7},
            "a subject of 256 characters": {"sub": "x".repeat(256)},
            "a subject with NUL": {"sub": "a\u{0}b"},
        },
        "expired": {
            "expired": {"exp": now() - 120, "iat": now() - 300},
            "without expiry": {"exp": null},
            "an expiry that is no number": {"exp": "tomorrow"},
        },
        "iat is": {
            "issued in the far future": {"iat": now() + 3_600, "exp": now() + 7_200},
            "without iat": {"iat": null},
        },
        "at_hash": {
            "another access token's at_hash": {"at_hash": "77QmUPtjPfzWtF2AnpK9RQ"},
            "an at_hash that is no text": {"at_hash": 1},
        },
    });
    let headers = json!({
        "by its kid": {
            "an unknown kid": {"kid": "never-published"},
            "another algorithm than its key's": {"alg": "RS256"},
        },
        "no JWT signed": {
            "an algorithm nobody knows": {"alg": "XX999"},
            "no algorithm": {"alg": null},
            "a critical extension": {"crit": ["b64"], "b64": false},
        },
    });
    let tokens = json!({"": {
        "an ID token that is none": {"id_token": "x.y.z"},
        "an ID token that is no text": {"id_token": {"sub": "1"}},
        "no ID token": {"id_token": null},
    }});
    let mut all = cases_of(Disbelief, &claims, |plan, claims| plan.id_token = claims);
    all.extend(cases_of(Disbelief, &headers, |plan, header| {
        plan.header = header
    }));
    all.extend(cases_of(Disbelief, &tokens, |plan, token| {
        plan.token = token
    }));
    all.extend([
        signature_case("alg none", Signature::None).because("no JWT signed"),
        case("no signature", Disbelief, |upstream| {
            upstream.plan(|plan| {
                plan.signature = Signature::None;
                plan.header = json!({"alg": "ES256"});
            });
        }),
        case_at(
            Upstream::start(),
            "HS256 by the public key",
            Disbelief,
            |upstream| {
                upstream.plan(|plan| plan.signature = Signature::PublicKeyAsSecret);
            },
        ),
        signature_case("a stranger's key", Signature::Stranger).because("signature"),
        signature_case("a damaged signature", Signature::Damaged).because("signature"),
    ]);
    all
}

/// What is said around the ID token.
fn answer_cases() -> Vec<Case> {
    let callbacks = json!({"": {
        "another issuer's answer": {"iss": "https://evil.example"},
        "no iss though announced": {"iss": null},
        "an error of another issuer": {"code": null, "error": "access_denied", "iss": "https://evil.example"},
        "a code that upstream does not know": {"code": "made-up"},
        "no code and no error": {"code": null},
    }});
    let userinfo = json!({"": {
        "UserInfo of somebody else": {"sub": "somebody-else"},
        "UserInfo of nobody": {"sub": null},
        "UserInfo of another type of subject": {"sub": 248_289_761_001_u64},
    }});
    let signed_userinfo = json!({
        "another sub": {"signed UserInfo of somebody else": {"sub": "somebody-else"}},
        "iss": {
            "signed UserInfo of another issuer": {"iss": "https://evil.example"},
            "signed UserInfo of no issuer": {"iss": null},
        },
        "aud": {
            "signed UserInfo for somebody else": {"aud": "somebody-else"},
            "signed UserInfo for nobody": {"aud": null},
        },
        "azp": {"signed UserInfo of another azp": {"azp": "somebody-else"}},
    });
    let mut all = cases_of(Disbelief, &callbacks, |plan, said| plan.callback = said);
    all.extend(cases_of(Disbelief, &userinfo, |plan, said| {
        plan.userinfo = said
    }));
    all.extend(cases_of(Disbelief, &signed_userinfo, |plan, said| {
        plan.signed_userinfo = Some(said)
    }));
    let stranger = Signer::es256("first");
    let header = json!({"alg": "ES256", "kid": "first"});
    let claims = json!({"sub": SUBJECT, "aud": CLIENT_ID});
    let foreign = Fault::Body("application/jwt", stranger.sign_under(&header, &claims));
    let unsigned = Fault::Body("application/jwt; charset=x", String::from("e30.e30."));
    let (cancelled, signed_out) = (Sentence("access_denied"), Sentence("login_required"));
    all.extend([
        fault_case("a stranger's UserInfo", Disbelief, Place::UserInfo, foreign)
            .because("signature"),
        fault_case("unsigned UserInfo", Disbelief, Place::UserInfo, unsigned),
        error_case("cancelled there", cancelled, "access_denied"),
        error_case("not signed in there", signed_out, "login_required"),
        error_case("no page allowed there", signed_out, "interaction_required"),
        error_case("broken there", AWAY, "server_error"),
        error_case("away there", AWAY, "temporarily_unavailable"),
    ]);
    all
}

/// Metadata and key sets that nothing can be done with; and servers that break.
fn broken_cases() -> Vec<Case> {
    let json_body = |body: &str| Fault::Body("application/json", body.to_owned());
    let metadata = json!({"": {
        "another issuer in the metadata": {"issuer": "https://evil.example"},
        "no issuer in the metadata": {"issuer": null},
        "no authorization endpoint": {"authorization_endpoint": null},
        "an authorization endpoint that is script": {"authorization_endpoint": "javascript:alert(1)"},
        "a token endpoint in the metadata service": {"token_endpoint": "http://169.254.169.254/token"},
        "a token endpoint in a private network": {"token_endpoint": "https://10.0.0.1/token"},
        "no token endpoint": {"token_endpoint": null},
        "no keys": {"jwks_uri": null},
        "keys in a file": {"jwks_uri": "file:///etc/passwd"},
    }});
    let tokens = json!({"": {
        "an access token that is no text": {"access_token": 7},
        "a token type that nobody knows": {"token_type": "dpop"},
    }});
    let refused = json!({"": {"an error in a 200": {"error": "invalid_grant"}}});
    let mut all = cases_of(UNUSABLE, &metadata, |plan, said| plan.discovery = said);
    all.extend(cases_of(UNUSABLE, &tokens, |plan, token| {
        plan.token = token
    }));
    all.extend(cases_of(Disbelief, &refused, |plan, token| {
        plan.token = token
    }));
    let slashed = |upstream: &Upstream| {
        let issuer = format!("{}/", upstream.issuer());
        upstream.plan(|plan| plan.discovery = json!({"issuer": issuer}));
    };
    all.push(case(
        "the issuer with a slash in the metadata",
        UNUSABLE,
        slashed,
    ));
    let keyless = json_body("{\"keys\":[]}");
    all.push(fault_case(
        "a key set without keys",
        Disbelief,
        Place::Jwks,
        keyless,
    ));
    for place in [Place::Discovery, Place::Jwks, Place::Token, Place::UserInfo] {
        let elsewhere = Fault::Redirect(307, String::from("http://127.0.0.1:9/"));
        let page = Fault::Body("text/html", format!("<b>{UPSTREAMS_WORDS}</b>"));
        let no_json = json_body("{\"as upstream puts it\"");
        all.extend([
            fault_case("500", AWAY, place, Fault::Status(500)),
            fault_case("429", AWAY, place, Fault::Status(429)),
            fault_case("hanging up", AWAY, place, Fault::HangUp),
            fault_case("404", UNUSABLE, place, Fault::Status(404)),
            fault_case("a redirect", UNUSABLE, place, elsewhere),
            fault_case("a page", UNUSABLE, place, page),
            fault_case("no JSON", UNUSABLE, place, no_json),
            fault_case("JSON of another kind", UNUSABLE, place, json_body("[1]")),
            fault_case("more than 1 MiB", UNUSABLE, place, Fault::Padded(1 << 20)),
            fault_case("without end", UNUSABLE, place, Fault::Endless),
        ]);
    }
    all
}

/// Every case as a provider, each with a client that has no other.
fn registered(cases: &[Case]) -> Value {
    let mut clients = Vec::new();
    let mut providers = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("up{number}");
        let client = json!({"identity_providers": [name]});
        clients.push((format!("only{number}"), client));
        // Asked of UserInfo in any case.
        let changes = json!({"claims": {"department": "department"}});
        providers.push(case.upstream.registration(&name, changes));
    }
    clients.push((String::from("both"), json!({})));
    let clients = clients
        .iter()
        .map(|(name, client)| (name.as_str(), client.clone()));
    let clients: Vec<(&str, Value)> = clients.collect();
    let mut document = with_clients(document(), &clients);
    document["identity_providers"] = json!(providers);
    document
}

/// A person of their own address, so that nobody's failures are counted together.
fn person_from(gatepost: &Gatepost, number: usize) -> Traveller {
    let mut person = Traveller::new();
    let address = format!("198.51.{}.{}", number / 250, number % 250 + 1);
    let headers = &mut person.at(&gatepost.base_url).headers;
    headers.push((String::from("X-Forwarded-For"), address));
    person
}

fn address_of(person: &mut Traveller, gatepost: &Gatepost) -> String {
    person.at(&gatepost.base_url).headers[0].1.clone()
}

/// Reasons that the audit log tells of failed sign-ins from one address, when the first has come.
fn audited(gatepost: &Gatepost, source: &str) -> Vec<String> {
    let sql = "SELECT detail->>'reason' FROM audit_events WHERE event = 'external_sign_in_failed' AND source = $1";
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let rows = gatepost.database.client().query(sql, &[&source]).unwrap();
        if !rows.is_empty() {
            return rows.iter().map(|row| row.get(0)).collect();
        }
        assert!(Instant::now() < deadline, "no audit row about {source}");
        sleep(Duration::from_millis(50));
    }
}

/// Rows that a sign-in would leave.
fn stored(gatepost: &Gatepost) -> [i64; 3] {
    ["users", "sessions", "linked_identities"].map(|table| gatepost.database.count(table))
}

/// What there is more of them than before.
fn added(gatepost: &Gatepost, before: [i64; 3]) -> [i64; 3] {
    let after = stored(gatepost);
    std::array::from_fn(|index| after[index] - before[index])
}

/// Nothing of what upstream said, no cookie of a way that has ended, no session.
fn assert_nothing_kept(browser: &Browser, answer: &Answer, case: &str) {
    for foreign in [UPSTREAMS_WORDS, "<script>alert", "evil.example", "made-up"] {
        answer.assert_says_not_for(case, foreign);
        let location = answer.header("location").unwrap_or_default();
        location.assert_says_not_for(case, foreign);
    }
    for name in browser.cookies.keys() {
        assert!(
            !name.contains("flow") && !name.contains("session-") || name.contains("pre-session"),
            "{case}: {name}"
        );
    }
}

fn assert_end(answer: &Answer, end: End, alone: bool, case: &str) {
    match (end, alone) {
        (Disbelief, _) => {
            assert!((400..500).contains(&answer.status), "{case}");
            answer.assert_stays_for(case, answer.status);
            answer.assert_says_for(case, "GP1725");
            answer.assert_says_for(case, "Back to the sign-in page");
        }
        (Sentence(_), false) => {
            answer.assert_status_for(case, 200);
            answer.assert_says_for(case, "name=\"password\"");
            answer.assert_says_for(case, "role=\"alert\"");
            let later = answer.text().contains("try again later");
            assert_eq!(later, end == AWAY, "{case}: {}", answer.text());
        }
        (Sentence(error), true) => {
            let (_, parameters) = answer.response_to(RP1);
            assert_eq!(parameters["error"], error, "{case}: {parameters:?}");
            assert_eq!(parameters["state"], "the-state", "{case}");
        }
    }
}

/// Walks every case twice: for a client with the password besides, and for one with nothing else.
fn assert_each_ends(cases: &[Case]) {
    let gatepost = Gatepost::start_with(&registered(cases), &[ALLOWED]);
    let before = stored(&gatepost);
    for (number, case) in cases.iter().enumerate() {
        for alone in [false, true] {
            let what = format!("{} (up{number}), alone: {alone}", case.name);
            let mut person = person_from(&gatepost, number * 2 + usize::from(alone));
            let name = format!("up{number}");
            let answer = if alone {
                straight(&gatepost, &mut person, &format!("only{number}"))
            } else {
                by_button(&gatepost, &mut person, "both", &name)
            };
            assert_end(&answer, case.end, alone, &what);
            let source = address_of(&mut person, &gatepost);
            assert_nothing_kept(person.at(&gatepost.base_url), &answer, &what);
            let reasons = audited(&gatepost, &source);
            assert_eq!(reasons, [case.end.reason_code()], "{what}");
            let line = gatepost.last_line(&format!("source={source} "));
            line.assert_says_for(&what, case.end.reason_code());
            line.assert_says_for(&what, &case.cause);
        }
    }
    assert_eq!(stored(&gatepost), before);
    assert_local_sign_in_works(&gatepost);
}

/// From an authorization request of a client with one way to sign in, through upstream, to where
/// the callback leads.
fn straight(gatepost: &Gatepost, person: &mut Traveller, client: &str) -> Answer {
    let request = authorize_path(client, RP1, &[]);
    person.visit(&format!("{}{request}", gatepost.base_url))
}

/// The same for a client with several ways, by the provider's button on the login page; no farther
/// than to that page where the server is too busy for it.
fn by_button(gatepost: &Gatepost, person: &mut Traveller, client: &str, provider: &str) -> Answer {
    let page = straight(gatepost, person, client);
    if is_turned_away(&page) {
        return page;
    }
    let answer = choose(person.at(&gatepost.base_url), &page, provider);
    person.follow(&gatepost.base_url, answer)
}

fn is_turned_away(answer: &Answer) -> bool {
    answer.status == 503 && answer.header("retry-after").is_some()
}

/// The same as somebody new.
fn go(gatepost: &Gatepost, number: usize) -> Answer {
    by_button(gatepost, &mut person_from(gatepost, number), "conf1", "up")
}

fn assert_local_sign_in_works(gatepost: &Gatepost) {
    let mut browser = gatepost.browser();
    let local = [("acr_values", "idp:local")];
    let page = browser.visit(&authorize_path("conf1", RP1, &local));
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    answer.assert_carries("code");
    issued(&redeem(gatepost, &answer.query()["code"]));
}

#[test]
fn no_id_token_but_the_right_one_is_believed() {
    assert_each_ends(&id_token_cases());
}

#[test]
fn answers_around_the_id_token_are_believed_no_more() {
    assert_each_ends(&answer_cases());
}

#[test]
fn a_broken_provider_ends_in_a_sentence_and_never_in_a_hang() {
    assert_each_ends(&broken_cases());
}

#[test]
fn while_callbacks_hang_everything_else_is_served_and_more_of_them_are_turned_away() {
    let only = [("only", json!({"identity_providers": ["up"]}))];
    let document = with_clients(document(), &only);
    let admin = free_address();
    // Three of the four are for one provider, and three more may wait.
    let settings = [
        ("GATEPOST_UPSTREAM_PLACES", "4"),
        ("GATEPOST_ADMIN_LISTEN", &*admin),
    ];
    let up = [("up", json!({}))];
    let (upstream, gatepost) = start_with_one_server_under(document, &up, &settings);
    let in_line = || {
        ask_alone(&admin, "GET /metrics")
            .1
            .contains("gatepost_outbound_waiting 3\n")
    };
    // Metadata and keys are known by now.
    assert!(go(&gatepost, 0).query().contains_key("code"));
    let before = stored(&gatepost);
    // What hangs is given up after five seconds: each of these finds callbacks of its own hanging.
    let meanwhile: [&dyn Fn(); 4] = [
        &|| assert_local_sign_in_works(&gatepost),
        &|| assert!(gatepost.is_ready()),
        &|| assert_end(&go(&gatepost, 5), AWAY, false, "one too many"),
        &|| {
            let answer = straight(&gatepost, &mut person_from(&gatepost, 6), "only");
            assert_end(&answer, AWAY, true, "one too many");
        },
    ];
    for check in meanwhile {
        upstream.fault(Place::Token, Fault::Held);
        thread::scope(|scope| {
            let gatepost = &gatepost;
            let hanging =
                [1, 2, 3, 7, 8, 9].map(|number| scope.spawn(move || go(gatepost, number)));
            upstream.await_held(3);
            await_that("three wait for a place", Duration::from_secs(3), in_line);
            check();
            upstream.let_go();
            for one in hanging {
                one.join().unwrap().assert_carries("code");
            }
        });
    }
    // The same account as before, six sessions more each time, and that of the local sign-in.
    assert_eq!(added(&gatepost, before), [0, 25, 0]);
}

#[test]
fn all_who_come_at_once_are_let_in_also_where_workers_and_places_are_few() {
    for (places, people) in [("1", 2), ("4", 6), ("24", 20)] {
        let settings = [
            ("GATEPOST_WORKERS", "5"),
            ("GATEPOST_UPSTREAM_PLACES", places),
            // Enough for all who come back at once, also on a busy machine.
            ("GATEPOST_DATABASE_CONNECTIONS", "24"),
        ];
        let up = [("up", json!({}))];
        let (_up, gatepost) = start_with_one_server_under(document(), &up, &settings);
        // Its metadata is known by now, its keys are not: who has redeemed a code must not fail for
        // want of them.
        let page = gatepost.get(&authorize_path("conf1", RP1, &[]));
        let gone = person_from(&gatepost, 0).follow(&gatepost.base_url, page);
        gone.assert_says("name=\"password\"");
        for answer in all_at_once(people, |number| go(&gatepost, number + 1)) {
            answer.assert_carries_for(places, "code");
        }
    }
}

#[test]
fn a_crowd_before_a_hanging_provider_is_no_bodys_trouble_but_its_own() {
    let (hanging, well) = (
        Upstream::start_with(Signer::es256("first")),
        Upstream::start_with(Signer::es256("first")),
    );
    let mut document = document();
    document["identity_providers"] = json!([
        hanging.registration("up", json!({})),
        well.registration("well", json!({}))
    ]);
    let settings = [
        ALLOWED,
        ("GATEPOST_WORKERS", "16"),
        ("GATEPOST_DATABASE_CONNECTIONS", "16"),
    ];
    let gatepost = Gatepost::start_with(&document, &settings);
    let by_the_other = |number| {
        let mut person = person_from(&gatepost, number);
        by_button(&gatepost, &mut person, "conf1", "well")
    };
    // Metadata and keys are known by now.
    go(&gatepost, 0).assert_carries("code");
    by_the_other(1).assert_carries("code");
    let process = gatepost.server_processes();
    hanging.fault(Place::Token, Fault::Held);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // More than have a place or wait for one.
        for number in 0..45 {
            let (gatepost, over) = (&gatepost, &over);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    let answer = go(gatepost, 100 + number);
                    if is_turned_away(&answer) {
                        sleep(Duration::from_millis(50));
                        continue;
                    }
                    // At the end they are let in.
                    assert!(answer.status < 500, "{} {}", answer.status, answer.text());
                    if !over.load(Ordering::SeqCst) {
                        assert_end(&answer, AWAY, false, "one of a crowd");
                    }
                }
            });
        }
        let at_last = OverAtLast(&over);
        hanging.await_held(18);
        // Long enough for the supervisor to lose patience with a process that does not answer.
        for number in 0..20 {
            by_the_other(10 + number).assert_carries("code");
            assert_local_sign_in_works(&gatepost);
            sleep(Duration::from_millis(300));
        }
        drop(at_last);
        hanging.let_go();
    });
    // It was held to be dead.
    assert_eq!(gatepost.server_processes(), process);
}

#[test]
fn what_takes_too_long_is_given_up_however_it_dawdles() {
    let cases = [
        fault_case("silent discovery", AWAY, Place::Discovery, Fault::Held),
        fault_case("silent keys", AWAY, Place::Jwks, Fault::Held),
        fault_case("a silent token endpoint", AWAY, Place::Token, Fault::Held),
        fault_case("silent UserInfo", AWAY, Place::UserInfo, Fault::Held),
        fault_case("a byte a second", AWAY, Place::Token, Fault::Drip),
        case("two seconds each, too many together", AWAY, |upstream| {
            for place in [Place::Jwks, Place::Token, Place::UserInfo] {
                upstream.fault(place, Fault::Slow(Duration::from_secs(2)));
            }
        }),
    ];
    let mut document = registered(&cases);
    let closed = cases.len();
    let nobody = json!({"issuer": format!("http://127.0.0.1:{}", free_port())});
    let nobody = cases[0]
        .upstream
        .registration(&format!("up{closed}"), nobody);
    let providers = document["identity_providers"].as_array_mut();
    providers.unwrap().push(nobody);
    // A quarter of them may wait for others.
    let gatepost = Gatepost::start_with(&document, &[ALLOWED, ("GATEPOST_WORKERS", "32")]);
    let before = stored(&gatepost);
    thread::scope(|scope| {
        let names = cases.iter().map(|case| case.name.as_str());
        for (number, what) in names.chain(["nobody there"]).enumerate() {
            let gatepost = &gatepost;
            scope.spawn(move || {
                let mut person = person_from(gatepost, number);
                let answer = by_button(gatepost, &mut person, "both", &format!("up{number}"));
                assert_end(&answer, AWAY, false, what);
                let source = address_of(&mut person, gatepost);
                assert_nothing_kept(person.at(&gatepost.base_url), &answer, what);
                audited(gatepost, &source);
            });
        }
        assert_local_sign_in_works(&gatepost);
    });
    assert_eq!(added(&gatepost, before), [0, 1, 0]);
    cases.iter().for_each(|case| case.upstream.let_go());
}

#[test]
fn a_secret_that_does_not_open_keeps_its_provider_listed_and_nobody_gets_there() {
    let cases = [case("a lost secret", UNUSABLE, |_| {})];
    let mut gatepost = Gatepost::prepare(&[ALLOWED]);
    gatepost.apply(&registered(&cases));
    // As if the line of the master secret that it was sealed under were gone.
    let damage = "UPDATE catalogue_entries SET sealed_secret = set_byte(sealed_secret, 30, get_byte(sealed_secret, 30) # 1) \
                  WHERE kind = 'identity_provider'";
    gatepost.database.run(damage);
    gatepost.serve();
    let answer = by_button(&gatepost, &mut person_from(&gatepost, 0), "both", "up0");
    assert_end(&answer, UNUSABLE, false, &cases[0].name);
    assert_eq!(cases[0].upstream.visits(), 0);
    let log = gatepost.log();
    log.assert_says("ERROR identity provider up0: its client_secret was sealed under another");
    log.assert_says("up0: its client_secret does not open under the master secret");
    assert_local_sign_in_works(&gatepost);
}

#[test]
fn what_was_learnt_of_a_provider_lasts_while_its_metadata_and_keys_are_away() {
    let cases = [case("away after a while", AWAY, |_| {})];
    let gatepost = Gatepost::start_with(&registered(&cases), &[ALLOWED]);
    for number in 0..2 {
        let answer = straight(&gatepost, &mut person_from(&gatepost, number), "only0");
        assert!(answer.query().contains_key("code"), "{}", answer.text());
        for place in [Place::Discovery, Place::Jwks] {
            cases[0].upstream.fault(place, Fault::Status(503));
        }
    }
}
