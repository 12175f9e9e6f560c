//! SCIM filters. A filter that is read, written anew and read again is the same filter; it asks for
//! nothing with a NUL; and a refusal repeats nothing of it.
#![no_main]

use gatepost::manage::scim::error::ScimType;
use gatepost::manage::scim::filter::parse;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let filter = match parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert_eq!(
                (error.status, error.scim_type),
                (400, Some(ScimType::InvalidFilter))
            );
            // libFuzzer learns our own sentences, and none of them has a digit.
            let is_theirs = text.len() >= 12 && text.bytes().any(|byte| byte.is_ascii_digit());
            assert!(!is_theirs || !error.detail.contains(text));
            return;
        }
    };
    let names = [
        ("id", &filter.id),
        ("userName", &filter.user_name),
        ("externalId", &filter.external_id),
        ("emails.value", &filter.email),
    ];
    let mut written = Vec::new();
    for (name, value) in names {
        if let Some(value) = value {
            assert!(!value.contains('\0'));
            written.push(format!("{name} eq {}", json!(value)));
        }
    }
    if let Some(active) = filter.active {
        written.push(format!("active eq {active}"));
    }
    assert!(!written.is_empty(), "a filter asks for something");
    assert_eq!(parse(&written.join(" and ")), Ok(filter));
});
