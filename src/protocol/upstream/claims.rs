//! Which claims an account here takes over from upstream: standard claims by the scopes that were
//! asked for, and what the registration maps. This happens at each sign-in, from the ID token and
//! UserInfo together.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::registration::names::display_text;
use super::is_identifier;
use crate::token::claims::is_reserved;
use crate::words::claim_shape::{PROFILE, listed, shaped};
use crate::words::identity_provider::{IdentityProvider, ProviderKind};
use crate::words::json::{JsonObject, Members};
use crate::words::strength::Strength;

/// The longest value that is taken over, in bytes of JSON. A longer one is left out.
const LONGEST_VALUE: usize = 8_192;
/// The most bytes of JSON that all values together may have. They go into tokens and answers, and
/// each page reads them.
const LONGEST_TOGETHER: usize = 32_768;
const PUNCTUATION: usize = 4;
/// How deeply a value may be nested. Whoever reads an answer that contains it has limits, too.
const DEEPEST_VALUE: usize = 20;
const MOST_ROLES: usize = 200;

const ROLE: &str = "role";
/// Claims that say whether another claim was verified. They hold only for the value that upstream
/// itself verified, so they are taken over only with it.
const VERIFIED: [(&str, &str); 2] = [
    ("email_verified", "email"),
    ("phone_number_verified", "phone_number"),
];
/// What a person recognizes an account by, the best first.
const LABELS: [&str; 6] = [
    "email",
    "preferred_username",
    "upn",
    "login",
    "username",
    "name",
];
const OUR_LABELS: [&str; 4] = ["email", "preferred_username", "nickname", "name"];

/// Every claim that a sign-in at this provider fills, or empties where upstream does not have it:
/// our name, with the upstream names that it may come from. The first one that is there counts; of
/// roles, all count.
fn sources(provider: &IdentityProvider) -> BTreeMap<&str, Vec<&str>> {
    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (theirs, ours) in provider
        .claims
        .iter()
        .filter(|(_, ours)| !is_reserved(ours))
    {
        sources.entry(ours).or_default().push(theirs);
    }
    for name in standard_claims(provider) {
        let is_elsewhere = provider.claims.contains_key(name);
        if !is_elsewhere {
            sources.entry(name).or_insert_with(|| vec![name]);
        }
    }
    for (flag, claim) in VERIFIED {
        if !(keeps_its_name(&sources, flag) && keeps_its_name(&sources, claim)) {
            sources.remove(flag);
        }
    }
    sources
}

fn keeps_its_name(sources: &BTreeMap<&str, Vec<&str>>, name: &str) -> bool {
    sources.get(name).is_some_and(|from| *from == [name])
}

/// Claims of the standard scopes (OpenID Connect Core §5.4) that are asked for upstream.
fn standard_claims(provider: &IdentityProvider) -> Vec<&'static str> {
    match provider.kind {
        ProviderKind::OpenId { .. } => provider.scope.iter().flat_map(of_scope).collect(),
        ProviderKind::OAuth { .. } => Vec::new(),
    }
}

fn of_scope(scope: &str) -> Vec<&'static str> {
    match scope {
        "profile" => PROFILE.to_vec(),
        "email" => vec!["email", "email_verified"],
        "phone" => vec!["phone_number", "phone_number_verified"],
        "address" => vec!["address"],
        _ => Vec::new(),
    }
}

/// Whether UserInfo may have something that the ID token lacks: a claim that the registration
/// names, or the first claim of a scope that was asked for.
pub fn are_wanting(provider: &IdentityProvider, id_token: &JsonObject) -> bool {
    let telling = [
        ("profile", "name"),
        ("email", "email"),
        ("phone", "phone_number"),
        ("address", "address"),
    ];
    for (scope, claim) in telling {
        if provider.scope.contains(scope) && !id_token.contains_key(claim) {
            return true;
        }
    }
    let mut registered = provider.claims.keys();
    registered.any(|name| !id_token.contains_key(name))
}

/// The claims of an answer, with the booleans that some providers write as text: Amazon Cognito
/// does so always.
pub fn with_booleans(mut claims: JsonObject) -> JsonObject {
    for (flag, _) in VERIFIED {
        let said = match claims.text(flag) {
            Some("true") => true,
            Some("false") => false,
            Some(_) | None => continue,
        };
        claims.insert(flag.to_owned(), Value::from(said));
    }
    claims
}

