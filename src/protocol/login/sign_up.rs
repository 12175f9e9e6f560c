//! Sign-up links: the operator passes one on, and whoever has it makes an account for their own
//! e-mail address. The address is proved by a letter.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::words::instant::Instant;
use crate::words::mail_address::MailAddress;

/// Sign-up links begin with this, so that secret scanners find them.
pub const PREFIX: &str = "gpj_";
/// The same of the links in letters, by which an account is made.
pub const JOIN_PREFIX: &str = "gpu_";
pub const JOIN_LIFETIME: Duration = Duration::from_secs(3_600);
const ID: usize = 16;
const TAG: usize = 32;

/// Names are compared by NFKC, which makes an `@` of the others.
const AT_SIGNS: [char; 3] = ['@', '\u{ff20}', '\u{fe6b}'];

/// Which sign-up link.
pub type SignUpId = [u8; ID];

/// The link as people pass it on: its id, and the tag that shows that we made it.
pub fn text(id: &SignUpId, tag: &[u8; TAG]) -> String {
    let bytes = [&id[..], &tag[..]].concat();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// Reads a link. The tag is not checked yet.
pub fn parse(text: &str) -> Option<(SignUpId, Vec<u8>)> {
    let encoded = text.strip_prefix(PREFIX)?;
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    let (id, tag) = bytes.split_first_chunk::<ID>()?;
    (tag.len() == TAG).then(|| (*id, tag.to_vec()))
}

/// What the link in a letter carries. It makes one account.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinLink {
    pub id: SignUpId,
    pub address: String,
    /// Tells letters apart: each makes one account.
    pub random: [u8; 16],
    pub expires_at: Instant,
}

/// Whether a sign-up link for addresses of `domain` takes this one.
pub fn takes(domain: Option<&str>, address: &MailAddress) -> bool {
    domain.is_none_or(|domain| address.domain().eq_ignore_ascii_case(domain))
}

/// Whether somebody with this address may be called so: a name that reads as an address must be
/// their own, as people also sign in by address.
pub fn may_be_called(username: &str, address: &str) -> bool {
    !username.contains(AT_SIGNS) || username.eq_ignore_ascii_case(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written() {
        let link = text(&[7; ID], &[9; TAG]);
        assert_eq!(parse(&link), Some(([7; ID], vec![9; TAG])));
        for other in ["", "gpj_", "gpl_AAAA", &link[..40], &format!("{link}AAAA")] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_domain_is_that_of_the_address_and_no_end_of_it() {
        let address = MailAddress::parse("a@Example.com").unwrap();
        assert!(takes(None, &address) && takes(Some("example.com"), &address));
        assert!(!takes(Some("ample.com"), &address) && !takes(Some("com"), &address));
    }

    #[test]
    fn nobody_is_called_by_the_address_of_somebody_else() {
        assert!(may_be_called("alice", "a@example.com"));
        assert!(may_be_called("A@example.com", "a@example.com"));
        assert!(!may_be_called("b@example.com", "a@example.com"));
        assert!(!may_be_called("a@", "a@example.com"));
        assert!(!may_be_called("b\u{ff20}example.com", "a@example.com"));
    }
}
