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
use crate::support::http::{Answer, Browser, ask_alone, free_address, free_port};
use crate::support::signer::{Signer, now};
use crate::support::traveller::Traveller;
use crate::support::upstream::{CLIENT_ID, Fault, Place, SUBJECT, Signature, Upstream};
use crate::support::waiting::{OverAtLast, await_that};

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
    name: &'static str,
    end: End,
    upstream: Upstream,
    /// What the log says is wrong, in part.
    cause: &'static str,
}

impl Case {
    fn because(self, cause: &'static str) -> Case {
        Case { cause, ..self }
    }
}

fn case(name: &'static str, end: End, prepare: impl FnOnce(&Upstream)) -> Case {
    let upstream = Upstream::start_with(Signer::es256("first"));
    prepare(&upstream);
    Case {
        name,
        end,
        upstream,
        cause: "",
    }
}

fn rsa_case(name: &'static str, end: End, prepare: impl FnOnce(&Upstream)) -> Case {
    let upstream = Upstream::start();
    prepare(&upstream);
    Case {
        name,
        end,
        upstream,
        cause: "",
    }
}

/// ID tokens with members changed.
fn id_token_case(name: &'static str, changes: Value, cause: &'static str) -> Case {
    case(name, Disbelief, |upstream| {
        upstream.plan(|plan| plan.id_token = changes)
    })
    .because(cause)
}

fn header_case(name: &'static str, changes: Value, cause: &'static str) -> Case {
    case(name, Disbelief, |upstream| {
        upstream.plan(|plan| plan.header = changes)
    })
    .because(cause)
}

fn token_case(name: &'static str, end: End, changes: Value) -> Case {
    case(name, end, |upstream| {
        upstream.plan(|plan| plan.token = changes)
    })
}

fn metadata_case(name: &'static str, changes: Value) -> Case {
    case(name, UNUSABLE, |upstream| {
        upstream.plan(|plan| plan.discovery = changes)
    })
}

fn callback_case(name: &'static str, end: End, changes: Value) -> Case {
    case(name, end, |upstream| {
        upstream.plan(|plan| plan.callback = changes)
    })
}

fn fault_case(name: &'static str, end: End, place: Place, fault: Fault) -> Case {
    case(name, end, |upstream| upstream.fault(place, fault))
}

fn error_case(name: &'static str, end: End, error: &str) -> Case {
    let words = format!("<script>alert(1)</script> {UPSTREAMS_WORDS} \" ' & \u{202e}\r\nX: y");
    let said = json!({"code": null, "error": error, "error_description": words, "error_uri": "https://evil.example/"});
    callback_case(name, end, said)
}

fn signed_userinfo_case(changes: Value, cause: &'static str) -> Case {
    case("UserInfo as a JWT", Disbelief, |upstream| {
        upstream.plan(|plan| plan.signed_userinfo = Some(changes))
    })
    .because(cause)
}