/// The claims of the ID token, with those that UserInfo adds. Where both have one, the signed one
/// counts. Whether an address was verified counts only from the source that has the address: the
/// two may have been read at different times.
pub fn merged(id_token: &JsonObject, user_info: Option<&JsonObject>) -> JsonObject {
    let mut merged = user_info.cloned().unwrap_or_default();
    merged.extend(id_token.clone());
    for (flag, claim) in VERIFIED {
        let named = merged.get(claim).cloned();
        let sources = [Some(id_token), user_info].into_iter().flatten();
        let said = sources
            .filter(|source| source.get(claim) == named.as_ref())
            .find_map(|source| source.get(flag));
        match said {
            Some(said) => merged.insert(flag.to_owned(), said.clone()),
            None => merged.remove(flag),
        };
    }
    merged
}

/// The claims that are taken over from upstream, and the names of those left out because they were
/// too long. Reserved names, values of the wrong type and values that are too long are left out.
/// Where all together are too long, the longest go. Claims that decide on rights are kept first.
pub fn mapped(provider: &IdentityProvider, upstream: &JsonObject) -> (JsonObject, Vec<String>) {
    let mut claims = shaped_claims(provider, upstream);
    let mut room = LONGEST_TOGETHER;
    let mut left_out = Vec::new();
    for (_, length, name) in by_length(&claims) {
        let left = room
            .checked_sub(name.len() + length + PUNCTUATION)
            .filter(|_| length <= LONGEST_VALUE);
        match left {
            Some(left) => room = left,
            None => {
                claims.remove(&name);
                left_out.push(name);
            }
        }
    }
    for (flag, claim) in VERIFIED {
        // Without the claim that it verifies, it would count for another value that the account
        // has.
        if !claims.contains_key(claim) {
            claims.remove(flag);
        }
    }
    (claims, left_out)
}

fn shaped_claims(provider: &IdentityProvider, upstream: &JsonObject) -> JsonObject {
    let mut claims = JsonObject::new();
    for (ours, theirs) in sources(provider) {
        let value = value_of(provider, upstream, ours, &theirs);
        let shaped = value.and_then(|value| shaped(ours, Cow::Owned(value)));
        if let Some(value) = shaped.filter(|value| is_storable(value, DEEPEST_VALUE)) {
            claims.insert(ours.to_owned(), value.into_owned());
        }
    }
    claims
}

/// What upstream says of one of our claims, under the names that it may come from.
fn value_of(
    provider: &IdentityProvider,
    upstream: &JsonObject,
    ours: &str,
    theirs: &[&str],
) -> Option<Value> {
    let mut said = theirs.iter().filter_map(|name| upstream.get(*name));
    match ours {
        ROLE => roles(provider, said),
        // Only upstream's own boolean.
        _ if VERIFIED.iter().any(|(flag, _)| *flag == ours) => upstream
            .get(ours)
            .filter(|value| value.is_boolean())
            .cloned(),
        _ => said.find(|value| !value.is_null()).cloned(),
    }
}

/// Whether it is no role, the length of its value, and its name: in the order in which claims are
/// kept.
fn by_length(claims: &JsonObject) -> Vec<(bool, usize, String)> {
    let lengths = claims
        .iter()
        .map(|(name, value)| (name != ROLE, value.to_string().len(), name.clone()));
    let mut lengths: Vec<(bool, usize, String)> = lengths.collect();
    lengths.sort_unstable();
    lengths
}

/// The `acr` here of a sign-in there: by the provider's table, or else the weakest.
pub fn acr(provider: &IdentityProvider, theirs: Option<&str>) -> String {
    let ours = theirs.and_then(|theirs| provider.acr_map.get(theirs));
    ours.cloned()
        .unwrap_or_else(|| String::from(Strength::SignedIn.as_str()))
}

/// The `amr` of a sign-in there. It is told only where the provider's table makes the sign-in
/// stronger than the weakest. What a provider says of itself must not tell a client more than the
/// registration believes.
pub fn amr(acr: &str, theirs: &[String]) -> Vec<String> {
    let is_believed = acr != Strength::SignedIn.as_str();
    if is_believed {
        theirs.to_vec()
    } else {
        Vec::new()
    }
}

