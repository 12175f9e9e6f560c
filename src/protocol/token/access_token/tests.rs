//! Tables of access tokens.

use proptest::prelude::*;

use super::*;
use crate::words::samples::{self, EPOCHS, scope};

const ISSUER: &str = "https://op.example";

fn form(scope_claim: ScopeClaim, client_as_subject: bool) -> JwtForm<'static> {
    JwtForm {
        issuer: ISSUER,
        scope_claim,
        client_as_subject,
    }
}

fn written(token: &AccessToken, form: JwtForm<'_>) -> JsonObject {
    serde_json::from_value(json!(token.jwt_claims(form))).unwrap()
}

fn of_client() -> AccessToken {
    let stands_on = StandsOn::Client {
        installation: 1,
        client: 2,
    };
    AccessToken {
        user: None,
        jti: Jti {
            stands_on,
            random: [1; 12],
        },
        ..samples::access_token()
    }
}

#[test]
fn scope_and_audience_have_two_shapes_and_both_are_read() {
    let token = AccessToken {
        audience: vec![String::from("a"), String::from("b")],
        ..samples::access_token()
    };
    let claims = written(&token, form(ScopeClaim::Array, false));
    assert_eq!(claims.get("scope"), Some(&json!(["openid", "orders.read"])));
    assert_eq!(claims.get("aud"), Some(&json!(["a", "b"])));
    assert_eq!(
        AccessToken::from_verified_claims(&claims, ISSUER),
        Some(token)
    );
}

#[test]
fn a_key_travels_as_cnf_and_one_that_cannot_be_read_makes_no_token() {
    let token = AccessToken {
        confirmation: Some(KeyThumbprint([7; 32])),
        ..samples::access_token()
    };
    let claims = written(&token, form(ScopeClaim::Text, false));
    let jkt = KeyThumbprint([7; 32]).to_text();
    assert_eq!(claims.get("cnf"), Some(&json!({"jkt": jkt})));
    assert_eq!(
        AccessToken::from_verified_claims(&claims, ISSUER),
        Some(token)
    );
    for cnf in [
        json!({}),
        json!("x"),
        json!({"jkt": "x"}),
        json!(null),
        json!({"x5t#S256": jkt}),
    ] {
        let mut claims = claims.clone();
        claims.insert(String::from("cnf"), cnf);
        assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), None);
    }
}

#[test]
fn claims_of_something_else_are_no_access_token() {
    let good = written(&samples::access_token(), form(ScopeClaim::Text, false));
    assert_eq!(
        AccessToken::from_verified_claims(&good, ISSUER),
        Some(samples::access_token())
    );
    assert_eq!(
        AccessToken::from_verified_claims(&good, "https://op.example/"),
        None
    );
    for name in [
        "iss",
        "aud",
        "client_id",
        "iat",
        "exp",
        "jti",
        "scope",
        "sub",
        "amr",
    ] {
        let mut claims = good.clone();
        claims.remove(name);
        assert_eq!(
            AccessToken::from_verified_claims(&claims, ISSUER),
            None,
            "without {name}"
        );
    }
    for name in ["nbf", "aud", "sub", "active"] {
        let mut claims = good.clone();
        claims.insert(String::from("active"), json!(true));
        claims.insert(String::from("grant_claims"), json!([name]));
        let read = AccessToken::from_verified_claims(&claims, ISSUER);
        assert_eq!(read, None, "{name} given by a grant");
    }
    for name in good.keys() {
        let mut claims = good.clone();
        claims.insert(name.clone(), json!({ "x": 1 }));
        let ignored = name == "nbf";
        assert_eq!(
            AccessToken::from_verified_claims(&claims, ISSUER).is_some(),
            ignored,
            "{name} an object"
        );
    }
}

fn assert_reads_back(token: AccessToken) {
    let claims = written(&token, form(ScopeClaim::Text, false));
    assert_eq!(
        AccessToken::from_verified_claims(&claims, ISSUER),
        Some(token)
    );
}

