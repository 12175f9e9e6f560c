//! Logos of clients. A logo is fetched from its registered address when somebody first looks, and
//! then kept in memory for a while; so is a failure to fetch it. The memory is bounded, and nothing
//! is fetched twice at the same time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::outbound::{Outbound, OutboundError, OutboundRequest};
use gatepost_protocol::registration::user;
use gatepost_protocol::words::instant::Instant;
use gatepost_store::mutex::Mutex;

/// Bytes kept at once: sixty of the longest pictures, or a thousand of the usual ones.
const MOST_KEPT: usize = 16 * 1_024 * 1_024;
/// Counted for each address, with or without a picture.
const ENTRY_BYTES: usize = 4 * 1_024;
const MOST_BYTES: usize = 256 * 1_024;
const WITHIN: Duration = Duration::from_secs(3);
const KEPT: Duration = Duration::from_secs(86_400);
/// How long a failure is kept. When a picture cannot be fetched anew, the old one is shown for so
/// long.
const FAILURE_KEPT: Duration = Duration::from_secs(600);
/// A fetch is over by then. Until then nobody else begins one.
const FETCHING: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq)]
pub struct Logo {
    pub media_type: &'static str,
    pub bytes: Arc<[u8]>,
}

#[derive(Debug)]
struct Kept {
    logo: Option<Logo>,
    until: Instant,
}

#[derive(Debug, Default)]
pub struct ClientLogos {
    kept: Mutex<HashMap<String, Kept>>,
}

impl ClientLogos {
    /// The picture at a registered `logo_uri`; `None` when it cannot be had now.
    pub fn find(&self, outbound: &Outbound, logo_uri: &str, now: Instant) -> Option<Logo> {
        self.find_by(logo_uri, now, || fetch(outbound, logo_uri))
    }

    fn find_by(
        &self,
        logo_uri: &str,
        now: Instant,
        fetch: impl FnOnce() -> Result<Option<Logo>, OutboundError>,
    ) -> Option<Logo> {
        let mut kept = self.kept.lock();
        let entry = kept.get(logo_uri);
        if let Some(entry) = entry.filter(|entry| now < entry.until) {
            return entry.logo.clone();
        }
        // One request fetches. The others get the picture from before, if there is one.
        let before = entry.and_then(|entry| entry.logo.clone());
        keep(
            &mut kept,
            logo_uri,
            Kept {
                logo: before.clone(),
                until: now.plus(FETCHING),
            },
        );
        drop(kept);
        let (logo, until) = match fetch() {
            Ok(Some(logo)) => (Some(logo), now.plus(KEPT)),
            Ok(None) => (None, now.plus(FAILURE_KEPT)),
            // No place was free for the request; the next look may find one.
            Err(OutboundError::Busy) => (before, now),
            Err(error) => {
                log::info!(
                    "the logo at {} cannot be had: {error}",
                    logo_uri.escape_debug()
                );
                (before, now.plus(FAILURE_KEPT))
            }
        };
        keep(
            &mut self.kept.lock(),
            logo_uri,
            Kept {
                logo: logo.clone(),
                until,
            },
        );
        logo
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let picture = self.logo.as_ref();
        ENTRY_BYTES + picture.map_or(0, |logo| logo.bytes.len())
    }
}

/// While they are too large together, the one whose time ends first is dropped.
fn keep(kept: &mut HashMap<String, Kept>, logo_uri: &str, entry: Kept) {
    kept.remove(logo_uri);
    while kept.values().map(Kept::bytes).sum::<usize>() + entry.bytes() > MOST_KEPT {
        let first = kept
            .iter()
            .min_by_key(|(_, entry)| entry.until)
            .map(|(uri, _)| uri.clone());
        if let Some(first) = first {
            kept.remove(&first);
        }
    }
    kept.insert(logo_uri.to_owned(), entry);
}

