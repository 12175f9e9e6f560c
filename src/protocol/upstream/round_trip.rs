//! A round trip to an upstream provider and back. It travels sealed as `state`, and nothing of it
//! is stored. It holds the hash of the flow cookie, so that only the browser that began it can end
//! it. Also the request to the provider (OpenID Connect Core §3.1.2.1, RFC 7636 §4.3).

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::authorize::authorize_request::{AuthorizeRequest, Ending};
use crate::authorize::authorize_response::with_query;
use crate::words::identifiers::Sid;
use crate::words::identity_provider::{IdentityProvider, ProviderKind};
use crate::words::instant::Instant;
use crate::words::secret::SecretText;
use crate::words::strength::reaches;

/// How long a user may be away.
pub const LIFETIME: Duration = Duration::from_secs(600);
/// The longest `state` sent upstream, in characters; some providers cut or refuse more.
pub const STATE: usize = 2_000;
/// The longest value of a flow cookie, in characters: browsers drop cookies above 4,096 bytes.
pub const COOKIE: usize = 3_500;
/// How much older than it is a sign-in may look. Upstream tells whole seconds, and its clock may be
/// behind ours.
const ROUNDING: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// `sid` of the session that asked to link an account there to its own; `None` for a sign-in.
    pub linking: Option<Sid>,
    pub provider: String,
    /// The issuer that this name stood for at the departure. For a provider without one, its
    /// `userinfo_endpoint`.
    pub issuer: String,
    /// Names the flow's cookie, with `begun_at`.
    pub flow: [u8; 8],
    pub cookie_hash: [u8; 32],
    pub nonce: String,
    #[serde(with = "exposed")]
    pub code_verifier: SecretText,
    pub begun_at: Instant,
    /// `max_age`, as upstream was asked.
    pub max_age: Option<u64>,
    /// The page's `r`; `None` when the cookie holds it, and when a link needs none.
    pub request: Option<String>,
}

impl RoundTrip {
    /// Whether it is still within its lifetime.
    pub fn is_underway(&self, now: Instant) -> bool {
        now < self.over_at()
    }

    pub fn over_at(&self) -> Instant {
        self.begun_at.plus(LIFETIME)
    }
}

/// The secret is serialized under the seal only. The field that uses this module says so.
mod exposed {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::SecretText;

