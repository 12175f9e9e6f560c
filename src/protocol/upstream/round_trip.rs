//! A way to an upstream provider and back: what travels sealed as its `state`. Nothing of it is stored; that it comes back
//! with the browser it began in is the flow cookie's part, of which the hash stands here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::secret::SecretText;

/// How long somebody may be away.
pub const LIFETIME: Duration = Duration::from_secs(600);
/// The longest `state` sent upstream, in characters; some providers cut or refuse more.
pub const STATE: usize = 2_000;
/// The longest value of a flow cookie, in characters: browsers drop cookies above 4,096 bytes.
pub const COOKIE: usize = 3_500;
/// What upstream's whole seconds, and a clock slightly behind ours, may make a sign-in look older than it is.
const ROUNDING: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// `sid` of the session that asked to link an account there to its own; `None` for a sign-in.
    pub linking: Option<Sid>,
    pub provider: String,
    /// Whom that name stood for when they left: its issuer; without one, its `userinfo_endpoint`.
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
    /// Whether it may still end: nobody stays away for ever.
    pub fn is_underway(&self, now: Instant) -> bool {
        now < self.over_at()
    }

    pub fn over_at(&self) -> Instant {
        self.begun_at.plus(LIFETIME)
    }
}

/// A secret under the seal: the one place where serde reads it, said at its field.
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

/// `auth_time` of a session that begins with a sign-in upstream: as upstream says, never later than `now`, else `now`. To a
/// request that asks how old the sign-in is, one that upstream dates within the second of its coming is its own.
pub fn auth_time(upstream: Option<Instant>, asked_at: Option<Instant>, now: Instant) -> Instant {
    let dated = upstream.unwrap_or(now).min(now);
    match asked_at {
        Some(asked_at) if dated < asked_at && dated.plus(ROUNDING) >= asked_at => asked_at,
        Some(_) | None => dated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::words::samples;

    #[test]
    fn ten_minutes_are_the_limit() {
        let trip = samples::round_trip();
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
        assert_eq!(auth_time(Some(at(90)), Some(asked_at), now), asked_at, "the same second");
        assert_eq!(auth_time(Some(at(90)), None, now), at(90), "nobody asks");
        assert_eq!(auth_time(Some(at(95)), Some(asked_at), now), at(95));
        for before in [0, 50, 88] {
            assert_eq!(auth_time(Some(at(before)), Some(asked_at), now), at(before), "{before}");
        }
    }
}
