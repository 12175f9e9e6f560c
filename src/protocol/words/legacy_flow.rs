//! Flows that OAuth 2.1 has no more: which of them a client is registered for, and how long it may
//! use them.

use super::client::{Client, CodeBinding, GrantType};
use super::identifiers::ClientId;
use super::instant::Instant;
use super::named::named;

/// The client's key that ends them.
pub const LEGACY_UNTIL: &str = "legacy_until";

named! {
    /// The names are those in `flow_uses`, and those of the weak settings.
    #[derive(PartialOrd, Ord)]
    pub enum LegacyFlow {
        /// A response type with `token` (RFC 9700 §2.1.2).
        TokenThroughBrowser = "tokens through the browser",
        /// The grant type `password` (RFC 9700 §2.4).
        Password = "password grant",
        /// No `code_challenge`, and no nonce that comes back (RFC 9700 §2.1.1).
        Unbound = "neither PKCE nor nonce",
        /// `code_challenge_method=plain` (RFC 7636 §4.2)
        PlainPkce = "plain PKCE",
    }
}

/// A flow, and who used it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowUse {
    pub client_id: ClientId,
    pub flow: LegacyFlow,
}

impl Client {
    /// Whether the last day is over on which it may use them.
    pub fn legacy_is_over(&self, now: Instant) -> bool {
        self.legacy_until.is_some_and(|last| now.day() > last)
    }

    pub fn legacy_flows(&self) -> Vec<LegacyFlow> {
        let mut flows = Vec::new();
        if self.response_types.iter().any(|kind| kind.token) {
            flows.push(LegacyFlow::TokenThroughBrowser);
        }
        if self.allows_grant(&GrantType::Password) {
            flows.push(LegacyFlow::Password);
        }
        let uses_code = self.response_types.iter().any(|kind| kind.code);
        if uses_code && self.code_binding() == CodeBinding::Neither {
            flows.push(LegacyFlow::Unbound);
        }
        if uses_code && self.allow_plain_pkce {
            flows.push(LegacyFlow::PlainPkce);
        }
        flows
    }
}
