//! The `claims` parameter. It never reaches further than the client's scopes, never allows nobody,
//! and an `acr` that tokens tell of was asked for or is that of the sign-in.
#![no_main]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use gatepost::protocol::authorize::requested_claims::RequestedClaims;
use gatepost::protocol::words::catalogue::Catalogue;
use gatepost::protocol::words::client::Client;
use gatepost_fuzz::{catalogue, client};
use libfuzzer_sys::fuzz_target;

static CLIENT: LazyLock<Client> = LazyLock::new(client);
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(catalogue);

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(requested) = RequestedClaims::parse(text, &CLIENT, &CATALOGUE) else {
        return;
    };
    let scopes = CLIENT
        .scope
        .iter()
        .filter_map(|name| CATALOGUE.scopes.get(name));
    let reach: BTreeSet<&String> = scopes.flat_map(|scope| &scope.claims).collect();
    let names = requested.names();
    assert!(
        names
            .iter()
            .all(|name| reach.contains(name) && name != "sub"),
        "{names:?}"
    );
    assert!(
        requested
            .subjects
            .as_ref()
            .is_none_or(|subjects| !subjects.is_empty())
    );
    for acr in ["0", "1", "2", "mfa"] {
        let told = requested.acr_claim(acr);
        let wanted = requested.essential_acr.as_ref();
        assert!(told == acr || wanted.is_some_and(|values| values.contains(told)));
    }
});
