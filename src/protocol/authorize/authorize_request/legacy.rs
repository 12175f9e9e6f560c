//! Requests by flows that OAuth 2.1 has no more. After the client's `legacy_until` they are refused
//! as if it were not registered for them.

use super::{AuthorizeRefusal, AuthorizeRequest};
use crate::authorize::pkce::CodeChallengeMethod;
use crate::words::client::Client;
use crate::words::legacy_flow::{LEGACY_UNTIL, LegacyFlow};
use crate::words::reason::{AuthorizeErrorCode, Reason};

impl AuthorizeRequest {
    /// Those that this request uses.
    pub fn legacy_flows(&self) -> Vec<LegacyFlow> {
        let mut flows = Vec::new();
        if self.response_type.token {
            flows.push(LegacyFlow::TokenThroughBrowser);
        }
        let nonce_comes_back = self.nonce.is_some() && self.is_openid();
        match &self.code_challenge {
            Some(challenge) if challenge.method() == CodeChallengeMethod::Plain => {
                flows.push(LegacyFlow::PlainPkce);
            }
            None if self.response_type.code && !nonce_comes_back => {
                flows.push(LegacyFlow::Unbound);
            }
            Some(_) | None => {}
        }
        flows
    }

    pub(super) fn refuse_what_is_over(self, client: &Client) -> Result<Self, AuthorizeRefusal> {
        let flow = self.legacy_flows().into_iter().next();
        let Some(flow) = flow.filter(|_| client.legacy_is_over(self.received_at)) else {
            return Ok(self);
        };
        let invalid = AuthorizeErrorCode::InvalidRequest;
        let unauthorized = AuthorizeErrorCode::UnauthorizedClient;
        let (code, reason) = match flow {
            LegacyFlow::PlainPkce => (invalid, Reason::PlainPkce),
            LegacyFlow::Unbound => (invalid, Reason::MissingCodeChallenge),
            LegacyFlow::TokenThroughBrowser | LegacyFlow::Password => {
                (unauthorized, Reason::UnregisteredResponseType)
            }
        };
        Err(AuthorizeRefusal::with_detail(code, reason, LEGACY_UNTIL))
    }
}