/// ID tokens that are not believed.
fn id_token_cases() -> Vec<Case> {
    let other_audience = json!(["somebody-else"]);
    vec![
        id_token_case("another audience", json!({"aud": "somebody-else"}), "aud"),
        id_token_case("no audience", json!({"aud": null}), "aud"),
        id_token_case("an empty audience", json!({"aud": []}), "aud"),
        id_token_case(
            "an audience without us",
            json!({"aud": other_audience}),
            "aud",
        ),
        id_token_case(
            "an audience of more without azp",
            json!({"aud": ["gatepost:here", "somebody-else"]}),
            "azp",
        ),
        id_token_case("another azp", json!({"azp": "somebody-else"}), "azp"),
        id_token_case(
            "another azp among more",
            json!({"aud": ["gatepost:here", "x"], "azp": "x"}),
            "azp",
        ),
        id_token_case("another nonce", json!({"nonce": "another"}), "nonce"),
        id_token_case("no nonce", json!({"nonce": null}), "nonce"),
        id_token_case("a nonce that is no text", json!({"nonce": 1}), "nonce"),
        id_token_case(
            "another issuer",
            json!({"iss": "https://evil.example"}),
            "iss is",
        ),
        id_token_case("no issuer", json!({"iss": null}), "iss is"),
        id_token_case("no subject", json!({"sub": null}), "sub is"),
        id_token_case("an empty subject", json!({"sub": ""}), "sub is"),
        id_token_case("a subject that is no text", json!({"sub": 7}), "sub is"),
        id_token_case(
            "a subject of 256 characters",
            json!({"sub": "x".repeat(256)}),
            "sub is",
        ),
        id_token_case("a subject with NUL", json!({"sub": "a\u{0}b"}), "sub is"),
        id_token_case(
            "expired",
            json!({"exp": now() - 120, "iat": now() - 300}),
            "expired",
        ),
        id_token_case("without expiry", json!({"exp": null}), "expired"),
        id_token_case(
            "an expiry that is no number",
            json!({"exp": "tomorrow"}),
            "expired",
        ),
        id_token_case(
            "issued in the far future",
            json!({"iat": now() + 3_600, "exp": now() + 7_200}),
            "iat is",
        ),
        id_token_case("without iat", json!({"iat": null}), "iat is"),
        id_token_case(
            "another access token's at_hash",
            json!({"at_hash": "77QmUPtjPfzWtF2AnpK9RQ"}),
            "at_hash",
        ),
        id_token_case(
            "an at_hash that is no text",
            json!({"at_hash": 1}),
            "at_hash",
        ),
        header_case(
            "an unknown kid",
            json!({"kid": "never-published"}),
            "by its kid",
        ),
        header_case(
            "another algorithm than its key's",
            json!({"alg": "RS256"}),
            "by its kid",
        ),
        header_case(
            "an algorithm nobody knows",
            json!({"alg": "XX999"}),
            "no JWT signed",
        ),
        header_case("no algorithm", json!({"alg": null}), "no JWT signed"),
        header_case(
            "a critical extension",
            json!({"crit": ["b64"], "b64": false}),
            "no JWT signed",
        ),
        case("alg none", Disbelief, |upstream| {
            upstream.plan(|plan| plan.signature = Signature::None)
        })
        .because("no JWT signed"),
        case("no signature", Disbelief, |upstream| {
            upstream.plan(|plan| {
                plan.signature = Signature::None;
                plan.header = json!({"alg": "ES256"});
            });
        }),
        rsa_case("HS256 by the public key", Disbelief, |upstream| {
            upstream.plan(|plan| plan.signature = Signature::PublicKeyAsSecret);
        }),
        case("a stranger's key", Disbelief, |upstream| {
            upstream.plan(|plan| plan.signature = Signature::Stranger)
        })
        .because("signature"),
        case("a damaged signature", Disbelief, |upstream| {
            upstream.plan(|plan| plan.signature = Signature::Damaged)
        })
        .because("signature"),
        token_case(
            "an ID token that is none",
            Disbelief,
            json!({"id_token": "x.y.z"}),
        ),
        token_case(
            "an ID token that is no text",
            Disbelief,
            json!({"id_token": {"sub": "1"}}),
        ),
        token_case("no ID token", Disbelief, json!({"id_token": null})),
    ]
}

/// What is said around the ID token.
fn answer_cases() -> Vec<Case> {
    vec![
        callback_case(
            "another issuer's answer",
            Disbelief,
            json!({"iss": "https://evil.example"}),
        ),
        callback_case("no iss though announced", Disbelief, json!({"iss": null})),
        callback_case(
            "an error of another issuer",
            Disbelief,
            json!({"code": null, "error": "access_denied", "iss": "https://evil.example"}),
        ),
        callback_case(
            "a code that upstream does not know",
            Disbelief,
            json!({"code": "made-up"}),
        ),
        callback_case("no code and no error", Disbelief, json!({"code": null})),
        case("UserInfo of somebody else", Disbelief, |upstream| {
            upstream.plan(|plan| plan.userinfo = json!({"sub": "somebody-else"}))
        }),
        signed_userinfo_case(json!({"sub": "somebody-else"}), "another sub"),
        signed_userinfo_case(json!({"iss": "https://evil.example"}), "iss"),
        signed_userinfo_case(json!({"iss": null}), "iss"),
        signed_userinfo_case(json!({"aud": "somebody-else"}), "aud"),
        signed_userinfo_case(json!({"aud": null}), "aud"),
        signed_userinfo_case(json!({"azp": "somebody-else"}), "azp"),
        fault_case(
            "UserInfo by a stranger's key",
            Disbelief,
            Place::UserInfo,
            {
                let stranger = Signer::es256("first");
                let header = json!({"alg": "ES256", "kid": "first"});
                let claims = json!({"sub": SUBJECT, "aud": CLIENT_ID});
                Fault::Body("application/jwt", stranger.sign_under(&header, &claims))
            },
        )
        .because("signature"),
        fault_case(
            "UserInfo without a signature",
            Disbelief,
            Place::UserInfo,
            Fault::Body("application/jwt; charset=x", String::from("e30.e30.")),
        ),
        case("UserInfo of nobody", Disbelief, |upstream| {
            upstream.plan(|plan| plan.userinfo = json!({"sub": null}))
        }),
        case(
            "UserInfo of another type of subject",
            Disbelief,
            |upstream| upstream.plan(|plan| plan.userinfo = json!({"sub": 248_289_761_001_u64})),
        ),
        error_case(
            "cancelled there",
            Sentence("access_denied"),
            "access_denied",
        ),
        error_case(
            "not signed in there",
            Sentence("login_required"),
            "login_required",
        ),
        error_case(
            "no page allowed there",
            Sentence("login_required"),
            "interaction_required",
        ),
        error_case("broken there", AWAY, "server_error"),
        error_case("away there", AWAY, "temporarily_unavailable"),
    ]
}

