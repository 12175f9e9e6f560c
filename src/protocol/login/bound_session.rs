//! Sessions that are bound to a key of their browser: Device Bound Session Credentials (DBSC, W3C
//! draft of February 2026), as Chromium 156 has them. The cookie of such a session is worth nothing
//! without a second one that ends within minutes, and the browser gets the next only by proving the
//! key.
//!
//! Nothing is stored but the key's thumbprint, beside the session. What must be known of a browser
//! that registers or proves its key stands in four texts, which the caller seals. This file says
//! what they hold and how long they are good, reads proofs, and judges sessions. The caller
//! verifies signatures.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::keys::jwt::{PublicKey, UnverifiedJws};
use crate::keys::key_set;
use crate::words::client::SigningAlgorithm;
use crate::words::identifiers::{KeyThumbprint, Sid, Subject};
use crate::words::instant::{Day, Instant};
use crate::words::json::Members;
use crate::words::named::named;
use crate::words::session::Session;

pub const BIND_PATH: &str = "/session/bind";
pub const REFRESH_PATH: &str = "/session/refresh";
/// Each page that reads a session is one of these or lies below one. Requests of others wait for no
/// refresh.
pub const PATHS: [&str; 11] = [
    "/connect/authorize",
    "/connect/endsession",
    "/login",
    "/consent",
    "/logout",
    "/start",
    "/account",
    "/admin",
    "/device",
    "/join",
    "/external",
];

pub const TYP: &str = "dbsc+jwt";
const LONGEST_PROOF: usize = 4_096;
/// Of an RSA key, in bytes: 4,096 bits.
const LONGEST_MODULUS: usize = 512;
pub const REGISTERS_WITHIN: Duration = Duration::from_secs(60);
/// For a registration and for the requests that left before its answer.
const CROSSES_WITHIN: Duration = Duration::from_secs(30);
/// A browser signs a new challenge alone. So it signs once in 15 minutes: browsers allow six
/// signatures in nine minutes, for all hosts of a domain together.
const PROVES_WITHIN: Duration = Duration::from_secs(900);
/// By how much the clock of another process may be ahead.
const FURTHEST_AHEAD: Duration = Duration::from_secs(60);
/// `Max-Age` of the bound cookie, in seconds. Its seal is good for a minute more.
pub const COOKIE_SECONDS: u64 = 600;
const COOKIE_LIFETIME: Duration = Duration::from_secs(COOKIE_SECONDS + 60);
/// How long a consent page is good in a session without a key.
const CONSENT_COUNTS: Duration = Duration::from_secs(600);

/// The challenge of a registration, which the answer to a sign-in brings.
#[derive(Serialize, Deserialize)]
pub struct BindingChallenge {
    pub day: Day,
    pub sid: Sid,
    pub subject: Subject,
    /// The handle of the same answer: another sign-in has another one.
    pub handle_hash: [u8; 32],
    pub session_ends_at: Instant,
    pub made_at: Instant,
}

/// `session_identifier`: all that a refresh must know.
#[derive(Serialize, Deserialize)]
pub struct BoundIdentifier {
    pub sid: Sid,
    pub key: PublicKey,
    pub ends_at: Instant,
}

/// The challenge of a refresh.
#[derive(Serialize, Deserialize)]
pub struct RefreshChallenge {
    pub sid: Sid,
    pub made_at: Instant,
}

/// The bound cookie: whoever got it had proved the key.
#[derive(Debug, Serialize, Deserialize)]
pub struct BoundCookie {
    pub sid: Sid,
    pub key: KeyThumbprint,
    pub ends_at: Instant,
}

/// The form token of a consent page, where the client requires bound sessions. The page is drawn
/// only while the session counts there.
#[derive(Serialize, Deserialize)]
pub struct ConsentInTime {
    /// The request and the session that it was drawn for.
    pub tie: [u8; 32],
    pub drawn_at: Instant,
}

impl BindingChallenge {
    pub const PREFIX: &'static str = "bind_";

    pub fn of(session: &Session, handle_hash: [u8; 32], now: Instant) -> BindingChallenge {
        BindingChallenge {
            day: session.day,
            sid: session.sid.clone(),
            subject: session.subject.clone(),
            handle_hash,
            session_ends_at: session.expires_at,
            made_at: now,
        }
    }

    pub fn is_fresh(&self, now: Instant) -> bool {
        now <= self.made_at.plus(REGISTERS_WITHIN)
    }
}

impl BoundIdentifier {
    pub const PREFIX: &'static str = "id_";

