//! The cookies of a browser: the session's handle; before there is a session, a random value that
//! ties forms to the browser they were drawn for, with a seal beside it that says who signed in
//! here before; and the browser's state, which scripts of the check-session frame compare. Names
//! carry a mark of the base URL, so that two installations on one host never mix.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::config::{Config, SameSite};
use crate::http::{Request, Response};
use crate::keys::random;
use gatepost_protocol::words::identifiers::{self, Sid};
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};

const SESSION: &str = "session";
const PRE_SESSION: &str = "browser";

/// The handle in a session cookie: base64url of the partition's day (4 bytes) and 256 random bits.
#[derive(Clone)]
pub struct SessionHandle {
    /// The partition of the session's row.
    pub day: Day,
    /// What only this browser knows.
    pub random: SecretBytes,
}

impl SessionHandle {
    /// A fresh handle.
    pub fn new(day: Day, random: [u8; 32]) -> SessionHandle {
        SessionHandle {
            day,
            random: SecretBytes::new(random),
        }
    }

    /// The handle this browser sent; `None` when there is none or it is not one of ours.
    pub fn of(config: &Config, request: &Request) -> Option<SessionHandle> {
        let bytes = URL_SAFE_NO_PAD
            .decode(request.cookie(&name(config, SESSION))?)
            .ok()?;
        let (day, random) = bytes.split_first_chunk::<4>()?;
        (random.len() == 32).then(|| SessionHandle {
            day: Day(i32::from_be_bytes(*day)),
            random: SecretBytes::new(random),
        })
    }

    /// What the database stores: SHA-256 of the whole handle.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.day.0.to_be_bytes())
            .chain_update(self.random.expose())
            .finalize()
            .into()
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode([self.day.0.to_be_bytes().as_slice(), self.random.expose()].concat())
    }
}

/// The pre-session value this browser sent.
pub fn pre_session(config: &Config, request: &Request) -> Option<SecretBytes> {
    let value = request
        .cookie(&name(config, PRE_SESSION))?
        .split('.')
        .next()?;
    let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
    (bytes.len() == 16).then(|| SecretBytes::new(bytes))
}

/// A browser that forms are drawn for, by its pre-session value.
pub struct Browser {
    pub value: SecretBytes,
    is_new: bool,
}

impl Browser {
    /// The one that sent this request; with a fresh value if it sent none.
    pub fn of(config: &Config, request: &Request) -> Browser {
        let known = pre_session(config, request);
        Browser {
            is_new: known.is_none(),
            value: known.unwrap_or_else(|| SecretBytes::new(random::bytes::<16>())),
        }
    }

    /// The answer, which brings the browser its value unless it has it.
    pub fn carried_by(&self, config: &Config, response: Response) -> Response {
        if self.is_new {
            let value = URL_SAFE_NO_PAD.encode(self.value.expose());
            set(config, response, PRE_SESSION, &value)
        } else {
            response
        }
    }
}

/// The seal beside the pre-session value: see `login/known_browser.rs`.
pub fn seal_beside_pre_session<'a>(config: &Config, request: &'a Request) -> Option<&'a str> {
    let (_, seal) = request
        .cookie(&name(config, PRE_SESSION))?
        .split_once('.')?;
    Some(seal)
}

/// Gives this browser a fresh pre-session value with a seal beside it, for `max_age` seconds. Forms
/// that were drawn before are no longer tied to this browser.
pub fn set_sealed_pre_session(
    config: &Config,
    response: Response,
    seal: &str,
    max_age: u32,
) -> Response {
    let value = random::text::<16>();
    set(
        config,
        response,
        PRE_SESSION,
        &format!("{value}.{seal}; Max-Age={max_age}"),
    )
}

/// Gives this browser a session. The cookie ends with the browser. If the session is to outlive the
/// browser, the cookie ends with the session, `max_age` seconds from now.
pub fn set_session(
    config: &Config,
    response: Response,
    handle: &SessionHandle,
    max_age: Option<u64>,
) -> Response {
    let max_age = max_age
        .map(|seconds| format!("; Max-Age={seconds}"))
        .unwrap_or_default();
    set(
        config,
        response,
        SESSION,
        &format!("{}{max_age}", handle.text()),
    )
}

