//! DPoP (RFC 9449): which proofs are taken, what they bind, and who may use that.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::registration_over_http;
use crate::support::claims::Says;
use crate::support::device;
use crate::support::flow::{
    VERIFIER, authorize_path, basic, challenge, changed_members, code, decode_jwt, issued,
    signed_in, text, with_clients,
};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, RP1, RPS};
use crate::support::http::{Answer, Browser, encode};
use crate::support::offline;
use crate::support::proofs::{
    claims, for_form, for_token, hash, header, nonce, sign, thumbprint, with,
};
use crate::support::scim;
use crate::support::shared::Shared;
use crate::support::signer::{Signer, key_set, now};
use crate::support::waiting::all_at_once;

const TOKEN: &str = "/connect/token";
const PAR: &str = "/connect/par";
const USERINFO: &str = "/connect/userinfo";
const SERVICE: &[(&str, &str)] = &[
    ("grant_type", "client_credentials"),
    ("scope", "orders.read"),
];
const OFFLINE: &str = "openid profile offline_access";

/// `bound` must send proofs, `nonced` proofs with nonces, `keyed` both by a key of its own.
fn document(signer: &Signer) -> Value {
    let keyed = json!({
        "dpop_bound_access_tokens": true, "dpop_nonce": true, "secrets": null, "jwks": key_set(&[signer]),
        "token_endpoint_auth_method": "private_key_jwt",
    });
    let clients = [
        ("bound", json!({"dpop_bound_access_tokens": true})),
        ("nonced", json!({"dpop_nonce": true})),
        ("keyed", keyed),
        ("reference", json!({"access_token_type": "reference"})),
    ];
    let mut document = with_clients(offline::document(), &clients);
    for client in document["clients"].as_array_mut().unwrap() {
        if client["secrets"].is_null() {
            client.as_object_mut().unwrap().remove("secrets");
        }
    }
    document
}

/// Signs for `keyed` wherever the server is lent.
static KEYED: LazyLock<Signer> = LazyLock::new(|| Signer::es256("c"));

fn start() -> Shared {
    Gatepost::lent_with(&document(&KEYED), &[])
}

/// Posts a form as a client with the secret of `conf1`, with these lines of `DPoP`.
fn post(
    gatepost: &Gatepost,
    path: &str,
    client_id: &str,
    proofs: &[&str],
    form: &[(&str, &str)],
) -> Answer {
    let authorization = basic(client_id, CONF1_SECRET);
    let mut headers = vec![("Authorization", authorization.as_str())];
    headers.extend(proofs.iter().map(|proof| ("DPoP", *proof)));
    gatepost.post(path, &headers, form)
}

/// A token request for a service.
fn serve(gatepost: &Gatepost, client_id: &str, proofs: &[&str]) -> Answer {
    post(gatepost, TOKEN, client_id, proofs, SERVICE)
}

/// Redeems a code at [`RP1`].
fn redeem(gatepost: &Gatepost, client_id: &str, proofs: &[&str], code: &str) -> Answer {
    post(gatepost, TOKEN, client_id, proofs, &redemption(code, RP1))
}

/// What the client is told of a token.
fn introspect(gatepost: &Gatepost, client_id: &str, tokens: &Value) -> Value {
    let form = [("token", text(tokens, "access_token"))];
    post(gatepost, "/connect/introspect", client_id, &[], &form).json()
}

fn refreshment(refresh_token: &str) -> [(&str, &str); 2] {
    [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
    ]
}

fn no_nonce(answer: &Answer, case: &str) {
    assert_eq!(answer.headers_named("dpop-nonce").len(), 0, "{case}");
}

/// The same of a public client.
fn post_openly(gatepost: &Gatepost, proof: Option<&str>, form: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = proof.iter().map(|proof| ("DPoP", *proof)).collect();
    gatepost.post(TOKEN, &headers, &[form, &[("client_id", "pub1")]].concat())
}

fn redemption<'a>(code: &'a str, redirect_uri: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", VERIFIER),
    ]
}

/// Asks userinfo under a scheme, with these lines of `DPoP`.
fn ask(gatepost: &Gatepost, scheme: &str, token: &str, proofs: &[&str]) -> Answer {
    get(gatepost, USERINFO, scheme, token, proofs)
}

fn get(gatepost: &Gatepost, path: &str, scheme: &str, token: &str, proofs: &[&str]) -> Answer {
    let authorization = format!("{scheme} {token}");
    let mut headers = vec![("Authorization", authorization.as_str())];
    headers.extend(proofs.iter().map(|proof| ("DPoP", *proof)));
    gatepost.send("GET", path, &headers, b"")
}

/// The reason of the last request that failed.
fn last_reason(gatepost: &Gatepost) -> String {
    let line = gatepost.last_line("reason=\"");
    let (_, reason) = line.split_once("reason=\"").unwrap();
    reason[..6].to_owned()
}

#[track_caller]
fn assert_no_proof(gatepost: &Gatepost, answer: &Answer, reason: &str, case: &str) {
    answer.assert_refused(400, "invalid_dpop_proof", case);
    no_nonce(answer, case);
    assert_eq!(last_reason(gatepost), reason, "{case}");
}

/// Exit and words of `gatepost explain -`, whose lines are wrapped.
fn explain(gatepost: &Gatepost, input: &str) -> (bool, String) {
    let output = gatepost.run(&["explain", "-"], input);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.success(), told)
}

#[test]
fn explain_tells_that_a_proof_lacks_its_typ() {
    let gatepost = start();
    let key = Signer::es256("a");
    for (typ, said) in [
        (json!("JWT"), "its typ is JWT"),
        (Value::Null, "it has no typ"),
    ] {
        let header = changed_members(header(&key), &json!({"typ": typ}));
        let proof = key.sign_under(&header, &claims(&gatepost, "POST", TOKEN));
        let (_, told) = explain(&gatepost, &proof);
        assert!(told.contains("GP1321") && told.contains(said), "{told}");
    }
}

