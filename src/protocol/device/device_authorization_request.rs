//! The device authorization request (RFC 8628 §3.1), read once and held against the registration.

use crate::protocol::token::audience::narrow;
use crate::protocol::token::token_request::{resources, scope};
use crate::protocol::words::acr_values::AcrValues;
use crate::protocol::words::client::Client;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::lengths;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::scope::{Catalogue, ScopeSet};
use crate::protocol::words::user_scope::requested_scope;

/// None of them may stand in the URL.
pub const PARAMETERS: [&str; 7] =
    ["client_id", "client_secret", "client_assertion", "client_assertion_type", "scope", "resource", "acr_values"];

/// These may be sent once only.
pub const SINGLE_PARAMETERS: [&str; 6] =
    ["client_id", "client_secret", "client_assertion", "client_assertion_type", "scope", "acr_values"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceAuthorizationRequest {
    pub scope: ScopeSet,
    pub resources: Vec<String>,
    /// As sent: read again when the user comes.
    pub acr_values: Option<String>,
}

impl DeviceAuthorizationRequest {
    pub fn from_form(
        parameters: &Parameters,
        client: &Client,
        catalogue: &Catalogue,
        issuer: &str,
    ) -> Result<DeviceAuthorizationRequest, TokenError> {
        let acr_values = parameters.bounded("acr_values", lengths::OTHER).map_err(invalid_request)?;
        let scope = requested_scope(scope(parameters)?.as_ref(), client, catalogue)?;
        let resources = resources(parameters)?;
        AcrValues::parse(acr_values, client, catalogue).map_err(invalid_request)?;
        narrow(&scope, &resources, &[], catalogue, issuer)?;
        Ok(DeviceAuthorizationRequest { scope, resources, acr_values: acr_values.map(str::to_owned) })
    }
}

fn invalid_request(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidRequest, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples::{self, catalogue};

    fn asked(pairs: &[(&str, &str)]) -> Result<DeviceAuthorizationRequest, (&'static str, Reason)> {
        let parameters = Parameters::from_pairs(pairs.iter().copied());
        let request = DeviceAuthorizationRequest::from_form(
            &parameters,
            &samples::client(),
            &catalogue(),
            "https://op.example/idp",
        );
        request.map_err(|error| (error.code.as_str(), error.reason))
    }

    #[test]
    fn what_cannot_be_had_is_refused_at_once() {
        let long = "a".repeat(301);
        for (pair, expected) in [
            (("scope", "openid nope"), ("invalid_scope", Reason::UnknownScope)),
            (("scope", "\""), ("invalid_scope", Reason::UnknownScope)),
            (("resource", "https://other.example/"), ("invalid_target", Reason::InvalidTarget)),
            (("acr_values", &long), ("invalid_request", Reason::OverlongParameter)),
        ] {
            assert_eq!(asked(&[pair]), Err(expected), "{pair:?}");
        }
    }
}
