//! Refresh tokens: who gets one, what it gives, and when it is refused. What ends it together with
//! other things is held by `what_ends_what.rs`.

use serde_json::{Value, json};

use crate::support::flow::{decode_jwt, issued, userinfo, with_members};
use crate::support::gatepost::Gatepost;
use crate::support::offline::{
    CONF1, CONF2, PLAIN, PUB1, Party, REUSE, access, client, document, member, refresh, start,
    start_own,
};
use crate::support::tables::rows_of;

const OFFLINE: &str = "openid profile orders.read offline_access";

/// Lets the retry window of whatever was refreshed pass.
fn pass_the_window(gatepost: &Gatepost) {
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '31 seconds'");
}

#[test]
fn a_refresh_repeats_the_sign_in_and_gives_the_next_token() {
    let (gatepost, mut browser) = start();
    for party in [CONF1, CONF2, PUB1] {
        let first = party.tokens(&gatepost, &mut browser, OFFLINE);
        assert!(refresh(&first).starts_with("gpr_"), "{first}");
        let answer = party.refresh(&gatepost, refresh(&first));
        answer.assert_status(200);
        answer.assert_header("pragma", "no-cache");
        let second = answer.json();
        assert_ne!(refresh(&second), refresh(&first));
        assert_ne!(access(&second), access(&first));
        assert_eq!(second["scope"], json!(OFFLINE));
        assert_eq!(second["token_type"], "Bearer");
        let (_, old) = decode_jwt(member(&first, "id_token"));
        let (_, new) = decode_jwt(member(&second, "id_token"));
        for same in ["iss", "sub", "aud", "auth_time", "amr", "acr", "sid"] {
            assert_eq!(new[same], old[same], "{same}");
            assert!(!new[same].is_null(), "{same}");
        }
        assert_eq!(old["nonce"], "the-nonce");
        assert_eq!(new.get("nonce"), None);
        assert!(new["iat"].as_i64() >= old["iat"].as_i64());
        assert_eq!(userinfo(&gatepost, access(&second)).status, 200);
        userinfo(&gatepost, access(&first))
            .assert_status_for("the older access token lives on", 200);
    }
    assert_eq!(gatepost.database.events("refreshed"), 3);
    let discovery = gatepost.get("/.well-known/openid-configuration").json();
    let grants = discovery["grant_types_supported"].as_array().unwrap();
    assert!(grants.contains(&json!("refresh_token")));
}

#[test]
fn only_offline_access_and_the_grant_type_together_give_a_refresh_token() {
    let (gatepost, mut browser) = start();
    let without_scope = CONF1.tokens(&gatepost, &mut browser, "openid profile");
    assert_eq!(without_scope.get("refresh_token"), None);
    // A client has both or neither: the registration of one alone is refused.
    for change in [
        json!({"scope": "openid profile"}),
        json!({"grant_types": ["authorization_code"]}),
    ] {
        let mut document = document();
        let reuse = client(&mut document, "reuse");
        *reuse = with_members(reuse.take(), &change);
        let output = gatepost.run(&["apply", "-"], &document.to_string());
        assert!(!output.status.success(), "{change}");
    }
    let form = [("grant_type", "client_credentials")];
    let of_itself = issued(&CONF1.ask(&gatepost, "/connect/token", &form));
    assert_eq!(of_itself.get("refresh_token"), None);
}

#[test]
fn a_lost_answer_is_repeated_and_a_replay_ends_the_family() {
    let (gatepost, mut browser) = start();
    let first = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let second = CONF1.refresh(&gatepost, refresh(&first)).json();
    let again = CONF1.refresh(&gatepost, refresh(&first));
    assert_eq!(again.status, 200, "{}", again.text());
    // One successor, however often it is handed out.
    assert_eq!(refresh(&again.json()), refresh(&second));
    assert_eq!(gatepost.database.events("refresh_repeated"), 1);
    // Once the successor was used, its predecessor is a replay, however soon it comes.
    let third = CONF1.refresh(&gatepost, refresh(&second)).json();
    CONF1.assert_refresh_over(&gatepost, refresh(&first));
    CONF1.assert_refresh_over(&gatepost, refresh(&third));
    for tokens in [&first, &second, &third] {
        assert_eq!(userinfo(&gatepost, access(tokens)).status, 401);
    }
    assert_eq!(gatepost.database.events("refresh_token_replayed"), 1);
}