#[test]
fn each_rule_is_broken_once() {
    let gatepost = start();
    let [key, other] = ["a", "b"].map(Signer::es256);
    let claims = || claims(&gatepost, "POST", TOKEN);
    let under = |name: &str, value: Value| {
        let header = with(header(&key), name, value);
        vec![key.sign_under(&header, &claims())]
    };
    let good = sign(&key, &claims());
    let joined = format!("{good},{good}");
    let private = with(key.jwk(), "d", json!("AAAA"));
    let elsewhere = format!("{}/connect/tokens", gatepost.base_url);
    let one = |name: &str, value: Value| sign(&key, &with(claims(), name, value));
    let changed = |name: &str, value: Value| vec![one(name, value)];
    let of_other = other.sign_under(&header(&key), &claims());
    let refused: Vec<(&str, Vec<String>, &str)> = vec![
        ("two lines", vec![good.clone(), good.clone()], "GP1321"),
        ("two proofs in a line", vec![joined], "GP1321"),
        ("no JWT", vec![String::from("x.y.z")], "GP1321"),
        ("an empty line", vec![String::new()], "GP1321"),
        ("typ", under("typ", json!("JWT")), "GP1321"),
        ("RSA", vec![sign(&Signer::rs256("r"), &claims())], "GP1321"),
        ("alg", under("alg", json!("EdDSA")), "GP1321"),
        ("private", under("jwk", private), "GP1321"),
        ("signature", vec![of_other], "GP1321"),
        ("htm", changed("htm", json!("GET")), "GP1322"),
        ("htu", changed("htu", json!(elsewhere)), "GP1322"),
        (
            "issuer alone",
            changed("htu", json!(gatepost.base_url)),
            "GP1322",
        ),
        ("old", changed("iat", json!(now() - 65)), "GP1323"),
        ("no jti", changed("jti", json!("")), "GP1325"),
        ("long jti", changed("jti", json!("j".repeat(257))), "GP1325"),
    ];
    for client_id in ["conf1", "nonced"] {
        for (case, proofs, reason) in &refused {
            let proofs: Vec<&str> = proofs.iter().map(String::as_str).collect();
            let answer = serve(&gatepost, client_id, &proofs);
            assert_no_proof(&gatepost, &answer, reason, case);
        }
        // Signed as it is sent: the clock of a slow machine would catch up with it.
        let ahead = one("iat", json!(now() + 15));
        let answer = serve(&gatepost, client_id, &[&ahead]);
        assert_no_proof(&gatepost, &answer, "GP1323", "ahead");
    }
    let address = format!("{}{TOKEN}?a=b#c", gatepost.base_url);
    let address = address.replace("http://", "HTTP://");
    let timed = with(with(claims(), "nbf", json!(now() + 900)), "exp", json!(1));
    let taken = [
        good,
        one("htu", json!(address)),
        one("iat", json!(now() - 50)),
        one("iat", json!(now() + 5)),
        one("jti", json!("j".repeat(256))),
        one("nonce", json!("of another issuer")),
        sign(&key, &timed),
        sign(&Signer::ed25519("d"), &claims()),
        sign(&Signer::ed25519_by_its_newer_name("n"), &claims()),
    ];
    for proof in &taken {
        let answer = serve(&gatepost, "conf1", &[proof]);
        assert_eq!(text(&issued(&answer), "token_type"), "DPoP");
        no_nonce(&answer, proof);
        let again = serve(&gatepost, "conf1", &[proof]);
        assert_no_proof(&gatepost, &again, "GP1325", "used before");
    }
    // An unknown client, and one that proves nothing, are told only that; their proof is not kept.
    let proof = sign(&key, &claims());
    let unknown = serve(&gatepost, "nobody", &["x"]);
    unknown.assert_refused(401, "invalid_client", "unknown");
    let authorization = basic("conf1", "wrong");
    let headers = [("Authorization", authorization.as_str()), ("DPoP", &proof)];
    let wrong = gatepost.post(TOKEN, &headers, SERVICE);
    wrong.assert_refused(401, "invalid_client", "wrong secret");
    issued(&serve(&gatepost, "conf1", &[&proof]));
}

#[test]
fn a_client_that_must_send_proofs_is_told_so_and_offered_no_nonce() {
    let gatepost = start();
    for _ in 0..2 {
        let answer = serve(&gatepost, "bound", &[]);
        answer.assert_refused(400, "invalid_request", "none");
        assert_eq!(last_reason(&gatepost), "GP1320");
        assert_eq!(answer.headers_named("dpop-nonce").len(), 0);
    }
    let proof = for_form(&gatepost, &Signer::es256("a"), TOKEN);
    issued(&serve(&gatepost, "bound", &[&proof]));
    // A nonce alone does not demand proofs.
    let bearer = serve(&gatepost, "nonced", &[]);
    assert_eq!(text(&issued(&bearer), "token_type"), "Bearer");
    nonce(&bearer);
}

