//! Client authentication at the token endpoint: who is believed, and how the others are told.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::support::claims::Says;
use crate::support::flow::{basic, with_clients};
use crate::support::gatepost::{CONF1_SECRET, CONF2_SECRET, Gatepost, RPS, document};
use crate::support::http::Answer;
use crate::support::tables::cases;
use crate::support::waiting::all_at_once;

const GRANT: (&str, &str) = ("grant_type", "client_credentials");
const CHALLENGE: Option<&str> = Some("Basic realm=\"gatepost\"");

/// Asks for a token with that `Authorization` header and further form members.
fn ask(gatepost: &Gatepost, authorization: &str, form: &[(&str, &str)]) -> Answer {
    let headers = [("Authorization", authorization)];
    gatepost.post("/connect/token", &headers, &[&[GRANT], form].concat())
}

/// The same without that header.
fn ask_by_form(gatepost: &Gatepost, form: &[(&str, &str)]) -> Answer {
    gatepost.post("/connect/token", &[], &[&[GRANT], form].concat())
}

/// With this name and secret in the form.
fn ask_by_body(gatepost: &Gatepost, client_id: &str, secret: &str) -> Answer {
    let form = [("client_id", client_id), ("client_secret", secret)];
    ask_by_form(gatepost, &form)
}

/// A server of its own that stands so many failures a minute.
fn start_standing(failures: &str) -> Gatepost {
    let settings = [("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", failures)];
    Gatepost::start_with(&document(), &settings)
}

/// `Basic` over these bytes as they are.
fn raw(user_pass: impl AsRef<[u8]>) -> String {
    format!("Basic {}", STANDARD.encode(user_pass))
}

/// A 401 with its challenge: the header was used.
fn assert_challenged(answer: &Answer, case: &str) {
    answer.assert_refused(401, "invalid_client", case);
    assert_eq!(answer.header("www-authenticate"), CHALLENGE, "{case}");
}

/// A 400 without one: it was not.
fn assert_unproven(answer: &Answer, case: &str) {
    answer.assert_refused(400, "invalid_client", case);
    assert_eq!(answer.header("www-authenticate"), None, "{case}");
}

fn with_secret(secret: &Value) -> Value {
    json!({"secrets": [secret]})
}

#[test]
fn secrets_of_any_characters_are_understood_in_every_usual_encoding() {
    const SECRETS: [&str; 8] = [
        "colon:inside:the secret",
        "per%cent%41%zz and more",
        "plus+and space and +",
        "\u{e9}t\u{e9} \u{4e2d}\u{6587} \u{1f600} and a secret",
        "amp&equals=question?hash#",
        "quote\"and'back\\slash~tilde",
        "trailing-percent-sign-100%",
        "::::::::::::::::::::::",
    ];
    let names = Vec::from_iter((0..SECRETS.len()).map(|index| format!("secret{index}")));
    let client = |(name, secret)| (String::as_str(name), with_secret(&json!({"value": secret})));
    let clients: Vec<(&str, Value)> = names.iter().zip(SECRETS).map(client).collect();
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    for (name, secret) in names.iter().zip(SECRETS) {
        let encoded = basic(name, secret);
        let everything_encoded = secret.bytes().map(|byte| format!("%{byte:02x}"));
        let everything_encoded: String = everything_encoded.collect();
        let cases = [
            encoded.clone(),
            encoded.replace("Basic", "basic"),
            encoded.replace("Basic ", "BASIC  "),
            raw(format!("{name}:{everything_encoded}")),
            raw(format!("{name}:{secret}")),
        ];
        for (index, authorization) in cases.iter().enumerate() {
            let answer = ask(&gatepost, authorization, &[]);
            answer.assert_status_for(format!("{secret} as {index}"), 200);
        }
        ask_by_body(&gatepost, name, secret).assert_status_for(secret, 200);
        let answer = ask(&gatepost, &encoded, &[("client_id", name)]);
        answer.assert_status_for(format!("client_id beside {secret}"), 200);
    }
}

