//! A person whose browser goes from one site to the next: a cookie jar per site, redirects followed
//! by hand.

use std::collections::BTreeMap;

use super::http::{Answer, Browser};

/// One person's browser. Sites on ports of this machine alone.
#[derive(Default)]
pub struct Traveller {
    sites: BTreeMap<String, Browser>,
    /// Addresses that were asked for, in order.
    pub went: Vec<String>,
}

impl Traveller {
    pub fn new() -> Traveller {
        Traveller::default()
    }

    /// The browser as one site knows it.
    pub fn at(&mut self, address: &str) -> &mut Browser {
        let origin =
            origin_of(address).unwrap_or_else(|| panic!("{address} is no address of this machine"));
        let port = origin.rsplit_once(':').unwrap().1.parse().unwrap();
        self.sites
            .entry(origin.to_owned())
            .or_insert_with(|| Browser::new(port, origin))
    }

    /// GET of an absolute address; no redirect is followed.
    pub fn get(&mut self, address: &str) -> Answer {
        self.went.push(address.to_owned());
        self.at(address).get(address)
    }

    /// Goes where an answer of `site` sends, from site to site, until a page, or an address of
    /// nobody here: then the answer that names it.
    pub fn follow(&mut self, site: &str, answer: Answer) -> Answer {
        self.follow_until(site, answer, |_| false)
    }

    /// The same, stopping also before an address that `stop` picks: the answer that names it.
    pub fn follow_until(
        &mut self,
        site: &str,
        mut answer: Answer,
        stop: impl Fn(&str) -> bool,
    ) -> Answer {
        let mut here = origin_of(site).unwrap().to_owned();
        for _ in 0..20 {
            let Some(location) = answer.header("location").map(str::to_owned) else {
                return answer;
            };
            let next = if location.starts_with('/') {
                format!("{here}{location}")
            } else {
                location
            };
            match origin_of(&next).map(str::to_owned) {
                Some(origin) if !stop(&next) => {
                    here = origin;
                    answer = self.get(&next);
                }
                Some(_) | None => return answer,
            }
        }
        panic!("a redirect loop: {:?}", self.went)
    }

    /// GET, and wherever it leads.
    pub fn visit(&mut self, address: &str) -> Answer {
        let answer = self.get(address);
        self.follow(address, answer)
    }

    /// Where the last page came from.
    pub fn here(&self) -> &str {
        self.went.last().unwrap()
    }
}

/// `http://127.0.0.1:PORT` or `http://localhost:PORT` of an address; `None` for any other.
fn origin_of(address: &str) -> Option<&str> {
    let rest = address
        .strip_prefix("http://127.0.0.1:")
        .or_else(|| address.strip_prefix("http://localhost:"))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    address.get(..address.len() - rest.len() + digits)
}