#[test]
fn after_the_window_the_predecessor_is_a_replay_whatever_else_the_request_says() {
    let (gatepost, mut browser) = start();
    for further in [
        &[][..],
        &[("scope", "orders.write")],
        &[("resource", "https://nobody.example")],
    ] {
        let first = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
        let second = CONF1.refresh(&gatepost, refresh(&first)).json();
        pass_the_window(&gatepost);
        CONF1
            .refresh_with(&gatepost, refresh(&first), further)
            .assert_error(400, "invalid_grant");
        CONF1.assert_refresh_over(&gatepost, refresh(&second));
        assert_eq!(userinfo(&gatepost, access(&second)).status, 401);
    }
}

#[test]
fn a_public_clients_window_is_shorter_and_none_means_none() {
    let (gatepost, mut browser) = start();
    let first = PUB1.tokens(&gatepost, &mut browser, OFFLINE);
    let second = PUB1.refresh(&gatepost, refresh(&first)).json();
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '11 seconds'");
    PUB1.assert_refresh_over(&gatepost, refresh(&first));
    PUB1.assert_refresh_over(&gatepost, refresh(&second));
    let mut without = document();
    client(&mut without, "conf1")["refresh_token_retry_window"] = json!(0);
    gatepost.apply(&without);
    let first = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    assert_eq!(CONF1.refresh(&gatepost, refresh(&first)).status, 200);
    CONF1.assert_refresh_over(&gatepost, refresh(&first));
}

#[test]
fn a_lost_answer_may_still_be_repeated_once_tokens_are_registered_to_stay() {
    let (gatepost, mut browser) = start_own();
    let [kept, used, late] = [(); 3].map(|()| {
        let first = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
        let second = CONF1.refresh(&gatepost, refresh(&first)).json();
        (first, second)
    });
    let mut staying = document();
    client(&mut staying, "conf1")["refresh_token_usage"] = json!("reuse");
    gatepost.apply(&staying);
    // The answer with the second token was lost: it comes again, and from then on it stays.
    for _ in 0..2 {
        let again = CONF1.refresh(&gatepost, refresh(&kept.0));
        again.assert_status(200);
        assert_eq!(refresh(&again.json()), refresh(&kept.1), "{}", again.text());
    }
    for _ in 0..2 {
        let same = CONF1.refresh(&gatepost, refresh(&kept.1));
        same.assert_status(200);
        assert_eq!(refresh(&same.json()), refresh(&kept.1), "{}", same.text());
    }
    // Once the successor was used, or the window is over, the first one is a replay.
    assert_eq!(CONF1.refresh(&gatepost, refresh(&used.1)).status, 200);
    CONF1.assert_refresh_over(&gatepost, refresh(&used.0));
    CONF1.assert_refresh_over(&gatepost, refresh(&used.1));
    pass_the_window(&gatepost);
    CONF1.assert_refresh_over(&gatepost, refresh(&late.0));
    CONF1.assert_refresh_over(&gatepost, refresh(&late.1));
    assert_eq!(gatepost.database.events("refresh_token_replayed"), 2);
    // And back: the token that stayed moves on. The idle time runs from the last use, whichever
    // kind it was.
    gatepost.apply(&document());
    let third = CONF1.refresh(&gatepost, refresh(&kept.1)).json();
    assert_ne!(refresh(&third), refresh(&kept.1));
    assert_eq!(CONF1.refresh(&gatepost, refresh(&third)).status, 200);
}

#[test]
fn a_token_that_stays_is_idle_from_its_last_use_and_ends_as_any_other() {
    let (gatepost, mut browser) = start();
    let tokens = REUSE.tokens(&gatepost, &mut browser, "openid offline_access");
    let pass = |seconds: u32| {
        gatepost.database.run(&format!(
            "UPDATE grants SET used_at = used_at - interval '{seconds} seconds', redeemed_at = redeemed_at - interval '{seconds} seconds'"
        ));
    };
    for _ in 0..3 {
        pass(1_295_990);
        assert_eq!(REUSE.refresh(&gatepost, refresh(&tokens)).status, 200);
    }
    pass(1_296_001);
    REUSE.assert_refresh_over(&gatepost, refresh(&tokens));
}

/// The only grant, as it is stored.
fn grants(gatepost: &Gatepost) -> String {
    let stored = "SELECT g::text FROM grants g";
    gatepost.database.value(stored, &[])
}

