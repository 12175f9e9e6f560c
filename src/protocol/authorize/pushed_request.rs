//! Pushed authorization requests (RFC 9126): a client hands its request over before the browser
//! comes, and the browser brings a `request_uri` that stands for it. Ours *is* the request, sealed:
//! nothing is stored until it led to an answer with a code or tokens.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::identifiers::ClientId;
use crate::words::instant::Instant;
use crate::words::parameters::Parameters;
use crate::words::reason::Reason;

/// RFC 9126 §2.2
pub const REQUEST_URI: &str = "urn:ietf:params:oauth:request_uri:";
/// What comes behind it, before the sealed request.
pub const PREFIX: &str = "gpp_";
/// Characters of a `request_uri`: the browser's address must hold it.
pub const LONGEST: usize = 7_000;
pub const LIFETIME: Duration = Duration::from_secs(90);
/// How much longer than its pages go on it is remembered that it was used.
const MARGIN: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushedRequest {
    pub id: [u8; 16],
    pub client_id: ClientId,
    pub expires_at: Instant,
    pub parameters: Parameters,
}

impl PushedRequest {
    /// The name under which it is noted as used up.
    pub fn name(&self) -> String {
        format!("par:{:032x}", u128::from_be_bytes(self.id))
    }

    /// When nothing can come of it any more, whether it was used or not. `pages`: how long the
    /// pages of a request go on.
    pub fn forgotten_at(&self, pages: Duration) -> Instant {
        self.expires_at.plus(pages).plus(MARGIN)
    }
}

/// The sealed request in a `request_uri` of ours, if the request has one and no other.
pub fn sealed(parameters: &Parameters) -> Option<&str> {
    let request_uri = parameters.single("request_uri").ok().flatten()?;
    request_uri.strip_prefix(REQUEST_URI)
}

/// Judges a request that was opened, or could not be. It may be opened many times until it ends.
pub fn judge(
    opened: Option<PushedRequest>,
    client_id: &ClientId,
    now: Instant,
) -> Result<PushedRequest, Reason> {
    let pushed = opened.ok_or(Reason::PushedRequestDamaged)?;
    if pushed.client_id != *client_id {
        return Err(Reason::PushedRequestOfAnother);
    }
    if now < pushed.expires_at {
        Ok(pushed)
    } else {
        Err(Reason::PushedRequestExpired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples::NOW;

    fn pushed() -> PushedRequest {
        PushedRequest {
            id: [0xab; 16],
            client_id: ClientId::new("web"),
            expires_at: NOW.plus(LIFETIME),
            parameters: Parameters::from_pairs([("scope", "openid")]),
        }
    }

    #[test]
    fn it_is_for_the_client_that_pushed_it_until_it_ends() {
        let judged = |opened, client: &str, now| judge(opened, &ClientId::new(client), now);
        let end = pushed().expires_at;
        let tick = Duration::from_micros(1);
        assert_eq!(judged(Some(pushed()), "web", NOW), Ok(pushed()));
        assert_eq!(judged(Some(pushed()), "web", end.minus(tick)), Ok(pushed()));
        let expired = Err(Reason::PushedRequestExpired);
        assert_eq!(judged(Some(pushed()), "web", end), expired);
        let of_another = Err(Reason::PushedRequestOfAnother);
        assert_eq!(judged(Some(pushed()), "app", NOW), of_another);
        assert_eq!(judged(Some(pushed()), "app", end), of_another);
        let damaged = Err(Reason::PushedRequestDamaged);
        assert_eq!(judged(None, "web", NOW), damaged);
    }

    #[test]
    fn it_is_remembered_by_its_name_until_nothing_can_come_of_it() {
        let name = pushed().name();
        assert_eq!(name, format!("par:{}", "ab".repeat(16)));
        let pages = Duration::from_secs(600);
        let end = NOW.plus(LIFETIME).plus(pages).plus(MARGIN);
        assert_eq!(pushed().forgotten_at(pages), end);
    }

    #[test]
    fn only_a_request_uri_of_ours_has_a_sealed_request_in_it() {
        let sealed_in = |pairs: &[(&str, &str)]| {
            let parameters = Parameters::from_pairs(pairs.to_vec());
            sealed(&parameters).map(str::to_owned)
        };
        let ours = format!("{REQUEST_URI}gpp_x");
        let sent = ("request_uri", ours.as_str());
        assert_eq!(sealed_in(&[sent]).as_deref(), Some("gpp_x"));
        for pairs in [
            &[][..],
            &[sent, sent],
            &[("request_uri", "https://rp1.example/request")],
            &[("request", ours.as_str())],
        ] {
            assert_eq!(sealed_in(pairs), None, "{pairs:?}");
        }
    }
}
