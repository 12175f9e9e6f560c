//! What becomes of another provider's claims, table by table.

use proptest::prelude::*;
use serde_json::json;

use super::super::super::registration::provider;
use super::*;
use crate::protocol::words::samples::changed;

fn provider(changes: Value) -> IdentityProvider {
    let document = json!({"name": "corp", "issuer": "https://up.example", "client_id": "gatepost", "scope": "openid"});
    provider::from_json(&changed(document, changes), "").unwrap()
}

fn oauth(claims: Value) -> IdentityProvider {
    let url = |path: &str| format!("https://hub.example/{path}");
    provider(json!({
        "issuer": null, "authorization_endpoint": url("a"), "token_endpoint": url("t"), "userinfo_endpoint": url("u"),
        "subject_claim": "id", "claims": claims, "scope": "email profile"
    }))
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn told(provider: &IdentityProvider, upstream: Value) -> Value {
    Value::Object(mapped(provider, &members(upstream)).0)
}

#[test]
fn claims_come_by_the_scopes_asked_for_and_as_they_are_registered() {
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
    assert_eq!(told(&oauth(json!({"login": "nickname"})), json!({"id": 7, "login": "al"})), json!({"nickname": "al"}));
    for (claims, upstream, expected) in [
        (json!({"dept": "department"}), json!({"dept": "it"}), json!({"department": "it"})),
        (json!({"dept": "dept"}), json!({"dept": ["a", 1]}), json!({"dept": ["a", 1]})),
        // What has another name here has that alone, and what is registered goes before what is standard.
        (json!({"nickname": "alias"}), json!({"nickname": "al"}), json!({"alias": "al"})),
        (json!({"cn": "name"}), json!({"cn": "Alice", "name": "Bob"}), json!({"name": "Alice"})),
        (json!({"cn": "name"}), json!({"name": "Bob"}), json!({})),
        (json!({"a": "x", "b": "x"}), json!({"a": null, "b": 2}), json!({"x": 2})),
        // A role that nobody mapped is upstream's own affair.
        (json!({}), json!({"role": ["admin"]}), json!({})),
    ] {
        let provider = provider(json!({"scope": "openid profile", "claims": claims}));
        assert_eq!(told(&provider, upstream.clone()), expected, "{claims} {upstream}");
    }
}

#[test]
fn groups_become_roles_by_the_table_or_as_they_are() {
    let map = json!({"G-1": "admin", "G-2": ["user", "auditor"], "G-3": "user"});
    for (map, groups, expected) in [
        (&json!({}), json!(["b", "a", 7, "a"]), json!({"role": ["a", "b"]})),
        (&json!({}), json!("a"), json!({"role": ["a"]})),
        (&map, json!(["G-2", "G-3", "admin"]), json!({"role": ["auditor", "user"]})),
        (&map, json!([]), json!({})),
        (&map, json!(["admin", "g-1", "G-1 "]), json!({})),
        (&map, json!({"G-1": true}), json!({})),
    ] {
        let provider = provider(json!({"claims": {"groups": "role"}, "role_map": map}));
        assert_eq!(told(&provider, json!({"groups": groups, "role": "root"})), expected, "{groups}");
    }
    let two = provider(json!({"claims": {"groups": "role", "roles": "role"}}));
    assert_eq!(told(&two, json!({"groups": ["a"], "roles": ["b"]})), json!({"role": ["a", "b"]}));
}

#[test]
fn verified_is_what_upstream_itself_verified() {
    let standard = provider(json!({"scope": "openid email"}));
    let other_address = provider(json!({"scope": "openid email", "claims": {"upn": "email"}}));
    let elsewhere = provider(json!({"scope": "openid email", "claims": {"email": "contact"}}));
    let hub = oauth(json!({"email": "email", "email_verified": "email_verified"}));
    let email = |email: Value, verified: Value| json!({"email": email, "email_verified": verified});
    let verified = email(json!("a@b.c"), json!(true));
    let long = format!("{}@b.c", "x".repeat(LONGEST_VALUE));
    for (provider, upstream, expected) in [
        (&standard, email(json!("a@b.c"), json!(false)), email(json!("a@b.c"), json!(false))),
        (&standard, email(json!("a@b.c"), json!("true")), json!({"email": "a@b.c"})),
        (&standard, email(json!("a@b.c"), json!(1)), json!({"email": "a@b.c"})),
        (&standard, json!({"email_verified": true}), json!({})),
        (&standard, email(json!(["a@b.c"]), json!(true)), json!({})),
        (&standard, email(json!(""), json!(true)), json!({})),
        (&standard, email(json!("a\0@b.c"), json!(true)), json!({})),
        (&standard, email(json!(long), json!(true)), json!({})),
        (&other_address, changed(verified.clone(), json!({"upn": "x@y.z"})), json!({"email": "x@y.z"})),
        (&elsewhere, verified.clone(), json!({"contact": "a@b.c"})),
        (&hub, verified.clone(), verified),
    ] {
        assert_eq!(told(provider, upstream.clone()), expected, "{upstream}");
    }
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
    let kept = provider(json!({"claims": {"a": "a", "b": "b"}}));
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(told(&kept, json!({"a": nested(DEEPEST_VALUE)})), json!({"a": nested(DEEPEST_VALUE)}));
    let [text, list, name, deep] = [json!("a\0b"), json!(["a\0b"]), json!({"a\0b": 1}), json!({"x": [{"y": "\0"}]})];
    let (nested, long) = (nested(DEEPEST_VALUE + 1), json!("x".repeat(LONGEST_VALUE)));
    for bad in [nested, long, text, list, name, deep, json!(null), json!(""), json!([])] {
        assert_eq!(told(&kept, json!({"a": bad, "b": 1})), json!({"b": 1}));
    }
    let many: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let roles = told(&provider(json!({"claims": {"groups": "role"}})), json!({"groups": many}));
    assert_eq!(roles["role"].as_array().unwrap().len(), MOST_ROLES);
}

#[test]
fn the_longest_of_too_much_is_left_out_and_named() {
    let of = |names: &[&str], upstream: Value| {
        let claims: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!(name))).collect();
        let (claims, left_out) = mapped(&provider(json!({"claims": claims})), &members(upstream));
        assert!(Value::Object(claims.clone()).to_string().len() <= LONGEST_TOGETHER);
        (claims.keys().cloned().collect::<Vec<_>>().join(" "), left_out.join(" "))
    };
    let told = |taken: &str, left_out: &str| (taken.to_owned(), left_out.to_owned());
    let text = |length: usize| json!("x".repeat(length));
    let five = ["a", "b", "c", "d", "e"];
    let small = json!({"a": text(8_190), "b": text(8_190), "c": text(8_000), "d": text(8_000)});
    assert_eq!(of(&five, small), told("a b c d", ""));
    let much = json!({"a": text(8_190), "b": text(8_180), "c": text(8_188), "d": text(8_188), "e": "short"});
    assert_eq!(of(&five, much), told("b c d e", "a"));
    assert_eq!(of(&five, json!({"a": text(8_191), "b": 1})), told("b", "a"), "too long by itself");
    // Rights come first; an address that did not fit takes its flag along.
    let roles: Vec<String> = (0..100).map(|number| format!("{number}-{}", "r".repeat(70))).collect();
    let rights = json!({"role": roles, "a": text(8_000), "b": text(8_000), "c": text(8_000), "email": text(8_100), "email_verified": true});
    assert_eq!(of(&["role", "a", "b", "c", "email", "email_verified"], rights), told("a b c role", "email"));
}

