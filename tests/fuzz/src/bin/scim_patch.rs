//! Bodies of SCIM's POST and PATCH. Whatever is sent, each attribute keeps its shape; and what a
//! user then shows is read back as what they have.
#![no_main]

use gatepost::manage::scim::attribute::{Shape, UserAttribute, UserAttributes};
use gatepost::manage::scim::patch::patched;
use gatepost::manage::scim::projection::Projection;
use gatepost::manage::scim::resource::{attributes, changed_to, new_user, read, replaced_by, show};
use gatepost::manage::statements::scim_users::ScimUser;
use gatepost::protocol::words::identifiers::Subject;
use gatepost::protocol::words::strength::Strength;
use gatepost::store::users::UserRow;
use gatepost_fuzz::NOW;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fn alice() -> ScimUser {
    let claims = json!({
        "email": "alice@example.com", "email_verified": true, "name": "Alice", "role": ["buyer", "clerk"],
        "phone_number": "+49 30 1",
    });
    ScimUser {
        row: UserRow {
            sub: Subject::new("alice-subject"),
            username: Some(String::from("alice")),
            tenant: None,
            password_hash: None,
            enabled: true,
            valid_until: None,
            has_ended: false,
            claims: claims.as_object().cloned().unwrap_or_default(),
            epoch: 0,
            factors: 0,
            strongest_acr: Strength::SignedIn,
        },
        external_id: Some(String::from("4711")),
        created_at: NOW,
        updated_at: NOW,
        version: String::from("1"),
    }
}

fn check_shapes(attributes: &UserAttributes) {
    let is_text = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| !text.is_empty() && !text.contains('\0'))
    };
    for (attribute, value) in attributes {
        let fits = match attribute.shape() {
            Shape::Text | Shape::OneElement => is_text(value),
            Shape::Flag => value.is_boolean(),
            Shape::Elements => value.as_array().is_some_and(|values| {
                (1..=200).contains(&values.len()) && values.iter().all(is_text)
            }),
        };
        assert!(fits, "{attribute:?}: {value}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(body) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let alice = alice();
    if let Ok(sent) = read(&body) {
        check_shapes(&sent);
        let _ = new_user(Subject::new("new"), &sent);
        let _ = changed_to(&alice, &replaced_by(&alice, &sent, &body));
    }
    let Ok(wanted) = patched(&attributes(&alice), &body) else {
        return;
    };
    check_shapes(&wanted);
    let Ok(changed) = changed_to(&alice, &wanted) else {
        return;
    };
    let shown = show(
        &changed,
        "https://login.example/scim/1",
        &Projection::new(None, None),
    );
    let has = attributes(&changed);
    assert_eq!(read(&Value::Object(shown)), Ok(has.clone()));
    assert!(!has.contains_key(&UserAttribute::Password));
});
