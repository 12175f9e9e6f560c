//! The way upstream: one cookie more, everything else sealed as `state`, and a redirect. What comes
//! back counts only with its cookie. Their names tell when each way began, so that the oldest can
//! make room; SameSite is always Lax, as the way back is a navigation and nothing else.

use sha2::{Digest, Sha256};

use super::provider::{self, Connection};
use crate::app::App;
use crate::app::failure::{Failure, Stopped};
use crate::config::{Config, SameSite};
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::transaction::AuthorizationTransaction;
use crate::endpoints::{answers, cookies};
use crate::http::{Method, Request, Response};
use crate::keys::random;
use gatepost_protocol::upstream::round_trip::{
    Ask, COOKIE, LIFETIME, PromptValues, RoundTrip, STATE,
};
use gatepost_protocol::upstream::{UpstreamProblem, external_url};
use gatepost_protocol::words::identifiers;
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;

/// Ways that one browser can be on at once.
const MOST: usize = 5;
/// What their cookies may come to, in bytes: proxies allow a header 16 KiB, often 8.
const MOST_BYTES: usize = 7_000;

/// A way that a browser is on, as its cookie's name tells it: when it began, and a random number.
/// Sorts by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    begun_millis: i64,
    random: [u8; 8],
}

impl Flow {
    pub(super) fn new(begun_at: Instant, random: [u8; 8]) -> Flow {
        Flow {
            begun_millis: begun_at.millis(),
            random,
        }
    }

    pub(super) fn cookie_name(self, config: &Config) -> String {
        let random = identifiers::encode(&self.random);
        cookies::name(config, &format!("flow-{:012x}{random}", self.begun_millis))
    }

    fn of_cookie_name(config: &Config, name: &str) -> Option<Flow> {
        let digits = name.split("flow-").nth(1)?.get(..28)?;
        let (begun_millis, random) = digits.split_at_checked(12)?;
        let flow = Flow {
            begun_millis: i64::from_str_radix(begun_millis, 16).ok()?,
            random: u64::from_str_radix(random, 16).ok()?.to_be_bytes(),
        };
        // One spelling for each name: another encoding of the same bytes is not ours.
        (flow.cookie_name(config) == name).then_some(flow)
    }
}

pub enum UpstreamPurpose<'a> {
    SignIn {
        transaction: &'a AuthorizationTransaction,
        /// As somebody else than this browser is known to be, there or here: they shall be asked
        /// who they are.
        someone_else: bool,
    },
    Link(&'a CurrentSession),
}

/// Sends the browser upstream: 303, one flow cookie more. Whoever asks for it shows why that is
/// refused.
pub fn depart(
    app: &App,
    request: &Request,
    purpose: UpstreamPurpose<'_>,
    provider: &str,
) -> Result<Response, Stopped<UpstreamProblem>> {
    let snapshot = app.registry.snapshot();
    let Some(provider) = provider::registered(&snapshot, provider) else {
        return Err(Stopped::Refused(UpstreamProblem::unavailable(
            "it is not registered, or disabled",
        )));
    };
    // To ask where a link leads is not to follow it.
    if request.method == Method::Head {
        return Ok(answers::nothing_to_show());
    }
    let (ask, linking, sealed) = match purpose {
        UpstreamPurpose::SignIn {
            transaction,
            someone_else,
        } => {
            let ask = Ask::of(&transaction.request);
            let select_account = someone_else || ask.select_account;
            (
                Ask {
                    select_account,
                    ..ask
                },
                None,
                Some(transaction.sealed.clone()),
            )
        }
        UpstreamPurpose::Link(carried) => (Ask::for_linking(), Some(carried.row.sid.clone()), None),
    };
    let mut trip = RoundTrip {
        linking,
        provider: provider.name.clone(),
        issuer: provider.authority().to_owned(),
        flow: random::bytes(),
        cookie_hash: [0; 32],
        nonce: random::text::<16>(),
        code_verifier: SecretText::new(random::text::<32>()),
        begun_at: app.now(),
        max_age: ask.max_age,
        request: sealed,
    };
    let mut cookie = random::text::<32>();
    let seal = |trip: &RoundTrip| app.vault.upstream_states.seal_text("", trip);
    // A request that is too long for `state` goes into the cookie.
    if seal(&trip).len() > STATE {
        cookie = format!("{cookie}.{}", trip.request.take().unwrap_or_default());
    }
    trip.cookie_hash = Sha256::digest(&cookie).into();
    let state = seal(&trip);
    if cookie.len() > COOKIE || state.len() > STATE {
        return Err(Stopped::Failed(match purpose {
            UpstreamPurpose::SignIn { transaction, .. } => transaction.too_long(),
            UpstreamPurpose::Link(_) => Failure::bad_request(Reason::RequestTooLong),
        }));
    }
    // Without its secret the callback would be refused.
    let address = provider::secret(&snapshot, provider)
        .and_then(|_| address(app, provider, &ask, &trip, &state));
    let response = answers::see_other(address.map_err(Stopped::Refused)?);
    let flow = Flow::new(trip.begun_at, trip.flow);
    Ok(begin(&app.config, request, response, flow, &cookie))
}

