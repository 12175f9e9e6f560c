//! Who gets a letter: the address that an account has, and how many letters may go out. A letter
//! that is withheld is withheld silently: whoever asked for it learns nothing.

use serde_json::Value;

use crate::words::json::{JsonObject, Members};
use crate::words::named::named;

/// Letters an hour that somebody at one source may ask for.
pub const MOST_OF_SOURCE: u32 = 10;
/// Letters an hour to one address by which passwords are set anew.
pub const MOST_OF_ADDRESS: u32 = 3;
/// Notices an hour about one account; and letters an hour that it asks for to confirm an address.
pub const MOST_OF_ACCOUNT: u32 = 10;
/// Letters a day to one person about sign-ins from new browsers.
pub const MOST_NEW_BROWSERS: u32 = 3;
/// Letters an hour that a sign-up link sends for each account that it can still make.
const LETTERS_PER_USE: u32 = 3;
/// Letters an hour that a sign-up link may send, however few accounts it can still make.
const LEAST_OF_LINK: u32 = 10;
/// Sign-ups get one letter of so many. The others are for people who forgot their password.
const SIGN_UPS_SHARE: u32 = 3;
/// Users of one address that one letter names.
pub const MOST_USERS: usize = 10;

named! {
    /// Why a letter was not sent.
    pub enum Withheld {
        /// Too many asked for at this source.
        Source = "source",
        /// Too many to this address, or about this account.
        Account = "account",
        /// As many as may go out in an hour.
        Overall = "overall",
        /// One source or address would have had more than a tenth of what was left.
        Share = "share",
        /// As many as may go out in an hour to people who sign up.
        SignUps = "sign_ups",
        /// More than the sign-up link makes accounts of.
        Link = "link",
        /// Too many letters wait.
        Queue = "queue",
        /// The address is none that we write to.
        Address = "address",
    }
}

/// Letters by which passwords are set anew, within the present hour, with the one that is judged.
pub struct LetterCounts {
    pub source: u32,
    pub address: u32,
    pub overall: u32,
}

impl LetterCounts {
    /// Why this letter is not sent. One source, or one address, has at most a tenth of what is left
    /// of the hour: nobody alone keeps letters from everybody else.
    pub fn withheld(self, most_overall: u32) -> Option<Withheld> {
        let left = most_overall.saturating_sub(self.overall.saturating_sub(1));
        let share = (left / 10).max(1);
        if left == 0 {
            Some(Withheld::Overall)
        } else if self.address > MOST_OF_ADDRESS {
            Some(Withheld::Account)
        } else if self.source > MOST_OF_SOURCE {
            Some(Withheld::Source)
        } else if self.source > share || self.address > share {
            Some(Withheld::Share)
        } else {
            None
        }
    }
}

/// Letters to people who sign up, within the present hour, with the one that is judged.
pub struct SignUpCounts {
    /// From the IPv4 address or the IPv6 /48 that asked.
    pub site: u32,
    pub link: u32,
    pub sign_ups: u32,
}

impl SignUpCounts {
    /// Why this letter is not sent. Strangers choose the addresses that these letters go to. So
    /// sign-ups have a share of the hour's letters, and a link sends few more than it has uses.
    pub fn withheld(self, most_overall: u32, uses_left: u32) -> Option<Withheld> {
        let most_of_link = uses_left.saturating_mul(LETTERS_PER_USE).max(LEAST_OF_LINK);
        if self.sign_ups > (most_overall / SIGN_UPS_SHARE).max(1) {
            Some(Withheld::SignUps)
        } else if self.link > most_of_link {
            Some(Withheld::Link)
        } else if self.site > MOST_OF_SOURCE {
            Some(Withheld::Source)
        } else {
            None
        }
    }
}

/// The address in the claims of a user, if they call it verified. Where the word of an identity
/// provider made it so, the provider's registration says whether letters go there: the store knows.
pub fn verified_address(claims: &JsonObject) -> Option<&str> {
    let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
    stored_address(claims).filter(|_| is_verified)
}

/// The address in the claims of a user, whoever wrote it there.
pub fn stored_address(claims: &JsonObject) -> Option<&str> {
    claims.text("email")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nobody_alone_uses_up_the_letters_of_an_hour() {
        let judged = |source, address, overall| {
            LetterCounts {
                source,
                address,
                overall,
            }
            .withheld(300)
        };
        for (counts, withheld) in [
            ((1, 1, 1), None),
            ((10, 3, 100), None),
            ((11, 1, 100), Some(Withheld::Source)),
            ((1, 4, 100), Some(Withheld::Account)),
            ((1, 1, 300), None),
            ((1, 1, 301), Some(Withheld::Overall)),
            // 31 are left: three for each.
            ((3, 3, 270), None),
            ((4, 1, 270), Some(Withheld::Share)),
            ((1, 2, 290), Some(Withheld::Share)),
        ] {
            let (source, address, overall) = counts;
            assert_eq!(judged(source, address, overall), withheld, "{counts:?}");
        }
    }

    #[test]
    fn sign_ups_leave_most_letters_to_others_and_a_link_sends_few_more_than_its_uses() {
        let judged = |site, link, sign_ups, most_overall, uses_left| {
            SignUpCounts {
                site,
                link,
                sign_ups,
            }
            .withheld(most_overall, uses_left)
        };
        for (counts, most_overall, uses_left, withheld) in [
            ((10, 10, 100), 300, 1, None),
            ((11, 10, 100), 300, 1, Some(Withheld::Source)),
            ((1, 11, 100), 300, 1, Some(Withheld::Link)),
            ((1, 11, 100), 300, 0, Some(Withheld::Link)),
            ((1, 60, 100), 300, 20, None),
            ((1, 61, 100), 300, 20, Some(Withheld::Link)),
            ((1, 1, 101), 300, 20, Some(Withheld::SignUps)),
            ((1, 1, 1), 1, 1, None),
            ((1, 1, 2), 5, 1, Some(Withheld::SignUps)),
        ] {
            let (site, link, sign_ups) = counts;
            let found = judged(site, link, sign_ups, most_overall, uses_left);
            assert_eq!(found, withheld, "{counts:?} {most_overall} {uses_left}");
        }
    }

    #[test]
    fn only_an_address_that_was_verified_counts() {
        for (claims, address) in [
            (
                json!({"email": "a@b.example", "email_verified": true}),
                Some("a@b.example"),
            ),
            (json!({"email": "a@b.example"}), None),
            (
                json!({"email": "a@b.example", "email_verified": false}),
                None,
            ),
            (
                json!({"email": "a@b.example", "email_verified": "true"}),
                None,
            ),
            (json!({"email": 1, "email_verified": true}), None),
            (json!({"email_verified": true}), None),
        ] {
            let claims = claims.as_object().unwrap();
            assert_eq!(verified_address(claims), address, "{claims:?}");
        }
    }
}
