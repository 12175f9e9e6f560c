//! Client authentication at the token endpoint: who is believed, and how the others are told.

use std::thread;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::support::claims::Says;
use crate::support::flow::{basic, with_clients};
use crate::support::gatepost::{CONF1_SECRET, CONF2_SECRET, Gatepost, RPS, document};
use crate::support::http::Answer;

const GRANT: (&str, &str) = ("grant_type", "client_credentials");
const CHALLENGE: Option<&str> = Some("Basic realm=\"gatepost\"");

/// Asks for a token with that `Authorization` header and further form members.
fn ask(gatepost: &Gatepost, authorization: Option<&str>, form: &[(&str, &str)]) -> Answer {
    let headers: Vec<(&str, &str)> = authorization
        .iter()
        .map(|value| ("Authorization", *value))
        .collect();
    gatepost.post("/connect/token", &headers, &[&[GRANT], form].concat())
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
    let names: Vec<String> = (0..SECRETS.len())
        .map(|index| format!("secret{index}"))
        .collect();
    let clients: Vec<(&str, Value)> = names
        .iter()
        .zip(SECRETS)
        .map(|(name, secret)| (name.as_str(), with_secret(&json!({"value": secret}))))
        .collect();
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    for (name, secret) in names.iter().zip(SECRETS) {
        let encoded = basic(name, secret);
        let everything_encoded: String =
            secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let cases = [
            encoded.clone(),
            encoded.replace("Basic", "basic"),
            encoded.replace("Basic ", "BASIC  "),
            raw(format!("{name}:{everything_encoded}")),
            raw(format!("{name}:{secret}")),
        ];
        for (index, authorization) in cases.iter().enumerate() {
            let answer = ask(&gatepost, Some(authorization), &[]);
            assert_eq!(answer.status, 200, "{secret} as {index}: {}", answer.text());
        }
        ask(
            &gatepost,
            None,
            &[("client_id", name), ("client_secret", secret)],
        )
        .assert_status_for(secret, 200);
        let answer = ask(&gatepost, Some(&encoded), &[("client_id", name)]);
        assert_eq!(answer.status, 200, "client_id beside the header: {secret}");
    }
}

#[test]
fn a_header_that_does_not_read_is_refused_with_a_challenge() {
    let gatepost = Gatepost::shared();
    let url_safe = URL_SAFE_NO_PAD.encode(format!("conf1:{CONF1_SECRET}"));
    let good = STANDARD.encode(format!("conf1:{CONF1_SECRET}"));
    let mut cases = vec![
        String::from("Basic"),
        String::from("Basic "),
        String::from("Basic ???"),
        String::from("Basic ="),
        format!("Basic {good}!"),
        format!("Basic {good} {good}"),
        format!("Basic realm=\"x\", {good}"),
        format!("Basic{good}"),
        raw("conf1"),
        raw(""),
        raw(":"),
        raw(format!(":{CONF1_SECRET}")),
        raw(b"conf1:\xff\xfe"),
        raw(format!("conf1\0:{CONF1_SECRET}")),
        raw(format!("conf1:{CONF1_SECRET}\0")),
        raw(format!("conf1%00:{CONF1_SECRET}")),
        raw(format!("{}:{CONF1_SECRET}", "a".repeat(201))),
        raw(format!("conf1:{}", "a".repeat(257))),
        raw(format!("conf1:{}", "a".repeat(20_000))),
        format!("Bearer {good}"),
        format!("Digest username=\"conf1\", response=\"{good}\""),
        String::from("Negotiate"),
        String::from("x"),
    ];
    // Without its padding where it has any, base64 is not what RFC 4648 §4 says.
    cases.extend((url_safe != good).then(|| format!("Basic {url_safe}")));
    for authorization in &cases {
        assert_challenged(&ask(&gatepost, Some(authorization), &[]), authorization);
    }
    // Nor does a right secret in the body help a header that does not read.
    let body = [("client_id", "conf1"), ("client_secret", CONF1_SECRET)];
    for authorization in ["Bearer abc", "Basic ???"] {
        assert_challenged(&ask(&gatepost, Some(authorization), &body), authorization);
    }
    let huge = raw(format!("conf1:{}", "a".repeat(60_000)));
    let answer = gatepost.post("/connect/token", &[("Authorization", &huge)], &[GRANT]);
    assert_eq!(answer.status, 431);
}