/// The address that asks for a sign-in at a provider: code flow, PKCE with S256, nonce, `state`.
/// May fetch its metadata. `LoginRequired` where they must sign in anew and the provider takes no
/// request for that.
fn address(
    app: &App,
    provider: &IdentityProvider,
    ask: &Ask,
    trip: &RoundTrip,
    state: &str,
) -> Result<String, UpstreamProblem> {
    let metadata = Connection::open(app, provider)?.metadata;
    let taken = PromptValues::of(
        provider.prompt_values.as_ref(),
        metadata.prompt_values.as_ref(),
    );
    let ask = ask.as_far_as(taken).ok_or(UpstreamProblem::LoginRequired)?;
    let redirect_uri = external_url(app.issuer(), &provider.name, "callback");
    Ok(ask.address(
        &metadata.authorization_endpoint,
        provider,
        trip,
        &redirect_uri,
        state,
    ))
}

/// Puts a browser on one more way; the oldest ones make room for it.
fn begin(
    config: &Config,
    request: &Request,
    mut response: Response,
    flow: Flow,
    value: &str,
) -> Response {
    let carried = request
        .cookies()
        .filter_map(|(name, value)| Some((Flow::of_cookie_name(config, name)?, value.len())));
    for outlived in making_room(carried.collect(), value.len()) {
        response = end(config, response, outlived);
    }
    let name = flow.cookie_name(config);
    let seconds = LIFETIME.as_secs();
    let attributes = cookies::attributes(config, SameSite::Lax);
    response.header(
        "Set-Cookie",
        format!("{name}={value}; Max-Age={seconds}; {attributes}"),
    )
}

pub(super) fn end(config: &Config, response: Response, flow: Flow) -> Response {
    response.header("Set-Cookie", removal(config, flow))
}

pub(super) fn removal(config: &Config, flow: Flow) -> String {
    format!(
        "{}=; Max-Age=0; {}",
        flow.cookie_name(config),
        cookies::attributes(config, SameSite::Lax)
    )
}

/// Which flow cookies must go for one more of length `added`: all but the latest that fit.
fn making_room(mut carried: Vec<(Flow, usize)>, added: usize) -> Vec<Flow> {
    carried.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = added;
    let fits = carried.iter().take(MOST - 1).take_while(|(_, length)| {
        bytes += length;
        bytes <= MOST_BYTES
    });
    let kept = fits.count();
    carried
        .into_iter()
        .skip(kept)
        .map(|(flow, _)| flow)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(lengths: &[usize]) -> Vec<(Flow, usize)> {
        let flow = |(at, length): (usize, &usize)| {
            (
                Flow {
                    begun_millis: at as i64,
                    random: [0; 8],
                },
                *length,
            )
        };
        lengths.iter().enumerate().map(flow).collect()
    }

    fn gone(lengths: &[usize], added: usize) -> Vec<i64> {
        let mut gone: Vec<i64> = making_room(flows(lengths), added)
            .iter()
            .map(|flow| flow.begun_millis)
            .collect();
        gone.sort_unstable();
        gone
    }

    #[test]
    fn the_oldest_make_room_for_a_sixth() {
        assert_eq!(gone(&[], 43), [0; 0]);
        assert_eq!(gone(&[43; 4], 43), [0; 0]);
        assert_eq!(gone(&[43; 5], 43), [0]);
        assert_eq!(gone(&[43; 8], 43), [0, 1, 2, 3]);
    }

    #[test]
    fn long_ones_make_room_sooner() {
        assert_eq!(gone(&[3_500, 3_500], 3_500), [0]);
        assert_eq!(gone(&[43, 3_500, 43], 3_500), [0, 1]);
        assert_eq!(gone(&[3_500, 43, 43], 3_414), [0; 0]);
    }
}