#[test]
fn a_token_that_is_not_this_clients_is_refused_and_nothing_changes() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let token = refresh(&tokens).to_owned();
    let before = grants(&gatepost);
    for party in [CONF2, PUB1, REUSE] {
        party.assert_refresh_over(&gatepost, &token);
    }
    let flipped = |index: usize| {
        let mut bytes = token.clone().into_bytes();
        bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    // Each character of grant, generation and tag counts; the last one holds bits that no token
    // has.
    for index in 4..token.len() {
        CONF1.assert_refresh_over(&gatepost, &flipped(index));
    }
    let long = format!("gpr_{}", "A".repeat(9_000));
    for forged in [
        "x",
        "gpr_",
        &token[4..],
        &format!("{token}A"),
        access(&tokens),
        member(&tokens, "id_token"),
        &long,
    ] {
        CONF1.assert_refresh_over(&gatepost, forged);
    }
    assert_eq!(before, grants(&gatepost));
    assert_eq!(CONF1.refresh(&gatepost, &token).status, 200);
}

#[test]
fn a_malformed_request_is_named_and_leaves_the_token_as_it_was() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let token = refresh(&tokens);
    let kind = ("grant_type", "refresh_token");
    let in_query = format!("/connect/token?refresh_token={token}");
    for (path, form) in [
        ("/connect/token", &[kind][..]),
        ("/connect/token", &[kind, ("refresh_token", "")]),
        (&in_query, &[kind]),
    ] {
        let answer = CONF1.ask(&gatepost, path, form);
        answer.assert_error(400, "invalid_request");
    }
    let scope = ("scope", "openid");
    for (further, error) in [
        (&[("refresh_token", token)][..], "invalid_request"),
        (&[scope, scope], "invalid_request"),
        (&[("scope", "orders.write")], "invalid_scope"),
        (&[("scope", "openid nope")], "invalid_scope"),
        (&[("scope", "\"")], "invalid_scope"),
        (&[("resource", "https://stock.example")], "invalid_target"),
        (&[("resource", "orders")], "invalid_target"),
    ] {
        let answer = CONF1.refresh_with(&gatepost, token, further);
        answer.assert_error(400, error);
    }
    let plain = PLAIN.refresh(&gatepost, token);
    plain.assert_error(400, "unauthorized_client");
    let secret = Some("wrong");
    let nobody = Party { secret, ..CONF1 }.refresh(&gatepost, token);
    nobody.assert_error(401, "invalid_client");
    let generation = "SELECT generation FROM grants";
    assert_eq!(gatepost.database.value::<i32>(generation, &[]), 0);
    assert_eq!(CONF1.refresh(&gatepost, token).status, 200);
}

#[test]
fn what_belongs_to_another_grant_is_ignored_each_time() {
    let (gatepost, mut browser) = start();
    let mut tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let foreign = [
        ("code_verifier", "x"),
        ("code", "gpc_x"),
        ("username", "bob"),
        ("redirect_uri", "https://x.example"),
    ];
    for further in [&foreign[..], &foreign[..1], &foreign[1..]] {
        let answer = CONF1.refresh_with(&gatepost, refresh(&tokens), further);
        assert_eq!(answer.status, 200, "{further:?}: {}", answer.text());
        tokens = answer.json();
    }
}

#[test]
fn a_narrower_answer_leaves_the_grant_whole() {
    let (gatepost, mut browser) = start();
    let scope = "openid profile orders.read stock.read offline_access";
    let first = CONF1.tokens(&gatepost, &mut browser, scope);
    let narrow = CONF1
        .refresh_with(&gatepost, refresh(&first), &[("scope", "orders.read")])
        .json();
    assert_eq!(narrow["scope"], "orders.read");
    assert_eq!(narrow.get("id_token"), None);
    assert_eq!(
        decode_jwt(access(&narrow)).1["aud"],
        "https://orders.example"
    );
    assert_eq!(userinfo(&gatepost, access(&narrow)).status, 403);
    let one = CONF1
        .refresh_with(
            &gatepost,
            refresh(&narrow),
            &[("resource", "https://stock.example")],
        )
        .json();
    assert_eq!(one["scope"], "openid profile stock.read offline_access");
    let whole = CONF1.refresh(&gatepost, refresh(&one)).json();
    assert_eq!(whole["scope"], scope);
}

#[test]
fn resources_that_were_authorized_stay_the_only_ones() {
    let (gatepost, mut browser) = start();
    let changes = [
        ("scope", "openid orders.read stock.read offline_access"),
        ("resource", "https://orders.example"),
    ];
    let first = CONF1.tokens_with(&gatepost, &mut browser, &changes);
    let second = CONF1.refresh(&gatepost, refresh(&first)).json();
    assert_eq!(second["scope"], "openid orders.read offline_access");
    assert_eq!(
        decode_jwt(access(&second)).1["aud"],
        "https://orders.example"
    );
    let stock = [("resource", "https://stock.example")];
    CONF1
        .refresh_with(&gatepost, refresh(&second), &stock)
        .assert_error(400, "invalid_target");
    CONF1
        .refresh_with(&gatepost, refresh(&second), &[("scope", "stock.read")])
        .assert_error(400, "invalid_target");
    let openid = CONF1
        .refresh_with(&gatepost, refresh(&second), &[("scope", "openid")])
        .json();
    assert_eq!(openid["scope"], "openid");
}

