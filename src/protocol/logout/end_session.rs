//! RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0 §2 and §3): what a client may ask
//! for when it sends somebody here to sign out, when that needs no question, and where they go
//! afterwards.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::authorize::authorize_response::with_query;
use crate::words::client::Client;
use crate::words::identifiers::{self, ClientId, Sid, Subject};
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::parameters::{self, Parameters};
use crate::words::reason::Reason;
use crate::words::redirect_uri::RedirectTarget;
use crate::words::secret::SecretText;
use crate::words::session::Session;

/// How many seconds the page with the applications' frames stays before it goes on.
pub const FRAMES_SECONDS: u32 = 2;

/// What was asked for. The ID token is checked already, and reduced to what it says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndSessionRequest {
    /// Who asks: `client_id`, or whom the ID token was made for.
    pub client_id: Option<ClientId>,
    pub hinted: Option<HintedSignIn>,
    /// `post_logout_redirect_uri`. [`EndSessionRequest::way_back`] says whether it may be followed.
    pub unmatched_redirect_uri: Option<String>,
    pub state: Option<String>,
    pub ui_locales: Option<String>,
}

/// The user and the session that our ID token was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HintedSignIn {
    pub subject: Subject,
    /// `sid`; tokens of grants without a browser have none.
    pub sid: Option<Sid>,
}

#[derive(Debug, PartialEq)]
pub enum SignOutStep {
    /// The person is asked: anybody can send a browser here.
    Ask,
    /// The session ends at once: the client holds an ID token of it.
    End,
    NobodySignedIn,
}

impl EndSessionRequest {
    /// Reads the parameters. `verified` gives the claims of an ID token that we signed, expired or
    /// not, and `None` for any other text. `logout_hint` is ignored: one browser has one session.
    /// Errors are for a page.
    pub fn read(
        parameters: &Parameters,
        verified: impl FnOnce(&SecretText) -> Option<JsonObject>,
    ) -> Result<EndSessionRequest, Reason> {
        let sent_client = parameters
            .bounded("client_id", parameters::CLIENT_ID)?
            .map(ClientId::new);
        parameters.bounded("logout_hint", parameters::OTHER)?;
        let hint = parameters
            .bounded("id_token_hint", parameters::ID_TOKEN_HINT)?
            .map(SecretText::new);
        let hint = hint.map(|hint| verified(&hint).and_then(|claims| read_claims(&claims)));
        let (client_id, hinted) = match (hint, sent_client) {
            (Some(None), _) => return Err(Reason::InvalidIdTokenHint),
            (Some(Some((audience, _))), Some(sent)) if audience != sent => {
                return Err(Reason::HintOfAnotherClient);
            }
            (Some(Some((audience, hinted))), _) => (Some(audience), Some(hinted)),
            (None, sent) => (sent, None),
        };
        Ok(EndSessionRequest {
            client_id,
            hinted,
            unmatched_redirect_uri: owned(
                parameters,
                "post_logout_redirect_uri",
                parameters::REDIRECT_URI,
            )?,
            state: owned(parameters, "state", parameters::STATE)?,
            ui_locales: owned(parameters, "ui_locales", parameters::OTHER)?,
        })
    }

    /// Whether the user must be asked. Only an ID token of this session or of its subject makes the
    /// question unnecessary. Otherwise any page could sign anybody out.
    pub fn decide(&self, session: Option<&Session>) -> SignOutStep {
        let Some(session) = session else {
            return SignOutStep::NobodySignedIn;
        };
        let is_of_session = |hinted: &HintedSignIn| {
            hinted.sid.as_ref() == Some(&session.sid) || hinted.subject == session.subject
        };
        if self.hinted.as_ref().is_some_and(is_of_session) {
            SignOutStep::End
        } else {
            SignOutStep::Ask
        }
    }

    /// Where the browser goes on to, `state` included. Only an address that this client registered,
    /// exactly so.
    pub fn way_back(&self, client: &Client) -> Option<String> {
        let sent = self.unmatched_redirect_uri.as_deref()?;
        let target = RedirectTarget::match_post_logout(sent, client)?;
        let state: Vec<(&'static str, String)> = self
            .state
            .iter()
            .map(|state| ("state", state.clone()))
            .collect();
        Some(with_query(target.uri(), &state))
    }
}

fn owned(parameters: &Parameters, name: &str, most: usize) -> Result<Option<String>, Reason> {
    Ok(parameters.bounded(name, most)?.map(str::to_owned))
}

/// A sign-out that is done here and goes on at the identity provider that the session came from. It
/// says what comes after the return.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct UpstreamReturn {
    /// The provider's registered name. The browser must come back from that provider.
    pub provider: String,
    pub request: EndSessionRequest,
}

