//! What SQL functions answer. An error tells names of members and nothing else of the answer; a
//! description fits `error_description`.
#![no_main]

use gatepost::protocol::token::extension_grant::GrantAnswer;
use gatepost::protocol::token::function_answer::read;
use gatepost_fuzz::secrets;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(answer) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let names: Vec<&str> = answer
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    match read(&answer) {
        Err(error) => {
            for text in secrets(&answer, &names) {
                let is_name = names.iter().any(|name| name.contains(text));
                assert!(is_name || !error.contains(text), "{error} tells {text}");
            }
        }
        Ok(GrantAnswer::Refuse(refusal)) => {
            let allowed = |byte: u8| matches!(byte, 0x20..=0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            let description = refusal
                .description
                .as_ref()
                .map_or("", |text| text.as_str());
            assert!(description.bytes().all(allowed) && description.len() <= 200);
            assert!(answer.get("subject").is_none_or(Value::is_null));
        }
        Ok(GrantAnswer::Exchange(_)) => panic!("a function exchanges no token"),
        Ok(GrantAnswer::Propose(proposal)) => {
            assert!(answer.get("error").is_none_or(Value::is_null));
            let subject = answer.get("subject").and_then(Value::as_str);
            assert_eq!(
                proposal.subject.as_ref().map(|subject| subject.as_str()),
                subject
            );
        }
    }
});