#[test]
fn a_header_that_does_not_read_is_refused_with_a_challenge() {
    let gatepost = Gatepost::shared();
    let url_safe = URL_SAFE_NO_PAD.encode(format!("conf1:{CONF1_SECRET}"));
    let good = STANDARD.encode(format!("conf1:{CONF1_SECRET}"));
    let mut cases: Vec<String> = ["Basic", "Basic ", "Basic ???", "Basic =", "Negotiate", "x"]
        .map(String::from)
        .into();
    cases.extend(["", ":", "conf1"].map(raw));
    cases.push(raw(b"conf1:\xff\xfe"));
    cases.extend([
        format!("Basic {good}!"),
        format!("Basic {good} {good}"),
        format!("Basic realm=\"x\", {good}"),
        format!("Basic{good}"),
        raw(format!(":{CONF1_SECRET}")),
        raw(format!("conf1\0:{CONF1_SECRET}")),
        raw(format!("conf1:{CONF1_SECRET}\0")),
        raw(format!("conf1%00:{CONF1_SECRET}")),
        raw(format!("{}:{CONF1_SECRET}", "a".repeat(201))),
        raw(format!("conf1:{}", "a".repeat(257))),
        raw(format!("conf1:{}", "a".repeat(20_000))),
        format!("Bearer {good}"),
        format!("Digest username=\"conf1\", response=\"{good}\""),
    ]);
    // Without its padding where it has any, base64 is not what RFC 4648 §4 says.
    cases.extend((url_safe != good).then(|| format!("Basic {url_safe}")));
    for authorization in &cases {
        assert_challenged(&ask(&gatepost, authorization, &[]), authorization);
    }
    // Nor does a right secret in the body help a header that does not read.
    let body = [("client_id", "conf1"), ("client_secret", CONF1_SECRET)];
    for authorization in ["Bearer abc", "Basic ???"] {
        assert_challenged(&ask(&gatepost, authorization, &body), authorization);
    }
    let huge = raw(format!("conf1:{}", "a".repeat(60_000)));
    ask(&gatepost, &huge, &[]).assert_status(431);
}

#[test]
fn a_client_that_proves_nothing_is_refused() {
    let gatepost = Gatepost::shared();
    let secret = ("client_secret", CONF1_SECRET);
    let named = |client_id| ("client_id", client_id);
    let overlong = ["a".repeat(201), "a".repeat(257)];
    for (form, case) in [
        (&[][..], "nobody"),
        (&[named("")], "an empty name"),
        (&[secret], "a secret of nobody"),
        (&[named("conf1")], "no secret"),
        (&[named("conf1"), ("client_secret", "")], "an empty secret"),
        (&[named("CONF1"), secret], "other case"),
        (&[named("conf1 "), secret], "a space"),
        (&[named(&overlong[0]), secret], "overlong name"),
        (
            &[named("conf1"), ("client_secret", &overlong[1])],
            "overlong secret",
        ),
    ] {
        assert_unproven(&ask_by_form(&gatepost, form), case);
    }
    let digest = STANDARD.encode(Sha256::digest(CONF1_SECRET));
    for (client_id, secret) in [
        ("conf1", ""),
        ("conf1", "wrong"),
        ("conf1", CONF2_SECRET),
        ("conf1", &CONF1_SECRET[1..]),
        ("conf1", &CONF1_SECRET.to_uppercase()),
        ("conf1", &format!("{CONF1_SECRET} ")),
        ("conf1", &digest),
        ("CONF1", CONF1_SECRET),
    ] {
        let answer = ask(&gatepost, &basic(client_id, secret), &[]);
        assert_challenged(&answer, &format!("{client_id} {secret}"));
    }
    // A public client may name itself in the header; this grant is none of its own.
    let public = ask(&gatepost, &basic("pub1", ""), &[]);
    public.assert_refused(400, "unauthorized_client", "public");
}

#[test]
fn an_unknown_client_is_answered_as_a_wrong_secret_is() {
    let gatepost = Gatepost::shared();
    let comparable = |answer: &Answer| {
        let mut headers = answer.headers.clone();
        headers.retain(|(name, _)| name != "date" && name != "x-request-id");
        (answer.status, headers, answer.body.clone())
    };
    let header = |client_id: &str| ask(&gatepost, &basic(client_id, "wrong"), &[]);
    assert_challenged(&header("nobody"), "unknown");
    assert_eq!(comparable(&header("nobody")), comparable(&header("conf1")));
    let body = |client_id: &str| ask_by_body(&gatepost, client_id, "wrong");
    assert_unproven(&body("nobody"), "unknown");
    for client_id in ["conf1", "nobody'--", "<script>", "\u{e9}"] {
        let (unknown, other) = (body("nobody"), body(client_id));
        assert_eq!(comparable(&unknown), comparable(&other), "{client_id}");
    }
}

