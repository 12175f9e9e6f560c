//! Tables of access tokens.

use proptest::prelude::*;

use super::*;
use crate::protocol::words::samples::{self, EPOCHS, NOW, scope};

const ISSUER: &str = "https://op.example";

fn form(scope_claim: ScopeClaim, client_as_subject: bool) -> JwtForm<'static> {
    JwtForm { issuer: ISSUER, scope_claim, client_as_subject, further_claims: Map::new() }
}

fn of_client() -> AccessToken {
    let stands_on = StandsOn::Client { installation: 1, client: 2 };
    AccessToken { user: None, jti: Jti { stands_on, random: [1; 12] }, ..samples::access_token() }
}

#[test]
fn a_users_token_says_what_rfc_9068_asks() {
    let jti = samples::access_token().jti.to_text();
    let claims = samples::access_token().jwt_claims(form(ScopeClaim::Text, false));
    let seconds = NOW.seconds();
    let expected = json!({
        "iss": ISSUER, "aud": "https://orders.example.com/", "client_id": "web", "iat": seconds, "nbf": seconds,
        "exp": seconds + 3_600, "jti": jti, "scope": "openid orders.read", "sub": "alice-subject", "sid": "sid-1",
        "tenant": "acme", "auth_time": seconds - 10, "amr": ["pwd"], "acr": "1", "userinfo_claims": ["name"]
    });
    assert_eq!(Value::Object(claims), expected);
    assert_eq!(jti.len(), 43);
}

#[test]
fn a_clients_token_has_no_trace_of_a_user() {
    let claims = of_client().jwt_claims(form(ScopeClaim::Text, false));
    for name in ["sub", "sid", "auth_time", "amr", "acr", "tenant"] {
        assert!(!claims.contains_key(name), "{name}");
    }
    let named = of_client().jwt_claims(form(ScopeClaim::Text, true));
    assert_eq!(named.get("sub"), Some(&json!("web")));
    assert_eq!(AccessToken::from_verified_claims(&named, ISSUER).unwrap().user, None);
}

#[test]
fn a_user_never_turns_into_the_client() {
    let claims = samples::access_token().jwt_claims(form(ScopeClaim::Text, true));
    assert_eq!(claims.get("sub"), Some(&json!("alice-subject")));
}

#[test]
fn further_claims_overwrite_nothing() {
    let further = json!({ "sub": "root", "auth_time": 1, "exp": 1, "role": ["admin"] });
    let further_claims = further.as_object().unwrap().clone();
    let claims = of_client().jwt_claims(JwtForm { further_claims, ..form(ScopeClaim::Text, false) });
    assert_eq!(claims.get("role"), Some(&json!(["admin"])));
    assert!(!claims.contains_key("sub") && !claims.contains_key("auth_time"));
    assert_eq!(claims.get("exp"), Some(&json!(NOW.seconds() + 3_600)));
}

#[test]
fn scope_and_audience_have_two_shapes_and_both_are_read() {
    let token = AccessToken { audience: vec![String::from("a"), String::from("b")], ..samples::access_token() };
    let claims = token.jwt_claims(form(ScopeClaim::Array, false));
    assert_eq!(claims.get("scope"), Some(&json!(["openid", "orders.read"])));
    assert_eq!(claims.get("aud"), Some(&json!(["a", "b"])));
    assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), Some(token));
}

#[test]
fn claims_of_something_else_are_no_access_token() {
    let good = samples::access_token().jwt_claims(form(ScopeClaim::Text, false));
    assert_eq!(AccessToken::from_verified_claims(&good, ISSUER), Some(samples::access_token()));
    assert_eq!(AccessToken::from_verified_claims(&good, "https://op.example/"), None);
    for name in ["iss", "aud", "client_id", "iat", "exp", "jti", "scope", "sub", "amr"] {
        let mut claims = good.clone();
        claims.remove(name);
        assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), None, "without {name}");
    }
    for name in good.keys() {
        let mut claims = good.clone();
        claims.insert(name.clone(), json!({ "x": 1 }));
        let ignored = name == "nbf";
        assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER).is_some(), ignored, "{name} an object");
    }
}

#[test]
fn a_token_never_outlives_its_grant() {
    let hour = Duration::from_secs(3_600);
    let now = Instant::from_micros(NOW.micros() + 900_000);
    assert_eq!(expiry(now, hour, None), NOW.plus(hour));
    assert_eq!(expiry(now, hour, Some(NOW.plus(hour * 2))), NOW.plus(hour));
    assert_eq!(expiry(now, hour, Some(Instant::from_micros(NOW.micros() + 60_500_000))), NOW.plus(hour / 60));
    let token = AccessToken { expires_at: expiry(now, hour, None), ..samples::access_token() };
    assert_eq!(token.expires_in(now), 3_600);
    assert_eq!(token.expires_in(NOW.plus(hour * 2)), 0);
    assert!(!token.is_expired(NOW.plus(hour).minus(Duration::from_micros(1))) && token.is_expired(NOW.plus(hour)));
}

#[test]
fn far_dates_do_not_wrap() {
    let late = Instant::from_seconds(4_300_000_000);
    let token = AccessToken { expires_at: late, ..samples::access_token() };
    let claims = token.jwt_claims(form(ScopeClaim::Text, false));
    assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), Some(token));
}

#[test]
fn a_jti_has_three_lengths_and_no_other() {
    let of_user = Jti { stands_on: StandsOn::User(EPOCHS), random: [9; 12] };
    for (jti, bytes) in [(samples::access_token().jti, 32), (of_client().jti, 28), (of_user, 44)] {
        assert_eq!((jti.encode().len(), Jti::from_text(&jti.to_text())), (bytes, Some(jti)));
    }
    for length in (0..64).filter(|length| ![28, 32, 44].contains(length)) {
        assert_eq!(Jti::decode(&vec![0; length]), None, "{length}");
    }
    for text in ["", "AAAA", "not base64!", &"A".repeat(42), &"A".repeat(44), &"A".repeat(17)] {
        assert_eq!(Jti::from_text(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_scope_of_any_names_is_read_back(names in prop::collection::vec("[a-z:/._-]{1,9}", 0..8), array in any::<bool>()) {
        let token = AccessToken { scope: names.iter().map(String::as_str).collect(), ..samples::access_token() };
        let claims = token.jwt_claims(form(if array { ScopeClaim::Array } else { ScopeClaim::Text }, false));
        prop_assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), Some(token));
    }

    #[test]
    fn jti_texts_are_unique(random in any::<[u8; 12]>(), other in any::<[u8; 12]>()) {
        let text = |random| Jti { stands_on: StandsOn::Grant(samples::grant()), random }.to_text();
        prop_assert_eq!(text(random) == text(other), random == other);
    }
}

#[test]
fn an_empty_scope_stays_empty() {
    let token = AccessToken { scope: scope(""), ..samples::access_token() };
    let claims = token.jwt_claims(form(ScopeClaim::Text, false));
    assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), Some(token));
}
