//! A way to an upstream provider and back: what travels sealed as its `state`. Nothing of it is stored; that it comes back
//! with the browser it began in is the flow cookie's part, of which the hash stands here.

use std::time::Duration;

use super::super::codec::{Reader, Writer};
use super::super::instant::Instant;
use super::super::sealed_request::SealedPurpose;
use super::super::secret::SecretText;

/// How long somebody may be away.
pub const LIFETIME: Duration = Duration::from_secs(600);
/// The longest `state` sent upstream, in characters; some providers cut or refuse more.
pub const STATE: usize = 2_000;
/// The longest value of a flow cookie, in characters: browsers drop cookies above 4,096 bytes.
pub const COOKIE: usize = 3_500;
/// What upstream's whole seconds, and a clock slightly behind ours, may make a sign-in look older than it is.
const ROUNDING: Duration = Duration::from_secs(2);

/// What they went for. A way for one purpose ends in no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundTripPurpose {
    /// To sign in, for a request that was sealed with this purpose.
    SignIn(SealedPurpose),
    /// To link an account there to their own.
    Link {
        /// `sid` of the session that asked.
        sid: String,
    },
}

/// One way there and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// What for.
    pub purpose: RoundTripPurpose,
    /// The provider's name.
    pub provider: String,
    /// Whom that name stood for when they left: its issuer; without one, its `userinfo_endpoint`.
    pub issuer: String,
    /// Names the flow's cookie, with `begun_at`.
    pub flow: [u8; 8],
    /// SHA-256 of that cookie's value.
    pub cookie_hash: [u8; 32],
    /// `nonce`
    pub nonce: String,
    /// `code_verifier`
    pub code_verifier: SecretText,
    /// When they left.
    pub begun_at: Instant,
    /// `max_age`, as upstream was asked.
    pub max_age: Option<u64>,
    /// The page's `r`; `None` when the cookie holds it, and when a link needs none.
    pub request: Option<String>,
}

const SIGN_IN: u8 = 1;
const LINK: u8 = 2;

impl RoundTrip {
    /// The bytes to seal.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match &self.purpose {
            RoundTripPurpose::SignIn(purpose) => {
                writer.u8(SIGN_IN);
                writer.u8(purpose.byte());
            }
            RoundTripPurpose::Link { sid } => {
                writer.u8(LINK);
                writer.text(sid);
            }
        }
        writer.text(&self.provider);
        writer.text(&self.issuer);
        writer.fixed(&self.flow);
        writer.fixed(&self.cookie_hash);
        writer.text(&self.nonce);
        writer.text(self.code_verifier.expose());
        writer.instant(self.begun_at);
        writer.optional(self.max_age, |writer, max_age| writer.fixed(&max_age.to_be_bytes()));
        writer.optional(self.request.as_deref(), Writer::text);
        writer.finish()
    }

    /// Reads opened bytes.
    pub fn decode(opened: &[u8]) -> Option<RoundTrip> {
        let mut reader = Reader::new(opened);
        let trip = RoundTrip {
            purpose: purpose(&mut reader)?,
            provider: reader.text()?,
            issuer: reader.text()?,
            flow: reader.fixed()?,
            cookie_hash: reader.fixed()?,
            nonce: reader.text()?,
            code_verifier: SecretText::new(reader.text()?),
            begun_at: reader.instant()?,
            max_age: reader.optional(|reader| reader.fixed().map(u64::from_be_bytes))?,
            request: reader.optional(Reader::text)?,
        };
        reader.finish().map(|()| trip)
    }

    /// Whether it may still end: nobody stays away for ever.
    pub fn is_underway(&self, now: Instant) -> bool {
        now < self.over_at()
    }

    /// When it can end no more.
    pub fn over_at(&self) -> Instant {
        self.begun_at.plus(LIFETIME)
    }
}

fn purpose(reader: &mut Reader<'_>) -> Option<RoundTripPurpose> {
    match reader.u8()? {
        SIGN_IN => SealedPurpose::of_byte(reader.u8()?).map(RoundTripPurpose::SignIn),
        LINK => reader.text().map(|sid| RoundTripPurpose::Link { sid }),
        _ => None,
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
    use proptest::prelude::*;

    use super::*;

    fn trip(purpose: RoundTripPurpose) -> RoundTrip {
        RoundTrip {
            purpose,
            provider: String::from("corp"),
            issuer: String::from("https://up.example"),
            flow: [7; 8],
            cookie_hash: [9; 32],
            nonce: String::from("n-0S6_WzA2Mj"),
            code_verifier: SecretText::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            begun_at: Instant::from_seconds(1_000),
            max_age: Some(0),
            request: Some(String::from("r")),
        }
    }

    fn link() -> RoundTripPurpose {
        RoundTripPurpose::Link { sid: String::from("sid-1") }
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_read_back(
            kind in 0_usize..5, sid in prop::option::of(".{0,40}"), provider in ".{0,64}", issuer in ".{0,64}", flow in any::<[u8; 8]>(), hash in any::<[u8; 32]>(),
            nonce in "[A-Za-z0-9_-]{22}", begun_at in any::<i64>(), max_age in any::<Option<u64>>(), request in prop::option::of("[A-Za-z0-9_-]{0,2000}"),
        ) {
            let purpose = sid.map_or(RoundTripPurpose::SignIn(SealedPurpose::ALL[kind]), |sid| RoundTripPurpose::Link { sid });
            let whole = RoundTrip {
                purpose, provider, issuer, flow, cookie_hash: hash, code_verifier: SecretText::new(nonce.clone()), nonce,
                begun_at: Instant::from_micros(begun_at), max_age, request,
            };
            prop_assert_eq!(RoundTrip::decode(&whole.encode()), Some(whole));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = RoundTrip::decode(&bytes);
        }
    }

    #[test]
    fn anything_but_the_whole_is_refused() {
        for purpose in [link(), RoundTripPurpose::SignIn(SealedPurpose::Authorize)] {
            let whole = trip(purpose).encode();
            for length in 0..whole.len() {
                assert_eq!(RoundTrip::decode(&whole[..length]), None, "{length}");
            }
            assert_eq!(RoundTrip::decode(&[&whole[..], &[0]].concat()), None);
            for unknown in [0, 3, 255] {
                assert_eq!(RoundTrip::decode(&[&[unknown], &whole[1..]].concat()), None, "{unknown}");
            }
        }
        let whole = trip(RoundTripPurpose::SignIn(SealedPurpose::Authorize)).encode();
        assert_eq!(RoundTrip::decode(&[&whole[..1], &[7], &whole[2..]].concat()), None);
    }

    #[test]
    fn ten_minutes_are_the_limit() {
        let trip = trip(link());
        assert!(trip.is_underway(Instant::from_seconds(1_599)));
        assert!(!trip.is_underway(Instant::from_seconds(1_600)));
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