#[test]
fn a_client_that_proves_nothing_is_refused() {
    let gatepost = Gatepost::shared();
    assert_unproven(&ask(&gatepost, None, &[]), "nobody");
    assert_unproven(&ask(&gatepost, None, &[("client_id", "")]), "an empty name");
    assert_unproven(
        &ask(&gatepost, None, &[("client_secret", CONF1_SECRET)]),
        "a secret of nobody",
    );
    assert_unproven(
        &ask(&gatepost, None, &[("client_id", "conf1")]),
        "no secret",
    );
    assert_unproven(
        &ask(
            &gatepost,
            None,
            &[("client_id", "conf1"), ("client_secret", "")],
        ),
        "an empty secret",
    );
    assert_unproven(
        &ask(
            &gatepost,
            None,
            &[("client_id", "CONF1"), ("client_secret", CONF1_SECRET)],
        ),
        "other case",
    );
    assert_unproven(
        &ask(
            &gatepost,
            None,
            &[("client_id", "conf1 "), ("client_secret", CONF1_SECRET)],
        ),
        "a space",
    );
    for (client_id, secret) in [
        ("conf1", ""),
        ("conf1", "wrong"),
        ("conf1", CONF2_SECRET),
        ("conf1", &CONF1_SECRET[1..]),
        ("conf1", &CONF1_SECRET.to_uppercase()),
        ("conf1", &format!("{CONF1_SECRET} ")),
        ("CONF1", CONF1_SECRET),
        ("pub1", ""),
    ] {
        let answer = ask(&gatepost, Some(&basic(client_id, secret)), &[]);
        if client_id == "pub1" {
            // A public client may name itself in the header; this grant is none of its own.
            answer.assert_refused(400, "unauthorized_client", "public");
        } else {
            assert_challenged(&answer, &format!("{client_id} {secret}"));
        }
    }
    let digest = STANDARD.encode(Sha256::digest(CONF1_SECRET));
    assert_challenged(
        &ask(&gatepost, Some(&basic("conf1", &digest)), &[]),
        "the digest of the secret",
    );
    let overlong = "a".repeat(257);
    assert_unproven(
        &ask(
            &gatepost,
            None,
            &[("client_id", "conf1"), ("client_secret", &overlong)],
        ),
        "overlong secret",
    );
    let overlong = "a".repeat(201);
    let form = [
        ("client_id", overlong.as_str()),
        ("client_secret", CONF1_SECRET),
    ];
    assert_unproven(&ask(&gatepost, None, &form), "overlong name");
}

#[test]
fn an_unknown_client_is_answered_as_a_wrong_secret_is() {
    let gatepost = Gatepost::shared();
    let comparable = |answer: &Answer| {
        let headers = answer
            .headers
            .iter()
            .filter(|(name, _)| name != "date" && name != "x-request-id")
            .cloned()
            .collect::<Vec<_>>();
        (answer.status, headers, answer.body.clone())
    };
    let header = |client_id: &str| ask(&gatepost, Some(&basic(client_id, "wrong")), &[]);
    assert_challenged(&header("nobody"), "unknown");
    assert_eq!(comparable(&header("nobody")), comparable(&header("conf1")));
    let body = |client_id: &str| {
        ask(
            &gatepost,
            None,
            &[("client_id", client_id), ("client_secret", "wrong")],
        )
    };
    assert_unproven(&body("nobody"), "unknown");
    for client_id in ["conf1", "nobody'--", "<script>", "\u{e9}"] {
        assert_eq!(
            comparable(&body("nobody")),
            comparable(&body(client_id)),
            "{client_id}"
        );
    }
}

#[test]
fn two_ways_at_once_are_a_contradiction() {
    let gatepost = Gatepost::shared();
    let right = basic("conf1", CONF1_SECRET);
    let both = ask(
        &gatepost,
        Some(&right),
        &[("client_id", "conf1"), ("client_secret", CONF1_SECRET)],
    );
    both.assert_refused(400, "invalid_request", "header and body");
    let alone = ask(&gatepost, Some(&right), &[("client_secret", CONF1_SECRET)]);
    alone.assert_refused(400, "invalid_request", "header and a secret in the body");
    let twice = [
        ("Authorization", right.as_str()),
        ("Authorization", right.as_str()),
    ];
    gatepost
        .post("/connect/token", &twice, &[GRANT])
        .assert_refused(400, "invalid_request", "two headers");
    assert_challenged(
        &ask(&gatepost, Some(&right), &[("client_id", "conf2")]),
        "another client_id in the body",
    );
    let repeated = [
        ("client_id", "conf1"),
        ("client_id", "conf1"),
        ("client_secret", CONF1_SECRET),
    ];
    ask(&gatepost, None, &repeated).assert_refused(400, "invalid_request", "client_id twice");
    let repeated = [
        ("client_id", "conf1"),
        ("client_secret", CONF1_SECRET),
        ("client_secret", CONF1_SECRET),
    ];
    ask(&gatepost, None, &repeated).assert_refused(400, "invalid_request", "client_secret twice");
    // An empty secret is no secret, so this is one way only.
    ask(&gatepost, Some(&right), &[("client_secret", "")]).assert_status(200);
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
    assert_unproven(
        &post(&[], &[("client_id", "pub1"), ("client_secret", "x")]),
        "body",
    );
    assert_challenged(
        &post(&[("Authorization", &basic("pub1", "x"))], &[]),
        "header",
    );
    let answer = post(&[], &[("client_id", "pub1"), ("client_secret", "")]);
    answer.assert_refused(
        400,
        "invalid_grant",
        "an empty secret is none: the code is looked at",
    );
}

