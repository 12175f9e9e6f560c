//! How strict a client is: it uses flows that OAuth 2.1 has no more, it keeps to OAuth 2.1, or it
//! keeps to the FAPI 2.0 Security Profile. And what the next grade wants of it.

use super::problem::Finding;
use super::timestamp;
use crate::protocol::words::client::{
    AccessTokenType, Client, ClientAuthenticationMethod, GrantType, RefreshTokenUsage,
    SigningAlgorithm,
};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::legacy_flow::LegacyFlow;
use crate::protocol::words::named::named;
use crate::protocol::words::response_type::ResponseType;

named! {
    pub enum Grade {
        Legacy = "legacy",
        OAuth21 = "OAuth 2.1",
        Fapi20 = "FAPI 2.0",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graded {
    pub grade: Grade,
    /// What keeps it from the next one; empty at the last.
    pub wanted: Vec<&'static str>,
}

impl Graded {
    pub fn of(client: &Client, now: Instant) -> Graded {
        let mut flows = client.legacy_flows();
        if client.legacy_is_over(now) {
            flows.clear();
        }
        if !flows.is_empty() {
            return Graded {
                grade: Grade::Legacy,
                wanted: flows.into_iter().map(instead).collect(),
            };
        }
        let wanted = wanted_by_fapi(client);
        let grade = match wanted.is_empty() {
            true => Grade::Fapi20,
            false => Grade::OAuth21,
        };
        Graded { grade, wanted }
    }

    pub fn finding(&self, client: &Client) -> Finding {
        let wanted = self.wanted.join("; ");
        match self.grade {
            Grade::Legacy => {
                let last = client.legacy_until.map(timestamp::format_day);
                let ends = last.map(|last| format!(" until {last}"));
                let ends = ends.unwrap_or_default();
                Finding::weak(format!(
                    "it uses legacy flows{ends}; OAuth 2.1 wants: {wanted}"
                ))
            }
            Grade::OAuth21 => {
                Finding::fine(format!("it keeps to OAuth 2.1; FAPI 2.0 wants: {wanted}"))
            }
            Grade::Fapi20 => Finding::fine("it keeps to FAPI 2.0"),
        }
    }
}

/// What OAuth 2.1 has in the place of a flow.
fn instead(flow: LegacyFlow) -> &'static str {
    match flow {
        LegacyFlow::TokenThroughBrowser => "code instead of response types with token",
        LegacyFlow::Password => "no grant type password",
        LegacyFlow::Unbound => "no \"require_pkce\": false",
        LegacyFlow::PlainPkce => "no \"allow_plain_pkce\": true",
    }
}

/// What the FAPI 2.0 Security Profile (section 5.3.2) wants that is not registered: one line each.
fn wanted_by_fapi(client: &Client) -> Vec<&'static str> {
    let uses_code = client.allows_grant(&GrantType::AuthorizationCode);
    let by_own_key = client.authentication == ClientAuthenticationMethod::PrivateKeyJwt
        && client.federated.is_empty();
    let is_strong = |algorithm: SigningAlgorithm| algorithm != SigningAlgorithm::Rs256;
    let is_code = |kind: &ResponseType| *kind == ResponseType::CODE;
    let rotates = client.refresh_token_usage == RefreshTokenUsage::Rotate;
    let rules = [
        (by_own_key, "private_key_jwt with keys of its own"),
        (
            client.assertion_algorithms().into_iter().all(is_strong),
            "token_endpoint_auth_signing_alg ES256 or EdDSA",
        ),
        (
            !uses_code || client.requires_pushed_requests,
            "\"require_pushed_authorization_requests\": true",
        ),
        (
            client.response_types.iter().all(is_code),
            "no response type but code",
        ),
        (
            !uses_code || client.require_pkce == Some(true),
            "\"require_pkce\": true",
        ),
        (
            !uses_code || client.lifetimes.authorization_code.as_secs() <= 60,
            "codes of 60 seconds at most",
        ),
        (
            !uses_code || is_strong(client.id_token_signed_response_alg),
            "id_token_signed_response_alg ES256 or EdDSA",
        ),
        (
            client.access_token_type == AccessTokenType::Reference
                || is_strong(client.access_token_signed_response_alg),
            "access_token_signed_response_alg ES256 or EdDSA",
        ),
        (
            !rotates || !client.allows_grant(&GrantType::RefreshToken),
            "refresh_token_usage reuse",
        ),
        // No client can be registered so: it is not built.
        (false, "tokens bound to a key (DPoP)"),
    ];
    let wanted = rules.into_iter().filter(|(is_so, _)| !is_so);
    wanted.map(|(_, rule)| rule).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::words::client::WorkloadIdentity;
    use crate::protocol::words::instant::Day;
    use crate::protocol::words::samples::{NOW, client};

    /// Everything that can be registered of FAPI 2.0.
    fn strict() -> Client {
        let mut strict = Client {
            authentication: ClientAuthenticationMethod::PrivateKeyJwt,
            token_endpoint_auth_signing_alg: Some(SigningAlgorithm::Es256),
            requires_pushed_requests: true,
            require_pkce: Some(true),
            id_token_signed_response_alg: SigningAlgorithm::EdDsa,
            access_token_signed_response_alg: SigningAlgorithm::Es256,
            refresh_token_usage: RefreshTokenUsage::Reuse,
            ..client()
        };
        strict.grant_types.insert(GrantType::RefreshToken);
        strict
    }

    fn wanted(client: &Client) -> (Grade, Vec<&'static str>) {
        let Graded { grade, wanted } = Graded::of(client, NOW);
        (grade, wanted)
    }

    type Adjust = fn(&mut Client);

    #[test]
    fn each_legacy_flow_makes_a_client_legacy_until_its_day_is_over() {
        let table: [(Adjust, &str); 4] = [
            (
                |client| {
                    let kind = ResponseType::parse("code token").unwrap();
                    client.response_types.insert(kind);
                },
                "code instead of response types with token",
            ),
            (
                |client| {
                    client.grant_types.insert(GrantType::Password);
                },
                "no grant type password",
            ),
            (
                |client| client.require_pkce = Some(false),
                "no \"require_pkce\": false",
            ),
            (
                |client| client.allow_plain_pkce = true,
                "no \"allow_plain_pkce\": true",
            ),
        ];
        for (adjust, instead) in table {
            let mut client = client();
            adjust(&mut client);
            assert_eq!(wanted(&client), (Grade::Legacy, vec![instead]));
            client.legacy_until = Some(NOW.day());
            assert_eq!(wanted(&client).0, Grade::Legacy, "{instead}");
            let text = Graded::of(&client, NOW).finding(&client).text;
            assert!(text.contains(&timestamp::format_day(NOW.day())), "{text}");
            client.legacy_until = Some(Day(NOW.day().0 - 1));
            assert_eq!(wanted(&client).0, Grade::OAuth21, "{instead}");
        }
        assert_eq!(wanted(&client()).0, Grade::OAuth21);
    }

    #[test]
    fn what_fapi_wants_is_told_one_by_one() {
        let dpop = "tokens bound to a key (DPoP)";
        assert_eq!(wanted(&strict()), (Grade::OAuth21, vec![dpop]));
        let table: [(Adjust, &str); 9] = [
            (
                |client| client.authentication = ClientAuthenticationMethod::AnySecret,
                "private_key_jwt with keys of its own",
            ),
            (
                |client| client.token_endpoint_auth_signing_alg = None,
                "token_endpoint_auth_signing_alg ES256 or EdDSA",
            ),
            (
                |client| client.requires_pushed_requests = false,
                "\"require_pushed_authorization_requests\": true",
            ),
            (
                |client| {
                    let kind = ResponseType::parse("code id_token").unwrap();
                    client.response_types.insert(kind);
                },
                "no response type but code",
            ),
            (
                |client| client.require_pkce = None,
                "\"require_pkce\": true",
            ),
            (
                |client| client.lifetimes.authorization_code = Duration::from_secs(61),
                "codes of 60 seconds at most",
            ),
            (
                |client| client.id_token_signed_response_alg = SigningAlgorithm::Rs256,
                "id_token_signed_response_alg ES256 or EdDSA",
            ),
            (
                |client| client.access_token_signed_response_alg = SigningAlgorithm::Rs256,
                "access_token_signed_response_alg ES256 or EdDSA",
            ),
            (
                |client| client.refresh_token_usage = RefreshTokenUsage::Rotate,
                "refresh_token_usage reuse",
            ),
        ];
        for (adjust, rule) in table {
            let mut client = strict();
            adjust(&mut client);
            assert_eq!(wanted(&client), (Grade::OAuth21, vec![rule, dpop]));
        }
        let federated = Client {
            federated: vec![WorkloadIdentity {
                issuer: None,
                subject: String::from("spiffe://acme.example/shop"),
                audience: None,
                claims: [].into(),
                jwks: None,
                jwks_uri: None,
                max_lifetime: Duration::from_secs(300),
            }],
            ..strict()
        };
        let own = "private_key_jwt with keys of its own";
        assert_eq!(wanted(&federated).1, [own, dpop]);
        let reference = Client {
            access_token_type: AccessTokenType::Reference,
            access_token_signed_response_alg: SigningAlgorithm::Rs256,
            ..strict()
        };
        assert_eq!(wanted(&reference).1, [dpop]);
    }
}
