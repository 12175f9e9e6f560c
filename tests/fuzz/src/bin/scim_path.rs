//! Paths of SCIM's PATCH. What a path leads to, written as a path, leads to the same.
#![no_main]

use gatepost::manage::scim::attribute_path::{Target, attribute_at, target};
use gatepost::manage::scim::projection::Projection;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    Projection::new(Some(text), Some(text)).shows_meta();
    if let Some(attribute) = attribute_at(text) {
        assert_eq!(attribute_at(attribute.as_str()), Some(attribute));
    }
    let Ok(found) = target(text) else {
        return;
    };
    let written = match &found {
        Target::Attribute(attribute) => attribute.as_str().to_owned(),
        Target::Element(attribute, value) => {
            format!("{}[value eq {}]", attribute.whole(), json!(value))
        }
        Target::Attributes(below) => (*below).to_owned(),
        Target::NotKept => return,
    };
    assert_eq!(target(&written), Ok(found), "{written}");
});