#[test]
fn secrets_count_as_registered_and_until_they_expire() {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let (old, new, hashed) = (
        "an-old-secret-of-some-length",
        "a-new-secret-of-some-length",
        "a-hashed-secret-of-ours",
    );
    let clients = [
        (
            "several",
            json!({"secrets": [{"value": old}, {"value": new, "expires_at": "2099-01-01T00:00:00Z"}]}),
        ),
        (
            "expired",
            json!({"secrets": [{"value": old, "expires_at": "2020-01-01T00:00:00Z"}, {"value": new}]}),
        ),
        (
            "sha256",
            with_secret(&json!({"sha256": STANDARD.encode(Sha256::digest(hashed))})),
        ),
        (
            "sha256hex",
            with_secret(&json!({"sha256": hex(&Sha256::digest(hashed))})),
        ),
        (
            "sha512",
            with_secret(&json!({"sha512": STANDARD.encode(Sha512::digest(hashed))})),
        ),
        ("disabled", json!({"enabled": false})),
        (
            "basiconly",
            json!({"token_endpoint_auth_method": "client_secret_basic"}),
        ),
        (
            "postonly",
            json!({"token_endpoint_auth_method": "client_secret_post"}),
        ),
    ];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &[]);
    let header =
        |client_id: &str, secret: &str| ask(&gatepost, Some(&basic(client_id, secret)), &[]);
    let body = |client_id: &str, secret: &str| {
        ask(
            &gatepost,
            None,
            &[("client_id", client_id), ("client_secret", secret)],
        )
    };
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
    assert_challenged(
        &header("sha256", &STANDARD.encode(Sha256::digest(hashed))),
        "a digest for a secret",
    );
    assert_challenged(&header("disabled", CONF1_SECRET), "disabled");
    assert_unproven(&body("disabled", CONF1_SECRET), "disabled");
    assert_challenged(&header("postonly", CONF1_SECRET), "pinned to the body");
    assert_unproven(&body("basiconly", CONF1_SECRET), "pinned to the header");
    // A secret in the database is neither itself nor its plain digest.
    let mut client = gatepost.database.client();
    for row in client
        .query("SELECT sealed_digest FROM client_secrets", &[])
        .unwrap()
    {
        let sealed: Vec<u8> = row.get(0);
        for known in [
            Sha256::digest(hashed).to_vec(),
            Sha256::digest(CONF1_SECRET).to_vec(),
            old.as_bytes().to_vec(),
        ] {
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
        assert_challenged(
            &from("192.0.2.1", "conf1", &format!("guess-{guess}")),
            "a guess",
        );
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
    from("2001:db8::ffff", "conf1", CONF1_SECRET)
        .assert_status_for("one IPv6 network is one source", 429);
    assert_eq!(from("2001:db8:0:1::1", "conf1", CONF1_SECRET).status, 200);
    let odds = "a unknown ::ffff:192.0.2.9 192.0.2.9:443 [2001:db8:9::1]:443 ,, 999.1.1.1";
    for odd in odds.split(' ') {
        assert_eq!(from(odd, "conf1", CONF1_SECRET).status, 200, "{odd}");
    }
}

#[test]
fn a_header_that_reads_two_ways_counts_as_the_two_guesses_it_is() {
    let gatepost = Gatepost::start_with(
        &document(),
        &[("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "5")],
    );
    let guess = |secret: &str| ask(&gatepost, Some(&raw(format!("conf1:{secret}"))), &[]);
    for secret in ["first%20pair", "second+pair"] {
        assert_challenged(&guess(secret), secret);
    }
    // There is room for one more guess: the first reading is tried and the second is not.
    assert_challenged(&guess("third+pair"), "the fifth guess");
    assert_eq!(guess(CONF1_SECRET).status, 429);
    // The other reading names another client; each guess counts where it was tried.
    let gatepost = Gatepost::start_with(
        &document(),
        &[("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "2")],
    );
    for _ in 0..2 {
        assert_challenged(
            &ask(&gatepost, Some(&raw("conf%31:wrong")), &[]),
            "conf1, or conf%31",
        );
    }
    assert_eq!(ask(&gatepost, Some(&raw("conf1:wrong")), &[]).status, 429);
    assert_eq!(ask(&gatepost, Some(&raw("nobody:wrong")), &[]).status, 429);
}

#[test]
fn whoever_is_right_by_the_second_reading_counts_nothing() {
    let clients = [(
        "older",
        with_secret(&json!({"value": "100% of an older secret"})),
    )];
    let settings = [("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "2")];
    let gatepost = Gatepost::start_with(&with_clients(document(), &clients), &settings);
    for _ in 0..10 {
        ask(&gatepost, Some(&raw("older:100% of an older secret")), &[]).assert_status(200);
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
    let gatepost = Gatepost::start_with(
        &document(),
        &[("GATEPOST_LIMIT_CLIENT_FAILURES_PER_MINUTE", "10")],
    );
    let told = thread::scope(|scope| {
        let guesses: Vec<_> = (0..60)
            .map(|_| scope.spawn(|| ask(&gatepost, Some(&basic("conf1", "wrong")), &[]).status))
            .collect();
        guesses
            .into_iter()
            .map(|guess| guess.join().unwrap())
            .filter(|status| *status == 401)
            .count()
    });
    assert_eq!(told, 10);
}

#[test]
fn only_wrong_secrets_count_as_guesses() {
    let gatepost = Gatepost::start();
    let right = basic("conf1", CONF1_SECRET);
    for _ in 0..25 {
        assert_eq!(ask(&gatepost, Some(&right), &[]).status, 200);
        assert_unproven(
            &ask(&gatepost, None, &[("client_id", "conf1")]),
            "no secret",
        );
        assert_challenged(&ask(&gatepost, Some("Basic ???"), &[]), "unreadable");
        let answer = ask(&gatepost, Some(&right), &[("scope", "nope")]);
        answer.assert_refused(400, "invalid_scope", "an authenticated client's mistake");
    }
    for _ in 0..20 {
        assert_unproven(
            &ask(
                &gatepost,
                None,
                &[("client_id", "nobody"), ("client_secret", "x")],
            ),
            "unknown",
        );
    }
    let answer = ask(
        &gatepost,
        None,
        &[("client_id", "nobody"), ("client_secret", "x")],
    );
    answer.assert_refused(
        429,
        "temporarily_unavailable",
        "an unknown client is limited as a known one",
    );
}

#[test]
fn old_clients_may_be_told_everything_with_400() {
    let gatepost = Gatepost::start_with(&document(), &[("GATEPOST_INVALID_CLIENT_STATUS", "400")]);
    for authorization in [
        basic("conf1", "wrong"),
        basic("nobody", "x"),
        String::from("Basic ???"),
        String::from("Bearer x"),
    ] {
        assert_unproven(&ask(&gatepost, Some(&authorization), &[]), &authorization);
    }
    assert_unproven(&ask(&gatepost, None, &[]), "nobody");
    ask(&gatepost, Some(&basic("conf1", CONF1_SECRET)), &[]).assert_status(200);
}

#[test]
fn no_secret_reaches_the_log() {
    let canary = "canary-secret-1f8e5c";
    let clients = [("canary", with_secret(&json!({"value": canary})))];
    let gatepost = Gatepost::start_with(
        &with_clients(document(), &clients),
        &[("GATEPOST_LOG", "debug")],
    );
    ask(&gatepost, Some(&basic("canary", canary)), &[]).assert_status(200);
    ask(&gatepost, Some(&basic("conf1", canary)), &[]);
    ask(
        &gatepost,
        None,
        &[
            ("client_id", "canary"),
            ("client_secret", canary),
            ("scope", "nope"),
        ],
    );
    ask(
        &gatepost,
        Some(&basic("canary", canary)),
        &[("client_secret", canary)],
    );
    gatepost.get(&format!("/connect/token?client_secret={canary}"));
    gatepost.post(
        &format!("/connect/token?client_secret={canary}"),
        &[],
        &[GRANT],
    );
    let log = gatepost.log();
    log.assert_says("client_id=\"canary\"");
    assert!(!log.contains(canary), "{log}");
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