#[test]
fn a_nonce_round_spends_neither_assertion_nor_code_and_counts_against_no_limit() {
    let client_key = &*KEYED;
    let gatepost = Gatepost::start_with(&document(client_key), &[]);
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &authorize_path("keyed", RP1, &[]));
    let assertion = client_key.sign(&json!({
        "iss": "keyed", "sub": "keyed", "aud": gatepost.base_url, "exp": now() + 60, "jti": "only-one",
    }));
    let by_assertion = [
        ("client_assertion", assertion.as_str()),
        (
            "client_assertion_type",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ),
    ];
    let form = [&redemption(&code, RP1)[..], &by_assertion].concat();
    let key = Signer::ed25519("a");
    let send = |gatepost: &Gatepost, nonce: Value| {
        let claims = with(claims(gatepost, "POST", TOKEN), "nonce", nonce);
        gatepost.post(TOKEN, &[("DPoP", &sign(&key, &claims))], &form)
    };
    let rows = |table: &str| gatepost.database.count(table);
    let counts = || ["used_assertions", "grants", "audit_events"].map(rows);
    let before = counts();
    let mut offered = String::new();
    let foreign = hash("nobody gave this out");
    for sent in [json!(null), json!(""), json!(foreign), json!(7)]
        .iter()
        .cycle()
        .take(24)
    {
        let answer = send(&gatepost, sent.clone());
        answer.assert_refused(400, "use_dpop_nonce", "no nonce of ours");
        assert_eq!(last_reason(&gatepost), "GP1324");
        offered = nonce(&answer);
    }
    assert_eq!(counts(), before);
    // Another process, which shares the nonces. Its address is the issuer's.
    let mut beside = gatepost.beside();
    beside.serve();
    let answer = send(&beside, json!(offered));
    assert_eq!(text(&issued(&answer), "token_type"), "DPoP");
    nonce(&answer);
    // What was asked for once is spent now.
    let answer = send(&gatepost, json!(offered));
    answer.assert_refused(400, "invalid_client", "the assertion");
    assert_eq!(answer.headers_named("dpop-nonce").len(), 0);
    // One proof at two processes is taken twice, as the documentation says.
    let claims = with(claims(&gatepost, "POST", TOKEN), "nonce", json!(offered));
    let proof = sign(&key, &claims);
    issued(&serve(&gatepost, "nonced", &[&proof]));
    issued(&serve(&beside, "nonced", &[&proof]));
}

#[test]
fn nobody_learns_by_a_bad_proof_which_clients_there_are_and_guesses_count() {
    let gatepost = Gatepost::start_with(&document(&KEYED), &[]);
    let guess = |client_id: &str, proof: &str| {
        let grant = ("grant_type", "client_credentials");
        let form = [grant, ("client_id", client_id), ("client_secret", "wrong")];
        gatepost.post(TOKEN, &[("DPoP", proof)], &form)
    };
    let good = for_form(&gatepost, &Signer::es256("a"), TOKEN);
    for proof in ["x", good.as_str()] {
        let known = guess("nonced", proof);
        let unknown = guess("no-such-client", proof);
        known.assert_refused(400, "invalid_client", proof);
        assert_eq!(known.body, unknown.body, "{proof}");
        assert_eq!(known.headers_named("dpop-nonce").len(), 0, "{proof}");
    }
    let statuses: Vec<u16> = (0..40).map(|_| guess("nonced", "x").status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_nonce_outlives_its_bucket_by_one_and_no_more() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    gatepost.apply(&document(&Signer::es256("c")));
    gatepost.settle();
    // To the beginning of a bucket, so that what follows takes no turn by itself.
    let begins = 150 - now() % 150;
    gatepost.travel(u32::try_from(begins).unwrap());
    let key = Signer::es256("a");
    let send = |nonce: &str, later: u64| {
        let claims = with(claims(&gatepost, "POST", TOKEN), "nonce", json!(nonce));
        let proof = sign(&key, &with(claims, "iat", json!(now() + begins + later)));
        serve(&gatepost, "nonced", &[&proof])
    };
    let first = nonce(&send("", 0));
    assert_eq!(send(&first, 0).status, 200);
    gatepost.travel(150);
    let second = nonce(&send(&first, 150));
    assert_ne!(second, first);
    assert_eq!(send(&first, 150).status, 200);
    gatepost.travel(150);
    send(&first, 300).assert_refused(400, "use_dpop_nonce", "two buckets later");
    assert_eq!(send(&second, 300).status, 200);
    // An hour off is told the time, and no nonce.
    let late = send(&second, 0);
    late.assert_refused(400, "invalid_dpop_proof", "five minutes off");
    assert_eq!(last_reason(&gatepost), "GP1323");
}

#[test]
fn what_is_issued_to_a_proof_is_bound_to_its_key_in_every_form() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let jkt = json!({"jkt": thumbprint(&key)});
    for client_id in ["conf1", "reference"] {
        let path = authorize_path(client_id, RP1, &[("scope", OFFLINE)]);
        let proof = for_form(&gatepost, &key, TOKEN);
        let code = code(&mut browser, &path);
        let tokens = issued(&redeem(&gatepost, client_id, &[&proof], &code));
        assert_eq!(text(&tokens, "token_type"), "DPoP");
        let token = text(&tokens, "access_token");
        if client_id == "conf1" {
            assert_eq!(decode_jwt(token).1["cnf"], jkt);
        }
        let told = introspect(&gatepost, client_id, &tokens);
        assert_eq!(told["token_type"], "DPoP", "{told}");
        assert_eq!(&told["cnf"], &jkt, "{told}");
        let proof = sign(&key, &for_token(&gatepost, USERINFO, token));
        ask(&gatepost, "dpop", token, &[&proof]).assert_status_for(client_id, 200);
        // A confidential client may come with another key each time, or with none.
        let proof = for_form(&gatepost, &other, TOKEN);
        let form = refreshment(text(&tokens, "refresh_token"));
        let tokens = issued(&post(&gatepost, TOKEN, client_id, &[&proof], &form));
        let told = introspect(&gatepost, client_id, &tokens);
        assert_eq!(told["cnf"]["jkt"], json!(thumbprint(&other)));
        let form = refreshment(text(&tokens, "refresh_token"));
        let tokens = issued(&post(&gatepost, TOKEN, client_id, &[], &form));
        assert_eq!(text(&tokens, "token_type"), "Bearer");
        let told = introspect(&gatepost, client_id, &tokens);
        assert_eq!(told["token_type"], "Bearer", "{told}");
        assert_eq!(told["cnf"], json!(null), "{told}");
    }
}

