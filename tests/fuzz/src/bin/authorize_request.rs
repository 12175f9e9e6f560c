//! The query of the authorization endpoint. Whatever it says, the answer goes to a registered
//! redirect URI or to our own page, and a request that is taken asks for nothing that the client is not
//! registered for. Read again as the pages carry it, it is the same request.
#![no_main]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use gatepost::protocol::authorize::authorize_request::{
    AuthorizeError, Ending, ReturnPath, known, validate,
};
use gatepost::protocol::words::catalogue::Catalogue;
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::parameters::Parameters;
use gatepost::protocol::words::response_type::ResponseMode;
use gatepost_fuzz::{NOW, REDIRECT_URIS, catalogue, client};
use libfuzzer_sys::fuzz_target;

static CLIENT: LazyLock<Client> = LazyLock::new(client);
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(catalogue);

fn check(path: &ReturnPath) {
    let uri = path.to.uri();
    let loopback = ["http://127.0.0.1", "http://[::1]"].map(|origin| uri.strip_prefix(origin));
    let is_loopback = loopback.into_iter().flatten().any(|rest| {
        let rest = rest
            .trim_start_matches(':')
            .trim_start_matches(|digit: char| digit.is_ascii_digit());
        rest == "/cb"
    });
    assert!(REDIRECT_URIS.contains(&uri) || is_loopback, "{uri}");
}

fuzz_target!(|data: &[u8]| {
    let Ok(parameters) = Parameters::parse(data) else {
        return;
    };
    let judged = validate(&parameters, &CLIENT, &CATALOGUE, NOW);
    match judged {
        Ok(request) => {
            let again = validate(&known(&parameters), &CLIENT, &CATALOGUE, NOW);
            assert_eq!(again.as_ref(), Ok(&request), "carried by the pages");
            let Ending::Client(path) = &request.ending else {
                panic!("an authorization request ends at its client");
            };
            check(path);
            assert!(request.scope.is_within(&CLIENT.scope));
            assert!(CLIENT.response_types.contains(&request.response_type));
            let is_told = request.response_type.returns_tokens();
            assert!(
                !is_told || path.mode != ResponseMode::Query,
                "tokens in a query"
            );
            let resources: BTreeSet<&String> = request.resources.iter().collect();
            assert_eq!(resources.len(), request.resources.len());
            assert!(
                resources
                    .iter()
                    .all(|name| CATALOGUE.resources.contains_key(*name))
            );
        }
        Err(AuthorizeError::Redirect(path, _)) => check(&path),
        Err(AuthorizeError::Page { .. }) => {}
    }
});
