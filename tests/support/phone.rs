//! A phone with an app that shows codes (RFC 6238), written apart from the code under test.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;

use super::http::{Answer, Browser};

const STEP_SECONDS: u64 = 30;
const NEAR_SECONDS: u64 = 2;

pub struct Phone {
    /// As it is typed.
    pub key: String,
    secret: Vec<u8>,
    /// Seconds that its clock is ahead of this machine's.
    pub ahead: u64,
}

impl Phone {
    /// From the key that a page shows in groups of four.
    pub fn from_page(page: &Answer, ahead: u64) -> Phone {
        let text = page.text();
        let (_, rest) = text
            .split_once("<code class=\"key\">")
            .unwrap_or_else(|| panic!("no key: {text}"));
        let key: String = rest
            .split_once('<')
            .unwrap()
            .0
            .chars()
            .filter(|letter| *letter != ' ')
            .collect();
        Phone::with_key(key, ahead)
    }

    pub fn with_key(key: String, ahead: u64) -> Phone {
        assert_eq!(key.len(), 32, "{key}");
        let mut bits = String::new();
        for letter in key.chars() {
            let index = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(letter).unwrap();
            bits.push_str(&format!("{index:05b}"));
        }
        let bytes = bits
            .as_bytes()
            .chunks(8)
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap());
        Phone {
            secret: bytes.collect(),
            key,
            ahead,
        }
    }

    /// The code of the step so many away from the present one. Near the end of a step the one before
    /// would be two away when it arrives, and not be taken: then this waits for the next.
    pub fn code(&self, steps: i64) -> String {
        let left = STEP_SECONDS - self.seconds() % STEP_SECONDS;
        if steps < 0 && left <= NEAR_SECONDS {
            sleep(Duration::from_secs(left));
        }
        let step = i64::try_from(self.seconds() / STEP_SECONDS).unwrap() + steps;
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.secret);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let at = usize::from(tag.as_ref()[19] & 15);
        let number = u32::from_be_bytes(tag.as_ref()[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
        format!("{:06}", number % 1_000_000)
    }

    /// By its clock, since 1970.
    fn seconds(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_secs() + self.ahead
    }
}

/// The recovery codes that a page shows.
pub fn recovery_codes(page: &Answer) -> Vec<String> {
    let text = page.text();
    assert!(
        text.contains("Keep your recovery codes"),
        "{} {text}",
        page.status
    );
    let codes: Vec<String> = text
        .split("<li><code>")
        .skip(1)
        .map(|rest| rest.split_once('<').unwrap().0.to_owned())
        .collect();
    assert_eq!(codes.len(), 10, "{text}");
    codes
}

/// Adds an app on the account page of a browser that signed in just now. With the recovery codes,
/// unless there was one before.
pub fn add_app(browser: &mut Browser, ahead: u64) -> (Phone, Vec<String>) {
    let account = browser.visit("/account");
    let page = browser.submit(&account, &[("decision", "add_app")]);
    let phone = Phone::from_page(&page, ahead);
    let done = browser.submit(&page, &[("decision", "add_app"), ("code", &phone.code(-1))]);
    let codes = recovery_codes(&done);
    browser
        .submit(&done, &[("decision", "continue")])
        .assert_status(303);
    (phone, codes)
}
