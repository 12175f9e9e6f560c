//! The e-mail addresses that letters go to (RFC 5321 §4.1.2). We write to ASCII addresses whose
//! local part needs no quotes: every other one could be read in two ways by somebody on the way.

use std::fmt;

/// RFC 5321 §4.5.3.1.3, without the angle brackets.
pub const LONGEST: usize = 254;
/// RFC 5321 §4.5.3.1.1.
const LONGEST_LOCAL_PART: usize = 64;
/// RFC 1035 §2.3.4.
const LONGEST_LABEL: usize = 63;

/// An address that a letter can be sent to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailAddress {
    text: String,
    at: usize,
}

impl MailAddress {
    /// Reads an address. The error is the rule that it breaks.
    pub fn parse(text: &str) -> Result<MailAddress, &'static str> {
        if text.len() > LONGEST {
            return Err("must have at most 254 characters");
        }
        let (local, domain) = text
            .rsplit_once('@')
            .ok_or("must be an e-mail address, as name@example.com")?;
        let is_local = local.len() <= LONGEST_LOCAL_PART && local.split('.').all(is_atom);
        if !is_local {
            return Err("must have plain ASCII letters, digits and marks before the @");
        }
        if !domain.split('.').all(is_label) {
            return Err("must have a domain of ASCII letters, digits and hyphens after the @");
        }
        Ok(MailAddress {
            text: text.to_owned(),
            at: local.len(),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn local_part(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    pub fn domain(&self) -> &str {
        self.text.get(self.at + 1..).unwrap_or_default()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// RFC 5322 §3.2.3, `atext`.
fn is_atom(text: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

fn is_label(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=LONGEST_LABEL).contains(&text.len())
        && text.bytes().all(is_allowed)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_and_names_one_mailbox() {
        for good in [
            "alice@example.com",
            "a.b+c_d@mail.example.org",
            "o'brien@localhost",
            "x@xn--bcher-kva.example",
        ] {
            let address = MailAddress::parse(good).unwrap();
            assert_eq!(
                format!("{}@{}", address.local_part(), address.domain()),
                good
            );
            assert_eq!((address.as_str(), &*address.to_string()), (good, good));
        }
        let domain = [&["abcdefg"; 31][..], &["com"]].concat().join(".");
        let longest = format!("ab@{domain}");
        assert_eq!(longest.len(), LONGEST);
        assert!(MailAddress::parse(&longest).is_ok());
        assert!(MailAddress::parse(&format!("c{longest}")).is_err());
        let long = format!("{}@example.com", "a".repeat(65));
        let longer = format!("a@{}", "abcdefgh.".repeat(30));
        for bad in [
            "",
            "alice",
            "@example.com",
            "alice@",
            "alice@example..com",
            "alice@-a.example",
            ".alice@example.com",
            "al..ice@example.com",
            "alice@example.com,bob@example.com",
            "alice@evil.example@example.com",
            "alice@example.com@evil.example",
            "alice@example.com\r\nBcc: bob@example.com",
            "\"alice smith\"@example.com",
            "alice smith@example.com",
            "alice@example.com>",
            "<alice@example.com>",
            "alice\0@example.com",
            "älice@example.com",
            "alice@bücher.example",
            "alice@[192.0.2.1]",
            &long,
            &longer,
        ] {
            assert!(MailAddress::parse(bad).is_err(), "{bad:?}");
        }
    }
}
