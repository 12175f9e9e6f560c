//! The `claims` parameter (OpenID Connect Core §5.5). A client gets a claim that it asks for only
//! if one of its identity scopes has that claim, so the parameter never reaches further than the
//! client's scopes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::words::catalogue::Catalogue;
use crate::words::client::Client;
use crate::words::identifiers::Subject;
use crate::words::json::JsonObject;
use crate::words::reason::Reason;
use crate::words::scope::ScopeKind;
use crate::words::strength::{Strength, reaches};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedClaims {
    pub userinfo: BTreeSet<String>,
    pub id_token: BTreeSet<String>,
    /// The subjects that may sign in, where the request names any.
    pub subjects: Option<BTreeSet<Subject>>,
    /// The sign-in must reach one of these, where the request has an essential `acr`.
    pub essential_acr: Option<BTreeSet<String>>,
}

impl RequestedClaims {
    /// Reads the parameter. JSON of another form than §5.5 says is `MalformedClaims`.
    pub fn parse(
        text: &str,
        client: &Client,
        catalogue: &Catalogue,
    ) -> Result<RequestedClaims, Reason> {
        let document: JsonObject =
            serde_json::from_str(text).map_err(|_| Reason::MalformedClaims)?;
        let userinfo = Member::read(document.get("userinfo"))?;
        let id_token = Member::read(document.get("id_token"))?;
        Ok(RequestedClaims {
            userinfo: userinfo.names_within(client, catalogue),
            id_token: id_token.names_within(client, catalogue),
            subjects: subjects(&userinfo, &id_token)?,
            essential_acr: both(userinfo.essential_acr(), id_token.essential_acr()),
        })
    }

    /// The names of all requested claims. The consent page asks for them.
    pub fn names(&self) -> BTreeSet<String> {
        self.userinfo.union(&self.id_token).cloned().collect()
    }

    pub fn allows_subject(&self, subject: &Subject) -> bool {
        self.subjects
            .as_ref()
            .is_none_or(|subjects| subjects.contains(subject))
    }

    pub fn is_met_by(&self, acr: &str) -> bool {
        self.essential_acr
            .as_ref()
            .is_none_or(|values| values.iter().any(|wanted| reaches(acr, wanted)))
    }

    /// The `acr` claim of tokens for a sign-in of `acr`. With an essential `acr`, this is the
    /// strongest requested value that the sign-in reaches (§5.5.1.1).
    pub fn acr_claim<'a>(&'a self, acr: &'a str) -> &'a str {
        let reached = self
            .essential_acr
            .iter()
            .flatten()
            .map(String::as_str)
            .filter(|wanted| reaches(acr, wanted));
        reached
            .max_by_key(|wanted| (Strength::of(wanted), *wanted == acr))
            .unwrap_or(acr)
    }
}

/// `userinfo` or `id_token`: claim names, and what the client wishes of each.
#[derive(Default)]
struct Member(Vec<(String, Wish)>);

/// The object beside a claim's name. `null` is the default.
#[derive(Default)]
struct Wish {
    essential: bool,
    /// `value` and `values` together.
    values: Option<Vec<Value>>,
}

impl Member {
    fn read(member: Option<&Value>) -> Result<Member, Reason> {
        let Some(member) = member.filter(|member| !member.is_null()) else {
            return Ok(Member::default());
        };
        let object = member.as_object().ok_or(Reason::MalformedClaims)?;
        let mut wishes = Vec::new();
        for (name, wish) in object {
            wishes.push((name.clone(), Wish::read(wish)?));
        }
        Ok(Member(wishes))
    }

    fn names_within(&self, client: &Client, catalogue: &Catalogue) -> BTreeSet<String> {
        let allowed = claims_within_reach(client, catalogue);
        let mut names = BTreeSet::new();
        for (name, _) in &self.0 {
            if allowed.contains(name.as_str()) {
                names.insert(name.clone());
            }
        }
        names
    }

    fn wish(&self, name: &str) -> Option<&Wish> {
        let (_, wish) = self.0.iter().find(|(known, _)| known == name)?;
        Some(wish)
    }

    /// The values of an essential `acr`. `None` where any value will do.
    fn essential_acr(&self) -> Option<BTreeSet<String>> {
        let values = self
            .wish("acr")
            .filter(|wish| wish.essential)?
            .values
            .as_ref()?;
        Some(
            values
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        )
    }

    fn subjects(&self) -> Result<Option<BTreeSet<Subject>>, Reason> {
        let Some(values) = self.wish("sub").and_then(|wish| wish.values.as_ref()) else {
            return Ok(None);
        };
        let subjects = values.iter().map(|value| value.as_str().map(Subject::new));
        subjects
            .collect::<Option<BTreeSet<Subject>>>()
            .map(Some)
            .ok_or(Reason::MalformedClaims)
    }
}

impl Wish {
    fn read(wish: &Value) -> Result<Wish, Reason> {
        if wish.is_null() {
            return Ok(Wish::default());
        }
        let object = wish.as_object().ok_or(Reason::MalformedClaims)?;
        let essential = object
            .get("essential")
            .map_or(Some(false), Value::as_bool)
            .ok_or(Reason::MalformedClaims)?;
        let listed = object
            .get("values")
            .map(|values| values.as_array().cloned().ok_or(Reason::MalformedClaims));
        let values = match (object.get("value"), listed.transpose()?) {
            (None, listed) => listed,
            (Some(value), None) => Some(vec![value.clone()]),
            // §5.5.1 does not say what both together mean.
            (Some(_), Some(_)) => return Err(Reason::MalformedClaims),
        };
        Ok(Wish { essential, values })
    }
}