    pub fn is_alive(&self, now: Instant) -> bool {
        now < self.ends_at
    }

    /// The cookie for whoever has just proved the key.
    pub fn cookie(&self, now: Instant) -> BoundCookie {
        BoundCookie {
            sid: self.sid.clone(),
            key: self.key.key_thumbprint(),
            ends_at: now.plus(COOKIE_LIFETIME),
        }
    }
}

impl RefreshChallenge {
    pub const PREFIX: &'static str = "proof_";

    pub fn is_fresh(&self, sid: &Sid, now: Instant) -> bool {
        let is_of_now =
            self.made_at <= now.plus(FURTHEST_AHEAD) && now <= self.made_at.plus(PROVES_WITHIN);
        self.sid == *sid && is_of_now
    }
}

impl BoundCookie {
    pub const PREFIX: &'static str = "cookie_";

    fn is_of(&self, session: &Session, now: Instant) -> bool {
        self.sid == session.sid && Some(self.key) == session.bound_to && now < self.ends_at
    }
}

impl ConsentInTime {
    pub const PREFIX: &'static str = "consent_";

    /// Whether its answer counts. A session that shows its key has all the time of the request.
    pub fn counts(&self, tie: [u8; 32], is_bound: bool, now: Instant) -> bool {
        self.tie == tie && (is_bound || now < self.drawn_at.plus(CONSENT_COUNTS))
    }
}

/// Whether a session is bound to a key of its browser, and a request showed that it comes from
/// there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binding {
    /// No key, or keys are not asked for.
    Unbound,
    /// The request brings the cookie that the key was proved for.
    Proved,
    /// The key came half a minute ago at most: the request may have left before.
    Crossing,
    /// The request does not show the key.
    Refused,
}

/// Judges a session by the bound cookie that came along. What else a request says of its binding is
/// anybody's to say.
#[must_use]
pub fn judge(session: &Session, cookie: Option<&BoundCookie>, now: Instant) -> Binding {
    let crosses = |bound_at: Instant| now <= bound_at.plus(CROSSES_WITHIN);
    if session.bound_to.is_none() {
        Binding::Unbound
    } else if cookie.is_some_and(|cookie| cookie.is_of(session, now)) {
        Binding::Proved
    } else if session.bound_at.is_some_and(crosses) {
        Binding::Crossing
    } else {
        Binding::Refused
    }
}

/// A proof of a key whose signature is not checked yet.
#[derive(Debug)]
pub struct UnverifiedKeyProof {
    pub jws: UnverifiedJws,
    /// `jti`
    pub challenge: String,
}

impl UnverifiedKeyProof {
    /// Reads the header `Secure-Session-Response`: one line, one JWT.
    pub fn read(headers: &[&str]) -> Option<UnverifiedKeyProof> {
        let [header] = headers else {
            return None;
        };
        let text = unquoted(header);
        let jws = UnverifiedJws::parse(text).filter(|_| text.len() <= LONGEST_PROOF)?;
        let is_taken = matches!(jws.alg, SigningAlgorithm::Es256 | SigningAlgorithm::Rs256);
        if !is_taken || jws.typ.as_deref() != Some(TYP) {
            return None;
        }
        let challenge = jws.unverified_claims()?.text("jti")?.to_owned();
        Some(UnverifiedKeyProof { jws, challenge })
    }

    /// The key that a registration brings: P-256, or RSA of 2,048 to 4,096 bits.
    pub fn embedded_key(&self) -> Option<PublicKey> {
        let key = key_set::read(&self.jws.embedded_key()?).ok()??.key;
        match &key {
            PublicKey::Rsa { n, .. } if n.len() > LONGEST_MODULUS => None,
            PublicKey::Rsa { .. } | PublicKey::P256 { .. } | PublicKey::Ed25519 { .. } => Some(key),
        }
    }
}

/// A text in a header. The draft has it in quotes, and browsers send it without.
pub fn unquoted(header: &str) -> &str {
    header.trim_matches([' ', '\t', '"'])
}

/// The header `Secure-Session-Registration` of an answer that offers a binding.
pub fn registration(challenge: &str) -> String {
    format!("(ES256 RS256);path=\"{BIND_PATH}\";challenge=\"{challenge}\"")
}