#[test]
fn far_dates_do_not_wrap() {
    let late = Instant::from_seconds(4_300_000_000);
    let token = AccessToken {
        expires_at: late,
        ..samples::access_token()
    };
    assert_reads_back(token);
}

#[test]
fn a_jti_has_three_lengths_and_no_other() {
    let of_user = Jti {
        stands_on: StandsOn::User(EPOCHS),
        random: [9; 12],
    };
    for (jti, bytes) in [
        (samples::access_token().jti, 32),
        (of_client().jti, 28),
        (of_user, 44),
    ] {
        assert_eq!(
            (jti.encode().len(), Jti::from_text(&jti.to_text())),
            (bytes, Some(jti))
        );
    }
    for length in (0..64).filter(|length| ![28, 32, 44].contains(length)) {
        assert_eq!(Jti::decode(&vec![0; length]), None, "{length}");
    }
    for text in [
        "",
        "AAAA",
        "not base64!",
        &"A".repeat(42),
        &"A".repeat(44),
        &"A".repeat(17),
    ] {
        assert_eq!(Jti::from_text(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_scope_of_any_names_is_read_back(names in prop::collection::vec("[a-z:/._-]{1,9}", 0..8), array in any::<bool>()) {
        let token = AccessToken { scope: names.iter().map(String::as_str).collect(), ..samples::access_token() };
        let claims = written(&token, form(if array { ScopeClaim::Array } else { ScopeClaim::Text }, false));
        prop_assert_eq!(AccessToken::from_verified_claims(&claims, ISSUER), Some(token));
    }
}

#[test]
fn an_empty_scope_stays_empty() {
    let token = AccessToken {
        scope: scope(""),
        ..samples::access_token()
    };
    assert_reads_back(token);
}

#[test]
fn a_token_ends_after_its_lifetime_and_with_its_grant_in_whole_seconds() {
    let now = samples::NOW.plus(Duration::from_micros(999_999));
    let minute = Duration::from_secs(60);
    let end = samples::NOW.plus(minute);
    assert_eq!(expiry(now, minute, None), end);
    let later = end.plus(minute);
    assert_eq!(expiry(now, minute, Some(later)), end);
    let sooner = samples::NOW.plus(Duration::from_micros(30_500_000));
    let thirty = samples::NOW.plus(Duration::from_secs(30));
    assert_eq!(expiry(now, minute, Some(sooner)), thirty);
}

#[test]
fn a_token_tells_its_type_and_what_is_left() {
    let token = samples::access_token();
    assert_eq!(token.token_type(), "Bearer");
    let bound = AccessToken {
        confirmation: Some(KeyThumbprint([7; 32])),
        ..token.clone()
    };
    assert_eq!(bound.token_type(), "DPoP");
    assert_eq!(token.expires_in(samples::NOW), 3_600);
    let late = token.expires_at.plus(Duration::from_secs(5));
    assert_eq!(token.expires_in(late), 0);
    assert!(token.is_expired(token.expires_at) && token.is_expired(late));
    assert!(!token.is_expired(token.expires_at.minus(Duration::from_micros(1))));
}

#[test]
fn claims_of_a_grant_travel_by_name_and_survive_a_seal() {
    let mut token = samples::access_token();
    token.claims.insert(String::from("tier"), json!("gold"));
    let claims = written(&token, form(ScopeClaim::Text, false));
    assert_eq!(claims.get("grant_claims"), Some(&json!(["tier"])));
    assert_eq!(claims.get("tier"), Some(&json!("gold")));
    let again = AccessToken::from_verified_claims(&claims, ISSUER);
    assert_eq!(again.as_ref(), Some(&token));
    let mut lost = claims;
    lost.remove("tier");
    assert_eq!(AccessToken::from_verified_claims(&lost, ISSUER), None);
    let mut grant = samples::given("openid");
    grant.token_claims = token.claims;
    let sealed = postcard::to_allocvec(&grant).unwrap();
    let opened: super::super::grant::Grant = postcard::from_bytes(&sealed).unwrap();
    assert_eq!(opened, grant);
}