#[test]
fn userinfo_wants_the_scheme_the_key_and_the_token_that_belong_together() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let key = Signer::ed25519("a");
    let mut token = |proofs: &[&str]| {
        let code = code(&mut browser, &authorize_path("reference", RP1, &[]));
        let tokens = issued(&redeem(&gatepost, "reference", proofs, &code));
        text(&tokens, "access_token").to_owned()
    };
    let bound = token(&[&for_form(&gatepost, &key, TOKEN)]);
    let unbound = token(&[]);
    let claims = |token: &str| for_token(&gatepost, USERINFO, token);
    let proof = |token: &str| sign(&key, &claims(token));
    let good = || proof(&bound);
    let changed = |name: &str, value: Value| sign(&key, &with(claims(&bound), name, value));
    let of_other = sign(&Signer::ed25519("b"), &claims(&bound));
    let used = good();
    ask(&gatepost, "DPoP", &bound, &[&used]).assert_status(200);
    const PROOF: &str = "invalid_dpop_proof GP";
    const OF_TOKEN: &str = "invalid_token GP";
    let is_refused = |case: &str, scheme: &str, token: &str, proofs: &[&str], refusal: String| {
        let (error, reason) = refusal.split_once(' ').unwrap();
        let answer = ask(&gatepost, scheme, token, proofs);
        answer.assert_refused(401, error, case);
        let challenge = answer.header("www-authenticate").unwrap();
        let begins = format!("DPoP algs=\"ES256 EdDSA Ed25519\", error=\"{error}\"");
        assert!(challenge.starts_with(&begins), "{case}: {challenge}");
        assert_eq!(last_reason(&gatepost), reason, "{case}");
        no_nonce(&answer, case);
    };
    let of_bound = |case: &str, proofs: &[&str], reason: u16| {
        is_refused(case, "DPoP", &bound, proofs, format!("{PROOF}{reason}"));
    };
    let of_token = |case: &str, scheme: &str, token: &str, proof: &str, reason: u16| {
        is_refused(case, scheme, token, &[proof], format!("{OF_TOKEN}{reason}"));
    };
    of_token("bound as Bearer", "Bearer", &bound, &good(), 1320);
    of_token("unbound as DPoP", "DPoP", &unbound, &proof(&unbound), 1327);
    of_token("another key", "DPoP", &bound, &of_other, 1327);
    of_token("no token", "DPoP", "x", &proof("x"), 1404);
    of_bound("no proof", &[], 1320);
    of_bound("two proofs", &[&good(), &good()], 1321);
    of_bound("another token", &[&proof(&unbound)], 1326);
    of_bound("no ath", &[&changed("ath", json!(null))], 1326);
    of_bound("method", &[&changed("htm", json!("POST"))], 1322);
    of_bound("used", &[&used], 1325);
    let form = [("access_token", &*bound)];
    let form = gatepost.post(USERINFO, &[("DPoP", &good())], &form);
    form.assert_refused(401, "invalid_token", "in the form");
    // An unbound token goes as always, whatever header stands beside it.
    ask(&gatepost, "Bearer", &unbound, &["x"]).assert_status(200);
    let nothing = gatepost.get(USERINFO);
    let challenges = nothing.headers_named("www-authenticate");
    let dpop = "DPoP algs=\"ES256 EdDSA Ed25519\"";
    assert_eq!(challenges, ["Bearer realm=\"gatepost\"", dpop]);
}

#[test]
fn userinfo_asks_for_a_nonce_where_the_client_needs_one() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let key = Signer::es256("a");
    let code = code(&mut browser, &authorize_path("nonced", RP1, &[]));
    let without = for_form(&gatepost, &key, TOKEN);
    let offered = nonce(&serve(&gatepost, "nonced", &[&without]));
    let with_nonce = |claims: Value| sign(&key, &with(claims, "nonce", json!(offered)));
    let proof = with_nonce(claims(&gatepost, "POST", TOKEN));
    let tokens = issued(&redeem(&gatepost, "nonced", &[&proof], &code));
    let token = text(&tokens, "access_token");
    let claims = || for_token(&gatepost, USERINFO, token);
    let answer = ask(&gatepost, "DPoP", token, &[&sign(&key, &claims())]);
    answer.assert_refused(401, "use_dpop_nonce", "without");
    let challenge = answer.header("www-authenticate").unwrap();
    challenge.assert_says("error=\"use_dpop_nonce\"");
    nonce(&answer);
    let answer = ask(&gatepost, "DPoP", token, &[&with_nonce(claims())]);
    answer.assert_status(200);
    nonce(&answer);
}

#[test]
fn a_code_that_is_bound_to_a_key_is_burnt_by_another() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let jkt = thumbprint(&key);
    let bound = authorize_path("conf1", RP1, &[("dpop_jkt", &jkt)]);
    for wrong in [None, Some(&other)] {
        let code = code(&mut browser, &bound);
        let proof = wrong.map(|key| for_form(&gatepost, key, TOKEN));
        let proofs: Vec<&str> = proof.iter().map(String::as_str).collect();
        let answer = redeem(&gatepost, "conf1", &proofs, &code);
        answer.assert_refused(400, "invalid_grant", "another key");
        assert_eq!(last_reason(&gatepost), "GP1327");
        let proof = for_form(&gatepost, &key, TOKEN);
        let late = redeem(&gatepost, "conf1", &[&proof], &code);
        late.assert_refused(400, "invalid_grant", "burnt");
    }
    let code = code(&mut browser, &bound);
    let proof = for_form(&gatepost, &key, TOKEN);
    issued(&redeem(&gatepost, "conf1", &[&proof], &code));
    for malformed in ["", "x", &jkt[1..], &format!("{jkt}A")] {
        let answer = browser.get(&authorize_path("conf1", RP1, &[("dpop_jkt", malformed)]));
        let query = answer.query();
        let is_empty = malformed.is_empty();
        assert_eq!(query.contains_key("code"), is_empty, "{malformed}");
        if !is_empty {
            assert_eq!(query["error"], "invalid_request", "{malformed}");
            let reason = "reason=\"GP1328\"";
            gatepost.await_log(reason, |log| log.contains(reason));
        }
    }
}

