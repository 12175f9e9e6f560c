//! The form of the token endpoint, with the header `Authorization`: the first line is the header,
//! where there is one, and the rest the form. No client has two ways to name itself, and the error
//! is one that the token endpoint may answer.
#![no_main]

use std::sync::LazyLock;

use gatepost::protocol::token::client_authentication::PresentedClient;
use gatepost::protocol::token::token_exchange;
use gatepost::protocol::token::token_request::{PARAMETERS, TokenRequest};
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::parameters::Parameters;
use gatepost::protocol::words::reason::TokenErrorCode;
use gatepost_fuzz::client;
use libfuzzer_sys::fuzz_target;

const NOW: Instant = Instant::from_seconds(1_800_000_000);
static CLIENT: LazyLock<Client> = LazyLock::new(client);

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    let (header, form) = match second {
        Some(form) => (str::from_utf8(first).ok(), form),
        None => (None, first),
    };
    let Ok(parameters) = Parameters::parse(form) else {
        return;
    };
    match PresentedClient::from_request(header.as_slice(), &parameters) {
        Ok(presented) => {
            // What is sent empty is not sent (RFC 6749 §3.2).
            let is_in_form = parameters.single("client_secret") != Ok(None);
            assert!(!is_in_form || header.is_none(), "two secrets");
            assert!(presented.assertion.is_none() || presented.secret.is_none());
            assert!(!presented.client_id.as_str().is_empty());
        }
        Err(failure) => {
            let codes = [
                TokenErrorCode::InvalidClient,
                TokenErrorCode::InvalidRequest,
            ];
            assert!(codes.contains(&failure.error.code), "{failure:?}");
        }
    }
    let is_extension = |name: &str| name == "urn:example:own";
    if let Ok(TokenRequest::Extension(request)) =
        TokenRequest::from_form(&parameters, &CLIENT, is_extension, NOW)
    {
        let _ = token_exchange::read(&request);
    }
    for name in PARAMETERS {
        let _ = parameters.single(name);
    }
});