fn fetch(outbound: &Outbound, logo_uri: &str) -> Result<Option<Logo>, OutboundError> {
    let request = OutboundRequest::get(logo_uri)
        .header("Accept", "image/png, image/jpeg, image/webp, image/gif");
    let answer = outbound.send(&request.within(WITHIN).at_most(MOST_BYTES))?;
    let media_type = user::media_type(&answer.body).filter(|_| answer.status == 200);
    let Some(media_type) = media_type else {
        log::info!(
            "there is no raster image at {} (status {})",
            logo_uri.escape_debug(),
            answer.status
        );
        return Ok(None);
    };
    Ok(Some(Logo {
        media_type,
        bytes: answer.body.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_seconds(1_000_000);

    fn logo(byte: u8) -> Logo {
        Logo {
            media_type: "image/png",
            bytes: Arc::from([byte]),
        }
    }

    fn never() -> Result<Option<Logo>, OutboundError> {
        panic!("fetched again")
    }

    #[test]
    fn a_picture_is_fetched_once_and_then_kept_for_a_day() {
        let logos = ClientLogos::default();
        assert_eq!(logos.find_by("a", NOW, || Ok(Some(logo(1)))), Some(logo(1)));
        assert_eq!(
            logos.find_by("a", NOW.plus(KEPT).minus(Duration::from_secs(1)), never),
            Some(logo(1))
        );
        assert_eq!(
            logos.find_by("a", NOW.plus(KEPT), || Ok(Some(logo(2)))),
            Some(logo(2))
        );
        assert_eq!(logos.find_by("b", NOW, || Ok(Some(logo(3)))), Some(logo(3)));
    }

    #[test]
    fn a_server_that_fails_later_takes_no_picture_away() {
        let logos = ClientLogos::default();
        logos.find_by("a", NOW, || Ok(Some(logo(1))));
        let later = NOW.plus(KEPT);
        assert_eq!(
            logos.find_by("a", later, || Err(OutboundError::TooSlow)),
            Some(logo(1))
        );
        assert_eq!(
            logos.find_by("a", later.plus(Duration::from_secs(599)), never),
            Some(logo(1))
        );
        assert_eq!(
            logos.find_by("a", later.plus(FAILURE_KEPT), || Ok(None)),
            None
        );
    }

    #[test]
    fn a_busy_moment_is_not_remembered() {
        let logos = ClientLogos::default();
        assert_eq!(logos.find_by("a", NOW, || Err(OutboundError::Busy)), None);
        assert_eq!(logos.find_by("a", NOW, || Ok(Some(logo(1)))), Some(logo(1)));
    }

    #[test]
    fn while_one_fetches_nobody_else_does() {
        let logos = ClientLogos::default();
        let found = logos.find_by("a", NOW, || {
            assert_eq!(logos.find_by("a", NOW.plus(WITHIN), never), None);
            Ok(Some(logo(1)))
        });
        assert_eq!(found, Some(logo(1)));
        // A fetch that never came back does not keep others from it for long.
        let lost = std::panic::AssertUnwindSafe(|| logos.find_by("b", NOW, || panic!("lost")));
        std::panic::catch_unwind(lost).unwrap_err();
        assert_eq!(logos.find_by("b", NOW, never), None);
        assert_eq!(
            logos.find_by("b", NOW.plus(FETCHING), || Ok(Some(logo(2)))),
            Some(logo(2))
        );
    }

    /// So many pictures of that length, each fetched a second after the one before.
    fn filled(count: u64, length: usize) -> ClientLogos {
        let logos = ClientLogos::default();
        for number in 0..count {
            let picture = Logo {
                media_type: "image/png",
                bytes: Arc::from(vec![0; length]),
            };
            let later = NOW.plus(Duration::from_secs(number));
            logos.find_by(&number.to_string(), later, || Ok(Some(picture)));
        }
        logos
    }

    #[test]
    fn memory_is_bounded() {
        for (length, most) in [(MOST_BYTES, 63), (60 * 1_024, 256)] {
            let logos = filled(most + 10, length);
            let kept = logos.kept.lock();
            assert_eq!(kept.len() as u64, most, "{length}");
            // The latest ones.
            let oldest = kept.keys().map(|uri| uri.parse::<u64>().unwrap()).min();
            assert_eq!(oldest, Some(10), "{length}");
        }
    }

    #[test]
    fn pictures_of_a_thousand_clients_stay() {
        let logos = filled(1_000, 10 * 1_024);
        for number in 0..1_000 {
            let later = NOW.plus(Duration::from_secs(1_000));
            assert!(logos.find_by(&number.to_string(), later, never).is_some());
        }
    }
}