/// The client that an ID token was made for, and its claims about the sign-in.
fn read_claims(claims: &JsonObject) -> Option<(ClientId, HintedSignIn)> {
    let text = |name: &str| claims.text(name);
    let hinted = HintedSignIn {
        subject: Subject::new(text("sub")?),
        sid: text("sid").map(Sid::new),
    };
    Some((ClientId::new(text("aud")?), hinted))
}

/// The address that a client's frame loads (OpenID Connect Front-Channel Logout 1.0 §3).
pub fn front_channel_address(registered: &str, issuer: &str, sid: &Sid) -> String {
    with_query(
        registered,
        &[("iss", issuer.to_owned()), ("sid", sid.as_str().to_owned())],
    )
}

/// The one event there is.
pub const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// Long enough for clocks that differ, short enough to be worth nothing later.
const LIFETIME: Duration = Duration::from_secs(120);

/// The claims to sign. There is no `nonce`, so that it does not pass for an ID token.
pub fn claims(
    issuer: &str,
    client_id: &ClientId,
    sub: &Subject,
    sid: &Sid,
    jti: &str,
    issued_at: Instant,
) -> Value {
    let iat = issued_at.seconds();
    let exp = issued_at.plus(LIFETIME).seconds();
    json!({
        "iss": issuer,
        "sub": sub,
        "aud": client_id,
        "iat": iat,
        "exp": exp,
        "jti": jti,
        "sid": sid,
        "events": { EVENT: {} }
    })
}