#[test]
fn two_ways_at_once_are_a_contradiction() {
    let gatepost = Gatepost::shared();
    let right = basic("conf1", CONF1_SECRET);
    let (name, secret) = (("client_id", "conf1"), ("client_secret", CONF1_SECRET));
    for (answer, case) in [
        (ask(&gatepost, &right, &[name, secret]), "header and body"),
        (
            ask(&gatepost, &right, &[secret]),
            "header and a secret in the body",
        ),
        (
            ask_by_form(&gatepost, &[name, name, secret]),
            "client_id twice",
        ),
        (
            ask_by_form(&gatepost, &[name, secret, secret]),
            "client_secret twice",
        ),
    ] {
        answer.assert_refused(400, "invalid_request", case);
    }
    let twice = [("Authorization", right.as_str()); 2];
    let twice = gatepost.post("/connect/token", &twice, &[GRANT]);
    twice.assert_refused(400, "invalid_request", "two headers");
    let other = ask(&gatepost, &right, &[("client_id", "conf2")]);
    assert_challenged(&other, "another client_id in the body");
    // An empty secret is no secret, so this is one way only.
    ask(&gatepost, &right, &[("client_secret", "")]).assert_status(200);
}

#[test]
fn a_public_client_that_brings_a_secret_is_refused() {
    let gatepost = Gatepost::shared();
    let code = [
        ("grant_type", "authorization_code"),
        ("code", "gpc_x"),
        ("redirect_uri", RPS),
    ];
    let post = |authorization: &[(&str, &str)], more: &[(&str, &str)]| {
        gatepost.post("/connect/token", authorization, &[&code[..], more].concat())
    };
    let by_body = |secret| post(&[], &[("client_id", "pub1"), ("client_secret", secret)]);
    assert_unproven(&by_body("x"), "body");
    let by_header = post(&[("Authorization", &basic("pub1", "x"))], &[]);
    assert_challenged(&by_header, "header");
    // An empty secret is none: the code is looked at.
    by_body("").assert_refused(400, "invalid_grant", "an empty secret");
}

#[test]
fn secrets_count_as_registered_and_until_they_expire() {
    let hex = |bytes: &[u8]| -> String {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    };
    let old = "an-old-secret-of-some-length";
    let new = "a-new-secret-of-some-length";
    let hashed = "a-hashed-secret-of-ours";
    let (sha256, sha512) = (Sha256::digest(hashed), Sha512::digest(hashed));
    let clients = json!({
        "several": {"secrets": [{"value": old}, {"value": new, "expires_at": "2099-01-01T00:00:00Z"}]},
        "expired": {"secrets": [{"value": old, "expires_at": "2020-01-01T00:00:00Z"}, {"value": new}]},
        "sha256": {"secrets": [{"sha256": STANDARD.encode(sha256)}]},
        "sha256hex": {"secrets": [{"sha256": hex(&sha256)}]},
        "sha512": {"secrets": [{"sha512": STANDARD.encode(sha512)}]},
        "disabled": {"enabled": false},
        "basiconly": {"token_endpoint_auth_method": "client_secret_basic"},
        "postonly": {"token_endpoint_auth_method": "client_secret_post"},
    });
    let clients: Vec<(&str, Value)> = cases(&clients).map(|(id, one)| (id, one.clone())).collect();
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let header = |client_id: &str, secret: &str| ask(&gatepost, &basic(client_id, secret), &[]);
    let body = |client_id: &str, secret: &str| ask_by_body(&gatepost, client_id, secret);
    for (client_id, secret) in [
        ("several", old),
        ("several", new),
        ("expired", new),
        ("sha256", hashed),
        ("sha256hex", hashed),
        ("sha512", hashed),
    ] {
        header(client_id, secret).assert_status_for(client_id, 200);
        body(client_id, secret).assert_status_for(client_id, 200);
    }
    header("basiconly", CONF1_SECRET).assert_status(200);
    body("postonly", CONF1_SECRET).assert_status(200);
    assert_challenged(&header("expired", old), "expired");
    let digest = header("sha256", &STANDARD.encode(sha256));
    assert_challenged(&digest, "a digest for a secret");
    assert_challenged(&header("disabled", CONF1_SECRET), "disabled");
    assert_unproven(&body("disabled", CONF1_SECRET), "disabled");
    assert_challenged(&header("postonly", CONF1_SECRET), "pinned to the body");
    assert_unproven(&body("basiconly", CONF1_SECRET), "pinned to the header");
    // A secret in the database is neither itself nor its plain digest.
    let rows = "SELECT sealed_digest FROM client_secrets";
    for row in gatepost.database.client().query(rows, &[]).unwrap() {
        let sealed: Vec<u8> = row.get(0);
        let digests = [hashed, CONF1_SECRET].map(|secret| Sha256::digest(secret).to_vec());
        for known in digests.into_iter().chain([old.as_bytes().to_vec()]) {
            assert!(!sealed.windows(known.len()).any(|window| window == known));
        }
    }
}