/// What the names of all cookies begin with that show a session's key.
pub fn bound_prefix(config: &Config) -> String {
    format!("{}-", name(config, "bound"))
}

/// The name of the one for that session. An earlier session of this browser is refreshed beside it,
/// under another name.
pub fn bound_name(config: &Config, sid: &Sid) -> String {
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(sid.as_str()));
    let mark: String = digest.chars().take(8).collect();
    format!("{}{mark}", bound_prefix(config))
}

/// Gives this browser a cookie that shows a session's key, or takes it away.
pub fn set_bound(
    config: &Config,
    response: Response,
    name: &str,
    value: &str,
    max_age: u64,
) -> Response {
    let attributes = bound_attributes(config);
    let cookie = format!("{name}={value}; Max-Age={max_age}; {attributes}");
    response.header("Set-Cookie", cookie)
}

/// Its attributes as browsers are told them beforehand, which is without `Max-Age`.
pub fn bound_attributes(config: &Config) -> &'static str {
    attributes(config, config.cookie_same_site)
}

/// Takes the session away from this browser, and tells the check-session frames of its clients by a
/// new browser state.
pub fn remove_session(config: &Config, response: Response) -> Response {
    let response = remove(config, response, SESSION);
    set_browser_state(config, response, &new_browser_state())
}

/// The browser state (OpenID Connect Session Management §4.1) that this browser sent: 128 random
/// bits in base64url that say nothing about session or handle.
pub fn browser_state(config: &Config, request: &Request) -> Option<SecretText> {
    let sent = request.cookie(&browser_state_cookie_name(config))?;
    let is_ours = URL_SAFE_NO_PAD
        .decode(sent)
        .is_ok_and(|bytes| bytes.len() == 16);
    is_ours.then(|| SecretText::new(sent))
}

/// A fresh browser state. A frame that compares states sees that something changed.
pub fn new_browser_state() -> SecretText {
    SecretText::new(random::text::<16>())
}

/// Gives this browser a state. A script in a frame of any site reads it, so it is never `HttpOnly`,
/// and it is sent to every site.
pub fn set_browser_state(config: &Config, response: Response, state: &SecretText) -> Response {
    let name = browser_state_cookie_name(config);
    let value = state.expose();
    response.header(
        "Set-Cookie",
        format!("{name}={value}; Path=/; Secure; SameSite=None"),
    )
}

/// The name of the cookie that holds the browser's state.
pub fn browser_state_cookie_name(config: &Config) -> String {
    name(config, "state")
}

fn set(config: &Config, response: Response, purpose: &str, value: &str) -> Response {
    let name = name(config, purpose);
    let attributes = attributes(config, config.cookie_same_site);
    response.header("Set-Cookie", format!("{name}={value}; {attributes}"))
}

fn remove(config: &Config, response: Response, purpose: &str) -> Response {
    set(config, response, purpose, "; Max-Age=0")
}

/// Browsers drop `SameSite=None` without `Secure`. They count http on loopback as secure, and we
/// serve no other http.
pub(super) fn attributes(config: &Config, same_site: SameSite) -> &'static str {
    match (same_site, config.base_url.is_https()) {
        (SameSite::Lax, true) => "Path=/; HttpOnly; Secure; SameSite=Lax",
        (SameSite::Lax, false) => "Path=/; HttpOnly; SameSite=Lax",
        (SameSite::None, _) => "Path=/; HttpOnly; Secure; SameSite=None",
    }
}

/// `__Host-` binds a cookie to this host and to TLS; browsers refuse it over plain http.
pub(super) fn name(config: &Config, purpose: &str) -> String {
    let prefix = if config.base_url.is_https() {
        "__Host-"
    } else {
        ""
    };
    let digest = identifiers::encode(&Sha256::digest(config.base_url.as_str()));
    let mark = digest.get(..8).unwrap_or_default();
    [prefix, "gatepost-", purpose, "-", mark].concat()
}