/// Metadata and key sets that nothing can be done with; and servers that break.
fn broken_cases() -> Vec<Case> {
    let text = |body: &str| Fault::Body("text/html", body.to_owned());
    let json_body = |body: &str| Fault::Body("application/json", body.to_owned());
    let elsewhere = || Fault::Redirect(307, String::from("http://127.0.0.1:9/"));
    let mut cases = vec![
        metadata_case(
            "another issuer in the metadata",
            json!({"issuer": "https://evil.example"}),
        ),
        case(
            "the issuer with a slash in the metadata",
            UNUSABLE,
            |upstream| {
                let issuer = format!("{}/", upstream.issuer());
                upstream.plan(|plan| plan.discovery = json!({"issuer": issuer}));
            },
        ),
        metadata_case("no issuer in the metadata", json!({"issuer": null})),
        metadata_case(
            "no authorization endpoint",
            json!({"authorization_endpoint": null}),
        ),
        metadata_case(
            "an authorization endpoint that is script",
            json!({"authorization_endpoint": "javascript:alert(1)"}),
        ),
        metadata_case(
            "a token endpoint in the metadata service",
            json!({"token_endpoint": "http://169.254.169.254/token"}),
        ),
        metadata_case(
            "a token endpoint in a private network",
            json!({"token_endpoint": "https://10.0.0.1/token"}),
        ),
        metadata_case("no token endpoint", json!({"token_endpoint": null})),
        metadata_case("no keys", json!({"jwks_uri": null})),
        metadata_case("keys in a file", json!({"jwks_uri": "file:///etc/passwd"})),
        fault_case(
            "a key set without keys",
            Disbelief,
            Place::Jwks,
            json_body("{\"keys\":[]}"),
        ),
    ];
    for place in [Place::Discovery, Place::Jwks, Place::Token, Place::UserInfo] {
        let no_json = json_body("{\"as upstream puts it\"");
        cases.extend([
            fault_case("500", AWAY, place, Fault::Status(500)),
            fault_case("429", AWAY, place, Fault::Status(429)),
            fault_case("hanging up", AWAY, place, Fault::HangUp),
            fault_case("404", UNUSABLE, place, Fault::Status(404)),
            fault_case("a redirect", UNUSABLE, place, elsewhere()),
            fault_case(
                "a page",
                UNUSABLE,
                place,
                text("<b>as upstream puts it</b>"),
            ),
            fault_case("no JSON", UNUSABLE, place, no_json),
            fault_case("JSON of another kind", UNUSABLE, place, json_body("[1]")),
            fault_case("more than 1 MiB", UNUSABLE, place, Fault::Padded(1 << 20)),
            fault_case("without end", UNUSABLE, place, Fault::Endless),
        ]);
    }
    cases.extend([
        token_case(
            "an access token that is no text",
            UNUSABLE,
            json!({"access_token": 7}),
        ),
        token_case(
            "a token type that nobody knows",
            UNUSABLE,
            json!({"token_type": "dpop"}),
        ),
        token_case(
            "an error in a 200",
            Disbelief,
            json!({"error": "invalid_grant"}),
        ),
    ]);
    cases
}

