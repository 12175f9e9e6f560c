//! The request of an extension grant (RFC 6749 §4.5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{invalid_request, resources, scope, targets};
use crate::words::client::GrantType;
use crate::words::json::{JsonObject, SetMember};
use crate::words::parameters::{self, Parameters};
use crate::words::reason::{Reason, Result};
use crate::words::scope::ScopeSet;

/// The client's own credentials. They are not handed on to the grant.
const CLIENT_PROOF: [&str; 3] = ["client_secret", "client_assertion", "client_assertion_type"];

#[derive(Clone, PartialEq, Eq)]
pub struct ExtensionRequest {
    pub grant_type: String,
    pub scope: Option<ScopeSet>,
    pub resources: Vec<String>,
    /// `audience` (RFC 8693 §2.1), each one once. Only for token exchange.
    pub audiences: Vec<String>,
    /// All other parameters with a value, without the client's credentials.
    parameters: BTreeMap<String, String>,
}

impl ExtensionRequest {
    /// The value of a parameter; `None` also where it was sent empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The request as JSON: each parameter is a text, `resource` an array.
    pub fn to_json(&self) -> JsonObject {
        let mut members = JsonObject::new();
        for (name, value) in &self.parameters {
            members.set(name, value.as_str());
        }
        members.set("grant_type", self.grant_type.as_str());
        if let Some(scope) = &self.scope {
            members.set("scope", scope.to_string());
        }
        if !self.resources.is_empty() {
            members.set("resource", self.resources.as_slice());
        }
        members
    }
}

/// Only names are printed: parameters of an extension grant are often credentials.
impl fmt::Debug for ExtensionRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.parameters.keys().collect();
        formatter
            .debug_struct("ExtensionRequest")
            .field("grant_type", &self.grant_type)
            .field("names", &names)
            .finish()
    }
}

/// Reads the request. No parameter may be repeated, known or not: nobody could tell which value
/// counts.
pub(crate) fn read(parameters: &Parameters, grant_type: &GrantType) -> Result<ExtensionRequest> {
    let exchange = *grant_type == GrantType::TokenExchange;
    let own = own_parameters(parameters, exchange)?;
    Ok(ExtensionRequest {
        grant_type: grant_type.as_str().to_owned(),
        scope: scope(parameters)?,
        resources: resources(parameters)?,
        audiences: if exchange {
            targets(parameters, "audience")?
        } else {
            Vec::new()
        },
        parameters: own,
    })
}

/// The parameters that are handed on to the grant.
fn own_parameters(parameters: &Parameters, exchange: bool) -> Result<BTreeMap<String, String>> {
    let mut seen = BTreeSet::new();
    let mut own = BTreeMap::new();
    // One pass over all, so that thousands of parameters cost no quadratic time.
    for (name, value) in parameters.iter() {
        if name == "resource" || exchange && name == "audience" {
            continue;
        }
        if !seen.insert(name) {
            return Err(invalid_request(Reason::RepeatedParameter));
        }
        if is_longer(value, longest(name)) {
            return Err(invalid_request(Reason::OverlongParameter));
        }
        if !value.is_empty()
            && !CLIENT_PROOF.contains(&name)
            && !matches!(name, "grant_type" | "scope")
        {
            own.insert(name.to_owned(), value.to_owned());
        }
    }
    if own.keys().any(|name| is_longer(name, parameters::OTHER)) {
        return Err(invalid_request(Reason::OverlongParameter));
    }
    Ok(own)
}

fn is_longer(text: &str, most: usize) -> bool {
    text.chars().nth(most).is_some()
}

fn longest(name: &str) -> usize {
    match name {
        "scope" => parameters::SCOPE,
        "assertion" | "client_assertion" => parameters::ASSERTION,
        "subject_token" | "actor_token" => parameters::HANDLE,
        _ => parameters::OTHER,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NAME: &str = "urn:example:legacy-key";

    fn extension(pairs: &[(&str, &str)]) -> Result<ExtensionRequest, Reason> {
        let grant_type = GrantType::Extension(String::from(NAME));
        read(&Parameters::from_pairs(pairs.iter().copied()), &grant_type)
            .map_err(|error| error.reason)
    }

    #[test]
    fn what_was_sent_is_not_printed_and_what_proves_the_client_is_not_seen() {
        let pairs = [
            ("grant_type", NAME),
            ("client_secret", "s3cret"),
            ("api_key", "k-1"),
            ("empty", ""),
        ];
        let request = extension(&pairs).unwrap();
        let seen = ["api_key", "empty", "client_secret"].map(|name| request.parameter(name));
        assert_eq!(seen, [Some("k-1"), None, None]);
        assert_eq!(
            Value::Object(request.to_json()),
            json!({"grant_type": NAME, "api_key": "k-1"})
        );
        let printed = format!("{request:?}");
        assert!(printed.contains("api_key") && !printed.contains("k-1"));
    }

    #[test]
    fn thousands_of_parameters_are_read_and_none_of_them_twice() {
        let names: Vec<String> = (0..20_000).map(|number| format!("p{number}")).collect();
        let mut pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
        assert_eq!(extension(&pairs).unwrap().parameters.len(), 20_000);
        pairs.push(("p7", ""));
        assert_eq!(extension(&pairs), Err(Reason::RepeatedParameter));
    }

    #[test]
    fn everything_has_a_bound() {
        let (long, longer, longest) = ("x".repeat(301), "x".repeat(8_193), "x".repeat(16_385));
        for (name, value) in [
            ("api_key", &long),
            ("subject_token", &longer),
            ("assertion", &longest),
            (&long, &long),
        ] {
            assert_eq!(
                extension(&[(name, value)]),
                Err(Reason::OverlongParameter),
                "{name}"
            );
        }
        assert_eq!(extension(&[(&long, "x")]), Err(Reason::OverlongParameter));
        assert!(
            extension(&[
                ("assertion", &longer),
                ("subject_token", &longer[1..]),
                ("api_key", &long[1..]),
                ("scope", &long)
            ])
            .is_ok()
        );
    }
}
