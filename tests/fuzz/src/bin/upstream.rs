//! What identity providers answer: the first byte says whether it is their metadata, the answer of
//! the token endpoint, or the query that the browser comes back with. Metadata that is believed
//! names addresses that are protected, and the issuer that was asked for.
#![no_main]

use gatepost::protocol::upstream::{answers, metadata};
use gatepost::protocol::words::parameters::Parameters;
use gatepost::protocol::words::web_url::WebUrl;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const ISSUER: &str = "https://up.example";

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind {
        b'm' => {
            let Ok(document) = serde_json::from_slice::<Value>(rest) else {
                return;
            };
            let Ok(read) = metadata::read(&document, ISSUER) else {
                return;
            };
            assert_eq!(document["issuer"], ISSUER);
            assert!(!read.algorithms.is_empty());
            let optional = [&read.userinfo_endpoint, &read.end_session_endpoint];
            let required = [
                &read.authorization_endpoint,
                &read.token_endpoint,
                &read.jwks_uri,
            ];
            for address in optional.into_iter().flatten().chain(required) {
                let url = WebUrl::parse(address).expect("an address");
                assert!(url.is_protected(), "{address}");
            }
        }
        b't' => {
            if let Ok(tokens) = answers::tokens(200, None, rest) {
                let token = tokens.access_token.expose();
                assert!(!token.is_empty() && !token.contains(char::is_control));
            }
            let form = Some("application/x-www-form-urlencoded");
            let _ = answers::tokens(200, form, rest);
            let _ = answers::tokens(400, None, rest);
        }
        _ => {
            let Ok(parameters) = Parameters::parse(rest) else {
                return;
            };
            if let Ok(code) = answers::code(&parameters, Some(ISSUER), true) {
                assert_eq!(parameters.single("code"), Ok(Some(code.expose())));
                assert_eq!(parameters.single("iss"), Ok(Some(ISSUER)));
            }
        }
    }
});