/// Every case as a provider, each with a client that has no other.
fn registered(cases: &[Case]) -> Value {
    let mut clients = Vec::new();
    let mut providers = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("up{number}");
        clients.push((
            format!("only{number}"),
            json!({"identity_providers": [name]}),
        ));
        // Asked of UserInfo in any case.
        providers.push(
            case.upstream
                .registration(&name, json!({"claims": {"department": "department"}})),
        );
    }
    clients.push((String::from("both"), json!({})));
    let clients: Vec<(&str, Value)> = clients
        .iter()
        .map(|(name, client)| (name.as_str(), client.clone()))
        .collect();
    let mut document = with_clients(document(), &clients);
    document["identity_providers"] = json!(providers);
    document
}

/// A person of their own address, so that nobody's failures are counted together.
fn person_from(gatepost: &Gatepost, number: usize) -> Traveller {
    let mut person = Traveller::new();
    let address = format!("198.51.{}.{}", number / 250, number % 250 + 1);
    person
        .at(&gatepost.base_url)
        .headers
        .push((String::from("X-Forwarded-For"), address));
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

/// Nothing of what upstream said, no cookie of a way that has ended, no session.
fn assert_nothing_kept(browser: &Browser, answer: &Answer, case: &str) {
    let text = answer.text();
    for foreign in [UPSTREAMS_WORDS, "<script>alert", "evil.example", "made-up"] {
        let location = answer.header("location").unwrap_or_default();
        assert!(
            !text.contains(foreign) && !location.contains(foreign),
            "{case}: {foreign} in {text} {location}"
        );
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
            assert_eq!(answer.header("location"), None, "{case}");
            assert!(
                (400..500).contains(&answer.status),
                "{case}: {} {}",
                answer.status,
                answer.text()
            );
            answer.assert_says_for(case, "GP1725");
            answer.assert_says_for(case, "Back to the sign-in page");
        }
        (Sentence(_), false) => {
            assert_eq!(
                answer.status,
                200,
                "{case}: {} {:?}",
                answer.text(),
                answer.headers
            );
            answer.assert_says_for(case, "name=\"password\"");
            answer.assert_says_for(case, "role=\"alert\"");
            assert_eq!(
                answer.text().contains("try again later"),
                end == AWAY,
                "{case}: {}",
                answer.text()
            );
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
            assert_eq!(
                audited(&gatepost, &source),
                [case.end.reason_code()],
                "{what}"
            );
            let log = gatepost.log();
            let line = log
                .lines()
                .rev()
                .find(|line| line.contains(&format!("source={source} ")))
                .unwrap();
            assert!(line.contains(case.end.reason_code()), "{what}: {line}");
            assert!(line.contains(case.cause), "{what}: {line}");
        }
    }
    assert_eq!(stored(&gatepost), before);
    assert_local_sign_in_works(&gatepost);
}

/// From an authorization request of a client with one way to sign in, through upstream, to where
/// the callback leads.
fn straight(gatepost: &Gatepost, person: &mut Traveller, client: &str) -> Answer {
    person.visit(&format!(
        "{}{}",
        gatepost.base_url,
        authorize_path(client, RP1, &[])
    ))
}

/// The same for a client with several ways, by the provider's button on the login page; no farther
/// than to that page where the server is too busy for it.
fn by_button(gatepost: &Gatepost, person: &mut Traveller, client: &str, provider: &str) -> Answer {
    let page = person.visit(&format!(
        "{}{}",
        gatepost.base_url,
        authorize_path(client, RP1, &[])
    ));
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
    let page = browser.visit(&authorize_path(
        "conf1",
        RP1,
        &[("acr_values", "idp:local")],
    ));
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
    let upstream = Upstream::start_with(Signer::es256("first"));
    let mut document = with_clients(
        document(),
        &[("only", json!({"identity_providers": ["up"]}))],
    );
    document["identity_providers"] = json!([upstream.registration("up", json!({}))]);
    let admin = free_address();
    // Three of the four are for one provider, and three more may wait.
    let settings = [
        ALLOWED,
        ("GATEPOST_UPSTREAM_PLACES", "4"),
        ("GATEPOST_ADMIN_LISTEN", &admin),
    ];
    let gatepost = Gatepost::start_with(&document, &settings);
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
        &|| {
            assert_eq!(
                gatepost.get("/.well-known/openid-configuration").status,
                200
            )
        },
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
    let after = stored(&gatepost);
    // The same account as before, six sessions more each time, and that of the local sign-in.
    assert_eq!(
        [
            after[0] - before[0],
            after[1] - before[1],
            after[2] - before[2]
        ],
        [0, 25, 0]
    );
}