/// The claims that the client's identity scopes have. `sub` is left out: every client gets it, and
/// nobody is asked.
fn claims_within_reach<'a>(client: &Client, catalogue: &'a Catalogue) -> BTreeSet<&'a str> {
    let mut claims = BTreeSet::new();
    for name in client.scope.iter() {
        if let Some(scope) = catalogue.scopes.get(name)
            && scope.kind == ScopeKind::Identity
        {
            claims.extend(scope.claims.iter().map(String::as_str));
        }
    }
    claims.remove("sub");
    claims
}

/// The subjects that both members allow. None left is `MalformedClaims`: the members contradict
/// each other.
fn subjects(userinfo: &Member, id_token: &Member) -> Result<Option<BTreeSet<Subject>>, Reason> {
    let subjects = both(userinfo.subjects()?, id_token.subjects()?);
    if subjects.as_ref().is_some_and(BTreeSet::is_empty) {
        Err(Reason::MalformedClaims)
    } else {
        Ok(subjects)
    }
}

fn both<T: Ord + Clone>(
    left: Option<BTreeSet<T>>,
    right: Option<BTreeSet<T>>,
) -> Option<BTreeSet<T>> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.intersection(&right).cloned().collect()),
        (Some(only), None) | (None, Some(only)) => Some(only),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::authorize_request::fixtures::{catalogue, client};
    use super::*;

    fn read(text: &str) -> Result<RequestedClaims, Reason> {
        RequestedClaims::parse(text, &client(), &catalogue())
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_an_essential_acr_with_values_binds() {
        let essential =
            read(r#"{"id_token": {"acr": {"essential": true, "values": ["loa2", "1"]}}}"#).unwrap();
        for (acr, acr_claim) in [
            ("1", "1"),
            ("2", "1"),
            ("phr", "1"),
            ("loa2", "loa2"),
            ("loa3", "1"),
        ] {
            assert!(
                essential.is_met_by(acr) && essential.acr_claim(acr) == acr_claim,
                "{acr}"
            );
        }
        let stronger =
            read(r#"{"id_token": {"acr": {"essential": true, "values": ["2", "phr", "loa2"]}}}"#)
                .unwrap();
        for (acr, met, acr_claim) in [
            ("1", false, "1"),
            ("2", true, "2"),
            ("phr", true, "phr"),
            ("loa2", true, "loa2"),
            ("loa3", false, "loa3"),
        ] {
            assert!(
                stronger.is_met_by(acr) == met && stronger.acr_claim(acr) == acr_claim,
                "{acr}"
            );
        }
        for text in [
            r#"{"id_token": {"acr": {"values": ["loa2"]}}}"#,
            r#"{"id_token": {"acr": {"essential": true}}}"#,
            r#"{"id_token": {"acr": null}}"#,
        ] {
            assert!(read(text).unwrap().is_met_by("0"), "{text}");
        }
        assert!(
            !read(r#"{"id_token": {"acr": {"essential": true, "value": 1}}}"#)
                .unwrap()
                .is_met_by("1")
        );
    }

    #[test]
    fn other_shapes_are_malformed() {
        #[rustfmt::skip]
        let rows = [
            "", "null", "[]", "\"x\"", "1", "{", "{} x", r#"{"userinfo": []}"#, r#"{"userinfo": "name"}"#,
            r#"{"id_token": 1}"#, r#"{"id_token": {"name": true}}"#, r#"{"id_token": {"name": "x"}}"#,
            r#"{"id_token": {"name": []}}"#, r#"{"id_token": {"name": {"essential": "yes"}}}"#,
            r#"{"id_token": {"name": {"essential": null}}}"#, r#"{"id_token": {"name": {"values": "x"}}}"#,
            r#"{"id_token": {"name": {"value": "x", "values": ["x"]}}}"#, r#"{"id_token": {"sub": {"value": 5}}}"#,
            r#"{"id_token": {"sub": {"values": []}}}"#,
            r#"{"id_token": {"sub": {"value": "a"}}, "userinfo": {"sub": {"value": "b"}}}"#,
        ];
        for text in rows {
            assert_eq!(read(text), Err(Reason::MalformedClaims), "{text}");
        }
        assert_eq!(read(&"[".repeat(4096)), Err(Reason::MalformedClaims));
        assert_eq!(
            read(&r#"{"id_token":"#.repeat(340)),
            Err(Reason::MalformedClaims)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,60}", json in r#"(\{"(userinfo|id_token|sub|acr|value|values|essential)":|\[|null|true|"a"|\}|\]|,){0,12}"#) {
            let _ = (read(&text), read(&json));
        }

        #[test]
        fn whatever_is_asked_stays_within_reach(asked in prop::collection::btree_set("[a-z_]{1,6}|name|email|role|sub", 0..6)) {
            let member: JsonObject = asked.iter().map(|name| (name.clone(), Value::Null)).collect();
            let claims = read(&serde_json::json!({"userinfo": member}).to_string()).unwrap();
            let reach = names(&["name", "given_name", "email"]);
            prop_assert_eq!(claims.userinfo, asked.intersection(&reach).cloned().collect::<BTreeSet<String>>());
        }
    }
}