#[test]
fn guessing_is_stopped_for_its_source_and_client_alone() {
    let gatepost = Gatepost::start();
    let from = |address: &str, client_id: &str, secret: &str| {
        let headers = [
            ("X-Forwarded-For", address),
            ("Authorization", &basic(client_id, secret)),
        ];
        gatepost.post("/connect/token", &headers, &[GRANT])
    };
    for guess in 0..20 {
        let answer = from("192.0.2.1", "conf1", &format!("guess-{guess}"));
        assert_challenged(&answer, "a guess");
    }
    for secret in ["guess", CONF1_SECRET] {
        let answer = from("192.0.2.1", "conf1", secret);
        answer.assert_refused(429, "temporarily_unavailable", secret);
        let retry_after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&retry_after), "{retry_after}");
    }
    from("192.0.2.2", "conf1", CONF1_SECRET).assert_status_for("from elsewhere", 200);
    from("192.0.2.1", "service", CONF1_SECRET).assert_status_for("another client", 200);
    from("9.9.9.9, 192.0.2.3", "conf1", CONF1_SECRET).assert_status(200);
    // What stands left of the address that a trusted proxy wrote is anybody's invention.
    from("192.0.2.2, 192.0.2.1", "conf1", CONF1_SECRET).assert_status(429);
    for guess in 0..20 {
        from(&format!("2001:db8::{guess:x}"), "conf1", "wrong");
    }
    let neighbour = from("2001:db8::ffff", "conf1", CONF1_SECRET);
    neighbour.assert_status_for("one IPv6 network is one source", 429);
    assert_eq!(from("2001:db8:0:1::1", "conf1", CONF1_SECRET).status, 200);
    let odds = "a unknown ::ffff:192.0.2.9 192.0.2.9:443 [2001:db8:9::1]:443 ,, 999.1.1.1";
    for odd in odds.split(' ') {
        assert_eq!(from(odd, "conf1", CONF1_SECRET).status, 200, "{odd}");
    }
}

#[test]
fn a_header_that_reads_two_ways_counts_as_the_two_guesses_it_is() {
    let gatepost = start_standing("5");
    let guess = |secret: &str| ask(&gatepost, &raw(format!("conf1:{secret}")), &[]);
    for secret in ["first%20pair", "second+pair"] {
        assert_challenged(&guess(secret), secret);
    }
    // There is room for one more guess: the first reading is tried and the second is not.
    assert_challenged(&guess("third+pair"), "the fifth guess");
    assert_eq!(guess(CONF1_SECRET).status, 429);
    // The other reading names another client; each guess counts where it was tried.
    let gatepost = start_standing("2");
    let guess = |named: &str| ask(&gatepost, &raw(named), &[]);
    for _ in 0..2 {
        assert_challenged(&guess("conf%31:wrong"), "conf1, or conf%31");
    }
    guess("conf1:wrong").assert_status(429);
    guess("nobody:wrong").assert_status(429);
}

