//! How strict a client is: it uses flows that OAuth 2.1 has no more, it keeps to OAuth 2.1, or it
//! keeps to the FAPI 2.0 Security Profile. And what the next grade wants of it.

use crate::finding::Finding;
use crate::{fine, weak};
use gatepost_protocol::registration::profile::wanted_by_fapi2;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::client::{Client, Profile};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::legacy_flow::LegacyFlow;
use gatepost_protocol::words::named::named;

named! {
    pub enum Grade {
        Legacy = "legacy",
        OAuth21 = "OAuth 2.1",
        Fapi20 = "FAPI 2.0",
    }
}

pub struct Graded {
    pub grade: Grade,
    /// What keeps it from the next one; empty at the last.
    pub wanted: Vec<String>,
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
                wanted: flows.into_iter().map(instead).map(str::to_owned).collect(),
            };
        }
        match client.profile {
            Some(Profile::Fapi2) => Graded {
                grade: Grade::Fapi20,
                wanted: Vec::new(),
            },
            None => Graded {
                grade: Grade::OAuth21,
                wanted: wanted_by_fapi2(client),
            },
        }
    }

    pub fn finding(&self, client: &Client) -> Finding {
        let wanted = self.wanted.join("; ");
        match self.grade {
            Grade::Legacy => {
                let last = client.legacy_until.map(timestamp::format_day);
                let ends = last.map(|last| format!(" until {last}"));
                let ends = ends.unwrap_or_default();
                weak!("it uses legacy flows{ends}; OAuth 2.1 wants: {wanted}")
            }
            Grade::OAuth21 if wanted.is_empty() => fine!(
                "it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", which fills in what \
                 the registration leaves out"
            ),
            Grade::OAuth21 => {
                fine!("it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", and: {wanted}")
            }
            Grade::Fapi20 => fine!(
                "it keeps the FAPI 2.0 Security Profile: pushed requests, PKCE, its own key, DPoP"
            ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_protocol::words::client::{ClientAuthenticationMethod, GrantType};
    use gatepost_protocol::words::instant::Day;
    use gatepost_protocol::words::response_type::ResponseType;
    use gatepost_protocol::words::samples::{NOW, client};

    fn wanted(client: &Client) -> (Grade, Vec<String>) {
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
            assert_eq!(wanted(&client), (Grade::Legacy, vec![instead.to_owned()]));
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
    fn what_fapi_wants_is_what_its_profile_would_refuse() {
        let (grade, wanted) = wanted(&client());
        assert_eq!(grade, Grade::OAuth21);
        let rule = "token_endpoint_auth_method must be private_key_jwt";
        assert!(wanted.iter().any(|told| told == rule), "{wanted:?}");
        // The profile fills these in.
        for key in [
            "require_pushed_authorization_requests",
            "dpop_bound_access_tokens",
            "dpop_nonce",
            "refresh_token_usage",
            "id_token_signed_response_alg",
            "authorization_code_lifetime",
            "require_pkce",
        ] {
            assert!(
                !wanted.iter().any(|told| told.starts_with(key)),
                "{wanted:?}"
            );
        }
        let own_key = Client {
            authentication: ClientAuthenticationMethod::PrivateKeyJwt,
            iss_on_error: true,
            ..client()
        };
        let graded = Graded::of(&own_key, NOW);
        assert_eq!(graded.wanted, Vec::<String>::new());
        let text = graded.finding(&own_key).text;
        assert!(text.contains("\"fapi2\", which fills in"), "{text}");
        let fapi = Client {
            profile: Some(Profile::Fapi2),
            ..client()
        };
        assert_eq!(self::wanted(&fapi), (Grade::Fapi20, Vec::new()));
    }
}
