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

#[cfg(test)]
mod tests {
    use super::super::instant::Day;
    use super::super::response_type::ResponseType;
    use super::super::samples::{self, NOW};
    use super::*;

    #[test]
    fn the_last_day_counts_to_its_end() {
        for (until, is_over) in [
            (None, false),
            (Some(NOW.day().0 - 1), true),
            (Some(NOW.day().0), false),
            (Some(NOW.day().0 + 1), false),
        ] {
            let client = Client {
                legacy_until: until.map(Day),
                ..samples::client()
            };
            assert_eq!(client.legacy_is_over(NOW), is_over, "{until:?}");
        }
    }

    #[test]
    fn a_registration_says_which_flows_it_is_for() {
        let flows = |change: fn(&mut Client)| {
            let mut client = samples::client();
            change(&mut client);
            client.legacy_flows()
        };
        let id_token_alone = |client: &mut Client| {
            client.response_types = [ResponseType::parse("id_token").unwrap()].into();
            client.require_pkce = Some(false);
            client.allow_plain_pkce = true;
        };
        assert_eq!(flows(|_| ()), []);
        assert_eq!(flows(id_token_alone), []);
        assert_eq!(
            flows(|client| client.require_pkce = Some(false)),
            [LegacyFlow::Unbound]
        );
        assert_eq!(
            flows(|client| client.allow_plain_pkce = true),
            [LegacyFlow::PlainPkce]
        );
        assert_eq!(
            flows(|client| client.grant_types = [GrantType::Password].into()),
            [LegacyFlow::Password]
        );
        assert_eq!(
            flows(|client| client.response_types = ResponseType::ALL.into()),
            [LegacyFlow::TokenThroughBrowser]
        );
    }
}