    pub fn serialize<S: Serializer>(secret: &SecretText, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(secret.expose())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretText, D::Error> {
        String::deserialize(deserializer).map(SecretText::new)
    }
}

/// `auth_time` of a session that begins with a sign-in upstream: as upstream says, but not later
/// than `now`. Where upstream says nothing it is `now`. A request that asks how old the sign-in is
/// counts one from the second in which it arrived as its own.
pub fn auth_time(upstream: Option<Instant>, asked_at: Option<Instant>, now: Instant) -> Instant {
    let dated = upstream.unwrap_or(now).min(now);
    match asked_at {
        Some(asked_at) if dated.plus(ROUNDING) >= asked_at => dated.max(asked_at),
        Some(_) | None => dated,
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    pub login: bool,
    /// The user must act: sign in anew, or choose their account where the provider does not take
    /// `login`.
    pub presence: bool,
    pub select_account: bool,
    pub max_age: Option<u64>,
    pub login_hint: Option<String>,
    pub ui_locales: Option<String>,
    pub acr: BTreeSet<String>,
}

impl Ask {
    pub fn of(request: &AuthorizeRequest) -> Ask {
        Ask {
            login: request.prompt.login,
            presence: matches!(request.ending, Ending::Account { anew: true, .. }),
            select_account: request.prompt.select_account,
            max_age: request.max_age,
            login_hint: request.login_hint.clone(),
            ui_locales: request.ui_locales.clone(),
            acr: request.claims.essential_acr.clone().unwrap_or_default(),
        }
    }

    /// The `prompt` that makes the user act there, so that they see as whom they are signed in.
    pub fn for_linking() -> Ask {
        Ask {
            select_account: true,
            ..Ask::default()
        }
    }

    /// The part of the request that a provider takes. `select_account` becomes `login` where that
    /// is all it takes, as `login` lets the user choose, too. Nothing stands in for `login`: a
    /// sign-in of last week would pass for a new one. So the result is `None` then, and where the
    /// provider takes nothing that makes the user act.
    pub fn as_far_as(&self, taken: PromptValues) -> Option<Ask> {
        let login = self.login || self.presence || self.select_account && !taken.select_account;
        let wants_choice = self.select_account || self.presence && !taken.login;
        let select_account = wants_choice && taken.select_account;
        let is_met =
            (taken.login || !self.login) && (taken.login || taken.select_account || !self.presence);
        is_met.then(|| Ask {
            login: login && taken.login,
            select_account,
            ..self.clone()
        })
    }

    pub fn asks_for_age(&self) -> bool {
        self.login || self.presence || self.max_age.is_some()
    }

    /// The address that the browser is sent to. A query that `authorization_endpoint` has stays.
    pub fn address(
        &self,
        authorization_endpoint: &str,
        provider: &IdentityProvider,
        trip: &RoundTrip,
        redirect_uri: &str,
        state: &str,
    ) -> String {
        let prompt = match (self.login, self.select_account) {
            (true, true) => "login select_account",
            (true, false) => "login",
            (false, true) => "select_account",
            (false, false) => "",
        };
        // The provider's names of what is strong enough here.
        let mut acr_values = Vec::new();
        for (theirs, ours) in &provider.acr_map {
            if self.acr.iter().any(|wanted| reaches(ours, wanted)) {
                acr_values.push(theirs.as_str());
            }
        }
        // Only an ID token carries a nonce back.
        let has_id_token = matches!(provider.kind, ProviderKind::OpenId { .. });
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let parameters = [
            ("response_type", some(String::from("code"))),
            (
                "response_mode",
                provider.posts_answer.then(|| String::from("form_post")),
            ),
            ("client_id", some(provider.client_id.clone())),
            ("redirect_uri", some(redirect_uri.to_owned())),
            ("scope", some(provider.scope.to_string())),
            ("state", some(state.to_owned())),
            ("nonce", has_id_token.then(|| trip.nonce.clone())),
            (
                "code_challenge",
                some(URL_SAFE_NO_PAD.encode(Sha256::digest(trip.code_verifier.expose()))),
            ),
            ("code_challenge_method", some(String::from("S256"))),
            ("prompt", some(prompt.to_owned())),
            ("max_age", self.max_age.map(|seconds| seconds.to_string())),
            ("login_hint", self.login_hint.clone()),
            ("ui_locales", self.ui_locales.clone()),
            ("acr_values", some(acr_values.join(" "))),
        ];
        let sent = parameters
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        with_query(authorization_endpoint, &sent.collect::<Vec<_>>())
    }
}

/// Which values of `prompt` the provider takes. Some answer any other value with an error.
pub struct PromptValues {
    pub login: bool,
    pub select_account: bool,
}

impl PromptValues {
    /// `prompt_values_supported` as the operator registered it, or else as the metadata has it. All
    /// values where neither says.
    pub fn of(
        registered: Option<&BTreeSet<String>>,
        announced: Option<&BTreeSet<String>>,
    ) -> PromptValues {
        let listed = registered.or(announced);
        let has = |value: &str| listed.is_none_or(|listed| listed.contains(value));
        PromptValues {
            login: has("login"),
            select_account: has("select_account"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::super::registration::provider;
    use super::*;
    use crate::authorize::authorize_request::LandingPage;
    use crate::authorize::authorize_request::fixtures::asking;
    use crate::words::parameters::Parameters;
    use crate::words::samples::{changed, round_trip};

    #[test]
    fn ten_minutes_are_the_limit() {
        let trip = round_trip();
        let after = |seconds| trip.begun_at.plus(Duration::from_secs(seconds));
        assert!(trip.is_underway(after(599)) && !trip.is_underway(after(600)));
    }

    #[test]
    fn auth_time_is_upstreams_and_never_lies_ahead() {
        let at = Instant::from_seconds;
        let (now, asked_at) = (at(100), Instant::from_micros(90_900_000));
        assert_eq!(auth_time(None, None, now), now);
        assert_eq!(auth_time(None, Some(asked_at), now), now);
        assert_eq!(auth_time(Some(at(50)), None, now), at(50));
        assert_eq!(auth_time(Some(at(101)), None, now), now);
        assert_eq!(
            auth_time(Some(at(90)), Some(asked_at), now),
            asked_at,
            "the same second"
        );
        assert_eq!(auth_time(Some(at(90)), None, now), at(90), "nobody asks");
        assert_eq!(auth_time(Some(at(95)), Some(asked_at), now), at(95));
        for before in [0, 50, 88] {
            assert_eq!(
                auth_time(Some(at(before)), Some(asked_at), now),
                at(before),
                "{before}"
            );
        }
    }

    #[test]
    fn what_is_asked_here_is_asked_there() {
        let asked = asking()
            .with("prompt", "login select_account")
            .with("max_age", "60")
            .with("login_hint", "alice")
            .with("ui_locales", "de")
            .with(
                "claims",
                r#"{"id_token":{"acr":{"essential":true,"value":"2"}}}"#,
            );
        let mut request = asked.judged().unwrap();
        let mut expected = Ask {
            login: true,
            presence: false,
            select_account: true,
            max_age: Some(60),
            login_hint: Some(String::from("alice")),
            ui_locales: Some(String::from("de")),
            acr: BTreeSet::from([String::from("2")]),
        };
        assert_eq!(Ask::of(&request), expected);
        request.ending = Ending::Account {
            anew: true,
            page: LandingPage::Account,
        };
        expected.presence = true;
        assert_eq!(Ask::of(&request), expected);
        let linking = Ask::for_linking();
        assert!(linking.select_account && !linking.login && !linking.presence);
    }

    #[test]
    fn an_age_is_asked_for_by_any_of_three() {
        let nothing = Ask::default();
        assert!(!nothing.asks_for_age());
        for ask in [
            Ask {
                login: true,
                ..nothing.clone()
            },
            Ask {
                presence: true,
                ..nothing.clone()
            },
            Ask {
                max_age: Some(0),
                ..nothing
            },
        ] {
            assert!(ask.asks_for_age(), "{ask:?}");
        }
    }

    fn address(changes: Value, ask: &Ask) -> String {
        let document = json!({"name": "corp", "issuer": "https://up.example", "client_id": "gatepost", "scope": "openid email",
            "acr_map": {"mfa": "2", "phr": "2", "pwd": "1"}});
        let provider = provider::from_json(&changed(document, changes), "").unwrap();
        let redirect_uri = "https://op.example/external/corp/callback";
        ask.address(
            "https://up.example/auth?p=b2c_1",
            &provider,
            &round_trip(),
            redirect_uri,
            "a state",
        )
    }

    #[test]
    fn a_request_says_what_was_asked_here_and_no_more() {
        // The code_verifier is that of RFC 7636 appendix B.
        let plain = "https://up.example/auth?p=b2c_1&response_type=code&client_id=gatepost\
                     &redirect_uri=https%3A%2F%2Fop.example%2Fexternal%2Fcorp%2Fcallback&scope=openid%20email\
                     &state=a%20state&nonce=n-0S6_WzA2Mj&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
                     &code_challenge_method=S256";
        assert_eq!(address(json!({}), &Ask::default()), plain);
        let acr = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let ask = Ask {
            login: true,
            select_account: true,
            max_age: Some(0),
            acr: acr(&["2", "3"]),
            ..Ask::default()
        };
        let more = "&prompt=login%20select_account&max_age=0&acr_values=mfa%20phr";
        assert_eq!(address(json!({}), &ask), format!("{plain}{more}"));
        assert_eq!(
            address(
                json!({}),
                &Ask {
                    acr: acr(&["3", "mfa"]),
                    ..Ask::default()
                }
            ),
            plain,
            "out of its reach"
        );
        let endpoint = "https://hub.example/x";
        let hub = json!({"issuer": null, "authorization_endpoint": endpoint, "token_endpoint": endpoint, "userinfo_endpoint": endpoint,
            "subject_claim": "id", "scope": null, "acr_map": null});
        let told = address(hub, &Ask::default());
        assert!(
            !told.contains("scope=") && !told.contains("nonce="),
            "{told}"
        );
    }

    /// Asked for, and taken there: login, presence, select_account; login, select_account.
    #[test]
    fn only_what_a_provider_takes_is_asked_for() {
        for (asked, taken, left) in [
            ("l-s", "ls", Some("ls")),
            ("--s", "ls", Some("-s")),
            ("--s", "l-", Some("l-")),
            ("--s", "-s", Some("-s")),
            ("--s", "--", Some("--")),
            ("l-s", "l-", Some("l-")),
            ("l-s", "-s", None),
            ("l--", "-s", None),
            ("l--", "--", None),
            ("---", "--", Some("--")),
            // The user must sign in anew, or at least choose an account.
            ("-p-", "ls", Some("l-")),
            ("-p-", "l-", Some("l-")),
            ("-p-", "-s", Some("-s")),
            ("-p-", "--", None),
        ] {
            let has = |text: &str, word| text.contains(word);
            let presence = has(asked, 'p');
            let ask = |text: &str| Ask {
                login: has(text, 'l'),
                presence,
                select_account: has(text, 's'),
                ..Ask::default()
            };
            let values = PromptValues {
                login: has(taken, 'l'),
                select_account: has(taken, 's'),
            };
            assert_eq!(
                ask(asked).as_far_as(values),
                left.map(ask),
                "{asked} {taken}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_asked_adds_no_parameter(hint in "[^\0]{1,40}", locales in "[^\0]{1,40}") {
            let ask = Ask { login_hint: Some(hint.clone()), ui_locales: Some(locales.clone()), ..Ask::default() };
            let told = address(json!({}), &ask);
            let read = Parameters::parse(told.split_once('?').unwrap().1.as_bytes()).unwrap();
            prop_assert_eq!(read.iter().count(), 11);
            prop_assert_eq!(read.single("login_hint").unwrap(), Some(hint.as_str()));
            prop_assert_eq!(read.single("ui_locales").unwrap(), Some(locales.as_str()));
        }
    }
}
