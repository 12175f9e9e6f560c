//! How strict a client is: it uses flows that OAuth 2.1 has no more, it keeps to OAuth 2.1, or it
//! keeps to the FAPI 2.0 Security Profile. And what the next grade wants of it.

use crate::finding::Finding;
use crate::{fine, weak};
use gatepost_protocol::registration::profile::wanted_by_fapi2;
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::client::{Client, Profile};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::legacy_flow::LegacyFlow;

/// The client's grade.
pub fn grade(client: &Client, now: Instant) -> Finding {
    let flows = client.legacy_flows();
    if !flows.is_empty() && !client.legacy_is_over(now) {
        let wanted = joined("; ", flows.into_iter().map(instead));
        let last = client.legacy_until.map(timestamp::format_day);
        let ends = last.map(|last| format!(" until {last}"));
        let ends = ends.unwrap_or_default();
        return weak!("it uses legacy flows{ends}; OAuth 2.1 wants: {wanted}");
    }
    if client.profile == Some(Profile::Fapi2) {
        return fine!(
            "it keeps the FAPI 2.0 Security Profile: pushed requests, PKCE, its own key, DPoP"
        );
    }
    let wanted = wanted_by_fapi2(client).join("; ");
    if wanted.is_empty() {
        fine!(
            "it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", which fills in what the \
             registration leaves out"
        )
    } else {
        fine!("it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\", and: {wanted}")
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

    fn told(client: &Client) -> String {
        grade(client, NOW).text
    }

    const OAUTH21: &str = "it keeps to OAuth 2.1; FAPI 2.0 wants \"profile\": \"fapi2\"";

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
            let wanted = format!("OAuth 2.1 wants: {instead}");
            let legacy = format!("it uses legacy flows; {wanted}");
            assert_eq!(grade(&client, NOW), Finding::weak(legacy));
            client.legacy_until = Some(NOW.day());
            let last = timestamp::format_day(NOW.day());
            let legacy = format!("it uses legacy flows until {last}; {wanted}");
            assert_eq!(grade(&client, NOW), Finding::weak(legacy));
            client.legacy_until = Some(Day(NOW.day().0 - 1));
            assert!(told(&client).starts_with(OAUTH21), "{instead}");
        }
        assert!(told(&client()).starts_with(OAUTH21));
    }

    #[test]
    fn what_fapi_wants_is_what_its_profile_would_refuse() {
        let told_of_client = told(&client());
        let wanted = told_of_client.strip_prefix(OAUTH21).unwrap();
        let wanted = wanted.strip_prefix(", and: ").unwrap();
        let wanted: Vec<&str> = wanted.split("; ").collect();
        let rule = "token_endpoint_auth_method must be private_key_jwt";
        assert!(wanted.contains(&rule), "{wanted:?}");
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
        let rest = ", which fills in what the registration leaves out";
        assert_eq!(told(&own_key), format!("{OAUTH21}{rest}"));
        let fapi = Client {
            profile: Some(Profile::Fapi2),
            ..client()
        };
        assert!(told(&fapi).starts_with("it keeps the FAPI 2.0 Security Profile: "));
    }
}
