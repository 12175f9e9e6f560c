//! Any document at all.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::super::document::keys;
use super::read;

/// Any JSON whose keys are often ours.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(
            &[
                "https://a.example/cb",
                "code",
                "openid",
                "password",
                "2027-01-01T00:00:00Z"
            ][..]
        )
        .prop_map(Value::from),
    ];
    let keys: BTreeSet<String> = keys()
        .into_iter()
        .flat_map(|(list, keys)| keys.into_iter().chain([list.to_owned()]))
        .collect();
    let key = prop_oneof![
        prop::sample::select(keys.into_iter().collect::<Vec<_>>()),
        ".{0,8}",
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_makes_it_panic_and_a_problem_is_one_line(document in any_json()) {
        for problem in read(&document).err().into_iter().flatten() {
            prop_assert!(!problem.to_string().chars().any(char::is_control), "{problem:?}");
        }
    }
}