#[test]
fn a_pushed_request_is_bound_to_the_proof_that_pushed_it() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let challenge = challenge();
    let jkt = thumbprint(&key);
    let request = [
        ("response_type", "code"),
        ("redirect_uri", RP1),
        ("scope", "openid"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    let push = |proof: Option<&str>, further: &[(&str, &str)]| {
        let proofs: Vec<&str> = proof.into_iter().collect();
        let form = [&request, further].concat();
        post(&gatepost, PAR, "nonced", &proofs, &form)
    };
    let offered = nonce(&push(None, &[]));
    let proof = |key: &Signer, path: &str| {
        let claims = claims(&gatepost, "POST", path);
        sign(key, &with(claims, "nonce", json!(offered)))
    };
    let without = push(Some(&for_form(&gatepost, &key, PAR)), &[]);
    without.assert_refused(400, "use_dpop_nonce", "without a nonce");
    let both = push(Some(&proof(&other, PAR)), &[("dpop_jkt", &jkt)]);
    assert_no_proof(&gatepost, &both, "GP1327", "two keys");
    let malformed = push(Some(&proof(&key, PAR)), &[("dpop_jkt", "x")]);
    malformed.assert_refused(400, "invalid_request", "no thumbprint");
    assert_eq!(last_reason(&gatepost), "GP1328");
    let elsewhere = push(Some(&proof(&key, TOKEN)), &[]);
    assert_no_proof(&gatepost, &elsewhere, "GP1322", "for the token endpoint");
    for further in [&[][..], &[("dpop_jkt", jkt.as_str())], &[("dpop_jkt", "")]] {
        for (redeemed_by, is_good) in [(&other, false), (&key, true)] {
            let pushed = push(Some(&proof(&key, PAR)), further);
            assert_eq!(pushed.status, 201, "{}", pushed.text());
            let pushed = pushed.json();
            let request_uri = ("request_uri", text(&pushed, "request_uri"));
            let own = encode(&[("client_id", "nonced"), request_uri]);
            let path = format!("/connect/authorize?{own}");
            let code = code(&mut browser, &path);
            let proof = proof(redeemed_by, TOKEN);
            let answer = redeem(&gatepost, "nonced", &[&proof], &code);
            assert_eq!(answer.status == 200, is_good, "{}", answer.text());
        }
    }
}

#[test]
fn a_refresh_token_that_was_given_without_a_proof_is_bound_by_the_first_one() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let proof = |key: &Signer| for_form(&gatepost, key, TOKEN);
    let refresh = |token: &str, proof: Option<&str>, further: &[(&str, &str)]| {
        post_openly(&gatepost, proof, &[&refreshment(token), further].concat())
    };
    // By the statement that does not read the grant, and by the one that did.
    for further in [&[][..], &[("scope", "openid")]] {
        let path = authorize_path("pub1", RPS, &[("scope", OFFLINE)]);
        let code = code(&mut browser, &path);
        let given = issued(&post_openly(&gatepost, None, &redemption(&code, RPS)));
        assert_eq!(text(&given, "token_type"), "Bearer");
        let unbound = issued(&refresh(text(&given, "refresh_token"), None, further));
        let unbound = text(&unbound, "refresh_token");
        let bound = issued(&refresh(unbound, Some(&proof(&key)), further));
        let bound = text(&bound, "refresh_token");
        for proof in [None, Some(proof(&other))] {
            let answer = refresh(bound, proof.as_deref(), further);
            answer.assert_refused(400, "invalid_grant", "another key");
            assert_eq!(last_reason(&gatepost), "GP1327");
        }
        issued(&refresh(bound, Some(&proof(&key)), further));
    }
}

#[test]
fn a_refresh_token_of_a_public_client_is_good_with_its_key_alone() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let proof = |key: &Signer| for_form(&gatepost, key, TOKEN);
    let first = Line::begin(&gatepost, &mut browser, Some(&proof(&key))).first;
    let refresh = |token: &str, proof: Option<&str>, further: &[(&str, &str)]| {
        post_openly(&gatepost, proof, &[&refreshment(token), further].concat())
    };
    let row = || -> Value {
        let row = "SELECT to_jsonb(g) FROM grants g";
        gatepost.database.value(row, &[])
    };
    // That a predecessor came again within its window is told, refused or not; each connection opens a chain.
    let others = "audit_events WHERE event NOT IN ('refresh_repeated', 'chain_opened')";
    let told = || gatepost.database.count(others);
    let left_alone = |token: &str| {
        let before = (row(), told());
        for further in [&[][..], &[("scope", "openid")]] {
            for proof in [None, Some(proof(&other))] {
                let answer = refresh(token, proof.as_deref(), further);
                answer.assert_refused(400, "invalid_grant", "another key");
                assert_eq!(last_reason(&gatepost), "GP1327");
            }
        }
        assert_eq!((row(), told()), before);
    };
    left_alone(&first);
    let tokens = issued(&refresh(&first, Some(&proof(&key)), &[]));
    assert_eq!(text(&tokens, "token_type"), "DPoP");
    let narrowed = issued(&refresh(&first, Some(&proof(&key)), &[("scope", "openid")]));
    let second = text(&tokens, "refresh_token");
    // A lost answer is repeated.
    assert_eq!(text(&narrowed, "refresh_token"), second);
    // Without the key the answer is not given again, and a try within the window ends nothing.
    left_alone(&first);
    // Two at once: its own key wins, whichever is first.
    let proofs = [&key, &other].map(&proof);
    let statuses = all_at_once(2, |index| refresh(second, Some(&proofs[index]), &[]).status);
    assert_eq!(statuses, [200, 400]);
}

/// A grant of a public client.
struct Line<'a> {
    gatepost: &'a Gatepost,
    /// Its first refresh token.
    first: String,
}

