//! What becomes of another provider's claims, table by table.

use proptest::prelude::*;
use serde_json::json;

use super::super::super::registration::provider;
use super::*;

fn provider(changes: Value) -> IdentityProvider {
    let mut document =
        json!({"name": "corp", "issuer": "https://up.example", "client_id": "gatepost", "scope": "openid"});
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    provider::from_json(&document, "").unwrap()
}

fn oauth(claims: Value) -> IdentityProvider {
    let url = |path: &str| format!("https://hub.example/{path}");
    let document = json!({
        "name": "hub", "client_id": "x", "authorization_endpoint": url("a"), "token_endpoint": url("t"),
        "userinfo_endpoint": url("u"), "subject_claim": "id", "claims": claims, "scope": "email profile"
    });
    provider::from_json(&document, "").unwrap()
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn told(provider: &IdentityProvider, upstream: Value) -> Value {
    Value::Object(mapped(provider, &members(upstream)).claims)
}

#[test]
fn standard_claims_come_with_the_scopes_that_were_asked_for() {
    let upstream = json!({"sub": "u", "name": "Alice", "email": "a@b.example", "email_verified": true, "address": "x", "role": "admin", "groups": ["g"]});
    for (scope, expected) in [
        ("openid", json!({})),
        ("openid profile", json!({"name": "Alice"})),
        ("openid email", json!({"email": "a@b.example", "email_verified": true})),
        ("openid address", json!({"address": {"formatted": "x"}})),
    ] {
        assert_eq!(told(&provider(json!({"scope": scope})), upstream.clone()), expected, "{scope}");
    }
    assert_eq!(told(&oauth(json!({})), upstream), json!({}), "nothing is standard without OpenID");
}

#[test]
fn claims_are_copied_and_renamed_as_registered() {
    let of = |claims: Value, upstream: Value| {
        told(&provider(json!({"scope": "openid profile", "claims": claims})), upstream)
    };
    assert_eq!(of(json!({"dept": "department"}), json!({"dept": "it"})), json!({"department": "it"}));
    assert_eq!(of(json!({"dept": "dept"}), json!({"dept": ["a", 1]})), json!({"dept": ["a", 1]}));
    // What has another name here has that alone, and what is registered goes before what is standard.
    assert_eq!(of(json!({"nickname": "alias"}), json!({"nickname": "al"})), json!({"alias": "al"}));
    assert_eq!(of(json!({"cn": "name"}), json!({"cn": "Alice", "name": "Bob"})), json!({"name": "Alice"}));
    assert_eq!(of(json!({"cn": "name"}), json!({"name": "Bob"})), json!({}));
    assert_eq!(of(json!({"a": "x", "b": "x"}), json!({"a": null, "b": 2})), json!({"x": 2}));
    assert_eq!(told(&oauth(json!({"login": "nickname"})), json!({"id": 7, "login": "al"})), json!({"nickname": "al"}));
}

#[test]
fn groups_become_roles_by_the_table_or_as_they_are() {
    let of = |map: Value, groups: Value| {
        told(
            &provider(json!({"claims": {"groups": "role"}, "role_map": map})),
            json!({"groups": groups, "role": "root"}),
        )
    };
    let map = json!({"G-1": "admin", "G-2": ["user", "auditor"], "G-3": "user"});
    assert_eq!(of(json!({}), json!(["b", "a", 7, "a"])), json!({"role": ["a", "b"]}));
    assert_eq!(of(json!({}), json!("a")), json!({"role": ["a"]}));
    assert_eq!(of(map.clone(), json!(["G-2", "G-3", "admin"])), json!({"role": ["auditor", "user"]}));
    for nothing in [json!([]), json!(["admin", "g-1", "G-1 "]), json!("root"), json!({"G-1": true}), json!(null)] {
        assert_eq!(of(map.clone(), nothing.clone()), json!({}), "{nothing}");
    }
    let two = provider(json!({"claims": {"groups": "role", "roles": "role"}}));
    assert_eq!(told(&two, json!({"groups": ["a"], "roles": ["b"]})), json!({"role": ["a", "b"]}));
    // A role that nobody mapped is upstream's own affair.
    assert_eq!(told(&provider(json!({"scope": "openid profile email"})), json!({"role": ["admin"]})), json!({}));
}

#[test]
fn verified_is_what_upstream_itself_verified() {
    let standard = provider(json!({"scope": "openid email"}));
    for (upstream, expected) in [
        (json!({"email": "a@b.c", "email_verified": false}), json!({"email": "a@b.c", "email_verified": false})),
        (json!({"email": "a@b.c", "email_verified": "true"}), json!({"email": "a@b.c"})),
        (json!({"email": "a@b.c", "email_verified": 1}), json!({"email": "a@b.c"})),
        (json!({"email_verified": true}), json!({})),
        (json!({"email": ["a@b.c"], "email_verified": true}), json!({})),
        (json!({"email": "", "email_verified": true}), json!({})),
        (json!({"email": "a\0@b.c", "email_verified": true}), json!({})),
        (json!({"email": format!("{}@b.c", "x".repeat(LONGEST_VALUE)), "email_verified": true}), json!({})),
    ] {
        assert_eq!(told(&standard, upstream.clone()), expected, "{upstream}");
    }
    let both = json!({"email": "a@b.c", "email_verified": true, "upn": "x@y.z"});
    let other_address = provider(json!({"scope": "openid email", "claims": {"upn": "email"}}));
    assert_eq!(told(&other_address, both.clone()), json!({"email": "x@y.z"}));
    let elsewhere = provider(json!({"scope": "openid email", "claims": {"email": "contact"}}));
    assert_eq!(told(&elsewhere, both), json!({"contact": "a@b.c"}));
    let hub = oauth(json!({"email": "email", "email_verified": "email_verified"}));
    assert_eq!(
        told(&hub, json!({"email": "a@b.c", "email_verified": true})),
        json!({"email": "a@b.c", "email_verified": true})
    );
}

#[test]
fn the_protocols_own_claims_are_never_filled() {
    let mut provider = provider(json!({}));
    for reserved in ["sub", "iss", "amr", "acr", "tenant", "idp", "scope", "client_id", "sid"] {
        provider.claims = BTreeMap::from([(String::from("x"), String::from(reserved))]);
        assert_eq!(told(&provider, json!({"x": "root"})), json!({}), "{reserved}");
    }
}

#[test]
fn what_cannot_be_kept_is_left_out() {
    let provider = provider(json!({"claims": {"a": "a", "b": "b"}}));
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(told(&provider, json!({"a": nested(DEEPEST_VALUE)})), json!({"a": nested(DEEPEST_VALUE)}));
    for bad in [
        nested(DEEPEST_VALUE + 1),
        json!("x".repeat(LONGEST_VALUE)),
        json!("a\0b"),
        json!(["a\0b"]),
        json!({"a\0b": 1}),
        json!({"x": [{"y": "\0"}]}),
        json!(null),
        json!(""),
        json!([]),
    ] {
        assert_eq!(told(&provider, json!({"a": bad, "b": 1})), json!({"b": 1}));
    }
    let many: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let roles = told(&super::tests::provider(json!({"claims": {"groups": "role"}})), json!({"groups": many}));
    assert_eq!(roles["role"].as_array().unwrap().len(), MOST_ROLES);
}

#[test]
fn the_longest_of_too_much_is_left_out_and_named() {
    let of = |claims: Value, upstream: Value| mapped(&provider(json!({"claims": claims})), &members(upstream));
    let text = |length: usize| json!("x".repeat(length));
    let five = json!({"a": "a", "b": "b", "c": "c", "d": "d", "e": "e"});
    let small = of(five.clone(), json!({"a": text(8_190), "b": text(8_190), "c": text(8_000), "d": text(8_000)}));
    assert_eq!((small.claims.len(), small.left_out), (4, vec![]));
    let much = json!({"a": text(8_190), "b": text(8_180), "c": text(8_188), "d": text(8_188), "e": "short"});
    let taken = of(five.clone(), much);
    assert_eq!(taken.left_out, ["a"]);
    assert!(taken.claims.len() == 4 && taken.claims["e"] == "short");
    assert_eq!(of(five, json!({"a": text(8_191), "b": 1})).left_out, ["a"], "too long by itself");

    let sixty: Map<String, Value> = (0..60).map(|number| (format!("c{number}"), json!(format!("c{number}")))).collect();
    let full: Map<String, Value> = (0..60).map(|number| (format!("c{number}"), text(8_190))).collect();
    let taken = of(Value::Object(sixty), Value::Object(full));
    assert_eq!((taken.claims.len(), taken.left_out.len()), (3, 57));
    assert!(Value::Object(taken.claims).to_string().len() <= LONGEST_TOGETHER);

    // Rights come first; an address that did not fit takes its flag along.
    let roles: Vec<String> = (0..100).map(|number| format!("{number}-{}", "r".repeat(70))).collect();
    let claims =
        json!({"groups": "role", "a": "a", "b": "b", "c": "c", "email": "email", "email_verified": "email_verified"});
    let taken = of(
        claims,
        json!({"groups": roles, "a": text(8_000), "b": text(8_000), "c": text(8_000), "email": text(8_100), "email_verified": true}),
    );
    assert_eq!(taken.left_out, ["email"]);
    assert_eq!(taken.claims.keys().collect::<Vec<_>>(), ["a", "b", "c", "role"]);
}

#[test]
fn userinfo_is_asked_only_for_what_is_wanting_and_overrules_nothing() {
    let of = |changes: Value, id_token: Value| are_wanting(&provider(changes), &members(id_token));
    assert!(!of(json!({}), json!({"sub": "u"})));
    assert!(!of(json!({"scope": "openid profile email"}), json!({"name": "A", "email": "a@b.c"})));
    assert!(of(json!({"scope": "openid profile email"}), json!({"name": "A"})));
    assert!(of(json!({"claims": {"groups": "role"}}), json!({"role": "x"})));
    assert!(!of(json!({"claims": {"groups": "role"}}), json!({"groups": []})));
    let (id_token, user_info) = (members(json!({"sub": "u", "name": "A"})), members(json!({"name": "B", "x": 1})));
    assert_eq!(Value::Object(merged(&id_token, Some(&user_info))), json!({"sub": "u", "name": "A", "x": 1}));
    assert_eq!(merged(&id_token, None), id_token);
}

#[test]
fn an_address_is_verified_only_by_the_answer_that_names_it() {
    let (verified, bare, other) = (
        json!({"email": "a@b.c", "email_verified": true}),
        json!({"email": "a@b.c"}),
        json!({"email": "x@b.c", "email_verified": true}),
    );
    let flag = json!({"email_verified": true});
    for (id_token, user_info, expected) in [
        (&bare, &verified, &verified),
        (&verified, &bare, &verified),
        (&bare, &other, &bare),
        (&bare, &flag, &bare),
        (&flag, &bare, &bare),
        (
            &json!({"email": "a@b.c", "email_verified": false}),
            &verified,
            &json!({"email": "a@b.c", "email_verified": false}),
        ),
        (&json!({}), &verified, &verified),
    ] {
        let merged = merged(&members(id_token.clone()), Some(&members(user_info.clone())));
        assert_eq!(Value::Object(merged), *expected, "{id_token} {user_info}");
    }
}

#[test]
fn a_label_is_one_line_that_people_can_read() {
    for (upstream, expected) in [
        (json!({"name": "Alice", "email": "a@b.c"}), Some("a@b.c")),
        (json!({"name": "Alice", "login": "al"}), Some("al")),
        (json!({"name": "Alice", "email": "  "}), Some("Alice")),
        (json!({"name": "Alice", "email": "a\u{202e}b"}), Some("Alice")),
        (json!({"name": "Alice", "email": ["a@b.c"]}), Some("Alice")),
        (json!({"name": "x".repeat(201)}), None),
        (json!({"name": "a\nb"}), None),
        (json!({"id": 7}), None),
    ] {
        assert_eq!(label(&members(upstream.clone())).as_deref(), expected, "{upstream}");
    }
}

#[test]
fn a_subject_without_a_token_has_one_spelling() {
    let of = |value: Value| oauth_subject(&members(json!({"id": value})), "id");
    assert_eq!(of(json!(583_231)).as_deref(), Some("583231"));
    assert_eq!(of(json!(u64::MAX)).as_deref(), Some("18446744073709551615"));
    assert_eq!(of(json!("MDQ6VXNlcjE=")).as_deref(), Some("MDQ6VXNlcjE="));
    for bad in [
        json!(null),
        json!(true),
        json!(""),
        json!(1.0),
        json!(1e30),
        json!([1]),
        json!({"id": 1}),
        json!("a\0b"),
        json!("a\nb"),
        json!("x".repeat(256)),
    ] {
        assert_eq!(of(bad.clone()), None, "{bad}");
    }
    assert_eq!(oauth_subject(&members(json!({"ID": 7})), "id"), None);
    let big: Value = serde_json::from_str(r#"{"id": 18446744073709551616}"#).unwrap();
    assert_eq!(oauth_subject(&members(big), "id"), None, "it would be rounded");
}

proptest! {
    #[test]
    fn no_answer_fills_what_was_not_mapped(name in "[a-z_]{1,12}", text in ".{0,30}") {
        let provider = provider(json!({"scope": "openid email", "claims": {"groups": "role"}}));
        let mapped = mapped(&provider, &members(json!({name: text, "email": text, "groups": [text]})));
        for name in mapped.claims.keys() {
            prop_assert!(["email", "email_verified", "role"].contains(&name.as_str()));
        }
    }
}
