//! Claims that two scopes of a client fill differently.

use std::collections::BTreeMap;

use gatepost_protocol::token::claims::{in_order, source_of};
use gatepost_protocol::words::catalogue::{Catalogue, RegisteredScope};
use gatepost_protocol::words::scope::{ScopeKind, ScopeSet};

/// A claim that two scopes of a client fill from different claims of a person.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContestedClaim<'a> {
    pub name: &'a str,
    /// The scope that counts where both are granted.
    pub of: &'a str,
    pub instead_of: &'a str,
}

impl ContestedClaim<'_> {
    /// As a line tells it.
    pub fn rule(&self) -> String {
        let ContestedClaim {
            name,
            of,
            instead_of,
        } = self;
        format!(
            "the claim {name} is that of the scope {of}, not that of {instead_of}: of two scopes \
             the first in the client's \"scope\" counts, and built-in ones count last"
        )
    }
}

/// What a client of these scopes gets from one scope although another one would give it otherwise.
pub fn contested_claims<'a>(reach: &ScopeSet, catalogue: &'a Catalogue) -> Vec<ContestedClaim<'a>> {
    let mut contested = Vec::new();
    for kind in [ScopeKind::Identity, ScopeKind::Resource] {
        // By claim: the scope that it counts of.
        let mut counting: BTreeMap<&str, &RegisteredScope> = BTreeMap::new();
        for registered in in_order(reach, reach, kind, catalogue) {
            for name in &registered.claims {
                let of = *counting.entry(name).or_insert(registered);
                if source_of(name, &of.renamed) != source_of(name, &registered.renamed) {
                    contested.push(ContestedClaim {
                        name,
                        of: &of.name,
                        instead_of: &registered.name,
                    });
                }
            }
        }
    }
    contested
}

#[cfg(test)]
mod tests {
    use gatepost_protocol::words::samples::{registered_scope, scope};

    use super::*;

    #[test]
    fn the_first_of_two_scopes_counts() {
        let mut catalogue = Catalogue::default();
        for (name, source) in [("groups", "groups"), ("short", "short_name")] {
            let mut own = registered_scope(name, ScopeKind::Identity, &["groups"], &[]);
            own.renamed = BTreeMap::from([(String::from("groups"), String::from(source))]);
            own.is_built_in = name == "groups";
            catalogue.scopes.insert(own.name.clone(), own);
        }
        let contested = contested_claims(&scope("groups short"), &catalogue);
        let expected = ContestedClaim {
            name: "groups",
            of: "short",
            instead_of: "groups",
        };
        assert_eq!(contested, [expected]);
        assert_eq!(contested_claims(&scope("openid groups"), &catalogue), []);
    }
}