impl<'a> Line<'a> {
    /// With a proof, it is bound to the key from the beginning.
    fn begin(gatepost: &'a Gatepost, browser: &mut Browser, proof: Option<&str>) -> Line<'a> {
        let path = authorize_path("pub1", RPS, &[("scope", OFFLINE)]);
        let code = code(browser, &path);
        let tokens = issued(&post_openly(gatepost, proof, &redemption(&code, RPS)));
        Line {
            gatepost,
            first: text(&tokens, "refresh_token").to_owned(),
        }
    }

    fn refresh(&self, token: &str, proof: Option<&str>, further: &[(&str, &str)]) -> Answer {
        let form = [&refreshment(token), further].concat();
        post_openly(self.gatepost, proof, &form)
    }

    fn pass_the_window(&self) {
        let passed = "UPDATE grants SET moved_at = moved_at - interval '11 seconds'";
        self.gatepost.run_sql(passed);
    }

    fn are_alive(&self) -> i64 {
        let alive = "grants WHERE revoked_at IS NULL";
        self.gatepost.database.count(alive)
    }

    /// That the token is taken for a replay, and that the grant has ended with it.
    fn assert_replayed(&self, answer: &Answer, case: &str) {
        answer.assert_refused(400, "invalid_grant", case);
        assert_eq!(last_reason(self.gatepost), "GP1221", "{case}");
        assert_eq!(self.are_alive(), 0, "{case}");
        // Each that has ended was told of once.
        let ended = self.gatepost.database.count("grants");
        let told = "audit_events WHERE event = 'refresh_token_replayed'";
        assert_eq!(self.gatepost.database.count(told), ended, "{case}");
    }
}

#[test]
fn a_thief_who_binds_an_unbound_refresh_token_to_a_key_is_found_when_its_owner_comes() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let thief = Signer::es256("thief");
    let proof = || for_form(&gatepost, &thief, TOKEN);
    for further in [&[][..], &[("scope", "openid")]] {
        let line = Line::begin(&gatepost, &mut browser, None);
        let stolen = issued(&line.refresh(&line.first, Some(&proof()), further));
        assert_eq!(text(&stolen, "token_type"), "DPoP");
        // As long as the thief's answer may be one that was lost, the owner is only refused.
        let soon = line.refresh(&line.first, None, further);
        soon.assert_refused(400, "invalid_grant", "within the window");
        assert_eq!(last_reason(&gatepost), "GP1327");
        assert_eq!(line.are_alive(), 1);
        line.pass_the_window();
        let late = line.refresh(&line.first, None, further);
        line.assert_replayed(&late, "the owner comes");
        let goes_on = line.refresh(text(&stolen, "refresh_token"), Some(&proof()), further);
        goes_on.assert_refused(400, "invalid_grant", "the thief goes on");
        assert_eq!(last_reason(&gatepost), "GP1223");
        let access_token = text(&stolen, "access_token");
        let of_token = sign(&thief, &for_token(&gatepost, USERINFO, access_token));
        let asked = ask(&gatepost, "DPoP", access_token, &[&of_token]);
        assert_eq!(asked.status, 401, "{}", asked.text());
    }
}

#[test]
fn an_old_refresh_token_ends_its_grant_with_whatever_key_it_comes() {
    let gatepost = start();
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let proof = |key: &Signer| for_form(&gatepost, key, TOKEN);
    for (case, replayed_by) in [
        ("its own key", Some(&key)),
        ("another key", Some(&other)),
        ("no key", None),
    ] {
        for is_used in [false, true] {
            let line = Line::begin(&gatepost, &mut browser, Some(&proof(&key)));
            let next = issued(&line.refresh(&line.first, Some(&proof(&key)), &[]));
            // It is old once its window is over, or its successor was used.
            if is_used {
                let next = text(&next, "refresh_token");
                issued(&line.refresh(next, Some(&proof(&key)), &[]));
            } else {
                line.pass_the_window();
            }
            let by = replayed_by.map(&proof);
            let replayed = line.refresh(&line.first, by.as_deref(), &[]);
            line.assert_replayed(&replayed, case);
        }
    }
}

#[test]
fn a_public_client_that_becomes_confidential_refreshes_with_any_key_or_with_none() {
    let mut document = document(&Signer::es256("c"));
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let [key, other] = ["a", "b"].map(Signer::es256);
    let proof = |key: &Signer| for_form(&gatepost, key, TOKEN);
    let line = Line::begin(&gatepost, &mut browser, Some(&proof(&key)));
    let client = offline::client(&mut document, "pub1");
    client["token_endpoint_auth_method"] = json!("client_secret_basic");
    client["secrets"] = json!([{"value": CONF1_SECRET}]);
    gatepost.apply(&document);
    // It proves itself now, so nobody else can use the token.
    let openly = line.refresh(&line.first, Some(&proof(&key)), &[]);
    openly.assert_refused(400, "invalid_client", "without its secret");
    let mut token = line.first.clone();
    // By the statement that does not read the grant, and by the one that did.
    for further in [&[][..], &[("scope", "openid")]] {
        for by in [Some(&other), None, Some(&key)] {
            let proof = by.map(&proof);
            let proofs: Vec<&str> = proof.iter().map(String::as_str).collect();
            let form = [&refreshment(&token), further].concat();
            let tokens = issued(&post(&gatepost, TOKEN, "pub1", &proofs, &form));
            let (_, claims) = decode_jwt(text(&tokens, "access_token"));
            // The access token is bound to the key of this request.
            let bound_to = by.map_or(Value::Null, |key| json!(thumbprint(key)));
            assert_eq!(claims["cnf"]["jkt"], bound_to);
            token = text(&tokens, "refresh_token").to_owned();
        }
    }
}

#[test]
fn of_sixteen_requests_with_one_proof_one_is_answered() {
    let gatepost = start();
    let key = Signer::es256("a");
    let once = for_form(&gatepost, &key, TOKEN);
    let mut same = all_at_once(16, |_| serve(&gatepost, "conf1", &[&once]).status);
    same.sort_unstable();
    let mut expected = vec![400; 16];
    expected[0] = 200;
    assert_eq!(same, expected);
    let each: Vec<String> = (0..16).map(|_| for_form(&gatepost, &key, TOKEN)).collect();
    let statuses = all_at_once(16, |index| {
        serve(&gatepost, "conf1", &[&each[index]]).status
    });
    assert_eq!(statuses, [200; 16]);
}