/// The answer to a registration. Browsers compare `attributes` with those of the cookie that comes
/// along. Links lead here from anywhere, so any site may begin a refresh.
pub fn instructions(origin: &str, identifier: &str, cookie: &str, attributes: &str) -> Value {
    let mut scope = vec![json!({"type": "exclude", "domain": "*", "path": "/"})];
    for path in PATHS {
        scope.push(json!({"type": "include", "domain": "*", "path": path}));
    }
    json!({
        "session_identifier": identifier,
        "refresh_url": format!("{origin}{REFRESH_PATH}"),
        "allowed_refresh_initiators": ["*"],
        "scope": {
            "origin": origin,
            "include_site": false,
            "scope_specification": scope,
        },
        "credentials": [{"type": "cookie", "name": cookie, "attributes": attributes}],
    })
}

named! {
    /// Why a browser says that it did not refresh before the request (`Secure-Session-Skipped`).
    pub enum Skipped {
        /// It says nothing.
        None = "none",
        QuotaExceeded = "quota_exceeded",
        ServerError = "server_error",
        Unreachable = "unreachable",
        Other = "other",
    }
}

impl Skipped {
    /// Anybody can send it, so it labels and decides nothing.
    pub fn of(header: Option<&str>) -> Skipped {
        let Some(header) = header else {
            return Skipped::None;
        };
        let reason = header.split(';').next().unwrap_or_default().trim();
        Skipped::from_name(reason).unwrap_or(Skipped::Other)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use crate::words::samples::{self, CHROMIUM_PROOFS, NOW};

    const KEY: KeyThumbprint = KeyThumbprint([7; 32]);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Bound to a key since so many seconds.
    fn bound_for(since: u64) -> Session {
        Session {
            bound_to: Some(KEY),
            bound_at: Some(NOW.minus(seconds(since))),
            ..samples::session()
        }
    }

    fn cookie(sid: &str, key: KeyThumbprint, ends_in: u64) -> BoundCookie {
        BoundCookie {
            sid: Sid::new(sid),
            key,
            ends_at: NOW.plus(seconds(ends_in)),
        }
    }

    #[test]
    fn a_bound_session_is_none_without_its_cookie_but_for_half_a_minute() {
        let unbound = samples::session();
        let good = cookie("sid-1", KEY, 1);
        let over = cookie("sid-1", KEY, 0);
        let of_another_session = cookie("sid-2", KEY, 600);
        let of_another_key = cookie("sid-1", KeyThumbprint([8; 32]), 600);
        let rows = [
            (unbound.clone(), None, Binding::Unbound),
            (unbound, Some(&good), Binding::Unbound),
            (bound_for(0), None, Binding::Crossing),
            (bound_for(30), None, Binding::Crossing),
            (bound_for(30), Some(&over), Binding::Crossing),
            (bound_for(30), Some(&good), Binding::Proved),
            (bound_for(31), None, Binding::Refused),
            (bound_for(31), Some(&good), Binding::Proved),
            (bound_for(31), Some(&over), Binding::Refused),
            (bound_for(31), Some(&of_another_session), Binding::Refused),
            (bound_for(31), Some(&of_another_key), Binding::Refused),
        ];
        for (session, cookie, binding) in rows {
            assert_eq!(
                judge(&session, cookie, NOW),
                binding,
                "{session:?} {cookie:?}"
            );
        }
    }

    #[test]
    fn each_text_ends_when_it_should() {
        let binding = BindingChallenge::of(&samples::session(), [1; 32], NOW);
        let sid = Sid::new("sid-1");
        let refresh = RefreshChallenge {
            sid: sid.clone(),
            made_at: NOW,
        };
        let identifier = BoundIdentifier {
            sid: sid.clone(),
            key: samples::p256(1),
            ends_at: NOW.plus(seconds(3_600)),
        };
        let session = Session {
            bound_to: Some(identifier.key.key_thumbprint()),
            bound_at: Some(NOW.minus(seconds(60))),
            ..samples::session()
        };
        let cookie = identifier.cookie(NOW);
        let at = |second: u64| NOW.plus(seconds(second));
        for (second, is_good) in [(0, true), (60, true), (61, false)] {
            assert_eq!(binding.is_fresh(at(second)), is_good, "{second}");
        }
        for (second, is_good) in [(0, true), (900, true), (901, false)] {
            assert_eq!(refresh.is_fresh(&sid, at(second)), is_good, "{second}");
        }
        assert!(refresh.is_fresh(&sid, NOW.minus(seconds(60))));
        assert!(!refresh.is_fresh(&sid, NOW.minus(seconds(61))));
        assert!(!refresh.is_fresh(&Sid::new("sid-2"), NOW));
        assert!(identifier.is_alive(at(3_599)) && !identifier.is_alive(at(3_600)));
        let consent = ConsentInTime {
            tie: [1; 32],
            drawn_at: NOW,
        };
        for (tie, is_bound, second, counts) in [
            (1, false, 599, true),
            (1, false, 600, false),
            (1, true, 3_600, true),
            (2, true, 0, false),
        ] {
            let judged = consent.counts([tie; 32], is_bound, at(second));
            assert_eq!(judged, counts, "{tie} {is_bound} {second}");
        }
        let judged = |second| judge(&session, Some(&cookie), at(second));
        assert_eq!(judged(659), Binding::Proved);
        assert_eq!(judged(660), Binding::Refused);
    }

    fn header(changed: &[(&str, Value)]) -> Value {
        let jwk = samples::p256(1).to_jwk();
        let mut header = json!({"typ": TYP, "alg": "ES256", "jwk": jwk});
        for (name, value) in changed {
            header[*name] = value.clone();
        }
        header
    }

    fn proof(header: &Value, claims: &Value) -> String {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.AAAA", encode(header), encode(claims))
    }

    fn rsa(bytes: usize) -> Value {
        json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(vec![0xff; bytes]), "e": "AQAB"})
    }

    #[test]
    fn what_is_no_proof_is_refused_unread() {
        let claims = json!({"jti": "c"});
        let headers = [
            header(&[("typ", json!("JWT"))]),
            header(&[("typ", json!("dpop+jwt"))]),
            header(&[("typ", Value::Null)]),
            header(&[("alg", json!("none"))]),
            header(&[("alg", json!("HS256"))]),
            header(&[("alg", json!("EdDSA"))]),
            header(&[("crit", json!(["jwk"]))]),
        ];
        for header in headers {
            let text = proof(&header, &claims);
            assert!(UnverifiedKeyProof::read(&[&text]).is_none(), "{header}");
        }
        let long = "c".repeat(LONGEST_PROOF);
        for claims in [json!({}), json!({"jti": 7}), json!({"jti": long})] {
            let text = proof(&header(&[]), &claims);
            assert!(UnverifiedKeyProof::read(&[&text]).is_none(), "{claims}");
        }
        let good = proof(&header(&[]), &claims);
        let joined = format!("{good}, {good}");
        let lines: [&[&str]; 4] = [&[], &[&good, &good], &[&joined], &["a.b.c"]];
        for lines in lines {
            assert!(UnverifiedKeyProof::read(lines).is_none(), "{lines:?}");
        }
        for good in [good.clone(), format!("\"{good}\"")] {
            let read = UnverifiedKeyProof::read(&[&good]).unwrap();
            assert_eq!(read.challenge, "c");
            assert_eq!(read.embedded_key(), Some(samples::p256(1)));
        }
    }

    #[test]
    fn what_a_browser_sends_is_read() {
        for [registration, refresh] in CHROMIUM_PROOFS {
            let registration = UnverifiedKeyProof::read(&[registration]).unwrap();
            let refresh = UnverifiedKeyProof::read(&[refresh]).unwrap();
            let key = registration.embedded_key().unwrap();
            let alg = key.algorithm().as_str();
            assert_eq!(
                registration.challenge,
                format!("registration-challenge-{alg}")
            );
            assert_eq!(refresh.challenge, format!("refresh-challenge-{alg}"));
            assert_eq!(refresh.embedded_key(), None);
        }
    }

    #[test]
    fn a_key_is_of_one_of_the_two_kinds_and_neither_weak_nor_long() {
        let private = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "d": "AA"});
        for (alg, jwk, is_taken) in [
            ("RS256", rsa(256), true),
            ("RS256", rsa(512), true),
            ("RS256", rsa(255), false),
            ("RS256", rsa(513), false),
            ("ES256", private, false),
            ("ES256", json!("AA"), false),
            ("ES256", Value::Null, false),
        ] {
            let header = header(&[("alg", json!(alg)), ("jwk", jwk)]);
            let text = proof(&header, &json!({"jti": "c"}));
            let read = UnverifiedKeyProof::read(&[&text]).unwrap();
            assert_eq!(read.embedded_key().is_some(), is_taken, "{header}");
        }
    }

    #[test]
    fn a_request_says_in_its_own_words_why_nothing_was_proved() {
        for (header, skipped) in [
            (None, Skipped::None),
            (Some("quota_exceeded"), Skipped::QuotaExceeded),
            (
                Some("unreachable;session_identifier=\"a\""),
                Skipped::Unreachable,
            ),
            (Some("server_error"), Skipped::ServerError),
            (Some("\u{1}"), Skipped::Other),
        ] {
            assert_eq!(Skipped::of(header), skipped, "{header:?}");
        }
    }
}
