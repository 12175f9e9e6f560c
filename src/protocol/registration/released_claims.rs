//! `claims` of scopes and resources: which of the user's claims go out, and under which names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::own_claim;
use super::walker::{Check, Walker, expected};

/// An array of names, or an object from the name a user's claim has to the one it goes out under. Answers the names that
/// go out, and for those that differ the user's.
pub(super) fn released_claims(walker: &mut Walker<'_, '_>, check: Check) -> (Vec<String>, BTreeMap<String, String>) {
    let Some(Value::Object(pairs)) = walker.value("claims") else {
        return (walker.strings("claims", check).unwrap_or_default(), BTreeMap::new());
    };
    let place = walker.place("claims");
    let (mut names, mut renamed) = (Vec::new(), BTreeMap::new());
    for (source, name) in pairs {
        let place = format!("{place}.{}", source.escape_debug());
        let Some(name) = name.as_str() else {
            walker.note(place, expected("a string", name));
            continue;
        };
        match own_claim(source).and_then(|()| check(name)) {
            Ok(()) if names.iter().any(|known| known == name) => {
                walker.note(place, "goes out under a name that another has")
            }
            Ok(()) => {
                names.push(name.to_owned());
                if name != source {
                    renamed.insert(name.to_owned(), source.clone());
                }
            }
            Err(rule) => walker.note(place, rule),
        }
    }
    (names, renamed)
}