#[test]
fn both_ends_come() {
    let (gatepost, mut browser) = start();
    let idle = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let second = CONF1.refresh(&gatepost, refresh(&idle)).json();
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '1295990 seconds'");
    let third = CONF1.refresh(&gatepost, refresh(&second)).json();
    // The use began the idle time anew.
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '1295990 seconds'");
    let fourth = CONF1.refresh(&gatepost, refresh(&third)).json();
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '1296001 seconds'");
    CONF1.assert_refresh_over(&gatepost, refresh(&fourth));
    let unused = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    gatepost.run_sql("UPDATE grants SET redeemed_at = redeemed_at - interval '1296001 seconds' WHERE moved_at IS NULL");
    CONF1.assert_refresh_over(&gatepost, refresh(&unused));
    gatepost.database.run("DELETE FROM grants");
    let absolute = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    gatepost.run_sql("UPDATE grants SET expires_at = clock_timestamp() + interval '100 seconds'");
    let last = CONF1.refresh(&gatepost, refresh(&absolute)).json();
    let lives = last["expires_in"].as_i64().unwrap();
    assert!(lives <= 100, "no access token outlives its grant: {last}");
    gatepost.run_sql("UPDATE grants SET expires_at = clock_timestamp() - interval '1 second'");
    CONF1.assert_refresh_over(&gatepost, refresh(&last));
}

#[test]
fn what_is_refused_leaves_the_grant_and_its_token_as_they_were() {
    let (gatepost, mut browser) = start_own();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let refused = || {
        let before = grants(&gatepost);
        CONF1.assert_refresh_over(&gatepost, refresh(&tokens));
        assert_eq!(grants(&gatepost), before);
        assert_eq!(gatepost.database.events("refreshed"), 0);
    };
    for [lost, back] in rows_of(
        "
        redeemed_at = redeemed_at - interval '1296001 seconds' | redeemed_at = clock_timestamp()
        expires_at = expires_at - interval '2592001 seconds'
            | expires_at = expires_at + interval '2592001 seconds'
        tenant = 'gone' | tenant = ''
        scopes = array_append(scopes, 'gone') | scopes = array_remove(scopes, 'gone')
        generation = -1 | generation = 0
    ",
    ) {
        gatepost.database.run(&format!("UPDATE grants SET {lost}"));
        refused();
        gatepost.database.run(&format!("UPDATE grants SET {back}"));
    }
    let mut narrowed = document();
    client(&mut narrowed, "conf1")["scope"] = json!("openid profile offline_access");
    gatepost.apply(&narrowed);
    refused();
    gatepost.apply(&document());
    assert_eq!(CONF1.refresh(&gatepost, refresh(&tokens)).status, 200);
    // The database made that row's hash.
    let verified = gatepost.run(&["audit", "verify"], "");
    let told = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{told}");
    assert_eq!(gatepost.database.events("refreshed"), 1);
}

#[test]
fn a_token_whose_grant_is_no_longer_there_is_refused() {
    let (gatepost, mut browser) = start();
    let tokens = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    gatepost.database.run("DELETE FROM grants");
    CONF1.assert_refresh_over(&gatepost, refresh(&tokens));
}

#[test]
fn claims_asked_for_by_name_and_new_attributes_reach_the_refreshed_tokens() {
    let (gatepost, mut browser) = start_own();
    let claims = json!({"userinfo": {"email": null}, "id_token": {"given_name": null}}).to_string();
    let scope = ("scope", "openid profile email offline_access");
    let first = CONF1.tokens_with(&gatepost, &mut browser, &[scope, ("claims", &claims)]);
    gatepost.database.run(r#"UPDATE users SET claims = claims || '{"given_name": "Alicia"}' WHERE username = 'alice'"#);
    let second = CONF1.refresh(&gatepost, refresh(&first)).json();
    let (_, id_token) = decode_jwt(member(&second, "id_token"));
    assert_eq!(id_token["given_name"], "Alicia");
    let told: Value = userinfo(&gatepost, access(&second)).json();
    assert_eq!(told["email"], "alice@example.com");
    assert_eq!(told["given_name"], "Alicia");
}