#[test]
fn all_who_come_at_once_are_let_in_also_where_workers_and_places_are_few() {
    for (places, people) in [("1", 2), ("4", 6), ("24", 20)] {
        let upstream = Upstream::start_with(Signer::es256("first"));
        let mut document = document();
        document["identity_providers"] = json!([upstream.registration("up", json!({}))]);
        let gatepost = Gatepost::start_with(
            &document,
            &[
                ALLOWED,
                ("GATEPOST_WORKERS", "5"),
                ("GATEPOST_UPSTREAM_PLACES", places),
                // Enough for all who come back at once, also on a busy machine.
                ("GATEPOST_DATABASE_CONNECTIONS", "24"),
            ],
        );
        // Its metadata is known by now, its keys are not: who has redeemed a code must not fail for
        // want of them.
        let gone = person_from(&gatepost, 0).follow(
            &gatepost.base_url,
            gatepost.get(&authorize_path("conf1", RP1, &[])),
        );
        assert!(gone.text().contains("name=\"password\""));
        thread::scope(|scope| {
            let at_once: Vec<_> = (1..=people)
                .map(|number| {
                    scope.spawn({
                        let gatepost = &gatepost;
                        move || go(gatepost, number)
                    })
                })
                .collect();
            for one in at_once {
                one.join().unwrap().assert_carries_for(places, "code");
            }
        });
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
        by_button(
            &gatepost,
            &mut person_from(&gatepost, number),
            "conf1",
            "well",
        )
    };
    // Metadata and keys are known by now.
    assert!(
        [go(&gatepost, 0), by_the_other(1)]
            .iter()
            .all(|answer| answer.query().contains_key("code"))
    );
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
    let two_seconds = || Fault::Slow(Duration::from_secs(2));
    let cases = [
        fault_case("silent discovery", AWAY, Place::Discovery, Fault::Held),
        fault_case("silent keys", AWAY, Place::Jwks, Fault::Held),
        fault_case("a silent token endpoint", AWAY, Place::Token, Fault::Held),
        fault_case("silent UserInfo", AWAY, Place::UserInfo, Fault::Held),
        fault_case("a byte a second", AWAY, Place::Token, Fault::Drip),
        case("two seconds each, too many together", AWAY, |upstream| {
            for place in [Place::Jwks, Place::Token, Place::UserInfo] {
                upstream.fault(place, two_seconds());
            }
        }),
    ];
    let mut document = registered(&cases);
    let closed = cases.len();
    let nobody = json!({"issuer": format!("http://127.0.0.1:{}", free_port())});
    let nobody = cases[0]
        .upstream
        .registration(&format!("up{closed}"), nobody);
    document["identity_providers"]
        .as_array_mut()
        .unwrap()
        .push(nobody);
    // A quarter of them may wait for others.
    let gatepost = Gatepost::start_with(&document, &[ALLOWED, ("GATEPOST_WORKERS", "32")]);
    let before = stored(&gatepost);
    thread::scope(|scope| {
        for (number, what) in cases
            .iter()
            .map(|case| case.name)
            .chain(["nobody there"])
            .enumerate()
        {
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
    let after = stored(&gatepost);
    assert_eq!(
        [
            after[0] - before[0],
            after[1] - before[1],
            after[2] - before[2]
        ],
        [0, 1, 0]
    );
    cases.iter().for_each(|case| case.upstream.let_go());
}

#[test]
fn a_secret_that_does_not_open_keeps_its_provider_listed_and_nobody_gets_there() {
    let lost = case("a lost secret", UNUSABLE, |_| {});
    let cases = [lost];
    let mut gatepost = Gatepost::prepare(&[ALLOWED]);
    gatepost.apply(&registered(&cases));
    // As if the line of the master secret that it was sealed under were gone.
    let damage = "UPDATE catalogue_entries SET sealed_secret = set_byte(sealed_secret, 30, get_byte(sealed_secret, 30) # 1) \
                  WHERE kind = 'identity_provider'";
    gatepost.database.run(damage);
    gatepost.serve();
    let answer = by_button(&gatepost, &mut person_from(&gatepost, 0), "both", "up0");
    assert_end(&answer, UNUSABLE, false, cases[0].name);
    assert_eq!(cases[0].upstream.visits(), 0);
    gatepost
        .log()
        .assert_says("ERROR identity provider up0: its client_secret was sealed under another");
    gatepost
        .log()
        .assert_says("up0: its client_secret does not open under the master secret");
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