#[test]
fn userinfo_overrules_nothing_and_an_address_is_verified_only_by_the_answer_that_names_it() {
    let email = |address: &str, verified: bool| json!({"email": address, "email_verified": verified});
    let (verified, bare, flag) = (email("a@b.c", true), json!({"email": "a@b.c"}), json!({"email_verified": true}));
    for (id_token, user_info, expected) in [
        (&json!({"sub": "u", "name": "A"}), &json!({"name": "B", "x": 1}), &json!({"sub": "u", "name": "A", "x": 1})),
        (&bare, &verified, &verified),
        (&verified, &bare, &verified),
        (&bare, &email("x@b.c", true), &bare),
        (&bare, &flag, &bare),
        (&flag, &bare, &bare),
        (&email("a@b.c", false), &verified, &email("a@b.c", false)),
        (&json!({}), &verified, &verified),
    ] {
        let merged = merged(&members(id_token.clone()), Some(&members(user_info.clone())));
        assert_eq!(Value::Object(merged), *expected, "{id_token} {user_info}");
    }
}

#[test]
fn a_subject_without_a_token_has_one_spelling() {
    let of = |id: &str| oauth_subject(&serde_json::from_str(&format!(r#"{{"ID": 7, "id": {id}}}"#)).unwrap(), "id");
    for (id, subject) in
        [("583231", "583231"), ("18446744073709551615", "18446744073709551615"), (r#""MDQ6=""#, "MDQ6=")]
    {
        assert_eq!(of(id).as_deref(), Some(subject));
    }
    // The last would be rounded.
    let bad = r#"null|true|""|1.0|1e30|[1]|{"id":1}|"a\u0000b"|"a\nb"|18446744073709551616"#;
    for bad in bad.split('|').map(str::to_owned).chain([format!("\"{}\"", "x".repeat(256))]) {
        assert_eq!(of(&bad), None, "{bad}");
    }
    assert_eq!(oauth_subject(&members(json!({"ID": 7})), "id"), None);
}

proptest! {
    #[test]
    fn no_answer_fills_what_was_not_mapped(name in "[a-z_]{1,12}", text in ".{0,30}") {
        let provider = provider(json!({"scope": "openid email", "claims": {"groups": "role"}}));
        let (mapped, _) = mapped(&provider, &members(json!({name: text, "email": text, "groups": [text]})));
        for name in mapped.keys() {
            prop_assert!(["email", "email_verified", "role"].contains(&name.as_str()));
        }
    }
}