#[test]
fn a_device_gets_bound_tokens_and_a_refresh_token_that_needs_its_key() {
    let gatepost = Gatepost::shared_with(&device::document(), &[]);
    let mut browser = gatepost.browser();
    let key = Signer::es256("a");
    let started = device::start(&gatepost, device::TV, &[("scope", OFFLINE)]);
    let page = device::reach_decision(&mut browser, device::user_code(&started));
    device::decide(&mut browser, &page, "allow", &["profile", "offline_access"]);
    let send = |proof: Option<&str>, form: &[(&str, &str)]| {
        let headers: Vec<_> = proof.iter().map(|proof| ("DPoP", *proof)).collect();
        let form = [form, &[("client_id", device::TV)]].concat();
        gatepost.post(TOKEN, &headers, &form)
    };
    let proof = || for_form(&gatepost, &key, TOKEN);
    let form = [
        ("grant_type", device::DEVICE_CODE),
        ("device_code", text(&started, "device_code")),
    ];
    let tokens = issued(&send(Some(&proof()), &form));
    assert_eq!(text(&tokens, "token_type"), "DPoP");
    let form = refreshment(text(&tokens, "refresh_token"));
    send(None, &form).assert_refused(400, "invalid_grant", "without the key");
    issued(&send(Some(&proof()), &form));
}

#[test]
fn an_exchanged_token_is_bound_to_the_exchangers_proof_or_to_nothing() {
    const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
    let gateway = json!({
        "grant_types": [GRANT], "response_types": [], "redirect_uris": [], "scope": "stock.read",
        "token_exchange": {"from_clients": ["conf1"], "to_resources": ["https://stock.example"]},
    });
    let document = with_clients(document(&Signer::es256("c")), &[("gateway", gateway)]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let mut browser = signed_in(&gatepost);
    let [key, own] = [Signer::es256("a"), Signer::es256("b")];
    let scope = [("scope", "openid orders.read stock.read")];
    let code = code(&mut browser, &authorize_path("conf1", RP1, &scope));
    let proof = for_form(&gatepost, &key, TOKEN);
    let tokens = issued(&redeem(&gatepost, "conf1", &[&proof], &code));
    let form = [
        ("grant_type", GRANT),
        ("subject_token", text(&tokens, "access_token")),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:access_token",
        ),
        ("scope", "stock.read"),
    ];
    let unbound = issued(&post(&gatepost, TOKEN, "gateway", &[], &form));
    assert_eq!(text(&unbound, "token_type"), "Bearer");
    let (_, claims) = decode_jwt(text(&unbound, "access_token"));
    assert_eq!(claims["cnf"], json!(null));
    let proof = for_form(&gatepost, &own, TOKEN);
    let bound = issued(&post(&gatepost, TOKEN, "gateway", &[&proof], &form));
    assert_eq!(text(&bound, "token_type"), "DPoP");
    let cnf = &decode_jwt(text(&bound, "access_token")).1["cnf"];
    assert_eq!(cnf["jkt"], json!(thumbprint(&own)));
}

/// A program's bound token, at one of the program's own addresses.
fn assert_bound_token_needs_its_proof(
    gatepost: &Gatepost,
    client_id: &str,
    scope: &str,
    path: &str,
) {
    let key = Signer::es256("a");
    let form = [("grant_type", "client_credentials"), ("scope", scope)];
    let proof = for_form(gatepost, &key, TOKEN);
    let tokens = issued(&post(gatepost, TOKEN, client_id, &[&proof], &form));
    let token = text(&tokens, "access_token");
    let proof = || sign(&key, &for_token(gatepost, path, token));
    let ask = |scheme: &str, proofs: &[&str]| {
        get(gatepost, &format!("{path}?count=1"), scheme, token, proofs)
    };
    ask("DPoP", &[&proof()]).assert_status_for(client_id, 200);
    for (scheme, proofs) in [
        ("Bearer", vec![proof()]),
        ("DPoP", vec![]),
        ("DPoP", vec![proof(), proof()]),
    ] {
        let proofs: Vec<&str> = proofs.iter().map(String::as_str).collect();
        let answer = ask(scheme, &proofs);
        answer.assert_status(401);
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("DPoP "), "{challenge}");
    }
}

#[test]
fn scim_takes_a_bound_token_with_its_proof_alone() {
    let gatepost = scim::shared();
    for client_id in ["hr", "byref"] {
        assert_bound_token_needs_its_proof(&gatepost, client_id, "scim.read", "/scim/v2/Users");
    }
}

#[test]
fn the_registration_over_http_takes_a_bound_token_with_its_proof_alone() {
    let gatepost = registration_over_http::shared();
    for client_id in ["pipeline", "byref"] {
        let scope = "registration.read";
        assert_bound_token_needs_its_proof(&gatepost, client_id, scope, "/admin/export");
    }
}

#[test]
fn scripts_of_another_origin_may_send_proofs_and_read_nonces() {
    let mut document = document(&Signer::es256("c"));
    let nonced = offline::client(&mut document, "nonced");
    nonced["allowed_cors_origins"] = json!(["https://spa.example"]);
    let gatepost = Gatepost::start_with(&document, &[]);
    let origin = ("Origin", "https://spa.example");
    for path in [TOKEN, PAR, USERINFO] {
        let wanted = [
            origin,
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "authorization,dpop"),
        ];
        let answer = gatepost.send("OPTIONS", path, &wanted, b"");
        let allowed = answer.header("access-control-allow-headers").unwrap();
        let is_allowed = allowed.split(',').any(|name| name == "dpop");
        assert!(is_allowed, "{path}: {allowed}");
    }
    let authorization = basic("nonced", CONF1_SECRET);
    let proof = for_form(&gatepost, &Signer::es256("a"), TOKEN);
    let headers = [origin, ("Authorization", &*authorization), ("DPoP", &proof)];
    let answer = gatepost.post(TOKEN, &headers, SERVICE);
    nonce(&answer);
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin.1));
    let exposed = answer.header("access-control-expose-headers").unwrap();
    let is_exposed = exposed.split(", ").any(|name| name == "DPoP-Nonce");
    assert!(is_exposed, "{exposed}");
    let metadata = gatepost.get("/.well-known/openid-configuration").json();
    let algorithms = json!(["ES256", "EdDSA", "Ed25519"]);
    assert_eq!(metadata["dpop_signing_alg_values_supported"], algorithms);
}

