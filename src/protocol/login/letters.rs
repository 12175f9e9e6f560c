//! Who gets a letter: the address that an account has, and how many letters may go out. A letter
//! that is withheld is withheld silently: whoever asked for it learns nothing.

use serde_json::{Map, Value};

use crate::protocol::words::named::named;

/// Letters an hour that somebody at one source may ask for.
pub const MOST_OF_SOURCE: u32 = 10;
/// Letters an hour to one address by which passwords are set anew.
pub const MOST_OF_ADDRESS: u32 = 3;
/// Notices an hour about one account; and letters an hour that it asks for to confirm an address.
pub const MOST_OF_ACCOUNT: u32 = 10;
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
        /// Too many letters wait.
        Queue = "queue",
        /// The address is none that we write to.
        Address = "address",
    }
}

/// Letters by which passwords are set anew, within the present hour, with the one that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The address in the claims of a user, if they call it verified. Where the word of an identity
/// provider made it so, the provider's registration says whether letters go there: the store knows.
pub fn verified_address(claims: &Map<String, Value>) -> Option<&str> {
    let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
    stored_address(claims).filter(|_| is_verified)
}

/// The address in the claims of a user, whoever wrote it there.
pub fn stored_address(claims: &Map<String, Value>) -> Option<&str> {
    claims.get("email").and_then(Value::as_str)
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
