//! Which claims of a person a client gets, and where: for `gatepost client test`. Software that
//! reads the ID token alone shows nobody's name unless the client is registered for that.

use std::collections::BTreeMap;

use gatepost_protocol::token::audience::resources_behind;
use gatepost_protocol::token::claims::{
    ClaimSources, PREFERRED_USERNAME, identity_claims, resource_claims,
};
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::scope::OPENID;
use gatepost_registration::contested_claims::contested_claims;
use gatepost_registration::finding::Finding;
use gatepost_registration::fine;
use gatepost_registration::plan::UNLESS_ASKED;

/// A line for each place, if the client asks for the whole scope that it is registered for.
pub fn released_claims(client: &Client, catalogue: &Catalogue) -> Vec<Finding> {
    let scope = &client.scope;
    if !scope.contains(OPENID) {
        return Vec::new();
    }
    let of_identity = identity_claims(scope, &[], scope, catalogue);
    let resources = resources_behind(scope, catalogue);
    let audience: Vec<String> = resources.into_iter().map(str::to_owned).collect();
    let of_resources = resource_claims(scope, scope, &audience, catalogue);
    let in_id_token = if client.always_include_user_claims_in_id_token {
        told("in the ID token", &of_identity)
    } else {
        let told = "claims of a person in the ID token: sub";
        fine!("{told}; {UNLESS_ASKED}")
    };
    let mut findings = vec![
        in_id_token,
        told("at UserInfo", &of_identity),
        told("in the access token", &of_resources),
    ];
    for contested in contested_claims(scope, catalogue) {
        findings.push(Finding::fine(contested.rule()));
    }
    let sources = [of_identity, of_resources];
    let mut sources = sources.iter().flat_map(BTreeMap::values);
    let is_of_several = !catalogue.tenants.is_empty() && client.only_tenant().is_none();
    if is_of_several && sources.any(|source| *source == PREFERRED_USERNAME) {
        findings.push(fine!(
            "preferred_username is the user name of people without a tenant. People of a tenant \
             have it only where a claim says so, or at a client whose \"tenants\" is that one: \
             user names are unique within a tenant alone"
        ));
    }
    findings
}

fn told(place: &str, claims: &ClaimSources<'_>) -> Finding {
    let mut names = vec!["sub"];
    names.extend(claims.keys().copied());
    fine!("claims of a person {place}: {}", names.join(", "))
}