/// SHA-256, in hex, of client, origin of the redirect URI, the browser's state and a salt, with a
/// space between; then a dot and the salt.
pub fn session_state(client_id: &str, origin: &str, browser_state: &str, salt: [u8; 16]) -> String {
    let salt = URL_SAFE_NO_PAD.encode(salt);
    let digest = Sha256::digest([client_id, origin, browser_state, &salt].join(" "));
    format!("{}.{salt}", identifiers::encode(&digest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    use crate::words::samples::session;

    const DONE: &str = "https://rp1.example/done?a=b";

    fn claims(_: &SecretText) -> Option<JsonObject> {
        json!({"aud": "web", "sub": "alice-subject", "sid": "sid-1"})
            .as_object()
            .cloned()
    }

    fn nothing(_: &SecretText) -> Option<JsonObject> {
        None
    }

    fn read(sent: &[(&str, &str)]) -> Result<EndSessionRequest, Reason> {
        EndSessionRequest::read(&Parameters::from_pairs(sent.iter().copied()), claims)
    }

    #[test]
    fn a_hint_names_the_client_and_must_agree_with_the_one_named() {
        let hinted = read(&[("id_token_hint", "x")]).unwrap();
        assert_eq!(hinted.client_id, Some(ClientId::new("web")));
        assert_eq!(
            hinted,
            read(&[("id_token_hint", "x"), ("client_id", "web")]).unwrap()
        );
        assert_eq!(
            read(&[("id_token_hint", "x"), ("client_id", "other")]),
            Err(Reason::HintOfAnotherClient)
        );
        let alone = read(&[("client_id", "other")]).unwrap();
        assert_eq!(
            (alone.client_id, alone.hinted),
            (Some(ClientId::new("other")), None)
        );
    }

    #[test]
    fn a_hint_that_is_not_ours_is_refused_whatever_else_is_right() {
        let sent = [
            ("id_token_hint", "x"),
            ("client_id", "web"),
            ("post_logout_redirect_uri", DONE),
        ];
        let refused = EndSessionRequest::read(&Parameters::from_pairs(sent), nothing);
        assert_eq!(refused, Err(Reason::InvalidIdTokenHint));
        for without in [
            json!({"sub": "s"}),
            json!({"aud": "web"}),
            json!({"aud": ["web"], "sub": "s"}),
        ] {
            let refused = EndSessionRequest::read(&Parameters::from_pairs(sent), |_| {
                without.as_object().cloned()
            });
            assert_eq!(refused, Err(Reason::InvalidIdTokenHint), "{without}");
        }
    }

    #[test]
    fn parameters_are_bounded_and_sent_once() {
        for (name, most) in [
            ("client_id", 200),
            ("id_token_hint", 16_384),
            ("post_logout_redirect_uri", 2_000),
            ("state", 4_096),
            ("logout_hint", 300),
            ("ui_locales", 300),
        ] {
            let long = "\u{e9}".repeat(most + 1);
            assert_eq!(
                read(&[(name, &long)]),
                Err(Reason::OverlongParameter),
                "{name}"
            );
            assert_eq!(
                read(&[(name, "a"), (name, "a")]),
                Err(Reason::RepeatedParameter),
                "{name}"
            );
            assert_eq!(
                read(&[(name, "")]),
                Ok(EndSessionRequest::default()),
                "{name}"
            );
        }
    }

    #[test]
    fn the_way_back_is_one_that_the_client_registered_with_the_state() {
        let client = Client {
            post_logout_redirect_uris: vec![DONE.to_owned()],
            ..crate::words::samples::client()
        };
        let way_back = |sent: Option<&str>, state: Option<&str>| {
            let request = EndSessionRequest {
                unmatched_redirect_uri: sent.map(str::to_owned),
                state: state.map(str::to_owned),
                ..EndSessionRequest::default()
            };
            request.way_back(&client)
        };
        assert_eq!(way_back(Some(DONE), None).as_deref(), Some(DONE));
        let with_state = way_back(Some(DONE), Some("a b&c"));
        let expected = format!("{DONE}&state=a%20b%26c");
        assert_eq!(with_state, Some(expected));
        for other in [
            None,
            Some("https://rp1.example/done"),
            Some("https://evil.example/"),
        ] {
            assert_eq!(way_back(other, Some("s")), None, "{other:?}");
        }
    }

    #[test]
    fn clients_are_told_of_the_end_by_a_frame_and_by_a_token_that_is_no_id_token() {
        let sid = Sid::new("a b");
        assert_eq!(
            front_channel_address("https://rp1.example/out?x=1", "https://op.example", &sid),
            "https://rp1.example/out?x=1&iss=https%3A%2F%2Fop.example&sid=a%20b"
        );
        let now = crate::words::samples::NOW;
        let token = super::claims(
            "https://op.example",
            &ClientId::new("web"),
            &Subject::new("alice"),
            &sid,
            "j",
            now,
        );
        assert_eq!(
            token,
            json!({
                "iss": "https://op.example", "aud": "web", "sub": "alice", "sid": "a b", "jti": "j",
                "iat": now.seconds(), "exp": now.seconds() + 120, "events": {EVENT: {}},
            })
        );
    }

    #[test]
    fn only_an_id_token_of_this_session_or_its_subject_spares_the_question() {
        let session = session();
        let hinted = |subject: &str, sid: Option<&str>| EndSessionRequest {
            hinted: Some(HintedSignIn {
                subject: Subject::new(subject),
                sid: sid.map(Sid::new),
            }),
            client_id: Some(ClientId::new("web")),
            ..EndSessionRequest::default()
        };
        let (sub, sid) = (session.subject.as_str(), session.sid.as_str());
        for (request, expected) in [
            (hinted(sub, Some(sid)), SignOutStep::End),
            (hinted(sub, Some("another")), SignOutStep::End),
            (hinted(sub, None), SignOutStep::End),
            (hinted("mallory", Some(sid)), SignOutStep::End),
            (hinted("mallory", Some("another")), SignOutStep::Ask),
            (hinted("mallory", None), SignOutStep::Ask),
            (EndSessionRequest::default(), SignOutStep::Ask),
        ] {
            assert_eq!(request.decide(Some(&session)), expected, "{request:?}");
            assert_eq!(request.decide(None), SignOutStep::NobodySignedIn);
        }
    }

    mod session_state {
        use super::super::*;

        #[test]
        fn it_is_a_salted_hash_of_client_origin_and_browser() {
            // printf 'web https://rp.example abc AAAAAAAAAAAAAAAAAAAAAA' | sha256sum
            let expected = "b4fb79dbeaf0267e7b380b879001ce48a79e0e6867ebf864cfe58faa23d12728.AAAAAAAAAAAAAAAAAAAAAA";
            assert_eq!(
                session_state("web", "https://rp.example", "abc", [0; 16]),
                expected
            );
        }
    }
}
