//! One cookie for each way upstream that a browser is on: what comes back counts only with it. Names tell when each way
//! began, so that the oldest can make room; SameSite is always Lax, as the way back is a navigation and nothing else.

use crate::config::{Config, SameSite};
use crate::endpoints::cookies;
use crate::http::{Request, Response};
use crate::protocol::upstream::round_trip::LIFETIME;
use crate::protocol::words::hex;
use crate::protocol::words::instant::Instant;

/// Ways that one browser can be on at once.
const MOST: usize = 5;
/// What their cookies may come to, in bytes: proxies allow a header 16 KiB, often 8.
const MOST_BYTES: usize = 7_000;

/// A way that a browser is on, as its cookie's name tells it: when it began, and a random number. Sorts by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    begun_millis: i64,
    random: [u8; 8],
}

impl Flow {
    pub(crate) fn new(begun_at: Instant, random: [u8; 8]) -> Flow {
        Flow { begun_millis: begun_at.millis(), random }
    }

    pub(crate) fn cookie_name(self, config: &Config) -> String {
        let random = hex::encode(&self.random);
        cookies::name(config, &format!("flow-{:012x}{random}", self.begun_millis))
    }

    fn of_cookie_name(config: &Config, name: &str) -> Option<Flow> {
        let digits = name.split("flow-").nth(1)?.get(..28)?;
        let (begun_millis, random) = digits.split_at_checked(12)?;
        let flow = Flow {
            begun_millis: i64::from_str_radix(begun_millis, 16).ok()?,
            random: u64::from_str_radix(random, 16).ok()?.to_be_bytes(),
        };
        // One name for one way: whatever reads alike but is written otherwise is none of ours.
        (flow.cookie_name(config) == name).then_some(flow)
    }
}

/// Puts a browser on one more way; the oldest ones make room for it.
pub(crate) fn begin(config: &Config, request: &Request, response: Response, flow: Flow, value: &str) -> Response {
    let present =
        request.cookies().filter_map(|(name, value)| Some((Flow::of_cookie_name(config, name)?, value.len())));
    let outlived = making_room(present.collect(), value.len());
    let response = outlived.into_iter().fold(response, |response, flow| end(config, response, flow));
    let (name, seconds) = (flow.cookie_name(config), LIFETIME.as_secs());
    let attributes = cookies::attributes(config, SameSite::Lax);
    response.header("Set-Cookie", format!("{name}={value}; Max-Age={seconds}; {attributes}"))
}

pub(crate) fn end(config: &Config, response: Response, flow: Flow) -> Response {
    response.header("Set-Cookie", removal(config, flow))
}

pub(crate) fn removal(config: &Config, flow: Flow) -> String {
    format!("{}=; Max-Age=0; {}", flow.cookie_name(config), cookies::attributes(config, SameSite::Lax))
}

/// The ways that must go, by their cookies' lengths, for one more of length `added`: all but the latest.
fn making_room(mut present: Vec<(Flow, usize)>, added: usize) -> Vec<Flow> {
    present.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = added;
    let fits = present.iter().take(MOST - 1).take_while(|(_, length)| {
        bytes += length;
        bytes <= MOST_BYTES
    });
    let kept = fits.count();
    present.into_iter().skip(kept).map(|(flow, _)| flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(lengths: &[usize]) -> Vec<(Flow, usize)> {
        let flow = |(at, length): (usize, &usize)| (Flow { begun_millis: at as i64, random: [0; 8] }, *length);
        lengths.iter().enumerate().map(flow).collect()
    }

    fn gone(lengths: &[usize], added: usize) -> Vec<i64> {
        let mut gone: Vec<i64> = making_room(flows(lengths), added).iter().map(|flow| flow.begun_millis).collect();
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