/// The roles as they are, or where there is a table, only those that it gives.
fn roles<'a>(
    provider: &IdentityProvider,
    values: impl Iterator<Item = &'a Value>,
) -> Option<Value> {
    let texts = values.flat_map(listed).filter_map(Value::as_str);
    let roles: BTreeSet<&str> = if provider.role_map.is_empty() {
        texts.collect()
    } else {
        texts
            .filter_map(|text| provider.role_map.get(text))
            .flatten()
            .map(String::as_str)
            .collect()
    };
    (!roles.is_empty()).then(|| {
        roles
            .into_iter()
            .take(MOST_ROLES)
            .map(Value::from)
            .collect()
    })
}

fn is_storable(value: &Value, depth: usize) -> bool {
    let inner = |value: &Value| {
        depth
            .checked_sub(1)
            .is_some_and(|left| is_storable(value, left))
    };
    match value {
        Value::String(text) => !text.contains('\0'),
        Value::Array(values) => values.iter().all(inner),
        Value::Object(members) => members
            .iter()
            .all(|(name, value)| !name.contains('\0') && inner(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

pub fn label(upstream: &JsonObject) -> Option<String> {
    one_line(upstream, &LABELS).map(str::to_owned)
}

/// The label of an account whose claims were taken over under our names.
pub fn known_as(taken_over: &JsonObject) -> Option<&str> {
    one_line(taken_over, &OUR_LABELS)
}

fn one_line<'a>(claims: &'a JsonObject, names: &[&str]) -> Option<&'a str> {
    let fits = |text: &&str| !text.trim().is_empty() && display_text(text).is_ok();
    names.iter().find_map(|name| claims.text(name).filter(fits))
}

/// The subject in the answer of a provider without ID tokens: a text as it is, or a whole number in
/// decimal. Anything that could be written in two ways is refused.
pub fn oauth_subject(user_info: &JsonObject, subject_claim: &str) -> Option<String> {
    let value = user_info.get(subject_claim)?;
    let subject = match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_i64() || value.is_u64() => value.to_string(),
        None => return None,
    };
    is_identifier(&subject).then_some(subject)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::super::registration::provider;
    use super::*;
    use crate::words::samples::changed;

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

    fn members(value: Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    fn told(provider: &IdentityProvider, upstream: Value) -> Value {
        Value::Object(mapped(provider, &members(upstream)).0)
    }

    #[test]
    fn a_locale_that_is_no_language_tag_is_left_out() {
        for (locale, expected) in [
            ("de_DE.UTF-8", json!({})),
            ("pt_BR", json!({"locale": "pt_BR"})),
        ] {
            let provider = provider(json!({"scope": "openid profile"}));
            assert_eq!(told(&provider, json!({"locale": locale})), expected);
        }
    }

    #[test]
    fn a_boolean_may_come_as_its_text_and_as_no_other() {
        for flag in ["email_verified", "phone_number_verified"] {
            for (sent, read) in [
                (json!("true"), json!(true)),
                (json!("false"), json!(false)),
                (json!(true), json!(true)),
                (json!("True"), json!("True")),
                (json!("1"), json!("1")),
                (json!(1), json!(1)),
                (json!(" true"), json!(" true")),
            ] {
                let mut claims = JsonObject::from_iter([(flag.to_owned(), sent)]);
                claims.insert(String::from("name"), json!("true"));
                let told = with_booleans(claims);
                assert_eq!((&told[flag], &told["name"]), (&read, &json!("true")));
            }
        }
    }

    #[test]
    fn claims_come_by_the_scopes_asked_for_and_as_they_are_registered() {
        let upstream = json!({"sub": "u", "name": "Alice", "email": "a@b.example", "email_verified": true, "phone_number": "+49 30 1", "address": "x", "role": "admin", "groups": ["g"]});
        for (scope, expected) in [
            ("openid", json!({})),
            ("openid profile", json!({"name": "Alice"})),
            (
                "openid email",
                json!({"email": "a@b.example", "email_verified": true}),
            ),
            ("openid address", json!({"address": {"formatted": "x"}})),
            ("openid phone", json!({"phone_number": "+49 30 1"})),
        ] {
            assert_eq!(
                told(&provider(json!({"scope": scope})), upstream.clone()),
                expected,
                "{scope}"
            );
        }
        assert_eq!(
            told(&oauth(json!({})), upstream),
            json!({}),
            "nothing is standard without OpenID"
        );
        assert_eq!(
            told(
                &oauth(json!({"login": "nickname"})),
                json!({"id": 7, "login": "al"})
            ),
            json!({"nickname": "al"})
        );
        for (claims, upstream, expected) in [
            (
                json!({"dept": "department"}),
                json!({"dept": "it"}),
                json!({"department": "it"}),
            ),
            (
                json!({"dept": "dept"}),
                json!({"dept": ["a", 1]}),
                json!({"dept": ["a", 1]}),
            ),
            // A mapped claim is not copied under its own name as well. Mapped claims go before
            // standard ones.
            (
                json!({"nickname": "alias"}),
                json!({"nickname": "al"}),
                json!({"alias": "al"}),
            ),
            (
                json!({"cn": "name"}),
                json!({"cn": "Alice", "name": "Bob"}),
                json!({"name": "Alice"}),
            ),
            (json!({"cn": "name"}), json!({"name": "Bob"}), json!({})),
            (
                json!({"a": "x", "b": "x"}),
                json!({"a": null, "b": 2}),
                json!({"x": 2}),
            ),
            // Without a mapping, upstream's roles mean nothing here.
            (json!({}), json!({"role": ["admin"]}), json!({})),
        ] {
            let provider = provider(json!({"scope": "openid profile", "claims": claims}));
            assert_eq!(
                told(&provider, upstream.clone()),
                expected,
                "{claims} {upstream}"
            );
        }
    }

    #[test]
    fn groups_become_roles_by_the_table_or_as_they_are() {
        let map = json!({"G-1": "admin", "G-2": ["user", "auditor"], "G-3": "user"});
        for (map, groups, expected) in [
            (
                &json!({}),
                json!(["b", "a", 7, "a"]),
                json!({"role": ["a", "b"]}),
            ),
            (&json!({}), json!("a"), json!({"role": ["a"]})),
            (
                &map,
                json!(["G-2", "G-3", "admin"]),
                json!({"role": ["auditor", "user"]}),
            ),
            (&map, json!([]), json!({})),
            (&map, json!(["admin", "g-1", "G-1 "]), json!({})),
            (&map, json!({"G-1": true}), json!({})),
        ] {
            let provider = provider(json!({"claims": {"groups": "role"}, "role_map": map}));
            assert_eq!(
                told(&provider, json!({"groups": groups, "role": "root"})),
                expected,
                "{groups}"
            );
        }
        let two = provider(json!({"claims": {"groups": "role", "roles": "role"}}));
        assert_eq!(
            told(&two, json!({"groups": ["a"], "roles": ["b"]})),
            json!({"role": ["a", "b"]})
        );
    }

    #[test]
    fn verified_is_what_upstream_itself_verified() {
        let standard = provider(json!({"scope": "openid email"}));
        let other_address = provider(json!({"scope": "openid email", "claims": {"upn": "email"}}));
        let elsewhere = provider(json!({"scope": "openid email", "claims": {"email": "contact"}}));
        let hub = oauth(json!({"email": "email", "email_verified": "email_verified"}));
        let email =
            |email: Value, verified: Value| json!({"email": email, "email_verified": verified});
        let verified = email(json!("a@b.c"), json!(true));
        let long = format!("{}@b.c", "x".repeat(LONGEST_VALUE));
        for (provider, upstream, expected) in [
            (
                &standard,
                email(json!("a@b.c"), json!(false)),
                email(json!("a@b.c"), json!(false)),
            ),
            (
                &standard,
                email(json!("a@b.c"), json!("true")),
                json!({"email": "a@b.c"}),
            ),
            (
                &standard,
                email(json!("a@b.c"), json!(1)),
                json!({"email": "a@b.c"}),
            ),
            (&standard, json!({"email_verified": true}), json!({})),
            (&standard, email(json!(["a@b.c"]), json!(true)), json!({})),
            (&standard, email(json!(""), json!(true)), json!({})),
            (&standard, email(json!("a\0@b.c"), json!(true)), json!({})),
            (&standard, email(json!(long), json!(true)), json!({})),
            (
                &other_address,
                changed(verified.clone(), json!({"upn": "x@y.z"})),
                json!({"email": "x@y.z"}),
            ),
            (&elsewhere, verified.clone(), json!({"contact": "a@b.c"})),
            (&hub, verified.clone(), verified),
        ] {
            assert_eq!(told(provider, upstream.clone()), expected, "{upstream}");
        }
    }

    #[test]
    fn the_protocols_own_claims_are_never_filled() {
        let mut provider = provider(json!({}));
        for reserved in [
            "sub",
            "iss",
            "amr",
            "acr",
            "tenant",
            "idp",
            "scope",
            "client_id",
            "sid",
        ] {
            provider.claims = BTreeMap::from([(String::from("x"), String::from(reserved))]);
            assert_eq!(
                told(&provider, json!({"x": "root"})),
                json!({}),
                "{reserved}"
            );
        }
    }

    #[test]
    fn what_cannot_be_kept_is_left_out() {
        let kept = provider(json!({"claims": {"a": "a", "b": "b"}}));
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(
            told(&kept, json!({"a": nested(DEEPEST_VALUE)})),
            json!({"a": nested(DEEPEST_VALUE)})
        );
        let [text, list, name, deep] = [
            json!("a\0b"),
            json!(["a\0b"]),
            json!({"a\0b": 1}),
            json!({"x": [{"y": "\0"}]}),
        ];
        let (nested, long) = (nested(DEEPEST_VALUE + 1), json!("x".repeat(LONGEST_VALUE)));
        for bad in [
            nested,
            long,
            text,
            list,
            name,
            deep,
            json!(null),
            json!(""),
            json!([]),
        ] {
            assert_eq!(told(&kept, json!({"a": bad, "b": 1})), json!({"b": 1}));
        }
        let many: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        let roles = told(
            &provider(json!({"claims": {"groups": "role"}})),
            json!({"groups": many}),
        );
        assert_eq!(roles["role"].as_array().unwrap().len(), MOST_ROLES);
    }

    #[test]
    fn the_longest_of_too_much_is_left_out_and_named() {
        let of = |names: &[&str], upstream: Value| {
            let claims: JsonObject = names
                .iter()
                .map(|name| ((*name).to_owned(), json!(name)))
                .collect();
            let (claims, left_out) =
                mapped(&provider(json!({"claims": claims})), &members(upstream));
            assert!(Value::Object(claims.clone()).to_string().len() <= LONGEST_TOGETHER);
            (
                claims.keys().cloned().collect::<Vec<_>>().join(" "),
                left_out.join(" "),
            )
        };
        let told = |taken: &str, left_out: &str| (taken.to_owned(), left_out.to_owned());
        let text = |length: usize| json!("x".repeat(length));
        let five = ["a", "b", "c", "d", "e"];
        let small = json!({"a": text(8_190), "b": text(8_190), "c": text(8_000), "d": text(8_000)});
        assert_eq!(of(&five, small), told("a b c d", ""));
        let much = json!({"a": text(8_190), "b": text(8_180), "c": text(8_188), "d": text(8_188), "e": "short"});
        assert_eq!(of(&five, much), told("b c d e", "a"));
        assert_eq!(
            of(&five, json!({"a": text(8_191), "b": 1})),
            told("b", "a"),
            "too long by itself"
        );
        // Rights come first; an address that did not fit takes its flag along.
        let roles: Vec<String> = (0..100)
            .map(|number| format!("{number}-{}", "r".repeat(70)))
            .collect();
        let rights = json!({"role": roles, "a": text(8_000), "b": text(8_000), "c": text(8_000), "email": text(8_100), "email_verified": true});
        assert_eq!(
            of(&["role", "a", "b", "c", "email", "email_verified"], rights),
            told("a b c role", "email")
        );
    }

    #[test]
    fn userinfo_overrules_nothing_and_an_address_is_verified_only_by_the_answer_that_names_it() {
        let email =
            |address: &str, verified: bool| json!({"email": address, "email_verified": verified});
        let (verified, bare, flag) = (
            email("a@b.c", true),
            json!({"email": "a@b.c"}),
            json!({"email_verified": true}),
        );
        for (id_token, user_info, expected) in [
            (
                &json!({"sub": "u", "name": "A"}),
                &json!({"name": "B", "x": 1}),
                &json!({"sub": "u", "name": "A", "x": 1}),
            ),
            (&bare, &verified, &verified),
            (&verified, &bare, &verified),
            (&bare, &email("x@b.c", true), &bare),
            (&bare, &flag, &bare),
            (&flag, &bare, &bare),
            (&email("a@b.c", false), &verified, &email("a@b.c", false)),
            (&json!({}), &verified, &verified),
        ] {
            let merged = merged(
                &members(id_token.clone()),
                Some(&members(user_info.clone())),
            );
            assert_eq!(Value::Object(merged), *expected, "{id_token} {user_info}");
        }
    }

    #[test]
    fn userinfo_is_asked_for_what_the_id_token_lacks() {
        let everything = json!({
            "name": "Alice", "email": "a@b.example", "phone_number": "+49 30 1", "address": "x",
        });
        let without = |name: &str| {
            let mut told = members(everything.clone());
            told.remove(name);
            told
        };
        for (scope, claim) in [
            ("openid profile", "name"),
            ("openid email", "email"),
            ("openid phone", "phone_number"),
            ("openid address", "address"),
        ] {
            let provider = provider(json!({"scope": scope}));
            assert!(are_wanting(&provider, &without(claim)), "{scope}");
            assert!(
                !are_wanting(&provider, &members(everything.clone())),
                "{scope}"
            );
        }
        let mapped = provider(json!({"claims": {"dept": "department"}}));
        assert!(are_wanting(&mapped, &members(everything)));
        assert!(!are_wanting(&mapped, &members(json!({"dept": "it"}))));
    }

    #[test]
    fn a_provider_is_believed_to_be_strong_where_its_table_says_so() {
        let provider = provider(json!({"acr_map": {"theirs": "2"}}));
        let weakest = Strength::SignedIn.as_str();
        for (theirs, ours) in [(Some("theirs"), "2"), (Some("2"), weakest), (None, weakest)] {
            assert_eq!(acr(&provider, theirs), ours, "{theirs:?}");
        }
        let methods = [String::from("hwk")];
        assert_eq!(amr("2", &methods), methods);
        assert!(amr(weakest, &methods).is_empty());
    }

    #[test]
    fn an_account_is_known_by_the_first_name_that_a_line_can_show() {
        for (claims, theirs, taken_over) in [
            (
                json!({"name": "Al", "email": "a@b.c"}),
                Some("a@b.c"),
                Some("a@b.c"),
            ),
            (
                json!({"name": "Al", "upn": "al@b.c"}),
                Some("al@b.c"),
                Some("Al"),
            ),
            (json!({"nickname": "al"}), None, Some("al")),
            (json!({"name": "Al", "email": " "}), Some("Al"), Some("Al")),
            (
                json!({"name": "Al", "email": "a\n"}),
                Some("Al"),
                Some("Al"),
            ),
            (json!({"name": 7}), None, None),
        ] {
            let claims = members(claims);
            assert_eq!(label(&claims).as_deref(), theirs, "{claims:?}");
            assert_eq!(known_as(&claims), taken_over, "{claims:?}");
        }
    }

    #[test]
    fn a_subject_without_a_token_has_one_spelling() {
        let of = |id: &str| {
            oauth_subject(
                &serde_json::from_str(&format!(r#"{{"ID": 7, "id": {id}}}"#)).unwrap(),
                "id",
            )
        };
        for (id, subject) in [
            ("583231", "583231"),
            ("18446744073709551615", "18446744073709551615"),
            (r#""MDQ6=""#, "MDQ6="),
        ] {
            assert_eq!(of(id).as_deref(), Some(subject));
        }
        // The last would be rounded.
        let bad = r#"null|true|""|1.0|1e30|[1]|{"id":1}|"a\u0000b"|"a\nb"|18446744073709551616"#;
        for bad in bad
            .split('|')
            .map(str::to_owned)
            .chain([format!("\"{}\"", "x".repeat(256))])
        {
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
}