#[test]
fn whoever_is_right_by_the_second_reading_counts_nothing() {
    let secret = with_secret(&json!({"value": "100% of an older secret"}));
    let clients = [("older", secret)];
    let settings = [("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "2")];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &settings);
    for _ in 0..10 {
        ask(&gatepost, &raw("older:100% of an older secret"), &[]).assert_status(200);
    }
}

#[test]
fn made_up_names_share_a_counter_and_push_out_none_of_a_name_that_exists() {
    let settings = [
        ("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "20"),
        ("GATEPOST_LIMIT_TRACKED", "1000"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    let mut connection = gatepost.connect();
    let mut from = |address: &str, client_id: &str| {
        let headers = [
            ("X-Forwarded-For", address),
            ("Authorization", &basic(client_id, "wrong")),
        ];
        connection.post("/connect/token", &headers, &[GRANT]).status
    };
    (0..20).for_each(|_| assert_eq!(from("192.0.2.1", "conf1"), 401));
    // Made-up names of one source come to an end together.
    let answers: Vec<u16> = (0..30)
        .map(|number| from("192.0.2.2", &format!("made-up-{number}")))
        .collect();
    assert_eq!(answers, [[401; 20].as_slice(), &[429; 10]].concat());
    // What exists has a counter of its own.
    assert_eq!(from("192.0.2.2", "conf1"), 401);
    // And of more sources than are tracked: the counter of a name that exists stays.
    for number in 0..1_100_u32 {
        let address = format!("2001:db8:{:x}:{:x}::1", number / 256, number % 256);
        assert_eq!(from(&address, &format!("made-up-{number}")), 401);
    }
    assert_eq!(from("192.0.2.1", "conf1"), 429);
}

#[test]
fn of_many_guesses_at_once_no_more_are_told_than_one_after_the_other() {
    let gatepost = start_standing("10");
    let guess = |_| ask(&gatepost, &basic("conf1", "wrong"), &[]).status;
    let mut statuses = all_at_once(60, guess);
    statuses.retain(|status| *status == 401);
    assert_eq!(statuses.len(), 10);
}

#[test]
fn only_wrong_secrets_count_as_guesses() {
    let gatepost = Gatepost::start();
    let right = basic("conf1", CONF1_SECRET);
    for _ in 0..25 {
        ask(&gatepost, &right, &[]).assert_status(200);
        let unproven = ask_by_form(&gatepost, &[("client_id", "conf1")]);
        assert_unproven(&unproven, "no secret");
        assert_challenged(&ask(&gatepost, "Basic ???", &[]), "unreadable");
        let answer = ask(&gatepost, &right, &[("scope", "nope")]);
        answer.assert_refused(400, "invalid_scope", "an authenticated client's mistake");
    }
    for _ in 0..20 {
        assert_unproven(&ask_by_body(&gatepost, "nobody", "x"), "unknown");
    }
    // An unknown client is limited as a known one.
    let answer = ask_by_body(&gatepost, "nobody", "x");
    answer.assert_refused(429, "temporarily_unavailable", "unknown");
}

#[test]
fn old_clients_may_be_told_everything_with_400() {
    let gatepost = Gatepost::start_with(&document(), &[("GATEPOST_INVALID_CLIENT_STATUS", "400")]);
    let [known, unknown] = ["conf1", "nobody"].map(|client_id| basic(client_id, "wrong"));
    for authorization in [&known, &unknown, "Basic ???", "Bearer x"] {
        assert_unproven(&ask(&gatepost, authorization, &[]), authorization);
    }
    assert_unproven(&ask_by_form(&gatepost, &[]), "nobody");
    ask(&gatepost, &basic("conf1", CONF1_SECRET), &[]).assert_status(200);
}

#[test]
fn no_secret_reaches_the_log() {
    let canary = "canary-secret-1f8e5c";
    let clients = [("canary", with_secret(&json!({"value": canary})))];
    let document = with_clients(document(), &clients);
    let gatepost = Gatepost::start_with(&document, &[("GATEPOST_LOG", "debug")]);
    let right = basic("canary", canary);
    let secret = ("client_secret", canary);
    ask(&gatepost, &right, &[]).assert_status(200);
    ask(&gatepost, &basic("conf1", canary), &[]);
    ask_by_form(
        &gatepost,
        &[("client_id", "canary"), secret, ("scope", "nope")],
    );
    ask(&gatepost, &right, &[secret]);
    let in_query = format!("/connect/token?client_secret={canary}");
    gatepost.get(&in_query);
    gatepost.post(&in_query, &[], &[GRANT]);
    let log = gatepost.log();
    log.assert_says("client_id=\"canary\"");
    log.assert_says_not(canary);
    log.assert_says_not(&STANDARD.encode(format!("canary:{canary}")));
}

#[test]
fn a_stranger_cannot_invent_where_it_comes_from() {
    let gatepost = Gatepost::start_with(&document(), &[("GATEPOST_TRUSTED_PROXIES", "10.0.0.0/8")]);
    let from = |address: &str, secret: &str| {
        let authorization = basic("conf1", secret);
        let headers = [
            ("X-Forwarded-For", address),
            ("Forwarded", "for=192.0.2.1"),
            ("X-Real-IP", address),
            ("Connection", "X-Forwarded-For"),
            ("Authorization", &authorization),
        ];
        gatepost.post("/connect/token", &headers, &[GRANT])
    };
    for guess in 0..20 {
        assert_challenged(&from(&format!("192.0.2.{guess}"), "wrong"), "a guess");
    }
    let answer = from("198.51.100.1", CONF1_SECRET);
    answer.assert_refused(429, "temporarily_unavailable", "still the same peer");
}