#[test]
fn a_client_whose_tokens_are_bound_gets_none_through_the_browser() {
    let implicit = json!({
        "dpop_bound_access_tokens": true, "response_types": ["id_token token"], "grant_types": ["implicit"],
        "allow_access_tokens_via_browser": true,
    });
    let gatepost = start();
    let document = with_clients(offline::document(), &[("implicit", implicit)]);
    let file = gatepost.private_file("implicit.json", &document.to_string());
    let told = gatepost.refusal(&["apply", file.to_str().unwrap()], "");
    told.assert_says("dpop_bound_access_tokens");
}

#[test]
fn explain_tells_of_a_proof_what_it_is_for_how_old_it_is_and_of_which_key() {
    let gatepost = start();
    let key = Signer::es256("a");
    let explain = |input: &str| explain(&gatepost, input);
    let form = encode(SERVICE);
    let request = |client_id: &str, proof: &str| {
        let authorization = basic(client_id, CONF1_SECRET);
        format!("Authorization: {authorization}\n{proof}\n{form}")
    };
    let claims = || claims(&gatepost, "POST", TOKEN);
    let line = |claims: Value| format!("DPoP: {}", sign(&key, &claims));
    let (good, told) = explain(&request("bound", &line(claims())));
    assert!(good, "{told}");
    told.assert_says("its proof is good");
    told.assert_says(&thumbprint(&key));
    let offered = nonce(&serve(&gatepost, "nonced", &[&sign(&key, &claims())]));
    let old = line(with(claims(), "iat", json!(now() - 600)));
    let other = "https://other.example/connect/token";
    let elsewhere = line(with(claims(), "htu", json!(other)));
    for (client_id, proof, what) in [
        ("bound", String::new(), "GP1320"),
        ("bound", String::from("DPoP: x"), "GP1321"),
        ("bound", elsewhere, "GP1322"),
        ("bound", old.clone(), "GP1323"),
        ("bound", old, " s old"),
        ("nonced", line(claims()), "GP1324"),
    ] {
        let (good, told) = explain(&request(client_id, &proof));
        assert!(!good && told.contains(what), "{what}: {told}");
    }
    let fresh = line(with(claims(), "nonce", json!(offered)));
    let (good, told) = explain(&request("nonced", &fresh));
    assert!(good && told.contains("its nonce is good"), "{told}");
    let (good, told) = explain(&sign(&key, &claims()));
    assert!(good, "{told}");
    told.assert_says("DPoP proof");
    told.assert_says(&thumbprint(&key));
    // A bound token says so.
    let tokens = issued(&serve(&gatepost, "bound", &[&sign(&key, &claims())]));
    let (good, told) = explain(text(&tokens, "access_token"));
    assert!(good && told.contains("bound to the key"), "{told}");
    gatepost
        .run_line("client test keyed")
        .assert_says("DPoP proofs with a nonce");
}

#[test]
fn explain_gives_the_servers_verdict_on_a_proof_alone() {
    let gatepost = start();
    let key = Signer::es256("a");
    let explain = |input: &str| explain(&gatepost, input);
    let claims = || claims(&gatepost, "POST", TOKEN);
    let changed = |changes: Value| sign(&key, &changed_members(claims(), &changes));
    for (changes, reason, detail) in [
        (json!({"iat": null}), "GP1323", "it has no iat"),
        (
            json!({"iat": "now"}),
            "GP1323",
            "its iat is no number of seconds",
        ),
        (
            json!({"iat": now() * 1_000}),
            "GP1323",
            "its iat is no number of seconds",
        ),
        (json!({"iat": now() + 500}), "GP1323", "s ahead of now"),
        (json!({"htu": null}), "GP1322", "it has no htu"),
        (json!({"htm": null}), "GP1322", "it has no htm"),
        (json!({"jti": null}), "GP1325", "it is for POST"),
    ] {
        let proof = changed(changes);
        let (is_good, told) = explain(&proof);
        assert!(!is_good, "{reason}: {told}");
        told.assert_says_for(detail, reason);
        told.assert_says_for(reason, detail);
        let answer = serve(&gatepost, "bound", &[&proof]);
        assert_no_proof(&gatepost, &answer, reason, detail);
    }
    let address = format!("{}{TOKEN}", gatepost.base_url);
    let (origin, path) = address.split_once("/connect").unwrap();
    let loud = format!("{}/connect{path}", origin.to_uppercase());
    let proof = changed(json!({"htu": loud}));
    let (is_good, told) = explain(&proof);
    assert!(is_good && told.contains("its proof is good"), "{told}");
    issued(&serve(&gatepost, "bound", &[&proof]));
    let elsewhere = address.replace("/connect", "9/connect");
    let (is_good, told) = explain(&changed(json!({"htu": elsewhere})));
    assert!(!is_good && told.contains("GP1322"), "{told}");

    let userinfo = format!("{}{USERINFO}", gatepost.base_url);
    let (is_good, told) = explain(&changed(json!({"htm": "GET", "htu": userinfo})));
    assert!(!is_good, "{told}");
    told.assert_says("GP1326");
    told.assert_says("it needs ath");
    let with_hash = sign(&key, &for_token(&gatepost, USERINFO, "any"));
    let (is_good, told) = explain(&with_hash);
    assert!(is_good && told.contains("its proof is good"), "{told}");
}
